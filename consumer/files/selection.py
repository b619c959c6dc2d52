"""Which test cases of a folder are scored (contract.md, "Selection")."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from consumer.case_sources.cases import Row, as_one, case_or_poison, cases_at, rows_of
from consumer.dead_letter_reasons import Poison
from consumer.errors import ConfigurationError
from consumer.files.batches import (
    Batches,
    LoadedBatch,
    batch_names,
    beside_lines,
    chosen,
    differ,
    key_lines,
    load_batch,
    load_batches,
    no_batch,
)
from consumer.text import count_of, named, visible
from safe_core import (
    MAX_ID_LENGTH,
    BadTestCase,
    Batch,
    PreparedExpectations,
    TestCase,
    id_problem,
    is_of_concern,
    prepare,
)
from safe_core.judges import Judging

_NAMED: Final = 20
ANY_CONCERN: Final = "any"
"""What stands for the concern of test cases that name none, where none was asked for."""


@dataclass(frozen=True, slots=True)
class SelectedCase:
    """A test case to be scored; `batches` are the selected ones that hold it, all expecting the same, the first counts.

    Its archetype and metric_id are those of the first; `narratives` are the digests of what all of them tell.
    """

    test_case: TestCase
    batches: tuple[LoadedBatch, ...]
    prepared: PreparedExpectations
    narratives: tuple[str, ...]

    @property
    def batch_id(self) -> str:
        return self.batches[0].name


@dataclass(frozen=True, slots=True)
class Selection:
    """The test cases of one concern in some batches, by test_id, in the order of the batch files.

    `batches` are those that hold any of them; `remarks` are for the person who asked. If no test case names a concern,
    and none was asked for, `concern_id` is ANY_CONCERN and outputs of any concern answer them. `only` is the test_id if
    one test case was asked for. `together` are all selections of a command that looks at each concern, this one too.
    """

    concern_id: str
    test_dir: Path
    batches: tuple[LoadedBatch, ...]
    cases: Mapping[str, SelectedCase]
    remarks: tuple[str, ...] = ()
    is_of_any_concern: bool = False
    only: str | None = None
    together: Sequence["Selection"] = field(default=(), compare=False, repr=False)

    @property
    def batch_id(self) -> str:
        """The name of the report's batch: the only one's, or the combination's."""
        return self.batches[0].name if len(self.batches) == 1 else f"{self.concern_id}_combined"

    def is_asked_for(self, said: Judging) -> bool:
        """Tell whether an output is of the concern that was asked for: one that names none is."""
        return self.is_of_any_concern or is_of_concern(self.concern_id, said)

    @property
    def others(self) -> list["Selection"]:
        """The selections of the other concerns."""
        return [each for each in self.together if each is not self]

    @property
    def is_first(self) -> bool:
        """Whether no other one comes before it."""
        return not self.together or self.together[0] is self

    @property
    def called(self) -> str:
        """What remarks call it; "" if it is the only one."""
        if len(self.together) < 2:
            return ""
        return "no concern" if self.is_of_any_concern else f"concern {visible(self.concern_id)}"


def select(test_dir: Path, concern: str | None, pattern: str) -> Selection:
    """Select by `--concern`, whatever its case, and `--batch`, a glob over file names; raises ConfigurationError.

    The concern may be left out where there is only one.
    """
    selection, *others = selections(test_dir, pattern, concern)
    if others:
        listed = named((each.concern_id for each in (selection, *others)), _NAMED, MAX_ID_LENGTH)
        raise ConfigurationError(f"the test cases are of several concerns: {listed}; score one of them (--concern)")
    return selection


def select_batches(test_dir: Path, concern: str, names: Iterable[str], *, only: str | None = None) -> Selection:
    """Select the test cases of a concern in batches by name, or one of them; the others are not looked at then.

    Raises ConfigurationError naming each that is unusable.
    """
    return _of_concern(test_dir, concern, Batches(_load(test_dir, names)), only=only)


def _of_concern(test_dir: Path, concern: str, batches: Batches, *, only: str | None = None) -> Selection:
    problem = id_problem(concern)
    if problem is not None:
        raise ConfigurationError(f"--concern {problem}")
    rows = {
        batch.name: _rows([case for case in batch.batch.cases if is_of_concern(concern, case)], only)
        for batch in batches.all
    }
    if not any(rows.values()):
        raise ConfigurationError(_nothing_selected(batches.all, concern, only))
    _refuse(_problems(batches.all, rows))
    return _selected(test_dir, concern, batches, rows, only=only)


