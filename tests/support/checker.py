"""Holds a recorded run against the oracle and names every invariant that it breaks.

The names are those of the guarantees: coverage, phantom, isolation, fold, order, monotone, dead letters, offsets.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from tests.support.oracle import (
    Dead,
    Ignored,
    Json,
    Oracle,
    Outcome,
    Scored,
    aggregates_of,
    failed_of,
    is_complete,
    latest,
    runs_of,
    summary_of,
)
from tests.support.outside import Outside, Record, Topics

Source = tuple[str, int, int]
BatchKey = tuple[str, str]
FINGERPRINT = re.compile(r"sha256:[0-9a-f]{64}")
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
DLQ = "safe.dlq."
DLQ_HEADERS = (
    "reason",
    "stage",
    "detail",
    "topic",
    "partition",
    "offset",
    "timestamp",
    "group",
    "version",
    "failed_at",
)
MAX_DETAIL_BYTES = 512


@dataclass(frozen=True, slots=True)
class Run:
    """What a foreign client saw of one installation: inputs, outputs as committed, offsets."""

    group: str
    topics: Topics
    inputs: Sequence[Record]
    results: Sequence[Record]
    dead_letters: Sequence[Record]
    reports: Sequence[Record]
    committed: Mapping[int, int]
    result_partitions: int
    dead_letter_partitions: int
    committed_history: Sequence[Mapping[int, int]] = ()
    hanging: Sequence[str] = ()
    input_id: str | None = None

    @classmethod
    def seen_by(
        cls, outside: Outside, topics: Topics, group: str, *, committed_history: Sequence[Mapping[int, int]] = ()
    ) -> "Run":
        """Record a run at rest."""
        return cls(
            group=group,
            topics=topics,
            inputs=outside.read(topics.input),
            results=outside.read(topics.result),
            dead_letters=outside.read(topics.dead_letter),
            reports=outside.read(topics.report),
            committed=outside.committed(group, topics.input),
            result_partitions=outside.partitions(topics.result),
            dead_letter_partitions=outside.partitions(topics.dead_letter),
            committed_history=committed_history,
            hanging=outside.hanging(topics.outputs()),
            input_id=outside.topic_id(topics.input),
        )

    def with_(self, **changes: Sequence[Record] | Mapping[int, int] | Sequence[Mapping[int, int]]) -> "Run":
        """Return this run with some of it replaced: how faults are planted."""
        return replace(self, **changes)  # type: ignore[arg-type] # each name brings its own type


def check(run: Run, oracle: Oracle, *, repeats_allowed: bool = False) -> list[str]:
    """Return a line for every invariant that the run breaks; an empty list is a clean run.

    `repeats_allowed` is what `at_least_once` promises: outputs may come again, a result perhaps with the summary of a
    later moment. Nothing else may differ: no input is without its output, and every sum is one that the batch has had.
    """
    outcomes = {record.source: oracle.outcome(record) for record in run.inputs}
    return [
        *_coverage(run, outcomes, repeats_allowed=repeats_allowed),
        *_isolation(run),
        *_offsets(run),
        *_result_envelopes(run, outcomes, repeats_allowed=repeats_allowed),
        *_dead_letters(run, outcomes),
        *_folds(run, outcomes, oracle, repeats_allowed=repeats_allowed),
        *_reports(run, outcomes, oracle),
    ]


def totals(run: Run, oracle: Oracle) -> dict[str, int]:
    """Count the outcomes that the oracle expects: scored, dead, ignored."""
    kinds = Counter(type(oracle.outcome(record)).__name__.lower() for record in run.inputs)
    return {"inputs": len(run.inputs)} | dict(kinds)


# --------------------------------------------------------------------------- coverage, phantoms, isolation and offsets


def result_source(record: Record) -> Source:
    """Return the input that a result names."""
    return _source_of(record.json())


def dead_letter_source(record: Record) -> Source:
    """Return the input that a dead letter names."""
    return (
        str(record.header(DLQ + "topic")),
        int(record.header(DLQ + "partition") or -1),
        int(record.header(DLQ + "offset") or -1),
    )


def _coverage(run: Run, outcomes: Mapping[Source, Outcome], *, repeats_allowed: bool) -> Iterator[str]:
    results = Counter(map(result_source, run.results))
    letters = Counter(map(dead_letter_source, run.dead_letters))
    for source in sorted({*results, *letters} - set(outcomes)):
        yield f"phantom: an output names {source}, which is no input"
    for source, outcome in outcomes.items():
        if source[2] >= run.committed.get(source[1], 0):
            yield from _ahead(source, results[source] + letters[source])
            continue
        wanted = (int(isinstance(outcome, Scored)), int(isinstance(outcome, Dead)))
        seen = (results[source], letters[source])
        counted = (min(1, seen[0]), min(1, seen[1])) if repeats_allowed else seen
        if counted != wanted:
            yield f"coverage: {source} has {seen} results and dead letters, wanted {wanted}: {_brief(outcome)}"


def _ahead(source: Source, outputs: int) -> Iterator[str]:
    if outputs:
        yield f"phantom: {source} has an output but is not below the committed offset"


def _brief(outcome: Outcome) -> str:
    return "/".join(sorted(outcome.reasons)) if isinstance(outcome, Dead) else type(outcome).__name__.lower()


def _isolation(run: Run) -> Iterator[str]:
    for place in run.hanging:
        yield f"isolation: an open transaction at rest: {place}"


def _offsets(run: Run) -> Iterator[str]:
    history = [*run.committed_history, run.committed]
    for before, after in pairwise(history):
        for partition, offset in before.items():
            if after.get(partition, -1) < offset:
                yield f"offsets: partition {partition} went back from {offset} to {after.get(partition)}"


# ----------------------------------------------------------------------------------------------- one result at a time


def quoted(*parts: str) -> str:
    """Join the parts of a key or subject."""
    return "/".join(part.replace("%", "%25").replace("/", "%2F") for part in parts)


def murmur2(octets: bytes) -> int:
    """Return Java's murmur2 of the Kafka clients as an unsigned 32-bit number."""
    multiplier, mask = 0x5BD1E995, 0xFFFFFFFF
    mixed = 0x9747B28C ^ len(octets)
    whole = len(octets) - len(octets) % 4
    for at in range(0, whole, 4):
        word = int.from_bytes(octets[at : at + 4], "little") * multiplier & mask
        word = (word ^ word >> 24) * multiplier & mask
        mixed = mixed * multiplier & mask ^ word
    if whole < len(octets):
        mixed = (mixed ^ int.from_bytes(octets[whole:], "little")) * multiplier & mask
    mixed = (mixed ^ mixed >> 13) * multiplier & mask
    return mixed ^ mixed >> 15


