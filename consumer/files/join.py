"""Which entry of which file answers which case of which batch (contract.md, "Answers", "The right patient").

An entry answers the case of its test_id in one of the case's batches, or in none: `Places` says in which. Of several
entries that answer one case, RULES say which counts. Every command that reads outputs uses this module.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, Final, Generic, Literal, NamedTuple, TypeVar

from consumer.case_sources.cases import cases_in
from consumer.dead_letter_reasons import Poison
from consumer.errors import ConfigurationError
from consumer.files.batches import Batches, LoadedBatch, batch_names, differ, usable_batches
from consumer.files.outputs import Entry, OnDuplicate, OutputFile, unusable
from consumer.files.selection import SelectedCase, Selection
from consumer.files.unused_outputs import NewestEvents, Unanswering, UnreadKeys, WhyNone, passed_over_line
from consumer.terminal import Bar
from consumer.text import composed, count_of, named, printable
from consumer.wire.input_event import InputEvent
from consumer.wire.times import milliseconds_of
from safe_core import MAX_ID_LENGTH, EngineTexts, TestCase, do_inputs_match, kind_of
from safe_core.narrative_digests import digest_of_narrative

_LISTED: Final = 50
_Case = TypeVar("_Case")

# --- of several answers to one case, which counts ---------------------------------------------------------------------


class Standing(NamedTuple):
    """What decides between answers to one case.

    `matches` says whether it was made from one of the case's narratives, `rank` which of the case's batches it is for,
    `time` when an event was made (ms), and its file and line; None for an entry of a report. `where` names the entry.
    """

    is_failed: bool
    matches: bool | None
    rank: int
    time: tuple[int, int, int] | None
    where: str
    is_selected: bool = True

    @property
    def level(self) -> tuple[Any, ...]:
        """What two duplicates have in common."""
        return tuple(rule.key(self) for rule in RULES if rule.name != "time")


class Rule(NamedTuple):
    """Of two answers, that with the greater `key` counts; if one has none, or both are equal, the next rule decides."""

    name: Literal["generation", "narrative", "batch", "time"]
    key: Callable[[Standing], Any]


_SURE: Final[Mapping[bool | None, int]] = {True: 2, None: 1, False: 0}
RULES: Final = (
    # a failed generation gives way to every answer
    Rule("generation", lambda each: not each.is_failed),
    # events go by their time instead
    Rule("narrative", lambda each: None if each.is_failed or each.time else _SURE[each.matches]),
    # a selected batch goes before another, and an earlier file before a later one
    Rule("batch", lambda each: None if each.is_failed else -each.rank),
    # the events of all files are one stream
    Rule("time", lambda each: each.time),
)
"""Which of two answers to one case counts; where no rule says it, they are duplicates, and of two failures the last."""


class Contest(Generic[_Case]):
    """Which answer counts for each case, while they come in one by one.

    `lost` counts the others by the rule that decided, and by whether their batch is selected; `passed_over` names those
    that gave way by their narratives.
    """

    def __init__(self, on_duplicate: OnDuplicate | None) -> None:
        self._on_duplicate = on_duplicate
        self.counting: dict[_Case, Standing] = {}
        self.lost: Counter[tuple[str, bool]] = Counter()
        self.passed_over: dict[str, None] = {}
        self._ties: dict[_Case, set[tuple[Any, ...]]] = {}

    def enter(self, case: _Case, new: Standing) -> bool:
        """Tell whether an answer counts for its case now."""
        old = self.counting.get(case)
        counts = old is None or self._goes_before(case, new, old)
        if counts:
            self.counting[case] = new
        return counts

    def _goes_before(self, case: _Case, new: Standing, old: Standing) -> bool:
        for rule in RULES:
            one, other = rule.key(new), rule.key(old)
            if one is not None and other is not None and one != other:
                self._note(rule, old if one > other else new)
                return bool(one > other)
        if new.is_failed:
            return True
        self._ties.setdefault(case, set()).update((new.level, old.level))
        return self._on_duplicate == "last"

    def _note(self, rule: Rule, loser: Standing) -> None:
        if rule.name == "narrative":
            self.passed_over[loser.where] = None
        self.lost[rule.name, loser.is_selected] += 1

    @property
    def twice(self) -> list[_Case]:
        """The cases for which no rule says which of several answers counts."""
        return [case for case, each in self.counting.items() if each.level in self._ties.get(case, ())]


def is_failed(entry: Entry, texts: EngineTexts) -> bool:
    """Tell whether an entry is a failed generation."""
    return kind_of(entry.output, texts).generation == "failed"


# --- which case an entry answers --------------------------------------------------------------------------------------


def answered_by(batches: Batches, entry: Entry) -> tuple[LoadedBatch, ...]:
    """The batches whose case an entry answers.

    A batch_id, if the entry has one, decides by "Look-up"; else a batch_index that is some holder's. Where the holders
    differ, the entry's narrative decides, if it can.
    """
    holders = batches.holders(entry.test_id)
    own = _of_that_name(entry.batch_id, holders)
    if not own and entry.batch_index is not None:
        own = tuple(batch for batch in holders if batch.batch_index == entry.batch_index)
    return own or _of_its_narrative(holders, entry)


def _of_its_narrative(holders: tuple[LoadedBatch, ...], entry: Entry) -> tuple[LoadedBatch, ...]:
    rows = [(batch, batch.rows[entry.test_id]) for batch in holders]
    if entry.narrative is None or not differ(row for _, row in rows):
        return holders
    told = tuple(batch for batch, row in rows if any(entry.narrative in case.narratives for case in cases_in(row)))
    return told or holders


def _of_that_name(name: str | None, batches: Iterable[LoadedBatch]) -> tuple[LoadedBatch, ...]:
    """Those of a name, exactly or else in another Unicode form (contract.md, "Batch files")."""
    if name is None:
        return ()
    candidates = tuple(batches)
    exact = tuple(batch for batch in candidates if batch.name == name)
    return exact or tuple(batch for batch in candidates if composed(batch.name) == composed(name))


class Place(NamedTuple):
    """Which of a selected case's batches an entry answers, by its rank among them.

    `others` are batches that were not selected, but expect the same, as a golden set does that repeats cases: if the
    entry answers them, it has a place behind the selected ones.
    """

    rank: int
    others: tuple[LoadedBatch, ...] = ()


class Places:
    """Finds the selected case that an entry answers; what else the folder holds is read only where it matters."""

    def __init__(self, selection: Selection) -> None:
        self._selection = selection
        self._decisive: set[str] = set()

    @property
    def decisive(self) -> list[LoadedBatch]:
        """The batches that were not selected, but decided about an entry so far, in the order of their files."""
        return [batch for name, batch in self._unselected.items() if name in self._decisive] if self._decisive else []

    def of(self, entry: Entry) -> Place | None:
        """Find the place of an entry: its batch_id decides, if it has one, else its batch_index."""
        selected = self._selection.cases.get(entry.test_id)
        if selected is None or not self._selection.is_asked_for(entry):
            return None
        batches, index = selected.batches, entry.batch_index
        if entry.batch_id is not None:
            if all(batch.name != entry.batch_id for batch in batches) and self._is_for_another(entry, batches):
                return None
        elif index is not None and all(each.batch_index != index for each in batches):
            others = [(n, batch) for n, batch in self._others(entry) if batch.batch_index == index]
            if others:
                return self._behind(selected, entry, others)
        answered = {batch.name for batch in answered_by(self._chosen, entry)} if len(batches) > 1 else None
        ranks = (rank for rank, batch in enumerate(batches) if answered is None or batch.name in answered)
        return next((Place(rank) for rank in ranks), None)

    @cached_property
    def _chosen(self) -> Batches:
        return Batches(self._selection.batches)

    def _is_for_another(self, entry: Entry, batches: tuple[LoadedBatch, ...]) -> bool:
        """Tell whether a batch_id names a batch that was not selected; an exact name goes before another form of it."""
        own = _of_that_name(entry.batch_id, (*batches, *(batch for _, batch in self._others(entry))))
        if not own or any(batch in batches for batch in own):
            return False
        self._decisive.update(batch.name for batch in own)
        return True

    def _behind(self, selected: SelectedCase, entry: Entry, others: list[tuple[int, LoadedBatch]]) -> Place | None:
        """The place of an entry for batches that were not selected: a golden set repeats cases of others."""
        batches = tuple(batch for _, batch in others)
        self._decisive.update(batch.name for batch in batches)
        if differ((selected.test_case, *(batch.rows[entry.test_id] for batch in batches))):
            return None
        return Place(len(selected.batches) + others[0][0], batches)

    def _others(self, entry: Entry) -> Iterator[tuple[int, LoadedBatch]]:
        """The batches that were not selected and hold an entry's test_id, each with its place."""
        batches = enumerate(self._unselected.values())
        return ((place, batch) for place, batch in batches if entry.test_id in batch.rows)

    def why_none(self, entry: Entry) -> WhyNone:
        """Say why an entry answers no selected test case."""
        concern = entry.concern_id
        if entry.test_id in self._selection.cases and concern is not None and not self._selection.is_asked_for(entry):
            return "not_selected" if (entry.test_id, concern.casefold()) in self._named_concerns else "other_concern"
        return "not_selected" if any(entry.test_id in batch.rows for batch in self._folder) else "unknown"

    @cached_property
    def _named_concerns(self) -> frozenset[tuple[str | None, str]]:
        """Each test_id of the folder with each concern that a test case of it names."""
        cases = (case for batch in self._folder for case in batch.batch.cases)
        return frozenset((case.test_id, case.concern_id.casefold()) for case in cases if case.concern_id is not None)

    @property
    def _folder(self) -> tuple[LoadedBatch, ...]:
        return (*self._selection.batches, *self._unselected.values())

    @cached_property
    def _unselected(self) -> Mapping[str, LoadedBatch]:
        """The folder's other batches, as far as they can be used."""
        selected = {batch.name for batch in self._selection.batches}
        names = [name for name in batch_names(self._selection.test_dir) if name not in selected]
        return {batch.name: batch for batch in usable_batches(self._selection.test_dir, names)}

    # --- the narratives -----------------------------------------------------------------------------------------------
    #
    # Batches that repeat a case may tell its story in other words, and so may one file that has a test_id twice. An
    # output is explained by the narrative that it was made from. Where that is not known, or is none of them, the batch
    # that it answers decides, and then the first one that tells anything.

    def digests(self, test_id: str, place: Place) -> tuple[str, ...]:
        """The digests of the narratives that an entry with this place may have been made from."""
        rows = (batch.rows[test_id] for batch in place.others)
        more = (digest for row in rows if isinstance(row, TestCase) for digest in row.narratives)
        return (*self._selection.cases[test_id].narratives, *more)

    def narrative(self, test_id: str, place: Place | None = None, read: str | None = None) -> str | None:
        """Give the narrative of a case, or of its answer with this place that was made from one with the digest `read`.

        None also where only a digest is known of the narrative that it was made from: no other text may judge it.
        """
        selected = self._selection.cases[test_id]
        rank = 0 if place is None else place.rank
        wanted: tuple[str | None, ...] = selected.narratives
        holders = (*selected.batches[rank : rank + 1], *selected.batches)
        if place is not None and read in self.digests(test_id, place):
            wanted, holders = (read,), (*selected.batches, *place.others)
        told = (text for batch in holders for text in batch.narratives.get(test_id, ()))
        return next((text for text in told if digest_of_narrative(text) in wanted), None)