def selections(test_dir: Path, pattern: str, concern: str | None) -> list[Selection]:
    """Select by `--batch` and `--concern`; without a concern, all of them, one after the other.

    Raises ConfigurationError.
    """
    batches = chosen_batches(test_dir, pattern)
    return [_of_concern(test_dir, concern, batches)] if concern is not None else select_each_concern(test_dir, batches)


def select_each_concern(test_dir: Path, chosen: Batches, *, only: str | None = None) -> list[Selection]:
    """Select every test case once, or one of them, concern by concern.

    One that names no concern is of the concern under which another batch has it, else of the only one that there is;
    where there are several, those without one come last, by themselves. Raises ConfigurationError.
    """
    batches = chosen.all
    if not any(batch.batch.cases for batch in batches):
        raise ConfigurationError(f"there are no test cases in {_file_names(batches)}")
    groups = _by_concern(batches)
    rows = {
        concern: {batch.name: _rows(cases.get(batch.name, ()), only) for batch in batches}
        for concern, cases in groups.items()
    }
    _refuse([problem for each in rows.values() for problem in _problems(batches, each)])
    together: list[Selection] = []
    for concern, each in rows.items():
        if any(each.values()):
            together.append(_selected(test_dir, concern, chosen, each, only=only, together=together))
    return together


def chosen_batches(test_dir: Path, pattern: str) -> Batches:
    """Load the batches that match `--batch`; raises ConfigurationError if none does, or one cannot be used."""
    names = batch_names(test_dir)
    matching = chosen(pattern, names)
    if not matching:
        raise no_batch(test_dir, pattern, names)
    for name in matching:
        _check_name(name, test_dir)
    return load_batches(test_dir, pattern)


_Cases = dict[str, list[TestCase | BadTestCase]]
_Rows = Mapping[str, Sequence[tuple[str | None, Row]]]
"""By the name of the batch: what it says of each test_id; None for a test case that has no usable one."""


def _by_concern(batches: Iterable[LoadedBatch]) -> dict[str | None, _Cases]:
    """Give the test cases of each concern, by batch; None for those of any."""
    cases = [(batch.name, case) for batch in batches for case in batch.batch.cases]
    spelled: dict[str, str] = {}
    named: dict[str | None, str] = {}
    for _, case in cases:
        if case.concern_id is not None:
            concern = spelled.setdefault(case.concern_id.casefold(), case.concern_id)
            named.setdefault(case.test_id, concern)
    usual = next(iter(spelled.values())) if len(spelled) == 1 else None
    groups: dict[str | None, _Cases] = {concern: {} for concern in spelled.values()}
    for name, case in cases:
        own = named.get(case.test_id, usual) if case.concern_id is None else spelled[case.concern_id.casefold()]
        groups.setdefault(own, {}).setdefault(name, []).append(case)
    return groups


def _selected(
    test_dir: Path,
    concern: str | None,
    loaded: Batches,
    rows: _Rows,
    *,
    only: str | None,
    together: Sequence[Selection] = (),
) -> Selection:
    batches = tuple(batch for batch in loaded.all if rows[batch.name])
    for batch in batches:
        _check_name(batch.name, test_dir)
    cases = _merged(batches, rows)
    twice = [test_id for test_id, case in cases.items() if len(case.batches) > 1]
    remarks: list[str] = []
    if not together:  # the first one tells for all
        remarks += key_lines(loaded.all)
        remarks += beside_lines(loaded.beside)
    if twice and only is None:
        remarks.append(_counted_once(twice))
    return Selection(
        ANY_CONCERN if concern is None else _as_spelled(concern, cases.values()),
        test_dir,
        batches,
        cases,
        tuple(remarks),
        is_of_any_concern=concern is None,
        only=only,
        together=together,
    )


def _load(test_dir: Path, names: Iterable[str]) -> list[LoadedBatch]:
    """Load batches that may be opened, and whose names may stand in a report."""
    known = set(batch_names(test_dir))
    loaded = []
    for name in names:
        _check_name(name, test_dir)
        if name not in known:
            place = visible(str(test_dir / name))
            raise ConfigurationError(
                f"{place}.json: there is no such batch file, or it is a link that leaves the folder"
            )
        loaded.append(load_batch(test_dir, name))
    return loaded


