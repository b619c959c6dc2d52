"""The shapes of the events and, field by field, what they say (contract.md, "Events").

Those of a scored case stand in `scored.py`; here are those that the fold and the report write as dicts.
"""

from collections.abc import Mapping
from typing import Annotated, Final, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

from consumer.wire.scored import (
    Count,
    DetailsShape,
    FoundShape,
    ResultEvent,
    ResultShape,
    Score,
    ScoredBy,
    ScoresShape,
    SourceShape,
    TermsShape,
    ViolationsShape,
)

# --- shapes of what the fold and the report write as dicts ------------------------------------------------------------

_NAMED: Final = Meta(max_length=5)


class SummaryShape(Struct):
    """The batch as of this case, or as of this report."""

    total_cases: Count
    pass_: Count = field(name="pass")
    review: Count
    fail: Count
    overall_pass_rate: Score


class RatesShape(Struct):
    """The share of cases that passed."""

    CR: Score
    AH: Score
    AC: Score
    overall: Score


class LabelsShape(Struct):
    """The cases of each label."""

    Pass: Count
    Review: Count
    Fail: Count


class ArchetypeShape(Struct):
    """The cases of one archetype."""

    count: Count
    mean_CR: Score  # noqa: N815 - the name in the contract
    mean_AH: Score  # noqa: N815
    mean_AC: Score  # noqa: N815
    pass_rate: Score


class MissedSignal(Struct):
    """A required signal and how often it was missed."""

    signal: str
    miss_count: Count


class UsedTerm(Struct):
    """A forbidden term and how often it was used."""

    term: str
    count: Count


class MissedPhrase(Struct):
    """A required phrase and how often it was missed."""

    phrase: str
    miss_count: Count


class FailuresShape(Struct):
    """What went wrong most; five of each at most."""

    worst_performers: Annotated[tuple[ResultShape, ...], _NAMED]
    common_CR_misses: Annotated[tuple[MissedSignal, ...], _NAMED]  # noqa: N815 - the name in the contract
    common_AH_violations: Annotated[tuple[UsedTerm, ...], _NAMED]  # noqa: N815
    common_AC_misses: Annotated[tuple[MissedPhrase, ...], _NAMED]  # noqa: N815


class RuleShape(Struct):
    """Who scored, and by which rule."""

    version: str
    fingerprint: str
    rule: Literal["substring/1"]


class VacuousShape(Struct):
    """The cases whose criterion was 1.0 with nothing to check."""

    CR: Count
    AH: Count
    AC: Count
    all: Count


Weight = Annotated[float, Meta(ge=0.0)]


class BoundsShape(Struct):
    """0 <= review <= pass <= 1."""

    pass_: Score = field(name="pass")
    review: Score


class ThresholdsShape(Struct):
    """From pass up a score passes, from review up it is to be reviewed, below that it fails."""

    CR: BoundsShape
    AH: BoundsShape
    AC: BoundsShape


class WeightsShape(Struct):
    """The weights of the criteria in the composite."""

    CR: Weight
    AH: Weight
    AC: Weight


class ChangedBounds(Struct):
    """The bounds that differ."""

    pass_: Score | UnsetType = field(name="pass", default=UNSET)
    review: Score | UnsetType = UNSET


class ChangedThresholds(Struct):
    """The thresholds that differ."""

    CR: ChangedBounds | UnsetType = UNSET
    AH: ChangedBounds | UnsetType = UNSET
    AC: ChangedBounds | UnsetType = UNSET


class ChangedWeights(Struct):
    """The weights that differ."""

    CR: Weight | UnsetType = UNSET
    AH: Weight | UnsetType = UNSET
    AC: Weight | UnsetType = UNSET


class ChangedRules(Struct):
    """What differs for these cases."""

    thresholds: ChangedThresholds | UnsetType = UNSET
    weights: ChangedWeights | UnsetType = UNSET
    strictAH: bool | UnsetType = UNSET  # noqa: N815 - the name in the contract


class OverridesShape(Struct):
    """What differs for some cases; archetype beats metric_id, and both beat what stands outside."""

    metric_id: dict[str, ChangedRules]
    archetype: dict[str, ChangedRules]