def partition_of(key: str, partitions: int) -> int:
    """Return the partition of Java's default partitioner."""
    return (murmur2(key.encode()) & 0x7FFFFFFF) % partitions


def _result_envelopes(run: Run, outcomes: Mapping[Source, Outcome], *, repeats_allowed: bool) -> Iterator[str]:
    ids = Counter(record.header("ce_id") for record in run.results)
    if not repeats_allowed:
        yield from (f"coverage: the ce_id {name} stands {times} times" for name, times in ids.items() if times > 1)
    fingerprints = {record.json()["scorer"]["fingerprint"] for record in run.results}
    if len(fingerprints) > 1:
        yield f"order: one configuration, several fingerprints: {sorted(fingerprints)}"
    for record in run.results:
        outcome = outcomes.get(result_source(record))
        if isinstance(outcome, Scored):
            problems = (*_envelope(run, record, outcome), *_body(run, record, outcome))
            yield from (f"result of {outcome.source}: {problem}" for problem in problems)


def _schema_named(record: Record, identity: str) -> dict[str, str]:
    """What must stand in `ce_dataschema`, if it is there: the first events had none."""
    return {} if record.header("ce_dataschema") is None else {"ce_dataschema": identity}


def _envelope(run: Run, record: Record, scored: Scored) -> Iterator[str]:
    data = record.json()
    fingerprint = data["scorer"]["fingerprint"]
    topic, partition, offset = scored.source
    hex_digits = fingerprint.removeprefix("sha256:")[:16]
    # An installation that an older version began goes by the topic's name alone.
    which = f"{topic}@{run.input_id}" if "topic_id" in data["source"] else topic
    wanted = {
        "ce_specversion": "1.0",
        "ce_id": f"{which}/{partition}/{offset}/{hex_digits}",
        "ce_type": "safe:v0:result",
        "ce_source": f"/safe/{run.group}",
        "ce_time": data["timestamp"],
        "ce_subject": quoted(scored.concern_id, scored.batch_id, scored.test_id),
        "content-type": "application/json",
        **_schema_named(record, "urn:safe:v0:result"),
    }
    yield from (
        f"header {name} is {record.header(name)!r}, wanted {value!r}"
        for name, value in wanted.items()
        if record.header(name) != value
    )
    key = quoted(scored.concern_id, scored.batch_id)
    if record.key != key.encode():
        yield f"key {record.key!r}, wanted {key!r}"
    if record.partition != partition_of(key, run.result_partitions):
        yield f"partition {record.partition}, wanted {partition_of(key, run.result_partitions)}"
    if not FINGERPRINT.fullmatch(fingerprint):
        yield f"fingerprint {fingerprint!r}"
    if not MOMENT.fullmatch(data["timestamp"]):
        yield f"timestamp {data['timestamp']!r}"


