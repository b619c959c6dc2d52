"""The cases as a JUnit report, which every CI shows: a suite for each batch, a test for each case.

GitLab shows the text of a <failure> or <skipped>, Jenkins its message and the <system-out>: so each of them says why.
Only what Jenkins' schema (junit-10.xsd) allows is used, because some readers insist on it.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal
from xml.etree import ElementTree as ET

from consumer.offline.pages.miss_wording import unsupported_in_words
from consumer.offline.pages.numbers import score
from consumer.offline.pages.quotes import passage_of, place_of
from consumer.offline.pages.report_content import about_output, lost_terms, shortfalls
from consumer.offline.scored_run import CaseLine, Explanation, ScoredRun
from consumer.text import printable
from safe_core import CRITERIA, Label

_Outcomes = Mapping[Label, Literal["failure", "skipped"]]
_FAIL_ONLY: Final[_Outcomes] = {"Fail": "failure", "Review": "skipped"}
_FAIL_OR_REVIEW: Final[_Outcomes] = {"Fail": "failure", "Review": "failure"}


def render_junit(run: ScoredRun, *, review_fails: bool = False) -> str:
    """Give a report in which Fail is a failure, and Review a skipped test, or with `review_fails` a failure too."""
    outcomes = _FAIL_OR_REVIEW if review_fails else _FAIL_ONLY
    concern = _legal(run.report["concern_id"])
    time = str(run.report["generated_at"])[: len("2026-03-02T08:00:00")]  # the format has neither fractions nor a zone
    totals = _counts(run.cases, outcomes)
    del totals["skipped"]  # which the schema allows of a suite alone
    root = ET.Element("testsuites", {"name": f"SAFE v0 {concern}", **totals})
    batches: dict[str, list[CaseLine]] = {}
    for case in run.cases:
        batches.setdefault(case.batch_id, []).append(case)
    for batch_id, cases in batches.items():
        # Readers show a suite and a class of the same name as one level, not two.
        name = f"{concern}.{_legal(batch_id)}"
        suite = ET.SubElement(root, "testsuite", {"name": name, **_counts(cases, outcomes), "timestamp": time})
        suite.append(_properties(run, cases))
        suite.extend(_test(case, name, outcomes, run.explanation_of(case)) for case in cases)
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _counts(cases: Sequence[CaseLine], outcomes: _Outcomes) -> dict[str, str]:
    met = [outcomes.get(case.label) for case in cases]
    counts = {"tests": len(met), "failures": met.count("failure"), "errors": 0, "skipped": met.count("skipped")}
    return {name: str(count) for name, count in counts.items()} | {"time": "0"}


def _properties(run: ScoredRun, cases: Sequence[CaseLine]) -> ET.Element:
    """Give what the whole run is, and how many cases of the suite say less than their scores seem to."""
    scorer, summary = run.report["scorer"], run.report["summary"]
    values = {
        "verdict": run.verdict,
        "pass_rate": repr(summary["overall_pass_rate"]),
        "version": scorer["version"],
        "rule": scorer["rule"],
        "fingerprint": scorer["fingerprint"],
        "failed_generations": str(sum(case.generation == "failed" for case in cases)),
        "input_mismatches": str(sum(case.input_matches is False for case in cases)),
        "near_violations": str(sum(len(case.near) for case in cases)),
        "unsupported": str(sum(each.kind == "nowhere" for case in cases for each in case.unsupported)),
        "doubtful_hits": str(sum(len(case.doubtful) for case in cases)),
        **{f"vacuous.{name}": str(sum(getattr(case.row.vacuous, name) for case in cases)) for name in CRITERIA},
        "vacuous.all": str(sum(all(case.row.vacuous) for case in cases)),
    }
    properties = ET.Element("properties")
    for name, value in values.items():
        ET.SubElement(properties, "property", {"name": name, "value": value})
    return properties


def _test(case: CaseLine, classname: str, outcomes: _Outcomes, explanation: Explanation | None) -> ET.Element:
    test = ET.Element("testcase", {"classname": classname, "name": _legal(case.test_id), "time": "0"})
    outcome = outcomes.get(case.label)
    if outcome is None:
        if remarks := [*_remarks(case)]:
            ET.SubElement(test, "system-out").text = "\n".join(remarks)
        return test
    # The reason in one line, as "no output; CR 0.00 below review 0.5; AC 0.00 below review 0.5".
    message, text = "; ".join(_reasons(case)), "\n".join(_lines(case, explanation))
    if outcome == "failure":
        ET.SubElement(test, "failure", {"type": case.label, "message": message}).text = text
        if doubts := [*_doubts(case)]:
            ET.SubElement(test, "system-out").text = "\n".join(doubts)
    else:
        ET.SubElement(test, "skipped", {"message": f"{case.label}: {message}"}).text = text
        ET.SubElement(test, "system-out").text = text
    return test


def _remarks(case: CaseLine) -> Iterator[str]:
    """Give what a case that passes still has to say."""
    if about := about_output(case):
        yield about
    if all(case.row.vacuous):
        yield "nothing was checked: no term is listed, or for AH no question was asked"
    yield from _doubts(case)


def _doubts(case: CaseLine) -> Iterator[str]:
    for near in case.near:
        yield f'near violation: AH "{_legal(near.term)}" ({near.kind}), {place_of(passage_of(near))}'
    for value in case.unsupported:
        yield f'unsupported value: "{_legal(value.text)}", {_legal(unsupported_in_words(value))}'
    for hit in case.doubtful:
        yield f'doubtful: {hit.criterion} "{_legal(hit.term)}" ({hit.kind}), {place_of(hit.passage)}'


def _reasons(case: CaseLine) -> Iterator[str]:
    if nothing := about_output(case):
        yield nothing
    yield from shortfalls(case)


def _lines(case: CaseLine, explanation: Explanation | None) -> Iterator[str]:
    """Give the reason and the evidence for it, one thing in each line."""
    yield from _reasons(case)
    yield ", ".join(f"{name} {score(value)}" for name, value in case.row.scores._asdict().items())
    if case.archetype is not None:
        yield f"archetype: {_legal(case.archetype)}"
    for criterion, how, terms in lost_terms(case, explanation):
        yield from (f"{criterion} {how}: {term.written(_legal)}" for term in terms)


def _legal(text: str) -> str:
    """Make a text from outside printable, and without characters that XML 1.0 forbids."""
    return printable(text).translate(_NONCHARACTERS)


_NONCHARACTERS: Final = {0xFFFE: "\\ufffe", 0xFFFF: "\\uffff"}
