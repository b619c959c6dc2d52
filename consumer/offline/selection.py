"""Which test cases are scored, and which of them an output answers (contract.md, "Files")."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from consumer.errors import ConfigurationError, Poison
from consumer.expectations.cases import Row, as_one, rows_of, verdict
from consumer.files.batches import (
    Batches,
    LoadedBatch,
    batch_names,
    chosen,
    differ,
    load_batch,
    load_batches,
    no_batch,
    usable_batches,
)
from consumer.files.outputs import Entry
from consumer.text import count_of, named, visible
from safe_core import (
    MAX_ID_LENGTH,
    Batch,
    PreparedExpectations,
    TestCase,
    id_problem,
    is_of_concern,
    prepare,
)

_NAMED: Final = 20
ANY_CONCERN: Final = "any"
"""What stands for the concern of test cases that name none."""


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

    `batches` are those that hold any of them; `remarks` are for the person who asked.
    """

    concern_id: str
    test_dir: Path
    batches: tuple[LoadedBatch, ...]
    cases: Mapping[str, SelectedCase]
    remarks: tuple[str, ...] = ()

    @property
    def batch_id(self) -> str:
        """The name of the report's batch: the only one's, or the combination's."""
        return self.batches[0].name if len(self.batches) == 1 else f"{self.concern_id}_combined"


def select(test_dir: Path, concern: str, pattern: str) -> Selection:
    """Select by `--concern`, whatever its case, and `--batch`, a glob over file names; raises ConfigurationError."""
    names = batch_names(test_dir)
    selected = chosen(pattern, names)
    if not selected:
        raise no_batch(test_dir, pattern, names)
    return select_batches(test_dir, concern, selected)


def select_batches(test_dir: Path, concern: str, names: Iterable[str], *, only: str | None = None) -> Selection:
    """Select the test cases of a concern in batches by name, or one of them; the others are not looked at then.

    Raises ConfigurationError naming each that is unusable.
    """
    problem = id_problem(concern)
    if problem is not None:
        raise ConfigurationError(f"--concern {problem}")
    known = set(batch_names(test_dir))
    loaded = [load_batch(test_dir, _usable(name, test_dir, known)) for name in names]
    rows = {
        batch.name: [row for row in _rows_of_concern(batch, concern) if only is None or row[0] == only]
        for batch in loaded
    }
    _refuse_unusable(loaded, rows)
    batches = tuple(batch for batch in loaded if rows[batch.name])
    if not batches:
        raise ConfigurationError(_nothing_selected(loaded, concern))
    cases = _merged(batches, rows)
    twice = [test_id for test_id, case in cases.items() if len(case.batches) > 1]
    remarks = [_counted_once(twice)] if twice else []
    return Selection(_as_spelled(concern, cases.values()), test_dir, batches, cases, tuple(remarks))


def selections(test_dir: Path, pattern: str, concern: str | None) -> list[Selection]:
    """Select by `--batch` and `--concern`; without a concern, all of them, one after the other.

    Raises ConfigurationError.
    """
    if concern is not None:
        return [select(test_dir, concern, pattern)]
    batches = load_batches(test_dir, pattern)
    found = (row.concern_id for batch in batches.all for row in batch.rows.values() if isinstance(row, TestCase))
    concerns = {each.casefold(): each for each in found if each is not None}
    names = [batch.name for batch in batches.all]
    return [select_batches(test_dir, each, names) for each in concerns.values() or [ANY_CONCERN]]


def _usable(name: str, test_dir: Path, known: Collection[str]) -> str:
    """Give the name of a batch that may be opened, and whose name may stand in a report."""
    place = visible(str(test_dir / name))
    problem = id_problem(name)
    if problem is not None:
        raise ConfigurationError(f"{place}.json: the file's name {problem}, so it cannot name a batch; rename the file")
    if name not in known:
        raise ConfigurationError(f"{place}.json: there is no such batch file, or it is a link that leaves the folder")
    return name


def _rows_of_concern(batch: LoadedBatch, concern: str) -> Iterator[tuple[str | None, Row]]:
    cases = tuple(case for case in batch.batch.cases if is_of_concern(concern, case))
    yield from rows_of(Batch(cases)).items()
    # rows know a test case by its test_id, and so nothing of those that have none
    yield from ((None, case) for case in cases if case.test_id is None)


def _refuse_unusable(batches: Iterable[LoadedBatch], rows: Mapping[str, Sequence[tuple[str | None, Row]]]) -> None:
    """Refuse expectations that cannot be scored against, naming the case (contract.md, "Batch files")."""
    problems: list[str] = []
    for batch in batches:
        for test_id, row in rows[batch.name]:
            judged = verdict(row, visible(str(batch.path)))
            if isinstance(judged, Poison):
                problems.append(f"{'' if test_id is None else visible(test_id) + ': '}{judged.detail}")
    if problems:
        more = f" (and {len(problems) - _NAMED} more)" if len(problems) > _NAMED else ""
        raise ConfigurationError("test cases that cannot be used: " + "; ".join(problems[:_NAMED]) + more)