RESULT_FIELDS = [
    *("concern_id", "batch_id", "timestamp", "summary", "expected_cases", "complete", "run_id", "input_matches"),
    *("generation", "mixed_runs", "failed_generations", "result", "source", "scorer", "expectations_digest"),
    "output_digest",
]
UNTOLD = {"input_matches": None, "generation": "answered", "failed_generations": 0}
"""What it stands for that a version did not write a field of a result, because it did not know it yet."""


def _body(run: Run, record: Record, scored: Scored) -> Iterator[str]:
    data = record.json()
    topic, partition, offset = scored.source
    if list(data) != [name for name in RESULT_FIELDS if name in data or name not in UNTOLD]:
        yield f"fields {list(data)}"
        return
    data = UNTOLD | data
    wanted = {
        "concern_id": scored.concern_id,
        "batch_id": scored.batch_id,
        "run_id": scored.run_id,
        "input_matches": scored.input_matches,
        "generation": scored.generation,
        "result": scored.document,
        "source": {"topic": topic, "partition": partition, "offset": offset, "event_time": scored.event_time}
        | ({} if scored.stated_event_time is None else {"stated_event_time": scored.stated_event_time})
        | ({"topic_id": run.input_id} if "topic_id" in data["source"] else {}),
        "expectations_digest": scored.expectations_digest,
        "output_digest": scored.output_digest,
    }
    # Compared as text: the order of fields is promised, and 1 is not 1.0 there.
    if canonical({name: data[name] for name in wanted}) == canonical(wanted):
        return
    yield from (
        f"{name} is {canonical(data[name])}, wanted {canonical(value)}"
        for name, value in wanted.items()
        if canonical(data[name]) != canonical(value)
    )


def canonical(document: Json) -> str:
    """Write a document so that equal texts mean equal fields in equal order."""
    return json.dumps(document, ensure_ascii=False)


# ------------------------------------------------------------------------------------------------------- dead letters


def _dead_letters(run: Run, outcomes: Mapping[Source, Outcome]) -> Iterator[str]:
    inputs = {record.source: record for record in run.inputs}
    for letter in run.dead_letters:
        source = dead_letter_source(letter)
        outcome = outcomes.get(source)
        if source in inputs and outcome is not None:
            problems = (*_letter_copy(letter, inputs[source]), *_letter_words(run, letter, inputs[source], outcome))
            yield from (f"dead letter of {source}: {problem}" for problem in problems)


def _letter_copy(letter: Record, original: Record) -> Iterator[str]:
    if letter.key != original.key:
        yield "its key differs"
    if letter.value != original.value and letter.header(DLQ + "value_omitted") is None:
        yield "its value differs"
    kept = [header for header in letter.headers if not header[0].startswith(DLQ)]
    came = [header for header in original.headers if not header[0].startswith(DLQ)]
    if kept != came:
        yield "its headers differ"


def _letter_words(run: Run, letter: Record, original: Record, outcome: Outcome) -> Iterator[str]:
    names = [name.removeprefix(DLQ) for name, _ in letter.headers if name.startswith(DLQ)]
    if sorted(name for name in names if not name.startswith("value_")) != sorted(DLQ_HEADERS):
        yield f"its own headers are {names}"
        return
    if isinstance(outcome, Dead) and letter.header(DLQ + "reason") not in outcome.reasons:
        yield f"reason {letter.header(DLQ + 'reason')}, wanted {_brief(outcome)}"
    if letter.header(DLQ + "timestamp") != str(original.timestamp):
        yield f"timestamp {letter.header(DLQ + 'timestamp')}, wanted {original.timestamp}"
    if letter.header(DLQ + "group") != run.group:
        yield f"group {letter.header(DLQ + 'group')}"
    if len((letter.header(DLQ + "detail") or "").encode()) > MAX_DETAIL_BYTES:
        yield "its detail is longer than 512 bytes"
    if letter.partition != original.partition % run.dead_letter_partitions:
        yield f"partition {letter.partition}"


