"""What results and reports say of batches, in memory that does not grow with the number of results."""

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, Literal, NamedTuple, Self

import msgspec

from consumer.offline.pages.report_content import most_frequent
from consumer.results.events import Count, ReportEvent, ResultEvent, Summary, report_of, result_of
from consumer.settings import Settings
from consumer.text import count_of, natural_order
from consumer.wire.record import Record
from safe_core import CRITERIA, UNKNOWN_ARCHETYPE
from safe_core.remembered import Remembered

_REMEMBERED: Final = 20_000
"""Of how many test cases the last label, and of how many results that they were shown, is remembered."""
_TERMS_KEPT: Final = 20
"""Of each report: a batch may miss thousands of terms, of which a screen shows three."""

Outcome = Literal["missing", "used"]
"""What becomes of a term that is shown: required and missing, or forbidden and used."""


class BatchName(NamedTuple):
    """Two concerns may each have a batch of one name."""

    concern_id: str
    batch_id: str


@dataclass(frozen=True, slots=True)
class Arrival:
    """One event that came out: a result with its scores, or a dead letter (`label` is None and `reason` is not)."""

    label: str | None
    test_id: str
    archetype: str
    scores: tuple[float, ...] | None
    was: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class ReportDigest:
    """What is kept of a batch's last report, which may be a mebibyte; `terms` are those missed or used most."""

    generated_at: str
    summary: Summary
    means: Mapping[str, float]
    terms: Mapping[Outcome, Mapping[str, int]]
    vacuous: Mapping[str, int]
    empty_outputs: int

    @classmethod
    def of(cls, report: ReportEvent) -> Self:
        """Take what is shown out of a report event; raises KeyError, TypeError or ValueError for what is none."""
        terms: dict[Outcome, Counter[str]] = {"missing": Counter(), "used": Counter()}
        for each in most_frequent({"failure_analysis": report.failure_analysis}):
            terms[each.how][msgspec.convert(each.term, str)] += msgspec.convert(each.times, Count)
        kept = {how: dict(_ranked(counts)[:_TERMS_KEPT]) for how, counts in terms.items()}
        return cls(
            report.generated_at, report.summary, report.mean_scores, kept, report.vacuous, report.empty_outputs
        )  # fmt: skip


@dataclass(slots=True)
class BatchCard:
    """What the last result and the last report of a batch say about it; `expected` is 0 where nobody knows."""

    expected: int = 0
    summary: Summary = field(default_factory=dict)
    scored_at: str = ""
    report: ReportDigest | None = None

    @property
    def cases(self) -> int:
        """Test cases that have a result."""
        return int(self.summary.get("total_cases") or 0)

    def count(self, label: str) -> int:
        """Cases with a label."""
        return int(self.summary.get(label.lower()) or 0)

    def note_result(self, event: ResultEvent) -> None:
        """Take the summary of a result: those of a batch come in the order in which they were counted."""
        self.summary, self.scored_at = event.summary, event.timestamp
        self.expected = event.expected_cases or 0

    def note_report(self, event: ReportEvent, digest: ReportDigest) -> None:
        """Take a report; its summary, which may be older than that of a result, only as long as there is no result."""
        self.report = digest
        if not self.scored_at:
            self.summary, self.expected = event.summary, event.expected_cases or 0

    @property
    def is_final(self) -> bool:
        """Whether the last report covers the last result."""
        report = self.report
        return report is not None and report.generated_at >= self.scored_at and report.summary == self.summary


class Scorecard:
    """Everything shown on the screen; only note() changes it. The batch that changed last is the last of `batches`."""

    def __init__(self, settings: Settings, newest: int = 100) -> None:
        self.batches: dict[BatchName, BatchCard] = {}
        self.newest: deque[Arrival] = deque(maxlen=newest)
        self.dead_letters: list[str] = []
        self.arrived = 0
        self._note = {settings.result_topic: self._note_result, settings.report_topic: self._note_report}
        self._sources = Remembered[tuple[str, int, int, str], None](_REMEMBERED)
        self._labels = Remembered[tuple[BatchName, str], str](_REMEMBERED)

    def note(self, record: Record) -> Arrival | None:
        """Take a record of one of the topics; returns what to show of it, if anything."""
        return self._note[record.topic](record)

    def _note_result(self, record: Record) -> Arrival | None:
        event = result_of(record)
        result, source, name = event.result, event.source, _name(event)
        scores = tuple(result.scores[criterion] for criterion in CRITERIA)
        identity = (source.topic, source.partition, source.offset, event.scorer.fingerprint)
        if identity in self._sources:
            return None  # delivered at least once, shown once
        self._sources.keep(identity, None)
        self._card(name).note_result(event)
        key = (name, result.test_id)
        was = self._labels.get(key)
        self._labels.keep(key, result.label)
        return self.arrive(Arrival(result.label, result.test_id, result.archetype or UNKNOWN_ARCHETYPE, scores, was))

    def _note_report(self, record: Record) -> None:
        event = report_of(record)
        digest = ReportDigest.of(event)
        self._card(_name(event)).note_report(event, digest)

    def _card(self, name: BatchName) -> BatchCard:
        """Give the card of a batch, which is now the one that changed last."""
        card = self.batches[name] = self.batches.pop(name) if name in self.batches else BatchCard()
        return card

    def arrive(self, arrival: Arrival) -> Arrival:
        """Show one more."""
        self.newest.append(arrival)
        self.arrived += 1
        return arrival

    # --- what is shown ------------------------------------------------------------------------------------------------

    def newest_batches(self, most: int) -> dict[str, BatchCard]:
        """Give the batches that changed last, with their names, in the order of these."""
        names = sorted(islice(reversed(self.batches), most), key=lambda name: (natural_order(name.batch_id), name))
        shared = Counter(name.batch_id for name in names)
        return {name.batch_id if shared[name.batch_id] == 1 else "/".join(name): self.batches[name] for name in names}


def most_frequent_terms(cards: Iterable[BatchCard], how: Outcome) -> list[tuple[str, int]]:
    """Give required terms that were missing, or forbidden ones that were used, with counts, the most frequent first."""
    counts: Counter[str] = Counter()
    for card in cards:
        if card.report is not None:
            counts.update(card.report.terms[how])
    return _ranked(counts)


def remarks(cards: Iterable[BatchCard]) -> list[str]:
    """Say what a reader must know to read the numbers: criteria with nothing to check, and empty outputs."""
    reports = [card.report for card in cards if card.report is not None]
    vacuous: Counter[str] = Counter()
    for report in reports:
        vacuous.update(report.vacuous)
    counted = [
        f"{criterion} in {count_of(vacuous[criterion], 'case')}"
        for criterion in (*CRITERIA, "all")
        if vacuous[criterion]
    ]
    empty = sum(report.empty_outputs for report in reports)
    said = [f"scored 1.00 with nothing to check: {', '.join(counted)}"] if counted else []
    return said + ([f"empty outputs: {empty}"] if empty else [])


def _name(event: ResultEvent | ReportEvent) -> BatchName:
    return BatchName(event.concern_id, event.batch_id)


def _ranked(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