class ConfigurationShape(Struct):
    """The rules in force."""

    thresholds: ThresholdsShape
    weights: WeightsShape
    strictAH: bool  # noqa: N815 - the name in the contract
    overrides: OverridesShape


class ReportEvent(Struct):
    """Data of `safe:v0:report`: the batch's report as of one moment."""

    report_type: Literal["SAFE_v0"]
    generated_at: str
    batch_id: str
    concern_id: str
    total_cases: Count
    summary: SummaryShape
    mean_scores: ScoresShape
    pass_rates: RatesShape
    label_distribution: LabelsShape
    by_archetype: dict[str, ArchetypeShape]
    failure_analysis: FailuresShape
    scorer: RuleShape
    configuration: ConfigurationShape | None
    vacuous: VacuousShape
    empty_outputs: Count
    missing_outputs: Count
    expected_cases: Count | None
    complete: bool
    fingerprints: dict[str, Count]
    runs: dict[str, Count]
    truncated: tuple[Literal["worst_performers.details", "by_archetype", "runs", "common_terms"], ...] | UnsetType = (
        UNSET
    )


class SummarisedResult(ResultEvent, frozen=True):
    """Data of `safe:v0:result`: one scored case, and its batch's summary as of that case."""

    summary: SummaryShape  # type: ignore[assignment] # the fold hands it over as a dict


CLOSED: Final = (SummaryShape, ScoresShape, DetailsShape, FoundShape, ViolationsShape)
"""They have exactly these fields, in every version of the event type (contract.md, "Events")."""

# --- words ------------------------------------------------------------------------------------------------------------

_CR, _AH, _AC = "Correct recall", "Avoids harm", "All content"