# ------------------------------------------------------------------------------------------------- folds and reports


def batches_of(outcomes: Mapping[Source, Outcome]) -> dict[BatchKey, list[Scored]]:
    """Group the accepted inputs by concern and batch."""
    grouped: dict[BatchKey, list[Scored]] = defaultdict(list)
    for outcome in outcomes.values():
        if isinstance(outcome, Scored):
            grouped[outcome.concern_id, outcome.batch_id].append(outcome)
    return grouped


def _folds(run: Run, outcomes: Mapping[Source, Outcome], oracle: Oracle, *, repeats_allowed: bool) -> Iterator[str]:
    shown: dict[BatchKey, list[Json]] = defaultdict(list)
    for event in map(Record.json, run.results):
        shown[event["concern_id"], event["batch_id"]].append(event)
    for batch, scored in batches_of(outcomes).items():
        below = [each for each in scored if each.source[2] < run.committed.get(each.source[1], 0)]
        yield from (f"fold of {batch}: {problem}" for problem in _last_word(below, shown[batch]))
        steps = _at_some_step if repeats_allowed else _step_by_step
        yield from (f"fold of {batch}: {problem}" for problem in steps(shown[batch], outcomes, oracle))


def _last_word(scored: Sequence[Scored], events: Sequence[Json]) -> Iterator[str]:
    """The last event of a batch carries the summary over all of it, whatever the order of arrival."""
    if not scored:
        return
    wanted = summary_of(latest(scored))
    if not events:
        yield "it has no result at all"
    elif canonical(events[-1]["summary"]) != canonical(wanted):
        yield f"its last summary is {events[-1]['summary']}, wanted {wanted}"


def _step_by_step(events: Sequence[Json], outcomes: Mapping[Source, Outcome], oracle: Oracle) -> Iterator[str]:
    """Each event carries the summary as of its own case; the version kept never goes back."""
    standing: dict[str, Scored] = {}
    for at, event in enumerate(events):
        scored = outcomes.get(_source_of(event))
        if not isinstance(scored, Scored):
            continue
        rival = standing.get(scored.test_id)
        if rival is None or scored.version >= rival.version:
            standing[scored.test_id] = scored
        problem = _moment(event, list(standing.values()), oracle)
        if problem:
            yield f"event {at + 1} of {len(events)}: {problem}"
            return  # the next ones would only repeat it


def _at_some_step(events: Sequence[Json], outcomes: Mapping[Source, Outcome], oracle: Oracle) -> Iterator[str]:
    """Each event carries the summary as of its own case or a later one: a state is rebuilt with all that it held."""
    standing: dict[str, Scored] = {}
    first: dict[Source, int] = {}
    moments: dict[str, int] = {}
    for event in events:
        source = _source_of(event)
        scored = outcomes.get(source)
        if source in first or not isinstance(scored, Scored):
            continue
        first[source] = len(first)
        rival = standing.get(scored.test_id)
        if rival is None or scored.version >= rival.version:
            standing[scored.test_id] = scored
        moments[canonical(_wanted(event, list(standing.values()), oracle))] = first[source]
    for at, event in enumerate(events):
        shown = {name: (UNTOLD | event)[name] for name in MOMENT_FIELDS}
        own = first.get(_source_of(event))
        if own is not None and moments.get(canonical(shown), -1) < own:
            yield f"event {at + 1} of {len(events)}: {shown} is at no moment since its case what the batch adds up to"
            return  # the next ones would only repeat it


def _source_of(event: Json) -> Source:
    source = event["source"]
    return (source["topic"], source["partition"], source["offset"])


MOMENT_FIELDS = ("summary", "expected_cases", "complete", "mixed_runs", "failed_generations")