def _check_name(name: str, test_dir: Path) -> None:
    if problem := id_problem(name):
        place = visible(str(test_dir / name))
        raise ConfigurationError(f"{place}.json: the file's name {problem}, so it cannot name a batch; rename the file")


def _rows(cases: Sequence[TestCase | BadTestCase], only: str | None) -> list[tuple[str | None, Row]]:
    rows = [*rows_of(Batch(tuple(cases))).items()]
    # rows know a test case by its test_id, and so nothing of those that have none
    nameless = [(None, case) for case in cases if case.test_id is None]
    return [row for row in (*rows, *nameless) if only is None or row[0] == only]


def _problems(batches: Iterable[LoadedBatch], rows: _Rows) -> Iterator[str]:
    """Name each test case whose expectations cannot be scored against, and why (contract.md, "Batch files").

    Those of one file that have the same problem are named together.
    """
    for batch in batches:
        where = visible(str(batch.path))
        alike: dict[str, list[int]] = {}
        for _, row in rows[batch.name]:
            if isinstance(row, BadTestCase):
                alike.setdefault(row.problem, []).append(row.position)
        yield from (f"{cases_at(where, at)}: {problem}" for problem, at in alike.items() if len(at) > 1)
        for test_id, row in rows[batch.name]:
            if isinstance(row, BadTestCase) and len(alike[row.problem]) > 1:
                continue
            judged = case_or_poison(row, where)
            if isinstance(judged, Poison):
                yield f"{'' if test_id is None else visible(test_id) + ': '}{judged.detail}"


def _refuse(problems: Iterable[str]) -> None:
    """Raise ConfigurationError if there are any."""
    found = [*problems]
    if found:
        more = f" (and {len(found) - _NAMED} more)" if len(found) > _NAMED else ""
        raise ConfigurationError("test cases that cannot be used: " + "; ".join(found[:_NAMED]) + more)


def _merged(batches: Sequence[LoadedBatch], rows: _Rows) -> dict[str, SelectedCase]:
    holders: dict[str, list[tuple[LoadedBatch, TestCase]]] = {}
    for batch in batches:
        for test_id, row in rows[batch.name]:
            assert test_id is not None, "one without a test_id was refused"
            assert isinstance(row, TestCase), "one that is no test case was refused"
            holders.setdefault(test_id, []).append((batch, row))
    torn = [test_id for test_id, held in holders.items() if differ(case for _, case in held)]
    if torn:
        example = named([batch.path.name for batch, _ in holders[torn[0]]], longest=MAX_ID_LENGTH)
        raise ConfigurationError(
            f"{count_of(len(torn), 'test_id')} in several batches with different expectations "
            f"(choose with --batch): {named(torn, _NAMED, MAX_ID_LENGTH)}; {visible(torn[0])} is in {example}"
        )
    return {
        test_id: SelectedCase(
            (case := as_one([case for _, case in held])),
            tuple(batch for batch, _ in held),
            prepare(case.expectations),
            case.narratives,
        )
        for test_id, held in holders.items()
    }


def _counted_once(test_ids: Sequence[str]) -> str:
    count = len(test_ids)
    are, once = ("1 test_id is", "counts") if count == 1 else (f"{count} test_ids are", "count")
    return (
        f"{are} in several batches with equal expectations and {once} only once, in the batch whose file name sorts "
        f"first: {named(test_ids, _NAMED, MAX_ID_LENGTH)}"
    )


def _nothing_selected(batches: Sequence[LoadedBatch], concern: str, only: str | None) -> str:
    cases = [case for batch in batches for case in batch.batch.cases if only is None or case.test_id == only]
    concerns = sorted({case.concern_id for case in cases if case.concern_id is not None})
    if only is not None:
        own = named(concerns, _NAMED, MAX_ID_LENGTH)
        return f"the test case {visible(only)} is not of --concern {visible(concern)}, but of {own}"
    what = f"the concerns there are {named(concerns, _NAMED, MAX_ID_LENGTH)}" if concerns else "there are none at all"
    return f"no test case of --concern {visible(concern)} in {_file_names(batches)}: {what}"


def _file_names(batches: Iterable[LoadedBatch]) -> str:
    return named([batch.path.name for batch in batches], longest=MAX_ID_LENGTH)


def _as_spelled(concern: str, cases: Iterable[SelectedCase]) -> str:
    """The concern as the test cases spell it, the first that does."""
    spelled = (case.test_case.concern_id for case in cases)
    return next((text for text in spelled if text is not None), concern)