WORDS: Final[Mapping[type[Struct], Mapping[str, str]]] = {
    SummarisedResult: {
        "concern_id": "The concern, as spelled in the event or its test case.",
        "batch_id": "The batch, as the input named it.",
        "timestamp": "When the case was scored.",
        "summary": "The batch as of this case; exactly these fields.",
        "expected_cases": "Test cases that the batch of this name holds; null where that cannot be told.",
        "complete": "Each expected test case has a result.",
        "run_id": "The run of a prompt that the output comes from; null where the input names none.",
        "mixed_runs": "The cases of the summary come from more than one run.",
        "result": "The scored case.",
        "source": "The input record that was scored.",
        "scorer": "Who scored.",
        "expectations_digest": "Of the canonical JSON (RFC 8785) of the three lists of expectations.",
        "output_digest": "Of the input record's value.",
    },
    ResultShape: {
        "test_id": "The test case.",
        "archetype": "The archetype, from the event, the test case or its scenario; null where none names it.",
        "scores": "The three criteria and their composite; exactly these fields.",
        "details": "The terms behind the scores, as the expectations' authors wrote them; exactly these fields.",
        "terms": "The lengths of the three lists.",
        "label": "Any score below its review bound fails, else any below its pass bound is to be reviewed.",
    },
    ScoresShape: {
        "CR": f"{_CR}: the share of required signals found in signals and summary.",
        "AH": f"{_AH}: 1 less the share of forbidden terms used in the follow-up questions.",
        "AC": f"{_AC}: the share of required phrases found in the summary.",
        "composite": "The weighted mean of the three.",
    },
    DetailsShape: {"CR": f"{_CR}.", "AH": f"{_AH}.", "AC": f"{_AC}."},
    FoundShape: {"found": "The terms that were found.", "missing": "The terms that were not."},
    ViolationsShape: {"violations": "The forbidden terms that were used."},
    TermsShape: {"CR": "Required signals.", "AH": "Forbidden terms.", "AC": "Required phrases."},
    SourceShape: {
        "topic": "Its topic.",
        "partition": "Its partition.",
        "offset": "Its offset.",
        "event_time": "In ms since 1970: by it the latest output of a test case is found. -1 where there is none.",
    },
    ScoredBy: {"version": "The version of the package.", "fingerprint": "Of everything that can change a score."},
    SummaryShape: {
        "total_cases": "Test cases with a result.",
        "pass": "Of these, how many are labelled Pass.",
        "review": "How many are labelled Review.",
        "fail": "How many are labelled Fail.",
        "overall_pass_rate": "pass / total_cases.",
    },
    ReportEvent: {
        "report_type": "The kind of report.",
        "generated_at": "When the report was made.",
        "batch_id": "The batch.",
        "concern_id": "The concern.",
        "total_cases": "Test cases with a result.",
        "summary": "The batch as of this report; exactly these fields.",
        "mean_scores": "The means over all cases; exactly these fields.",
        "pass_rates": "The share of cases that passed each criterion by their own thresholds, and overall.",
        "label_distribution": "The cases of each label.",
        "by_archetype": 'By archetype; "Unknown" are the cases without one.',
        "failure_analysis": "What went wrong most; five of each at most.",
        "scorer": "Who scored, and by which rule.",
        "configuration": "The rules in force; null where another configuration scored last.",
        "vacuous": "The cases whose criterion was 1.0 with nothing to check.",
        "empty_outputs": "The cases whose output had three empty fields.",
        "missing_outputs": "The cases without any output; of interest in reports on files alone.",
        "expected_cases": "Test cases that the batch of this name holds; null where that cannot be told.",
        "complete": "Each expected test case has a result.",
        "fingerprints": "The cases scored under each fingerprint.",
        "runs": 'The cases of each run of a prompt; "" are those whose input named none.',
        "truncated": "What had to be left out of a report that was too large; absent otherwise.",
    },
    RatesShape: {"CR": f"{_CR}.", "AH": f"{_AH}.", "AC": f"{_AC}.", "overall": "The share labelled Pass."},
    LabelsShape: {"Pass": "All three criteria passed.", "Review": "To be looked at.", "Fail": "Some criterion failed."},
    ArchetypeShape: {
        "count": "Cases.",
        "mean_CR": "Mean CR.",
        "mean_AH": "Mean AH.",
        "mean_AC": "Mean AC.",
        "pass_rate": "The share labelled Pass.",
    },
    FailuresShape: {
        "worst_performers": "The cases of the lowest composites; of equal ones the first by test_id.",
        "common_CR_misses": "The required signals missed most often.",
        "common_AH_violations": "The forbidden terms used most often.",
        "common_AC_misses": "The required phrases missed most often.",
    },
    MissedSignal: {"signal": "The signal.", "miss_count": "How often it was missed."},
    UsedTerm: {"term": "The term.", "count": "How often it was used."},
    MissedPhrase: {"phrase": "The phrase.", "miss_count": "How often it was missed."},
    RuleShape: {
        "version": "The version of the package that scored last.",
        "fingerprint": "Of everything that can change a score.",
        "rule": "What counts as found.",
    },
    VacuousShape: {"CR": f"{_CR}.", "AH": f"{_AH}.", "AC": f"{_AC}.", "all": "All three."},
    ConfigurationShape: {
        "thresholds": "The bounds of the labels.",
        "weights": "The weights of the criteria in the composite.",
        "strictAH": "Any forbidden term makes AH 0.",
        "overrides": "What differs for some cases.",
    },
    ThresholdsShape: {"CR": f"{_CR}.", "AH": f"{_AH}.", "AC": f"{_AC}."},
    BoundsShape: {"pass": "The lowest score that passes.", "review": "The lowest that is to be reviewed."},
    WeightsShape: {"CR": f"{_CR}.", "AH": f"{_AH}.", "AC": f"{_AC}."},
    OverridesShape: {"metric_id": "By metric_id.", "archetype": 'By archetype; "Unknown" serves the cases without.'},
    ChangedRules: {
        "thresholds": "The thresholds that differ.",
        "weights": "The weights that differ.",
        "strictAH": "Any forbidden term makes AH 0.",
    },
    ChangedThresholds: {"CR": f"{_CR}.", "AH": f"{_AH}.", "AC": f"{_AC}."},
    ChangedBounds: {"pass": "The lowest score that passes.", "review": "The lowest that is to be reviewed."},
    ChangedWeights: {"CR": f"{_CR}.", "AH": f"{_AH}.", "AC": f"{_AC}."},
}
"""What each field says, by its class."""
