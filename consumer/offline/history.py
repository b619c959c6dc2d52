"""`safe history`: how test cases and their terms developed over runs, and by what repeats of a prompt differ."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, Self

from msgspec import Struct

from consumer.dead_letter_reasons import Poison
from consumer.errors import ConfigurationError
from consumer.files.outputs import is_own_report, readable, unusable
from consumer.offline.compare import Side, means_of, side_of, without
from consumer.offline.pages.numbers import CONFIDENCE
from consumer.offline.stored_report import LISTED, Listed, StoredResult, distinct_names, part_of, read_report
from consumer.text import named, natural_order, printable, visible
from consumer.wire.times import milliseconds_of, shown_time
from safe_core import Criterion, Label
from safe_core.intervals import Interval, wilson

_Required = tuple[Criterion, str]
"""A term that a case requires."""


# --- runs and cases ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Run:
    """One report; `time` is its `generated_at` in milliseconds, 0 where it has none.

    `inputs` are the SHA-256 of the files that it was made from, those of the outputs among them.
    """

    path: Path
    name: str
    generated_at: str | None
    time: int
    side: Side
    inputs: frozenset[str] = frozenset()

    @property
    def when(self) -> str:
        """Its `generated_at` to the minute, in UTC; nothing where it has none."""
        return "" if self.generated_at is None else f"{shown_time(self.time)[:16]}Z"

    @property
    def passes(self) -> int:
        return self.side.labelled("Pass")

    @property
    def interval(self) -> Interval:
        """The confidence interval of the pass rate, 95 % by Wilson."""
        return wilson(self.passes, len(self.side.results), CONFIDENCE)

    @property
    def pass_rate(self) -> float:
        return self.passes / len(self.side.results)

    @property
    def answered(self) -> int:
        """How many cases a model has answered."""
        return sum(self.answers(test_id) for test_id in self.side.results)

    def answers(self, test_id: str) -> bool:
        """Tell whether it has an output for a case that is no failed generation."""
        return self.side.lacks(test_id) in {None, "input_mismatch"}

    @property
    def failed(self) -> int:
        """How many cases no model has answered."""
        return sum(result.generation == "failed" for result in self.side.results.values())

    @property
    def mismatches(self) -> int:
        """How many outputs were made from another narrative."""
        return sum(result.input_matches is False for result in self.side.results.values())

    @property
    def means(self) -> dict[str, float]:
        """The means of the scores, and of what stands beside them if the report tells it of every case."""
        results = [*self.side.results.values()]
        return {mean.name: mean.base for mean in means_of(results, results)}

    @property
    def found(self) -> int:
        """How many required terms were found."""
        return sum(result.found for result in self.side.results.values())

    @property
    def required(self) -> int:
        """How many terms its cases require."""
        return sum(sum(result.required) for result in self.side.results.values())

    def listed(self, what: Listed) -> tuple[int, int] | None:
        """Count what is listed beside the scores, and the cases that have such a list; None if no case has one."""
        told = [each for result in self.side.results.values() if (each := result.listed(what)) is not None]
        return (sum(map(len, told)), len(told)) if told else None

    def document(self) -> dict[str, Any]:
        """Give its entry in the JSON."""
        return {
            "name": self.name,
            "generated_at": self.generated_at,
            "fingerprint": self.side.fingerprint,
            "answered": self.answered,
            "failed_generations": self.failed,
            "mismatches": self.mismatches,
            "pass": self.passes,
            "review": self.side.labelled("Review"),
            "fail": self.side.labelled("Fail"),
            "pass_rate": self.pass_rate,
            "interval": list(self.interval),
            "means": self.means,
            "found": self.found,
            "required": self.required,
            **{what: None if (counted := self.listed(what)) is None else counted[0] for what in LISTED},
        }


@dataclass(slots=True)
class CaseHistory:
    """A test case over the runs: a label for each, None where a run has no answer to it.

    `mismatched` says of each run whether its output was made from another narrative, `found` how many of the required
    terms were found, `listed` what is listed beside the scores, None where a run does not say it. `results` are
    what the reports hold of it, also where nothing answers it.
    """

    test_id: str
    batch_ids: dict[str, None]
    labels: list[Label | None]
    mismatched: list[bool]
    found: list[int | None]
    listed: Mapping[Listed, list[tuple[str, ...] | None]]
    results: list[StoredResult | None]
    required: dict[_Required, list[bool | None]] = field(default_factory=dict)

    @property
    def batch_id(self) -> str | None:
        """The batch that the first run names, None where none does."""
        return next(iter(self.batch_ids), None)

    @property
    def judged(self) -> list[tuple[int, Label]]:
        """The numbers of the runs that answer the case rightly, and its labels there."""
        pairs = zip(self.labels, self.mismatched, strict=True)
        return [(number, label) for number, (label, other) in enumerate(pairs) if label is not None and not other]

    @classmethod
    def of(cls, test_id: str, runs: int) -> Self:
        """Begin with a case of which nothing is known in this many runs."""
        listed: dict[Listed, list[tuple[str, ...] | None]] = {what: [None] * runs for what in LISTED}
        return cls(test_id, {}, [None] * runs, [False] * runs, [None] * runs, listed, [None] * runs)

    def newly_listed(self, what: Listed) -> list[tuple[int, tuple[str, ...]]]:
        """Give the numbers of the runs that list what the run before did not, and what that is."""
        told = [(number, each) for number, each in enumerate(self.listed[what]) if each is not None]
        pairs = ((number, without(each, before)) for (_, before), (number, each) in pairwise(told))
        return [(number, new) for number, new in pairs if new]

    @property
    def never_passed(self) -> bool:
        """Some run answers it, and none passes it."""
        return bool(self.judged) and all(label != "Pass" for _, label in self.judged)

    @property
    def flips(self) -> int:
        """How often it passed after not passing, or the other way round, from one run that answers it to the next."""
        passed = [label == "Pass" for _, label in self.judged]
        return sum(one != other for one, other in pairwise(passed))

    @property
    def losses(self) -> list[tuple[int, int]]:
        """The numbers of each run that passed it and of the next one that answers it, if that did not pass it."""
        judged = pairwise(self.judged)
        return [(before, after) for (before, label), (after, later) in judged if label == "Pass" and later != "Pass"]

    def asks_alike(self, one: int, other: int) -> bool:
        """Whether two runs that answer it require the same terms."""
        return all((found[one] is None) == (found[other] is None) for found in self.required.values())

    def document(self) -> dict[str, Any]:
        """Give its entry in the JSON."""
        return {
            "test_id": self.test_id,
            "batch_id": self.batch_id,
            "labels": self.labels,
            "mismatched": self.mismatched,
            "found": self.found,
            **{what: [None if each is None else len(each) for each in self.listed[what]] for what in LISTED},
        }

    def answers(self, result: StoredResult) -> bool:
        """Tell whether a result is of this case: of one of its batches, or with the same required terms."""
        if result.batch_id is None or not self.batch_ids or result.batch_id in self.batch_ids:
            return True
        return self.required.keys() == _required(result).keys()

    def note(self, number: int, result: StoredResult, *, is_answered: bool) -> None:
        """Take in what a run says of it."""
        self.results[number] = result
        if result.batch_id is not None:
            self.batch_ids[result.batch_id] = None
        for key, found in _required(result).items():
            row = self.required.setdefault(key, [None] * len(self.labels))
            row[number] = found if is_answered else None
        if is_answered:
            self.labels[number] = result.label
            self.mismatched[number] = result.input_matches is False
            self.found[number] = result.found
            for what in LISTED:
                self.listed[what][number] = result.listed(what)


class TermHistory(NamedTuple):
    """A required term over the runs: whether it was found, None where a run has no answer, or does not ask for it."""

    test_id: str
    batch_id: str | None
    criterion: Criterion
    term: str
    found: Sequence[bool | None]

    @property
    def asked(self) -> int:
        return sum(each is not None for each in self.found)

    @property
    def times_found(self) -> int:
        return sum(each is True for each in self.found)


@dataclass(frozen=True, slots=True)
class Group:
    """Runs that repeat one prompt: what differs between them is noise.

    The cases are those that all of these runs answer, each from the case's own narrative.
    """

    name: str
    runs: Sequence[Run]
    cases: Sequence[CaseHistory]
    passed_in: Sequence[int]  # of the runs, for each case

    @property
    def every(self) -> int:
        """How many cases pass in every run (pass^k)."""
        return sum(count == len(self.runs) for count in self.passed_in)

    @property
    def any(self) -> int:
        """How many cases pass in any run (pass@k)."""
        return sum(count > 0 for count in self.passed_in)

    @property
    def flipping(self) -> list[CaseHistory]:
        """The cases that pass in some runs, and not in others."""
        pairs = zip(self.cases, self.passed_in, strict=True)
        return [case for case, count in pairs if 0 < count < len(self.runs)]

    @property
    def rates(self) -> tuple[float, float, float]:
        """The lowest, mean and highest pass rate of the runs."""
        rates = [run.pass_rate for run in self.runs]
        return min(rates), sum(rates) / len(rates), max(rates)

    def share(self, count: int) -> float | None:
        """Give a count as a share of the cases; None without any."""
        return count / len(self.cases) if self.cases else None

    def document(self) -> dict[str, Any]:
        """Give its entry in the JSON."""
        low, mean, high = self.rates
        return {
            "name": self.name,
            "runs": [run.name for run in self.runs],
            "k": len(self.runs),
            "cases": len(self.cases),
            "pass_hat_k": self.share(self.every),
            "pass_at_k": self.share(self.any),
            "flips": self.share(len(self.flipping)),
            "flipping": [case.test_id for case in self.flipping],
            "pass_rate": {"min": low, "mean": mean, "max": high},
        }


@dataclass(frozen=True)
class History:
    """Runs in their order, and what became of each case and term."""

    runs: Sequence[Run]
    cases: Sequence[CaseHistory]
    groups: Sequence[Group]

    @cached_property
    def terms(self) -> list[TermHistory]:
        """The required terms of all cases."""
        return [
            TermHistory(case.test_id, case.batch_id, criterion, term, found)
            for case in self.cases
            for (criterion, term), found in case.required.items()
        ]

    def document(self) -> dict[str, Any]:
        """Give what `--format json` prints."""
        return {
            "runs": [each.document() for each in self.runs],
            "cases": [each.document() for each in self.cases],
            "terms": [each._asdict() for each in self.terms],
            "groups": [each.document() for each in self.groups],
        }


# --- reading ----------------------------------------------------------------------------------------------------------


class ReportFiles(NamedTuple):
    """The reports that some paths name, and the other JSON files of their folders, which are passed over."""

    reports: Sequence[Path]
    others: Sequence[Path]


def report_files(paths: Sequence[Path]) -> ReportFiles:
    """Find the reports of folders; any other path is taken for a report. Raises ConfigurationError.

    A report that is named twice, such as by itself and with its folder, is one run.
    """
    reports: list[Path] = []
    others: list[Path] = []
    for path in paths:
        if not path.is_dir():
            reports.append(path)
            continue
        with readable(path):
            found = sorted(path.glob("*.json"), key=lambda each: each.name)
        held = [each for each in found if is_own_report(each)]
        if not held:
            raise unusable(path, "holds no reports of safe score (*.json)")
        reports.extend(held)
        others.extend(each for each in found if each not in held)
    once = {path.resolve(): path for path in reversed(reports)}
    return ReportFiles([*reversed(once.values())], others)


def history(files: Sequence[Path], groups: Sequence[str] = (), *, as_given: bool = False) -> History:
    """Read reports, in the order of their times unless as given; raises ConfigurationError.

    `groups` are NAME=GLOB, the glob over the names of files.
    """
    runs = [_run(path, name) for path, name in zip(files, distinct_names(files), strict=True)]
    if not as_given:
        runs.sort(key=lambda run: run.time)  # equal ones stay as they are given
    cases = _cases(runs)
    return History(runs, cases, [_group(text, runs, cases) for text in groups])


def _run(path: Path, name: str) -> Run:
    report = read_report(path)
    generated_at = report.get("generated_at")
    if generated_at is not None and not isinstance(generated_at, str):
        raise ConfigurationError(f"{printable(name)}: generated_at is not a string")
    try:
        time = 0 if generated_at is None else milliseconds_of(generated_at)
    except Poison as error:
        raise ConfigurationError(f"{printable(name)}: {error.detail}") from error
    inputs = part_of(report, _Inputs, name).inputs
    return Run(path, name, generated_at, time, side_of(report, name), frozenset(each.sha256 for each in inputs))


class _Input(Struct):
    sha256: str


class _Inputs(Struct):
    inputs: tuple[_Input, ...] = ()


def _cases(runs: Sequence[Run]) -> list[CaseHistory]:
    """Follow each case through the runs, by batch in natural order, then as the first report lists them."""
    held: dict[str, list[CaseHistory]] = {}
    for number, run in enumerate(runs):
        for result in run.side.results.values():
            known = held.setdefault(result.test_id, [])
            case = next((each for each in known if each.answers(result)), None)
            if case is None:
                case = CaseHistory.of(result.test_id, len(runs))
                known.append(case)
            case.note(number, result, is_answered=run.answers(result.test_id))
    cases = [case for known in held.values() for case in known]
    return sorted(cases, key=lambda case: natural_order(case.batch_id or ""))


def _required(result: StoredResult) -> dict[_Required, bool]:
    details = result.details
    lists: Sequence[tuple[Criterion, Sequence[str], bool]] = (
        ("CR", details.CR.found, True), ("CR", details.CR.missing, False),
        ("AC", details.AC.found, True), ("AC", details.AC.missing, False),
    )  # fmt: skip
    return {(criterion, term): found for criterion, terms, found in lists for term in terms}


def _group(text: str, runs: Sequence[Run], cases: Sequence[CaseHistory]) -> Group:
    name, equals, pattern = text.partition("=")
    if not (name and equals and pattern):
        raise ConfigurationError(f'--group {visible(text)} is not NAME=GLOB, such as "prompt-7=run_7_*"')
    named_runs = enumerate((run.path.name, run.path.stem, str(run.path)) for run in runs)
    numbers = [number for number, names in named_runs if any(fnmatchcase(name, pattern) for name in names)]
    if not numbers:
        held = named([run.name for run in runs], 20)
        raise ConfigurationError(f"--group {visible(text)}: no report has such a name; there are {held}")
    shared = [case for case in cases if {number for number, _ in case.judged}.issuperset(numbers)]
    passed_in = [sum(case.labels[number] == "Pass" for number in numbers) for case in shared]
    return Group(name, [runs[number] for number in numbers], shared, passed_in)
