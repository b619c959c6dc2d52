"""The latest result of each test case of a batch, and every aggregate over them, exactly (contract.md, "Batches")."""

from collections.abc import Iterator
from types import MappingProxyType
from typing import Any

from safe_core.batch_statistics import WORST_NAMED, Aggregates, BatchSnapshot, Standing, breakdown, summary
from safe_core.case_row import CaseRow, result_document
from safe_core.policy import CRITERIA

_FEW = 2
"""With no more rows than this, nothing is kept but the rows: there may be very many such batches."""

_MOST_MOVED = 1_000
"""How many test cases may wait to be counted: to count them all at once holds up everything else for milliseconds."""


class LatestResults:
    """The latest row of each test case of a batch, and every aggregate of a report over them.

    In any order of offers, after any replacements and removals, all answers equal those of a fold from scratch over the
    rows that stand, to the last bit (contract.md, "Exact sums").

    An offer moves only what is asked after each record. All else is moved when it is asked for, once for each test case
    that was answered meanwhile, however often: `_moved` has the row of it that is still counted, None for none.
    """

    __slots__ = ("_aggregates", "_moved", "_rows", "_standing")

    def __init__(self) -> None:
        self._rows: dict[str, CaseRow] = {}
        self._standing: Standing | None = None
        self._aggregates: Aggregates | None = None
        self._moved: dict[str, CaseRow | None] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, test_id: object) -> bool:
        return test_id in self._rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def offer(self, test_id: str, row: CaseRow) -> bool:
        """Let a row count for its test case, unless a later one does; True if it counts (contract.md, "Latest result").

        Which of two rows is later, `result_version` says. Of two rows of the very same source, the one offered later
        stands.
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
                self._standing = Standing(self._rows.values())
                self._aggregates = Aggregates.over(self._rows.values())
            return
        if before is None or after is None or before.shared is not after.shared:
            if before is not None:
                standing.move(before.shared, -1)
            if after is not None:
                standing.move(after.shared, 1)
        if test_id not in self._moved:
            self._moved[test_id] = before
            if len(self._moved) > _MOST_MOVED:
                self._settled()

    def _settled(self) -> "Aggregates":
        """Give every aggregate over the rows that stand."""
        if self._aggregates is None:
            return Aggregates.over(self._rows.values())
        for test_id, counted in self._moved.items():
            row = self._rows.get(test_id)
            if row is not counted:
                self._aggregates.replace(counted, row)
                self._aggregates.worst.touch(test_id, self._rows)
        self._moved.clear()
        return self._aggregates

    def _counted(self) -> Standing:
        return self._standing or Standing(self._rows.values())

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
    def failed_generations(self) -> int:
        """How many cases have no output that a model wrote: all that came for them failed."""
        return self._counted().failed

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
        return summary(self._counted().labels, len(self._rows))

    def by_archetype(self) -> dict[str, dict[str, Any]]:
        """Give the breakdown by archetype, by name; cases without an archetype are the group "Unknown"."""
        archetypes = self._settled().archetypes
        return {name: breakdown(archetypes[name]) for name in sorted(archetypes)}

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
            failed_generations=aggregates.failed.cases,
            answered_passes=total.labels["Pass"] - aggregates.failed.labels["Pass"],
            answered_units=total.without(aggregates.failed),
            archetypes=MappingProxyType(aggregates.archetype_cases.copy()),
            marks=aggregates.marks,
        )