def _wanted(event: Json, standing: Sequence[Scored], oracle: Oracle) -> dict[str, Json]:
    """What an event shows of its batch, given what the batch holds."""
    expected_cases = oracle.book.expected_cases(event["batch_id"])
    complete, mixed_runs = is_complete(standing, expected_cases), len(runs_of(standing)) > 1
    values = summary_of(standing), expected_cases, complete, mixed_runs, failed_of(standing)
    return dict(zip(MOMENT_FIELDS, values, strict=True))


def _moment(event: Json, standing: Sequence[Scored], oracle: Oracle) -> str | None:
    wanted = _wanted(event, standing, oracle)
    event = UNTOLD | event
    wrong = [name for name, value in wanted.items() if canonical(event[name]) != canonical(value)]
    return ", ".join(f"{name} is {event[name]}, wanted {wanted[name]}" for name in wrong) or None


def _reports(run: Run, outcomes: Mapping[Source, Outcome], oracle: Oracle) -> Iterator[str]:
    """At rest the last report of a batch shows exactly what its results add up to."""
    last = {record.key: record for record in run.reports}
    for (concern, batch), scored in batches_of(outcomes).items():
        below = [each for each in scored if each.source[2] < run.committed.get(each.source[1], 0)]
        record = last.get(quoted(concern, batch).encode())
        if record is None and below:
            yield f"report of {(concern, batch)}: there is none"
        if record is not None:
            wanted = aggregates_of(latest(below), oracle.book.expected_cases(batch))
            problems = (*_report_envelope(run, record), *_report_body(record.json(), wanted))
            yield from (f"report of {(concern, batch)}: {problem}" for problem in problems)


def _report_envelope(run: Run, record: Record) -> Iterator[str]:
    data = record.json()
    key = quoted(data["concern_id"], data["batch_id"])
    partition = partition_of(key, run.result_partitions)
    wanted = {
        "ce_specversion": "1.0",
        "ce_type": "safe:v0:report",
        "ce_source": f"/safe/{run.group}",
        "ce_time": data["generated_at"],
        "ce_subject": key,
        "content-type": "application/json",
        **_schema_named(record, "urn:safe:v0:report"),
    }
    yield from (
        f"header {name} is {record.header(name)!r}" for name, text in wanted.items() if record.header(name) != text
    )
    if not re.fullmatch(re.escape(f"{key}@{partition}/") + r"\d+", record.header("ce_id") or ""):
        yield f"ce_id {record.header('ce_id')!r}"
    if record.partition != partition:
        yield f"partition {record.partition}, wanted {partition}"


def _report_body(data: Json, wanted: Mapping[str, Json]) -> Iterator[str]:
    # Compared as values: groups and runs may stand in any order. What a version did not know, it did not count.
    data = {"input_mismatches": 0, "failed_generations": 0} | data
    yield from (
        f"{name} is {canonical(data.get(name))}, wanted {canonical(value)}"
        for name, value in wanted.items()
        if data.get(name) != value
    )
    if sum(data.get("fingerprints", {}).values()) != wanted["total_cases"]:
        yield f"fingerprints {data.get('fingerprints')}"
    if data.get("scorer", {}).get("rule") != "substring/1":
        yield f"scorer {data.get('scorer')}"
    if data.get("missing_outputs") != 0:
        yield f"missing_outputs {data.get('missing_outputs')}"
    if "results" in data:
        yield "it carries results"


# ------------------------------------------------------------------------------------------------------------- replay


def compare_replay(first: Sequence[Record], second: Sequence[Record]) -> list[str]:
    """Name what differs between the results of one input read twice, from its first record into empty topics."""
    one, other = ({result_source(record): record for record in results} for results in (first, second))
    problems = [f"order: {source} has a result in one run only" for source in sorted(set(one) ^ set(other))]
    for source in sorted(set(one) & set(other)):
        problems += [f"order: {source}: {difference}" for difference in _replayed(one[source], other[source])]
    return problems


def _replayed(first: Record, second: Record) -> Iterator[str]:
    if first.header("ce_id") != second.header("ce_id"):
        yield f"ce_id {first.header('ce_id')} became {second.header('ce_id')}"
    for name in ("result", "source", "scorer", "expectations_digest"):
        if canonical(first.json()[name]) != canonical(second.json()[name]):
            yield f"{name} differs"


def ignored_sources(run: Run, oracle: Oracle) -> set[Source]:
    """Return the inputs that must leave nothing behind."""
    return {record.source for record in run.inputs if isinstance(oracle.outcome(record), Ignored)}
