"""One scored case as `scored` and the changelog hold it.

A scored record and the row of the changelog have the same value, so that the aggregator copies what won byte for byte.
The classes are the shapes: msgspec checks every type and bound while it reads, about as fast as others only parse.
"""

from typing import Annotated, Any, Generic, Literal, NamedTuple, TypeVar

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType
from msgspec.structs import replace

from consumer.wire.headers import Undecodable
from safe_core import CaseRow, CaseScore, Details, Generation, Passed, Scores, Terms, Vacuous
from safe_core.lenient_scores import Marks
from safe_core.remembered import Remembered
from safe_core.result_version import Version, believed_time

Score = Annotated[float, Meta(ge=0.0, le=1.0)]
Count = Annotated[int, Meta(ge=0)]
Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Milliseconds = Annotated[int, Meta(ge=0, lt=253_402_300_800_000)]
"""Since 1970, up to the last year that RFC 3339 can write."""

# --- shapes (contract.md, "Result") ------------------------------------------------------------------------------


class ScoresShape(Struct, frozen=True):
    """The three criteria and their composite."""

    CR: Score
    AH: Score
    AC: Score
    composite: Score


class FoundShape(Struct, frozen=True):
    """Which terms were found, and which were not."""

    found: tuple[str, ...]
    missing: tuple[str, ...]


class ViolationsShape(Struct, frozen=True):
    """Which forbidden terms were used."""

    violations: tuple[str, ...]


class DetailsShape(Struct, frozen=True):
    """The terms behind the scores, as the expectations' authors wrote them."""

    CR: FoundShape
    AH: ViolationsShape
    AC: FoundShape


class TermsShape(Struct, frozen=True):
    """The lengths of the three lists."""

    CR: Count
    AH: Count
    AC: Count


class ResultShape(Struct, frozen=True):
    """The scores of one case."""

    test_id: str
    archetype: str | None
    scores: ScoresShape
    details: DetailsShape
    terms: TermsShape
    label: Literal["Pass", "Review", "Fail"]


class SourceShape(Struct, frozen=True):
    """The input record that was scored; times in ms since 1970.

    `stated_event_time` is only in a result whose `event_time` is another one, because that was not believed. `topic_id`
    is there if it is part of the result's ce_id, as the scorer decides (worker/result_ids.py).
    """

    topic: str
    partition: Count
    offset: Count
    event_time: Int64
    stated_event_time: Int64 | UnsetType = UNSET
    topic_id: str | UnsetType = UNSET


class ScoredBy(Struct, frozen=True):
    """Who scored: version of the package and fingerprint of the policy."""

    version: str
    fingerprint: str


_Thousandths = Annotated[int, Meta(ge=0, le=1_000)]


class MarksShape(Struct, frozen=True):
    """Lenient recall, and coverage in thousandths, as Marks has them."""

    lenient_cr: Score
    lenient_ac: Score
    coverage_cr: _Thousandths
    coverage_ac: _Thousandths

    @property
    def marks(self) -> Marks:
        return Marks(self.lenient_cr, self.lenient_ac, self.coverage_cr, self.coverage_ac)


_Result = TypeVar("_Result")
_Shape = TypeVar("_Shape")


class ScoredRecord(Struct, Generic[_Result], frozen=True, kw_only=True):
    """A record of `scored`, or a row of the changelog; its `result` is a ResultShape, or the bytes of one.

    `passed` and `vacuous` are in the order CR, AH, AC; `published_at` is the input record's timestamp (-1 where it has
    none) and `scored_at` when it was scored, both in ms. `input_matches` tells whether the output was made from the
    case's own narrative; None where it is not known, as in records of older versions. `generation` tells whether a
    model wrote the output, which records of older versions do not tell. `marks` are there if the scorer was asked
    for lenient recall. `input_topic_id` is the id of the input topic,
    if it is known, and not part of the result's ce_id.
    """

    concern_id: str
    batch_id: str
    run_id: str | None
    result: _Result
    source: SourceShape
    scorer: ScoredBy
    expectations_digest: str
    output_digest: str
    expected_cases: Count | None
    in_batch: bool
    passed: tuple[bool, bool, bool]
    vacuous: tuple[bool, bool, bool]
    empty_output: bool
    published_at: Int64
    scored_at: Milliseconds
    input_matches: bool | None = None
    generation: Generation = "answered"
    marks: MarksShape | UnsetType = UNSET
    input_topic_id: str | UnsetType = UNSET

    @property
    def version(self) -> Version:
        """What decides which result of a test case is the latest (contract.md, "Latest result")."""
        source = self.source
        return self.generation == "answered", source.event_time, source.partition, source.offset


_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(ScoredRecord[ResultShape])
_OF_BYTES = msgspec.json.Decoder(ScoredRecord[Raw])
_OF_RESULT = msgspec.json.Decoder(ResultShape)


