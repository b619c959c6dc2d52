"""Scored runs for tests of what is made from them: a fixed small one, and any that a test describes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from consumer.offline.scored_run import CaseLine, ScoredRun, avoided_terms, lenient_report
from safe_core import (
    DEFAULT_POLICY,
    EMPTY_OUTPUT,
    CaseRow,
    Expectations,
    LatestResults,
    Output,
    Policy,
    build_report,
    prepare,
    result_document,
    score,
)
from safe_core.lenient import beside_scores

GENERATED_AT = "2026-03-02T08:00:00.000Z"


@dataclass(frozen=True)
class Sample:
    """A test case with its answer; None is a missing output."""

    test_id: str
    expectations: Expectations
    output: Output | None
    archetype: str | None = "Handover_Reviewer"
    batch_id: str = "S11_wards_1"
    metric_id: str | None = None


def scored_run(
    samples: Sequence[Sample],
    *,
    concern_id: str = "S11",
    policy: Policy = DEFAULT_POLICY,
    decision: str | None = None,
    inputs: Sequence[Mapping[str, str]] = ({"name": "S11_wards_1.json", "sha256": "ab" * 32},),
) -> ScoredRun:
    """Score samples as `safe score` would."""
    fold = LatestResults()
    cases: list[CaseLine] = []
    for sample in samples:
        rules = policy.rules_for(sample.metric_id or concern_id, sample.archetype)
        judged = score(prepare(sample.expectations), sample.output or EMPTY_OUTPUT, rules)
        row = CaseRow.of(
            version=(True, 0, 0, 0),
            archetype=sample.archetype,
            run_id=None,
            fingerprint=policy.fingerprint,
            expected=True,
            case=judged,
        )
        fold.offer(sample.test_id, row)
        _, lenient = beside_scores(sample.output or EMPTY_OUTPUT, None, judged.details)
        answered = sample.output is not None
        avoided = avoided_terms(sample.expectations.forbidden_terms, row.details.ah_violations)
        line = CaseLine(
            sample.batch_id, sample.test_id, row, rules, answered=answered, avoided=avoided, lenient=lenient
        )
        cases.append(line)
    batches = sorted({sample.batch_id for sample in samples})
    report: dict[str, Any] = build_report(
        fold,
        concern_id=concern_id,
        batch_id=batches[0] if len(batches) == 1 else f"{concern_id}_combined",
        generated_at=GENERATED_AT,
        scorer_version="0.1.0",
        fingerprint=policy.fingerprint,
        configuration=policy.configuration(),
        expected_cases=len(cases),
        complete=True,
        missing_outputs=sum(not case.answered for case in cases),
        inputs=[dict(entry) for entry in inputs],
        results=[_result(case) for case in cases],
        lenient=lenient_report(cases),
    )
    return ScoredRun(report, cases, decision)


def _result(case: CaseLine) -> dict[str, Any]:
    assert case.lenient is not None
    return result_document(case.test_id, case.archetype, case.row) | case.lenient.marks.document


def _expects(signals: Sequence[str], forbidden: Sequence[str], phrases: Sequence[str]) -> Expectations:
    return Expectations(tuple(signals), tuple(forbidden), tuple(phrases))


SEPSIS = _expects(
    ("a lactate of 4.1 mmol/L", "blood cultures were drawn"), ("negligence", "blame"), ("suspected urosepsis",)
)
FALL = _expects(("an unwitnessed fall from bed",), ("protocol breach",), ("a GCS of 14", "a head CT was ordered"))
NOTHING = _expects((), (), ())

SMALL: tuple[Sample, ...] = (
    # Pass, with all there
    Sample(
        "S11-W1-001",
        SEPSIS,
        Output(
            ("A lactate of 4.1 mmol/L", "blood cultures were drawn at 09:10"),
            "Suspected urosepsis.",
            ("When did the antibiotics begin?",),
        ),
    ),
    # Review: one of two forbidden terms is used
    Sample(
        "S11-W1-002",
        SEPSIS,
        Output(
            ("a lactate of 4.1 mmol/L; blood cultures were drawn",),
            "Suspected urosepsis.",
            ("Was there negligence on the ward?",),
        ),
        archetype="Escalation_Tracker",
    ),
    # Fail: nothing of it
    Sample(
        "S11-W1-003",
        FALL,
        Output(("a fall",), "The patient fell.", ("Who was there?",)),
        archetype="Escalation_Tracker",
    ),
    # Review: one of two phrases, no question asked (AH vacuous)
    Sample(
        "S11-W2-001",
        _expects(("an unwitnessed fall from bed",), ("protocol breach",), ("a GCS of 14", "a head CT was ordered")),
        Output(("an unwitnessed fall from bed",), "A GCS of 14 was noted."),
        archetype=None,
        batch_id="S11_wards_2",
    ),
    # Fail: an empty output
    Sample("S11-W2-002", FALL, EMPTY_OUTPUT, batch_id="S11_wards_2"),
    # Fail: no output at all
    Sample("S11-W2-003", FALL, None, batch_id="S11_wards_2"),
    # Pass with nothing to check at all
    Sample("S11-W2-004", NOTHING, Output(("anything",), "Anything.", ("What?",)), batch_id="S11_wards_2"),
)

NASTY = (
    "[bold]markup[/bold]",
    "a | pipe",
    "a `backtick`",
    "<script>alert(1)</script>",
    "\x1b[2J\x1b[31mred",
    "right \u202eto left",
    '=HYPERLINK("http://x")',
    "*stars* _and_ # hashes",
    "long " + "word " * 60,
    ']]> & "quotes"',
)


def nasty_samples() -> list[Sample]:
    """Cases whose ids and terms try to break out of every format."""
    return [
        Sample(
            f"N-{number} [red]|`<b>",
            _expects((term, "a finding"), ("blame " + term,), (term,)),
            Output(("a finding",), "Nothing.", ("blame " + term,)),
            archetype="Archetype|`<i>*x*",
        )
        for number, term in enumerate(NASTY)
    ]