# --- all files against a selection ------------------------------------------------------------------------------------


class Answered(NamedTuple):
    """An entry that counts for its case, unless a later one takes its place.

    `narratives` are the digests of those that it may have been made from, `narrative` is the text that explains it, and
    `error` what its file says of a generation that failed.
    """

    entry: Entry | InputEvent
    version: tuple[int, int, int]
    narratives: tuple[str, ...]
    narrative: str | None
    error: str | None = None


class Join:
    """The entries of some files against a selection: answers() reads them; the rest is for when all are read."""

    def __init__(
        self,
        selection: Selection,
        files: Iterable[OutputFile],
        texts: EngineTexts,
        on_duplicate: OnDuplicate | None,
    ) -> None:
        self._selection, self._files, self._texts = selection, [*files], texts
        self._on_duplicate = on_duplicate
        self._places = Places(selection)
        # Of selections over the same files, only the first reports outputs that answer none of them.
        self._others = [Places(each) for each in selection.others] if selection.is_first else []
        self._contest: Contest[str] = Contest(on_duplicate)
        self._unanswering, self._newest, self._keys = Unanswering(), NewestEvents(), UnreadKeys()
        self._outputs = 0

    def answers(self, bar: Bar) -> Iterator[Answered]:
        """Read all files, telling the bar of each entry; raises ConfigurationError for one that cannot be used."""
        for number, file in enumerate(self._files):
            for line, entry in enumerate(file.entries()):
                self._outputs += 1
                self._keys.note(entry)
                bar(1)
                place = self._places.of(entry)
                if place is None:
                    self._note_unanswering(entry)
                elif answer := self._entered(entry, place, file, (number, line)):
                    yield answer

    def _entered(self, entry: Entry, place: Place, file: OutputFile, order: tuple[int, int]) -> Answered | None:
        digests = self._places.digests(entry.test_id, place)
        version = (self._event_time(file, entry) if file.kind == "events" else 0, *order)
        name = "" if len(self._files) == 1 else f"{printable(file.path.name)}, "
        standing = Standing(
            is_failed(entry, self._texts),
            do_inputs_match(entry.narrative, digests),
            place.rank,
            version if file.kind == "events" else None,
            f"{entry.test_id} ({name}{entry.place})",
            not place.others,
        )
        if not self._contest.enter(entry.test_id, standing):
            return None
        narrative = self._places.narrative(entry.test_id, place, entry.narrative)
        return Answered(entry, version, digests, narrative, entry.error)

    def _event_time(self, file: OutputFile, entry: Entry) -> int:
        if entry.generated_at is None:
            return 0
        try:
            time = milliseconds_of(entry.generated_at)
        except Poison as error:
            raise unusable(file.path, f"{entry.place}: {error.detail}") from error
        self._newest.note(time, entry, file.path)
        return time

    def _note_unanswering(self, entry: Entry) -> None:
        is_asked = self._selection.only is None and self._selection.is_first
        if is_asked and all(other.of(entry) is None for other in self._others):
            whys = [places.why_none(entry) for places in (self._places, *self._others)]
            self._unanswering.note(entry, "other_concern" if "other_concern" in whys else whys[0])

    def narrative(self, test_id: str) -> str | None:
        """The narrative of a case that has no answer."""
        return self._places.narrative(test_id)

    def refuse(self, *, allow_empty: bool) -> None:
        """Raise ConfigurationError where a case is answered twice, or none at all is though that is not allowed."""
        if (twice := self._contest.twice) and self._on_duplicate is None:
            listed = f"{count_of(len(twice), 'test_id')}: {named(twice, _LISTED, MAX_ID_LENGTH)}"
            raise ConfigurationError(f"more than one output for {listed}; choose with --on-duplicate first or last")
        if not self._outputs:
            names = named([str(file.path) for file in self._files], longest=MAX_ID_LENGTH)
            raise ConfigurationError(f"{names}: no outputs, so there is nothing to score")
        self._keys.refuse()
        if not (self._contest.counting or allow_empty):
            raise ConfigurationError(self._unanswering.refusal(self._selection.concern_id))

    def inputs(self) -> Iterator[dict[str, str]]:
        """The files that decided; by name alone, since folders differ from machine to machine.

        Batch files come first: the selected ones, then others that say which case an entry answers.
        """
        for batch in (*self._selection.batches, *self._places.decisive):
            yield {"name": batch.path.name, "sha256": batch.sha256}
        for file in self._files:
            yield {"name": printable(file.path.name), "sha256": file.sha256}

    def remarks(self) -> Iterator[str]:
        """Say which outputs answer no case, and what they have under keys that nothing reads."""
        yield from self._unanswering.remarks()
        if self._selection.is_first:
            yield from self._keys.remarks()

    def remarks_on_cases(self) -> Iterator[str]:
        """Say which answers give way to others, and why."""
        if over := self._contest.passed_over:
            yield passed_over_line(over)
        if twice := self._contest.twice:
            listed = f"only the {self._on_duplicate} answer counts: {named(twice, _LISTED, MAX_ID_LENGTH)}"
            yield f"{count_of(len(twice), 'test_id')} answered more than once, and {listed}"
        if outdated := sum(count for (name, _), count in self._contest.lost.items() if name == "time"):
            yield f"{count_of(outdated, 'event')} ignored: a later event has the same test_id"
        if (remark := self._newest.remark()) is not None:
            yield remark
        for is_selected, why in _SET_ASIDE.items():
            if count := self._contest.lost["batch", is_selected]:
                yield f"{count_of(count, 'output')} ignored: {why}"


_SET_ASIDE: Final = {
    True: "an output for an earlier batch (by file name) already answers the case",
    False: "the batch is not selected, and another output already answers the case",
}
