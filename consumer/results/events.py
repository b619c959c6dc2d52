"""What `safe results` reads of results and reports: somebody else may write to their topics, anything."""

from typing import Annotated, Any, Final

import msgspec

from consumer.wire.record import Record
from safe_core import Label

_MOST: Final = 2**53
Count = Annotated[int, msgspec.Meta(ge=0, le=_MOST)]
Summary = dict[str, Count | Annotated[float, msgspec.Meta(ge=0, le=_MOST)] | None]


class Source(msgspec.Struct, frozen=True):
    """Where the output of a result is."""

    topic: str
    partition: int
    offset: int


class Scorer(msgspec.Struct, frozen=True):
    """What gave a result its scores."""

    fingerprint: str


class CaseResult(msgspec.Struct, frozen=True):
    """The result of a test case; `scores` by criterion, from 0 to 1."""

    test_id: str
    archetype: str | None
    scores: dict[str, float]
    label: Label


class ResultEvent(msgspec.Struct, frozen=True):
    """The data of a `safe:v0:result` event, as far as it is shown."""

    concern_id: str
    batch_id: str
    timestamp: str
    summary: Summary
    expected_cases: Count | None
    source: Source
    scorer: Scorer
    result: CaseResult


class ReportEvent(msgspec.Struct, frozen=True):
    """The data of a `safe:v0:report` event, as far as it is shown."""

    concern_id: str
    batch_id: str
    generated_at: str
    summary: Summary
    expected_cases: Count | None
    mean_scores: dict[str, float]
    failure_analysis: dict[str, Any]
    vacuous: dict[str, Count] = {}
    empty_outputs: Count = 0


_results = msgspec.json.Decoder(ResultEvent)
_reports = msgspec.json.Decoder(ReportEvent)


def result_of(record: Record) -> ResultEvent:
    """Read a result; raises ValueError for what is none."""
    return _results.decode(record.value or b"")


def report_of(record: Record) -> ReportEvent:
    """Read a report; raises ValueError for what is none."""
    return _reports.decode(record.value or b"")