class Sourced(Struct, frozen=True):
    """What is read of a scored record where only its source matters, and when it was scored (ms)."""

    source: SourceShape
    scored_at: Milliseconds


_OF_SOURCE = msgspec.json.Decoder(Sourced)


# --- scored -----------------------------------------------------------------------------------------------------------


def result_of(test_id: str, archetype: str | None, case: CaseScore) -> ResultShape:
    """The scores of one case as they are written."""
    details = case.details
    return ResultShape(
        test_id,
        archetype,
        ScoresShape(*case.scores),
        DetailsShape(
            FoundShape(details.cr_found, details.cr_missing),
            ViolationsShape(details.ah_violations),
            FoundShape(details.ac_found, details.ac_missing),
        ),
        TermsShape(*case.terms),
        case.label,
    )


def encode_result_of(test_id: str, archetype: str | None, case: CaseScore) -> Raw:
    """The scores of one case as a scored record and its result event have them."""
    return Raw(_ENCODER.encode(result_of(test_id, archetype, case)))


def encode_scored(scored: ScoredRecord[Any]) -> bytes:
    """One scored case as the repartition topic and the changelog hold it."""
    return _ENCODER.encode(scored)


def decode_scored(value: bytes | None) -> ScoredRecord[ResultShape]:
    """Read a scored record or a row of the changelog; raises Undecodable."""
    return _decoded(_DECODER, value)


def _decoded(decoder: msgspec.json.Decoder[_Shape], value: bytes | None) -> _Shape:
    try:
        return decoder.decode(value or b"")
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        # The message of the error might quote the value.
        raise Undecodable(f"not a scored record: {type(error).__name__}") from None


def with_believed_time(scored: ScoredRecord[_Result], ahead_ms: int) -> ScoredRecord[_Result]:
    """The same case with the event time that counts (contract.md, "Times").

    Records and rows have the stated one, whatever their schema: so the aggregator judges them all, in the fold and
    whenever they are restored.
    """
    source = scored.source
    event_time = believed_time(source.event_time, scored.published_at, ahead_ms)
    if event_time == source.event_time:
        return scored
    return replace(scored, source=replace(source, event_time=event_time, stated_event_time=source.event_time))


def decode_source(value: bytes | None) -> Sourced:
    """Read only the source of a scored record; raises Undecodable."""
    return _decoded(_OF_SOURCE, value)


def row_of(scored: ScoredRecord[ResultShape]) -> CaseRow:
    """What the fold keeps of a scored case."""
    return _row(scored, scored.result)


def _row(scored: ScoredRecord[Any], result: ResultShape) -> CaseRow:
    scores, details, terms = result.scores, result.details, result.terms
    return CaseRow.of(
        version=scored.version,
        archetype=result.archetype,
        run_id=scored.run_id,
        fingerprint=scored.scorer.fingerprint,
        expected=scored.in_batch,
        case=CaseScore(
            Scores(scores.CR, scores.AH, scores.AC, scores.composite),
            Details(details.CR.found, details.CR.missing, details.AH.violations, details.AC.found, details.AC.missing),
            Terms(terms.CR, terms.AH, terms.AC),
            Passed(*scored.passed),
            Vacuous(*scored.vacuous),
            scored.empty_output,
            result.label,
        ),
        input_matches=scored.input_matches,
        marks=None if scored.marks is UNSET else scored.marks.marks,
    )


# --- on the aggregator's path ----------------------------------------------------------------------------------------


class ToFold(NamedTuple):
    """A scored record on its way through the aggregator; its result is written on as it was read."""

    scored: ScoredRecord[Raw]
    test_id: str
    row: CaseRow


_LONGEST_REMEMBERED = 4_096  # bytes
_remembered: Remembered[tuple[object, ...], tuple[str, CaseRow]] = Remembered(8_192)
"""What the fold keeps of results met lately, by their bytes and all else that it is made of but the version."""


def decode_to_fold(value: bytes | None, ahead_ms: int) -> ToFold:
    """Read a scored record and what the fold keeps of it; raises Undecodable.

    An event time is believed up to `ahead_ms` after its record's timestamp.

    A case that is answered again often has an equal result, which is decoded and checked only once.
    """
    scored = with_believed_time(_decoded(_OF_BYTES, value), ahead_ms)
    result = bytes(scored.result)
    key = (
        result, scored.run_id, scored.scorer.fingerprint, scored.in_batch, scored.passed,
        scored.vacuous, scored.empty_output, scored.input_matches, scored.generation, scored.marks,
    )  # fmt: skip
    known = _remembered.get(key)
    if known is not None:
        test_id, row = known
        return ToFold(scored, test_id, row.of_version(scored.version))
    whole = _decoded(_OF_RESULT, result)
    row = _row(scored, whole)
    if len(result) <= _LONGEST_REMEMBERED:
        _remembered.keep(key, (whole.test_id, row))
    return ToFold(scored, whole.test_id, row)