def _merged(
    batches: Sequence[LoadedBatch], rows: Mapping[str, Sequence[tuple[str | None, Row]]]
) -> dict[str, SelectedCase]:
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
            held[0][1],
            tuple(batch for batch, _ in held),
            prepare(held[0][1].expectations),
            as_one([case for _, case in held]).narratives,
        )
        for test_id, held in holders.items()
    }


def _counted_once(test_ids: Sequence[str]) -> str:
    count = len(test_ids)
    are, once = ("1 test_id is", "counts") if count == 1 else (f"{count} test_ids are", "count")
    return (
        f"{are} in several batches with equal expectations and {once} once, in the first by file name: "
        f"{named(test_ids, _NAMED, MAX_ID_LENGTH)}"
    )


def _nothing_selected(batches: Sequence[LoadedBatch], concern: str) -> str:
    concerns = sorted({
        case.concern_id for batch in batches for case in batch.batch.cases if case.concern_id is not None
    })  # fmt: skip
    what = f"what is there: {named(concerns, _NAMED, MAX_ID_LENGTH)}" if concerns else "no test cases at all"
    names = named([batch.path.name for batch in batches], longest=MAX_ID_LENGTH)
    return f"no test case of --concern {visible(concern)} in {names}: {what}"


def _as_spelled(concern: str, cases: Iterable[SelectedCase]) -> str:
    """The concern as the test cases spell it, the first that does."""
    spelled = (case.test_case.concern_id for case in cases)
    return next((text for text in spelled if text is not None), concern)


# --- whose case an output answers -------------------------------------------------------------------------------------


class Answers:
    """Finds the case that an entry answers; what else the folder holds is read only where it matters."""

    def __init__(self, selection: Selection) -> None:
        self._selection = selection
        self._chosen = Batches(selection.batches)

    def ranks(self, entry: Entry) -> tuple[int, ...]:
        """Which of a selected case's batches an entry answers, as places in `SelectedCase.batches`; () for none.

        A batch_id, if the entry has one, decides; else its batch_index (contract.md, "Answers"). The answer to a batch
        that was not selected, but expects the same, as a golden set does that repeats cases, has a place behind all of
        them: it serves where there is no other.
        """
        selected = self._selection.cases.get(entry.test_id)
        if selected is None or not is_of_concern(self._selection.concern_id, entry):
            return ()
        if entry.batch_id is not None:
            return self._ranks_by_batch_id(entry, selected)
        if entry.batch_index is not None and all(each.batch_index != entry.batch_index for each in selected.batches):
            return self._ranks_by_foreign_index(entry, selected)
        return self._ranks_among_selected(entry, selected)

    def narratives(self, entry: Entry, rank: int) -> tuple[str, ...]:
        """The digests of the narratives that an entry of that rank may have been made from."""
        rows = (batch.rows[entry.test_id] for batch in self.unselected_holders(entry, rank))
        more = (digest for row in rows if isinstance(row, TestCase) for digest in row.narratives)
        return (*self._selection.cases[entry.test_id].narratives, *more)

    def unselected_holders(self, entry: Entry, rank: int) -> list[LoadedBatch]:
        """The batches that an entry of that rank answers and that were not selected: those with its batch_index."""
        is_selected = rank < len(self._selection.cases[entry.test_id].batches)
        return [] if is_selected else [batch for _, batch in self._of_its_index(entry)]

    def _ranks_among_selected(self, entry: Entry, selected: SelectedCase) -> tuple[int, ...]:
        if len(selected.batches) == 1:
            return (0,)
        answered = {batch.name for batch in self._chosen.answered_by(entry)}
        return tuple(place for place, batch in enumerate(selected.batches) if batch.name in answered)

    def _ranks_by_batch_id(self, entry: Entry, selected: SelectedCase) -> tuple[int, ...]:
        if all(batch.name != entry.batch_id for batch in selected.batches):
            other = self._unselected.get(entry.batch_id or "")
            if other is not None and entry.test_id in other.rows:
                return ()
        return self._ranks_among_selected(entry, selected)

    def _ranks_by_foreign_index(self, entry: Entry, selected: SelectedCase) -> tuple[int, ...]:
        others = self._of_its_index(entry)
        if not others:
            return self._ranks_among_selected(entry, selected)
        if differ((selected.test_case, *(batch.rows[entry.test_id] for _, batch in others))):
            return ()
        return (len(selected.batches) + others[0][0],)

    def _of_its_index(self, entry: Entry) -> list[tuple[int, LoadedBatch]]:
        """The batches that were not selected and hold an entry's case under its batch_index, each with its place."""
        return [
            (place, batch)
            for place, batch in enumerate(self._unselected.values())
            if batch.batch_index == entry.batch_index and entry.test_id in batch.rows
        ]

    def is_elsewhere(self, test_id: str) -> bool:
        """Tell whether a batch of the folder that was not selected, or a case of another concern, has the test_id."""
        if any(test_id in batch.rows for batch in self._selection.batches):
            return True
        return any(test_id in batch.rows for batch in self._unselected.values())

    @cached_property
    def _unselected(self) -> Mapping[str, LoadedBatch]:
        """The folder's other batches, as far as they can be used."""
        selected = {batch.name for batch in self._selection.batches}
        names = [name for name in batch_names(self._selection.test_dir) if name not in selected]
        return {batch.name: batch for batch in usable_batches(self._selection.test_dir, names)}
