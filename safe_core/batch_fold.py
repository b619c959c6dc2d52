"""The rolling aggregate of a batch: the latest row of each test case, counted exactly (contract.md, "Batches")."""

import marshal
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from types import MappingProxyType
from typing import Any, NamedTuple, Self, TypeVar

from safe_core.exact import exact_mean, units
from safe_core.expectations import Terms
from safe_core.lowest import LowestNames
from safe_core.policy import CRITERIA, UNKNOWN_ARCHETYPE
from safe_core.remembered import Remembered
from safe_core.scoring import LABELS, CaseScore, Details, Label, Passed, Scores, Vacuous

WORST_NAMED = 5
"""How many worst performers, and how many common misses of a kind, a report names (contract.md, "Ties")."""

Version = tuple[int, int, int]
"""Event time in ms, source partition, source offset: the greater is the later result (contract.md, "Latest result")."""

T = TypeVar("T")

_FEW = 2
"""With no more rows than this, nothing is kept but the rows: there may be very many such batches."""

_MOST_MOVED = 1_000
"""How many test cases may wait to be counted: to count them all at once holds up everything else for milliseconds."""

_VERSION = struct.Struct(">QQQ")
_LOWEST = 2**63
"""Added to each number of a version, so that packed versions compare as the versions do."""

_FLAWLESS = (1.0, 1.0, 1.0, 1.0)
_MARSHAL_FORMAT = 2  # later formats may write equal values as different bytes, and equal details would be kept twice


class Kind(NamedTuple):
    """What many rows of a batch have in common, kept once for all of them."""

    archetype: str | None
    run_id: str | None
    fingerprint: str
    expected: bool
    label: Label
    passed: Passed
    vacuous: Vacuous
    empty_output: bool
    input_matches: bool | None


_besides_the_label = attrgetter("fingerprint", "vacuous", "empty_output", "input_matches")
"""What _Aggregates counts of a kind besides its archetype, its label and what it passed."""


