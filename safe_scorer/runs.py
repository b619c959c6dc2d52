"""What `import safe_scorer` gives (docs/how-to/python.md): the commands on files as functions, and their rows."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from consumer.errors import ConfigurationError
from consumer.files.outputs import OnDuplicate, open_all
from consumer.files.selection import select
from consumer.offline import stored_report
from consumer.offline.scoring import moment, score_files
from consumer.settings import surroundings
from safe_core import (
    CRITERIA,
    DEFAULT_POLICY,
    BadTestCase,
    CaseScore,
    Criterion,
    Expectations,
    Generation,
    InvalidExpectations,
    InvalidOutput,
    Label,
    Output,
    Policy,
    hits_in,
    hits_of_failure,
    judged_by,
    kind_of,
    parse_batch,
    prepare,
    score_of_hits,
)

if TYPE_CHECKING:
    import pandas as pd

Document = Mapping[str, Any]
Given = str | Path | Document | Sequence[Document]
Outcome = Literal["found", "missing", "used", "avoided"]


class Case(NamedTuple):
    """A scored test case; `generation` is None where it has no output, what a report does not say is None too."""

    concern_id: str
    batch_id: str | None
    test_id: str
    archetype: str | None
    label: Label
    CR: float
    AH: float
    AC: float
    composite: float
    generation: Generation | None
    input_matches: bool | None
    CR_lenient: float | None
    AC_lenient: float | None


class Term(NamedTuple):
    """A term of a test case, and what became of it; `verdict` is there for the misses of an explained run.

    A stored report does not name the forbidden terms that were avoided: then `term` is None.
    """

    concern_id: str
    batch_id: str | None
    test_id: str
    label: Label
    criterion: Criterion
    term: str | None
    outcome: Outcome
    doubtful: str | None
    verdict: str | None
    output_says: str | None
    narrative_says: str | None


@dataclass(frozen=True, slots=True)
class Run:
    """A scored run: `report` has the fields of contract.md, "Report"; `remarks` are what `safe score` would say."""

    report: Document
    remarks: Sequence[str] = ()
    _forbidden: Mapping[str, Sequence[str]] = field(default_factory=dict, repr=False)

    def cases(self) -> list[Case]:
        """Give each test case, in the order of the report."""
        return [_case(self.report["concern_id"], result) for result in self.report["results"]]

    def terms(self) -> list[Term]:
        """Give every term of every test case: required ones found or missing, forbidden ones used or avoided."""
        concern, results = self.report["concern_id"], self.report["results"]
        return [term for each in results for term in _terms(concern, each, self._forbidden.get(each["test_id"]))]

    def to_frame(self, rows: Literal["cases", "terms"] = "cases") -> "pd.DataFrame":
        """Give a row for each case, or for each term; needs pandas (the extra `pandas`)."""
        try:
            import pandas as pd  # noqa: PLC0415 - only here, since only some have it
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                "data frames need pandas: pip install 'safe-scorer[pandas]'; cases() and terms() do not", name="pandas"
            ) from error
        kind, found = (Case, self.cases()) if rows == "cases" else (Term, self.terms())
        return pd.DataFrame(found, columns=kind._fields)


def score(
    case: Document | Expectations, output: Document | Output | None, *, policy: Policy = DEFAULT_POLICY
) -> CaseScore:
    """Score one output against a test case or its expectations, both as factory-cli writes them.

    Raises InvalidExpectations or InvalidOutput (both ValueError), which name the place and never the text.
    """
    document = {"expectations": case.document()} if isinstance(case, Expectations) else case
    _refuse_wholes(document, output)
    whole = document if "expectations" in document else {"expectations": document}
    (test_case,) = parse_batch({"test_cases": [{"test_id": "case", **whole}]}).cases
    if isinstance(test_case, BadTestCase):
        raise InvalidExpectations(test_case.problem)
    said = output if isinstance(output, Output) else Output.parse(output)
    by, expected = judged_by(test_case), prepare(test_case.expectations)
    is_answered = kind_of(said, policy.engine_texts).generation == "answered"
    hits = hits_in(said, expected) if is_answered else hits_of_failure(expected)
    return score_of_hits(expected, hits, policy.rules_for(by.metric_id, by.archetype))


def _refuse_wholes(case: Document, output: Document | Output | None) -> None:
    """Raise where something else was given than what is scored: without its keys, it would score as empty."""
    if "test_id" in case and "expectations" not in case:
        raise InvalidExpectations("the test case has no expectations")
    keys = output if isinstance(output, Mapping) else ()
    if holder := next((name for name in ("engine_output", "output") if name in keys), None):
        raise InvalidOutput(f"output is a whole event or entry of a report: give what it has as {holder}")


def score_run(
    cases: Given,
    outputs: Given | Sequence[str | Path],
    *,
    concern: str | None = None,
    batch: str = "*",
    policy: Policy = DEFAULT_POLICY,
    on_duplicate: OnDuplicate | None = None,
    explain: bool = False,
) -> Run:
    """Score outputs as `safe score` does. `cases` is a folder of batch files or test cases, `outputs` files or events.

    One test case, file or event needs no list. `concern` may be left out where all test cases are of one. Raises
    ConfigurationError for what cannot be used.
    """
    with TemporaryDirectory() as scratch, _naming_arguments(Path(scratch)):
        selection = select(_folder(cases, Path(scratch)), concern, batch)
        run, remarks = score_files(
            selection,
            open_all(_files(outputs, Path(scratch))),
            policy,
            generated_at=moment(surroundings().source_date_epoch),
            on_duplicate=on_duplicate,
            explain="without text" if explain else None,
        )
    forbidden = {test_id: case.prepared.expectations.forbidden_terms for test_id, case in selection.cases.items()}
    return Run(run.report, remarks, forbidden)


def read_report(path: str | Path) -> Run:
    """Read a JSON report of `safe score`; raises ConfigurationError where it is none."""
    report = stored_report.read_report(Path(path))
    stored_report.part_of(report, stored_report.StoredResults, str(path))
    return Run(report)


_CASES: Final = "cases.json"
_OUTPUTS: Final = "outputs.jsonl"


@contextmanager
def _naming_arguments(scratch: Path) -> Iterator[None]:
    """Let errors speak of `cases` and `outputs` where they name the files into which these were written."""
    try:
        yield
    except ConfigurationError as error:
        told = str(error).replace(str(scratch / _OUTPUTS), "outputs").replace(str(scratch / _CASES), "cases")
        raise ConfigurationError(told.replace(str(scratch), "cases")) from None


def _folder(cases: Given, scratch: Path) -> Path:
    """Give the folder of test cases; those in memory are written into one."""
    if isinstance(cases, str | Path):
        return Path(cases)
    listed = [cases] if isinstance(cases, Mapping) else [*cases]
    (scratch / _CASES).write_text(json.dumps({"test_cases": listed}), encoding="utf-8")
    return scratch


def _files(outputs: Given | Sequence[str | Path], scratch: Path) -> Sequence[Path]:
    """Give the files of outputs; events in memory are written into one."""
    given = [outputs] if isinstance(outputs, str | Path | Mapping) else outputs
    paths = [Path(each) for each in given if isinstance(each, str | Path)]
    if paths and len(paths) < len(given):
        raise ConfigurationError("outputs mix paths and events; give either, or write the events to a file")
    if paths:
        return paths
    (scratch / _OUTPUTS).write_text("".join(f"{json.dumps(each)}\n" for each in given), encoding="utf-8")
    return [scratch / _OUTPUTS]


def _case(concern: str, result: Document) -> Case:
    marks = {f"{name}_lenient": share for name, share in (result.get("lenient") or {}).items()}
    told = {**result, **result["scores"], **marks, "concern_id": concern}
    return Case._make(map(told.get, Case._fields))


def _terms(concern: str, result: Document, forbidden: Sequence[str] | None) -> Iterator[Term]:
    details = result["details"]
    used = details["AH"]["violations"]
    unnamed = [None] * (result.get("terms", {}).get("AH", len(used)) - len(used))
    avoided = unnamed if forbidden is None else [*(Counter(forbidden) - Counter(used)).elements()]
    lists = {**details, "AH": {"used": used, "avoided": avoided}}
    doubts = {(each["criterion"], each["term"]): each.get("kind") for each in result.get("doubtful", ())}
    misses = {(each["criterion"], each["term"]): each for each in result.get("misses", ())}
    start = (concern, result.get("batch_id"), result["test_id"], result["label"])
    for criterion, outcome, term in ((c, o, term) for c in CRITERIA for o, terms in lists[c].items() for term in terms):
        is_missing = outcome == "missing"
        miss = misses.get((criterion, term), {}) if is_missing else {}
        doubt = None if is_missing else doubts.get((criterion, term))
        yield Term(*start, criterion, term, outcome, doubt, *map(miss.get, Term._fields[-3:]))