class _Pool(Remembered[T, T]):
    """Values met lately, so that equal ones are kept once."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(16_384)

    def share(self, value: T) -> T:
        known = self.get(value)
        return self.keep(value, value) if known is None else known


# One pool for each type: a Terms of (1, 1, 1) equals a Passed of (True, True, True).
_KINDS: _Pool[Kind] = _Pool()
_SCORES: _Pool[Scores] = _Pool()
_TERMS: _Pool[Terms] = _Pool()
_DETAILS: _Pool[bytes] = _Pool()


@dataclass(slots=True)  # not frozen: that would double the time to make one
class CaseRow:
    """What the fold keeps of one case, compact, and never changed; made by CaseRow.of()."""

    kind: Kind
    scores: Scores
    terms: Terms
    _version: bytes
    _details: bytes

    @classmethod
    def of(
        cls,
        *,
        version: Version,
        archetype: str | None,
        run_id: str | None,
        fingerprint: str,
        expected: bool,
        case: CaseScore,
        input_matches: bool | None = None,
    ) -> Self:
        """Pack a case; `expected` tells that the batch of that name holds the test case.

        `input_matches` tells whether its output was made from the case's own narrative; None: not known, or no output.

        Raises ValueError for a version whose numbers do not fit 64 bits.
        """
        kind = Kind(
            archetype, run_id, fingerprint, expected,
            case.label, case.passed, case.vacuous, case.empty_output, input_matches,
        )  # fmt: skip
        packed = _packed(version)
        details = marshal.dumps(tuple(case.details), _MARSHAL_FORMAT)
        return cls(
            _KINDS.share(kind), _SCORES.share(case.scores), _TERMS.share(case.terms), packed, _DETAILS.share(details)
        )

    def of_version(self, version: Version) -> Self:
        """Give the same row of another version; raises ValueError as of() does."""
        return type(self)(self.kind, self.scores, self.terms, _packed(version), self._details)

    @property
    def version(self) -> Version:
        event_time, partition, offset = _VERSION.unpack(self._version)
        return event_time - _LOWEST, partition - _LOWEST, offset - _LOWEST

    def is_older_than(self, other: Self) -> bool:
        """Tell whether the other one is the later result (contract.md, "Latest result")."""
        return self._version < other._version

    @property
    def details(self) -> Details:
        return _unpacked(self._details)

    def has_details_of(self, other: Self) -> bool:
        """Tell whether both have the same details."""
        return self._details == other._details

    @property
    def archetype(self) -> str | None:
        return self.kind.archetype

    @property
    def run_id(self) -> str | None:
        return self.kind.run_id

    @property
    def label(self) -> Label:
        return self.kind.label

    @property
    def passed(self) -> Passed:
        return self.kind.passed

    @property
    def vacuous(self) -> Vacuous:
        return self.kind.vacuous

    @property
    def empty_output(self) -> bool:
        return self.kind.empty_output

    @property
    def input_matches(self) -> bool | None:
        return self.kind.input_matches


def _packed(version: Version) -> bytes:
    event_time, partition, offset = version
    try:
        return _VERSION.pack(event_time + _LOWEST, partition + _LOWEST, offset + _LOWEST)
    except struct.error as error:
        raise ValueError("a version is three integers of 64 bits") from error


@lru_cache(maxsize=4096)  # so that the terms that many batches count are kept once
def _unpacked(details: bytes) -> Details:
    return Details._make(marshal.loads(details))  # noqa: S302  our own bytes, written by of()


@lru_cache(maxsize=4096)  # few values, met again and again
def _signed_units(scores: Scores, step: int) -> tuple[int, ...]:
    """What counting a row in (step 1) or out (step -1) adds to the four sums."""
    return tuple(step * units(score) for score in scores)


@lru_cache(maxsize=4096)
def _difference(old: Scores, new: Scores) -> tuple[int, ...]:
    """What replacing a row adds to the four sums."""
    return tuple(units(after) - units(before) for before, after in zip(old, new, strict=True))


class _Tally:
    """Counts and exact sums over a group of rows: the batch, or one archetype in it."""

    __slots__ = ("cases", "labels", "passed", "units")

    def __init__(self) -> None:
        self.cases = 0
        self.labels = dict.fromkeys(LABELS, 0)
        self.passed = (0, 0, 0)
        self.units: tuple[int, ...] = (0, 0, 0, 0)

    def move(self, row: CaseRow, step: int) -> None:
        """Count a row in (step 1) or out (step -1)."""
        kind = row.kind
        first = not self.cases
        self.cases += step
        self.labels[kind.label] += step
        cr, ah, ac = self.passed
        passed = kind.passed
        self.passed = (cr + step * passed[0], ah + step * passed[1], ac + step * passed[2])
        more = _signed_units(row.scores, step)
        if first:  # whole numbers of a thousand bits, which other batches have too
            self.units = more
            return
        self._add(more)

    def replace(self, old: CaseRow, new: CaseRow) -> None:
        """Count a row out and its successor in."""
        before, after = old.kind, new.kind
        if before.label != after.label:
            self.labels[before.label] -= 1
            self.labels[after.label] += 1
        if before.passed != after.passed:
            cr, ah, ac = self.passed
            less, more = before.passed, after.passed
            self.passed = (cr - less[0] + more[0], ah - less[1] + more[1], ac - less[2] + more[2])
        if old.scores != new.scores:
            self._add(_difference(old.scores, new.scores))

    def _add(self, more: tuple[int, ...]) -> None:
        a, b, c, d = self.units
        self.units = (a + more[0], b + more[1], c + more[2], d + more[3])


class _Counts(dict[str, int]):
    """How often each text was counted in, less how often out; at 0 it is forgotten."""

    __slots__ = ()

    def move(self, text: str, step: int) -> None:
        count = self.get(text, 0) + step
        if count:
            self[text] = count
        else:
            del self[text]

    def in_order(self) -> dict[str, int]:
        return dict(sorted(self.items()))


class _TermCounts:
    """How often each term was missed, or violated, and which most often."""

    __slots__ = ("_counts", "_ranking")

    def __init__(self) -> None:
        self._counts = _Counts()
        self._ranking = LowestNames()

    def move(self, terms: Iterable[str], step: int) -> None:
        for term in terms:
            self._counts.move(term, step)
            self._ranking.touch(term, self._counts)

    def named(self, text_key: str, count_key: str) -> list[dict[str, Any]]:
        """Give the most frequent terms: count descending, then text ascending by code point (contract.md, "Ties")."""
        counts = self._counts
        first = self._ranking.first(WORST_NAMED, counts, lambda term: (-counts[term], term))
        return [{text_key: term, count_key: counts[term]} for term in first]


@dataclass(frozen=True, slots=True)
class BatchSnapshot:
    """The numbers of a batch at one moment, to be shown later; ratios and means are worked out when asked.

    `labels` count Pass, Review, Fail; `passed` CR, AH, AC; `vacuous` CR, AH, AC, all; `units` are the exact sums of the
    scores; `archetypes` maps each archetype to its cases and, of these, the passing ones.
    """

    total_cases: int
    labels: tuple[int, ...]
    passed: tuple[int, ...]
    units: tuple[int, ...]
    vacuous: tuple[int, ...]
    empty_outputs: int
    expected_present: int
    archetypes: Mapping[str, tuple[int, int]]

    @property
    def label_distribution(self) -> dict[str, int]:
        return dict(zip(LABELS, self.labels, strict=True))

    @property
    def pass_ratio(self) -> float:
        return _share(self.labels[0], self.total_cases)

    @property
    def pass_ratios(self) -> dict[str, float]:
        """The share of cases that passed each criterion by their own thresholds: CR, AH, AC."""
        return {c: _share(count, self.total_cases) for c, count in zip(CRITERIA, self.passed, strict=True)}

    @property
    def mean_scores(self) -> dict[str, float]:
        """The means of CR, AH, AC and composite, each rounded once (contract.md, "Exact sums")."""
        return {
            name: exact_mean(total, self.total_cases) for name, total in zip(Scores._fields, self.units, strict=True)
        }


class _Aggregates:
    """Every aggregate of a report over some rows, moved row by row."""

    __slots__ = (
        "ac_misses", "ah_violations", "archetype_cases", "archetypes", "cr_misses", "empty_outputs", "fingerprints",
        "input_mismatches", "total", "vacuous", "worst",
    )  # fmt: skip

    def __init__(self) -> None:
        self.total = _Tally()
        self.archetypes: dict[str, _Tally] = {}
        self.archetype_cases: dict[str, tuple[int, int]] = {}
        self.fingerprints = _Counts()
        self.vacuous = [0, 0, 0, 0]
        self.empty_outputs = 0
        self.input_mismatches = 0
        self.worst = LowestNames()
        self.cr_misses = _TermCounts()
        self.ah_violations = _TermCounts()
        self.ac_misses = _TermCounts()

    @classmethod
    def over(cls, rows: Iterable[CaseRow]) -> Self:
        """Fold from scratch."""
        aggregates = cls()
        for row in rows:
            aggregates.move(row, 1)
        return aggregates

    def move(self, row: CaseRow, step: int) -> None:
        """Count a row in (step 1) or out (step -1) of every aggregate."""
        self._move_counts(row, step)
        self._move_terms(row, step)

    def replace(self, old: CaseRow | None, new: CaseRow | None) -> None:
        """Count a row out and its successor in, None for no row; what both have alike moves nothing."""
        if old is None or new is None:
            if old is not None:
                self.move(old, -1)
            if new is not None:
                self.move(new, 1)
            return
        before, after = old.kind, new.kind
        if before.archetype != after.archetype:
            self._move_counts(old, -1)
            self._move_counts(new, 1)
        elif before != after or old.scores != new.scores:
            self.total.replace(old, new)
            self._replace_in_archetype(old, new)
            if _besides_the_label(before) != _besides_the_label(after):
                self._move_kind(before, -1)
                self._move_kind(after, 1)
        if not old.has_details_of(new):
            self._move_terms(old, -1)
            self._move_terms(new, 1)

    def _move_counts(self, row: CaseRow, step: int) -> None:
        self.total.move(row, step)
        self._move_in_archetype(row, step)
        self._move_kind(row.kind, step)

    def _move_kind(self, kind: Kind, step: int) -> None:
        self.fingerprints.move(kind.fingerprint, step)
        if kind.empty_output:
            self.empty_outputs += step
        if kind.input_matches is False:
            self.input_mismatches += step
        if True in kind.vacuous:
            for position, vacuous in enumerate((*kind.vacuous, all(kind.vacuous))):
                self.vacuous[position] += step * vacuous

    def _move_terms(self, row: CaseRow, step: int) -> None:
        if row.scores != _FLAWLESS:  # otherwise no list has a term to count
            details = row.details
            self.cr_misses.move(details.cr_missing, step)
            self.ah_violations.move(details.ah_violations, step)
            self.ac_misses.move(details.ac_missing, step)

    def _move_in_archetype(self, row: CaseRow, step: int) -> None:
        name = row.kind.archetype or UNKNOWN_ARCHETYPE
        tally = self.archetypes.get(name)
        if tally is None:
            tally = self.archetypes[name] = _Tally()
        tally.move(row, step)
        if tally.cases:
            self.archetype_cases[name] = tally.cases, tally.labels["Pass"]
        else:
            del self.archetypes[name], self.archetype_cases[name]

    def _replace_in_archetype(self, old: CaseRow, new: CaseRow) -> None:
        name = new.kind.archetype or UNKNOWN_ARCHETYPE
        tally = self.archetypes[name]
        tally.replace(old, new)
        self.archetype_cases[name] = tally.cases, tally.labels["Pass"]


class _Standing:
    """What is asked of a batch after each record: the labels, runs and expected test cases of the rows that stand."""

    __slots__ = ("expected", "labels", "runs")

    def __init__(self, rows: Iterable[CaseRow] = ()) -> None:
        self.labels = dict.fromkeys(LABELS, 0)
        self.runs = _Counts()
        self.expected = 0
        for row in rows:
            self.move(row.kind, 1)

    def move(self, kind: Kind, step: int) -> None:
        """Count a row of this kind in (step 1) or out (step -1)."""
        self.labels[kind.label] += step
        self.runs.move(kind.run_id or "", step)
        if kind.expected:
            self.expected += step


class BatchFold:
    """The latest row of each test case of a batch, and every aggregate of a report over them.

    In any order of offers, after any replacements and removals, all answers equal those of a fold from scratch over the
    rows that stand, to the last bit (contract.md, "Exact sums").

    An offer moves only what is asked after each record. All else is moved when it is asked for, once for each test case
    that was answered meanwhile, however often: `_moved` has the row of it that is still counted, None for none.
    """

    __slots__ = ("_aggregates", "_moved", "_rows", "_standing")

    def __init__(self) -> None:
        self._rows: dict[str, CaseRow] = {}
        self._standing: _Standing | None = None
        self._aggregates: _Aggregates | None = None
        self._moved: dict[str, CaseRow | None] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, test_id: object) -> bool:
        return test_id in self._rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def offer(self, test_id: str, row: CaseRow) -> bool:
        """Let a row count for its test case, unless a later one does; True if it counts (contract.md, "Latest result").

        Of two rows of the very same source, the one offered later stands.
        """
        before = self._rows.get(test_id)
        if before is not None and row.is_older_than(before):
            return False
        self._rows[test_id] = row
        self._note(test_id, before, row)
        return True

    def remove(self, test_id: str) -> None:
        """Forget a test case; raises KeyError for one that has no row."""
        self._note(test_id, self._rows.pop(test_id), None)

    def _note(self, test_id: str, before: CaseRow | None, after: CaseRow | None) -> None:
        """Note that the row of a test case was replaced; None for no row."""
        standing = self._standing
        if standing is None:
            if len(self._rows) > _FEW:
                self._standing = _Standing(self._rows.values())
                self._aggregates = _Aggregates.over(self._rows.values())
            return
        if before is None or after is None or before.kind is not after.kind:
            if before is not None:
                standing.move(before.kind, -1)
            if after is not None:
                standing.move(after.kind, 1)
        if test_id not in self._moved:
            self._moved[test_id] = before
            if len(self._moved) > _MOST_MOVED:
                self._settled()

    def _settled(self) -> "_Aggregates":
        """Give every aggregate over the rows that stand."""
        if self._aggregates is None:
            return _Aggregates.over(self._rows.values())
        for test_id, counted in self._moved.items():
            row = self._rows.get(test_id)
            if row is not counted:
                self._aggregates.replace(counted, row)
                self._aggregates.worst.touch(test_id, self._rows)
        self._moved.clear()
        return self._aggregates

    def _counted(self) -> _Standing:
        return self._standing or _Standing(self._rows.values())

    def row(self, test_id: str) -> CaseRow:
        """Give the row that stands for a test case; raises KeyError for one that has none."""
        return self._rows[test_id]

    @property
    def mixed_runs(self) -> bool:
        """The rows come from more than one run."""
        return len(self._counted().runs) > 1

    @property
    def runs(self) -> dict[str, int]:
        """The cases of each run; a missing run counts as ""."""
        return self._counted().runs.in_order()

    @property
    def fingerprints(self) -> dict[str, int]:
        """The cases scored under each fingerprint."""
        return self._settled().fingerprints.in_order()

    @property
    def expected_present(self) -> int:
        """How many rows are of test cases that the batch of that name holds."""
        return self._counted().expected

    @property
    def empty_outputs(self) -> int:
        """How many cases answered with three empty fields."""
        return self._settled().empty_outputs

    @property
    def input_mismatches(self) -> int:
        """How many cases have an output that was made from another narrative than their own."""
        return self._settled().input_mismatches

    def summary(self) -> dict[str, Any]:
        """Give the `summary` of a report."""
        labels, total = self._counted().labels, len(self._rows)
        return {
            "total_cases": total,
            "pass": labels["Pass"],
            "review": labels["Review"],
            "fail": labels["Fail"],
            "overall_pass_rate": _share(labels["Pass"], total),
        }

    def by_archetype(self) -> dict[str, dict[str, Any]]:
        """Give the breakdown by archetype, by name; cases without an archetype are the group "Unknown"."""
        archetypes = self._settled().archetypes
        return {name: _breakdown(archetypes[name]) for name in sorted(archetypes)}

    def vacuous(self) -> dict[str, int]:
        """Count the cases whose criterion had nothing to check; `all`: whose three had nothing."""
        return dict(zip((*CRITERIA, "all"), self._settled().vacuous, strict=True))

    def failure_analysis(self) -> dict[str, list[dict[str, Any]]]:
        """Name the worst performers and the common misses (contract.md, "Ties")."""
        rows, aggregates = self._rows, self._settled()
        worst = aggregates.worst.first(WORST_NAMED, rows, lambda test_id: (rows[test_id].scores.composite, test_id))
        return {
            "worst_performers": [result_document(name, rows[name].archetype, rows[name]) for name in worst],
            "common_CR_misses": aggregates.cr_misses.named("signal", "miss_count"),
            "common_AH_violations": aggregates.ah_violations.named("term", "count"),
            "common_AC_misses": aggregates.ac_misses.named("phrase", "miss_count"),
        }

    def snapshot(self) -> BatchSnapshot:
        """Give the numbers of this moment; what comes later does not change them."""
        aggregates = self._settled()
        total = aggregates.total
        return BatchSnapshot(
            total_cases=total.cases,
            labels=tuple(total.labels.values()),
            passed=total.passed,
            units=total.units,
            vacuous=tuple(aggregates.vacuous),
            empty_outputs=aggregates.empty_outputs,
            expected_present=self.expected_present,
            archetypes=MappingProxyType(aggregates.archetype_cases.copy()),
        )


def result_document(test_id: str, archetype: str | None, case: CaseScore | CaseRow) -> dict[str, Any]:
    """Give the `result` of a case in the field order of contract.md, "Result"."""
    details = case.details
    return {
        "test_id": test_id,
        "archetype": archetype,
        "scores": case.scores._asdict(),
        "details": {
            "CR": {"found": list(details.cr_found), "missing": list(details.cr_missing)},
            "AH": {"violations": list(details.ah_violations)},
            "AC": {"found": list(details.ac_found), "missing": list(details.ac_missing)},
        },
        "terms": case.terms._asdict(),
        "label": case.label,
    }


def _share(part: int, whole: int) -> float:
    """Give a fraction in [0, 1]; 0.0 of nothing."""
    return part / whole if whole else 0.0


def _breakdown(tally: _Tally) -> dict[str, Any]:
    cr, ah, ac = (exact_mean(total, tally.cases) for total in tally.units[:3])
    return {
        "count": tally.cases,
        "mean_CR": cr,
        "mean_AH": ah,
        "mean_AC": ac,
        "pass_rate": _share(tally.labels["Pass"], tally.cases),
    }
