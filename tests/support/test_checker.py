"""The checker is tested first: a clean run passes, and each planted fault is found and named."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.cases import event_stream, make_batches, write_batches
from tests.support.checker import (
    DLQ,
    Run,
    check,
    compare_replay,
    murmur2,
    partition_of,
    quoted,
    result_source,
)
from tests.support.oracle import (
    CaseBook,
    Dead,
    Json,
    Oracle,
    Scored,
    aggregates_of,
    is_complete,
    latest,
    mean,
    milliseconds,
    runs_of,
    summary_of,
)
from tests.support.outside import Record, Topics

PARTITIONS = 4
FINGERPRINT = "sha256:" + "ab" * 32
NOW = "2026-03-02T09:00:00.000Z"
TOPICS = Topics.named("checker")
SENT = 1_795_291_200_000


@pytest.fixture(scope="module")
def oracle(tmp_path_factory: pytest.TempPathFactory) -> Oracle:
    folder = tmp_path_factory.mktemp("cases")
    return Oracle(CaseBook(write_batches(folder, make_batches(5, batches=4, cases_a_batch=10))))


@pytest.fixture(scope="module")
def clean(oracle: Oracle) -> Run:
    """A run as a faultless worker would leave it, made without one."""
    return faultless(oracle, _inputs(), order=list)


def _inputs() -> list[Record]:
    batches = make_batches(5, batches=4, cases_a_batch=10)
    stream = list(event_stream(5, batches, 120, partitions=PARTITIONS, repeated=0.6, late=0.3, poison=0.1))
    offsets = [0] * PARTITIONS
    records = []
    for each in stream:
        partition = each.partition or 0
        records.append(Record(TOPICS.input, partition, offsets[partition], each.key, each.value, each.headers, SENT))
        offsets[partition] += 1
    return [*records, Record(TOPICS.input, 0, offsets[0], b"gone", None, (), SENT)]


def faultless(oracle: Oracle, inputs: Sequence[Record], *, order: Callable[[list[Record]], list[Record]]) -> Run:
    """Play the worker: every input in the order given, one output each, summaries as of each case."""
    standing: dict[tuple[str, str], list[Scored]] = {}
    results: list[Record] = []
    letters: list[Record] = []
    for record in order(list(inputs)):
        outcome = oracle.outcome(record)
        if isinstance(outcome, Dead):
            letters.append(_letter(record, sorted(outcome.reasons)[0], len(letters)))
        if isinstance(outcome, Scored):
            batch = standing.setdefault((outcome.concern_id, outcome.batch_id), [])
            batch.append(outcome)
            results.append(_result(outcome, latest(batch), oracle, len(results)))
    reports = [_report(latest(batch), oracle, at) for at, batch in enumerate(standing.values())]
    committed = {partition: 1 + max(r.offset for r in inputs if r.partition == partition) for partition in range(4)}
    return Run("g", TOPICS, inputs, results, letters, reports, committed, PARTITIONS, PARTITIONS)


def _envelope(kind: str, name: str, subject: str) -> tuple[tuple[str, bytes], ...]:
    texts = {"ce_specversion": "1.0", "ce_id": name, "ce_type": kind, "ce_source": "/safe/g", "ce_time": NOW}
    texts |= {"ce_subject": subject, "ce_dataschema": f"urn:{kind}", "content-type": "application/json"}
    return tuple((header, text.encode()) for header, text in texts.items())


def _result(scored: Scored, standing: Sequence[Scored], oracle: Oracle, offset: int) -> Record:
    topic, partition, at = scored.source
    expected = oracle.book.expected_cases(scored.batch_id)
    data = {
        "concern_id": scored.concern_id,
        "batch_id": scored.batch_id,
        "timestamp": NOW,
        "summary": summary_of(standing),
        "expected_cases": expected,
        "complete": is_complete(standing, expected),
        "run_id": scored.run_id,
        "input_matches": scored.input_matches,
        "mixed_runs": len(runs_of(standing)) > 1,
        "result": scored.document,
        "source": {"topic": topic, "partition": partition, "offset": at, "event_time": scored.event_time},
        "scorer": {"version": "0", "fingerprint": FINGERPRINT},
        "expectations_digest": scored.expectations_digest,
        "output_digest": scored.output_digest,
    }
    key = quoted(scored.concern_id, scored.batch_id)
    headers = _envelope("safe:v0:result", f"{topic}/{partition}/{at}/{'ab' * 8}", f"{key}/{scored.test_id}")
    place = partition_of(key, PARTITIONS)
    return Record(TOPICS.result, place, offset, key.encode(), json.dumps(data).encode(), headers, 1)


def _report(standing: Sequence[Scored], oracle: Oracle, offset: int) -> Record:
    concern, batch = standing[0].concern_id, standing[0].batch_id
    data = aggregates_of(standing, oracle.book.expected_cases(batch)) | {
        "generated_at": NOW,
        "batch_id": batch,
        "concern_id": concern,
        "missing_outputs": 0,
        "fingerprints": {FINGERPRINT: len(standing)},
        "scorer": {"version": "0", "fingerprint": FINGERPRINT, "rule": "substring/1"},
    }
    key = quoted(concern, batch)
    place = partition_of(key, PARTITIONS)
    headers = _envelope("safe:v0:report", f"{key}@{place}/7", key)
    return Record(TOPICS.report, place, offset, key.encode(), json.dumps(data).encode(), headers, 1)


def _letter(record: Record, reason: str, offset: int) -> Record:
    words = {"reason": reason, "stage": "scorer", "detail": "broken", "topic": record.topic, "group": "g"}
    words |= {"partition": str(record.partition), "offset": str(record.offset), "timestamp": str(record.timestamp)}
    words |= {"version": "0", "failed_at": NOW}
    headers = (*record.headers, *((DLQ + name, text.encode()) for name, text in words.items()))
    return Record(TOPICS.dead_letter, record.partition, offset, record.key, record.value, headers, 1)


def edited(record: Record, **fields: Json) -> Record:
    """A result or report with some of its fields replaced."""
    return replace(record, value=json.dumps(record.json() | fields).encode())


def _off_by_one_bit(run: Run) -> Run:
    result = run.results[0].json()["result"]
    scores = result["scores"] | {"composite": result["scores"]["composite"] - 2**-53}
    return run.with_(results=[edited(run.results[0], result=result | {"scores": scores}), *run.results[1:]])


# Each fault changes a clean run as a broken worker would have; the text is part of what the checker must say.
FAULTS: dict[str, tuple[Callable[[Run], Run], str]] = {
    # The last record of a transaction skipped, a send not awaited.
    "a dropped result": (lambda run: run.with_(results=run.results[:-1]), "coverage"),
    # No fencing, or a commit before the produce: the same input has come out again under the same id.
    "a doubled result": (lambda run: run.with_(results=[*run.results, run.results[0]]), "coverage"),
    "a swallowed dead letter": (lambda run: run.with_(dead_letters=run.dead_letters[1:]), "coverage"),
    "a doubled dead letter": (lambda run: run.with_(dead_letters=[*run.dead_letters, run.dead_letters[0]]), "coverage"),
    "a result for a poison record": (lambda run: _redirected(run, dead=True), "coverage"),
    "a result of an input that never was": (lambda run: _redirected(run, dead=False), "phantom"),
    # An aborted transaction counted by a reader of uncommitted records: an output ahead of the offset.
    "an output ahead of the committed offset": (
        lambda run: run.with_(committed={**run.committed, 1: run.committed[1] - 2}),
        "phantom",
    ),
    # Committed one too far: the input in between has no outcome.
    "an offset one too far": (
        lambda run: run.with_(inputs=[*run.inputs, *_next_inputs(run)], committed=_further(run)),
        "coverage",
    ),
    "an offset that went back": (lambda run: run.with_(committed_history=[_further(run)]), "offsets"),
    "an open transaction at rest": (
        lambda run: replace(run, hanging=["checker.result/0: stable 1, log end 2"]),
        "isolation",
    ),
    # Applied again on replay, no restore, the newest record missed in a restore.
    "a summary one too high": (lambda run: _wrong_summary(run, +1), "fold"),
    "a summary one too low": (lambda run: _wrong_summary(run, -1), "fold"),
    "a score off by one bit": (_off_by_one_bit, "result of"),
    "a dead letter with another value": (lambda run: _letter_changed(run, value=b"other"), "dead letter"),
    "a dead letter with another key": (lambda run: _letter_changed(run, key=b"other"), "dead letter"),
    "a dead letter without a header": (lambda run: _letter_changed(run, headers=()), "phantom"),
    "a result in another partition": (
        lambda run: run.with_(
            results=[*run.results[:-1], replace(run.results[-1], partition=run.results[-1].partition ^ 1)]
        ),
        "partition",
    ),
    "a result with a wrong ce_id": (
        lambda run: _with_header(run, "ce_id", b"checker.input/0/0/0000000000000000"),
        "ce_id",
    ),
    "a result with a field too many": (
        lambda run: run.with_(results=[edited(run.results[0], more=1), *run.results[1:]]),
        "fields",
    ),
    "a stale report": (
        lambda run: run.with_(reports=[edited(run.reports[0], empty_outputs=99), *run.reports[1:]]),
        "report",
    ),
    "a missing report": (lambda run: run.with_(reports=run.reports[1:]), "report"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_every_planted_fault_is_found(fault: str, clean: Run, oracle: Oracle) -> None:
    plant, name = FAULTS[fault]

    problems = check(plant(clean), oracle)

    assert any(name in problem for problem in problems), problems


def _repeated(run: Run) -> Run:
    """A run as `at_least_once` may leave it: outputs again at the end, a result with the summary of that moment."""
    last_of_batch = {record.key: record.json() for record in run.results}
    first = run.results[0]
    later = {name: last_of_batch[first.key][name] for name in ("summary", "complete", "mixed_runs")}
    return run.with_(
        results=[*run.results, edited(first, **later)], dead_letters=[*run.dead_letters, run.dead_letters[0]]
    )


def test_repeats_are_found_where_they_are_not_allowed_and_only_there(clean: Run, oracle: Oracle) -> None:
    assert check(_repeated(clean), oracle, repeats_allowed=True) == []
    assert check(clean, oracle, repeats_allowed=True) == []
    assert any("coverage" in problem for problem in check(_repeated(clean), oracle))


# What `at_least_once` promises all the same.
WITH_REPEATS = [name for name in FAULTS if name not in {"a doubled result", "a doubled dead letter"}]


@pytest.mark.parametrize("fault", WITH_REPEATS)
def test_every_other_fault_is_found_among_repeats(fault: str, clean: Run, oracle: Oracle) -> None:
    plant, name = FAULTS[fault]

    problems = check(_repeated(plant(clean)), oracle, repeats_allowed=True)

    assert any(name in problem for problem in problems), problems


def test_a_repeat_with_the_summary_of_an_earlier_moment_is_found(clean: Run, oracle: Oracle) -> None:
    last = clean.results[-1]
    first_of_batch = next(record for record in clean.results if record.key == last.key)
    earlier = edited(last, summary=first_of_batch.json()["summary"])

    problems = check(clean.with_(results=[*clean.results, earlier]), oracle, repeats_allowed=True)

    assert any("at no moment since" in problem for problem in problems), problems
    assert any("its last summary" in problem for problem in problems), problems


def test_a_clean_run_has_no_fault_and_all_kinds_of_outcomes(clean: Run, oracle: Oracle) -> None:
    assert check(clean, oracle) == []
    assert len(clean.results) > 80
    assert len(clean.dead_letters) > 5
    assert {record.json()["result"]["label"] for record in clean.results} == {"Pass", "Review", "Fail"}


def test_the_arrival_order_taken_for_the_latest_is_found(clean: Run, oracle: Oracle) -> None:
    last_of: dict[tuple[str, str], dict[str, Scored]] = {}
    results = []
    for record, scored in ((record, _scored(record, clean, oracle)) for record in clean.results):
        batch = last_of.setdefault((scored.concern_id, scored.batch_id), {})
        batch[scored.test_id] = scored
        results.append(edited(record, summary=summary_of(list(batch.values()))))

    problems = check(clean.with_(results=results), oracle)

    assert any("fold" in problem for problem in problems)


def test_another_order_of_arrival_is_as_clean_and_replays_the_same(clean: Run, oracle: Oracle) -> None:
    backwards = faultless(oracle, _inputs(), order=lambda records: records[::-1])

    assert check(backwards, oracle) == []
    assert compare_replay(clean.results, backwards.results) == []


def test_a_replay_with_another_result_or_id_is_found(clean: Run) -> None:
    other = [edited(clean.results[0], expectations_digest="sha256:0"), *clean.results[2:]]

    problems = compare_replay(clean.results, other)

    assert len(problems) == 2
    assert any("expectations_digest differs" in problem for problem in problems)


def test_murmur2_is_the_one_of_the_kafka_clients() -> None:
    # Vectors of the Java client's own tests, as signed 32-bit numbers.
    known = {"21": -973932308, "foobar": -790332482, "a-little-bit-long-string": -985981536, "abc": 479470107}
    assert {text: murmur2(text.encode()) for text in known} == {text: value % 2**32 for text, value in known.items()}


def test_the_oracle_s_mean_is_exact_and_its_times_are_cut() -> None:
    assert mean([0.1] * 10) == 0.1
    assert mean([]) == 0.0
    assert milliseconds("1970-01-01T00:00:01.9999Z") == 1999
    assert milliseconds("1969-12-31T23:59:59.5-01:00") == 3_599_500


def test_the_oracle_agrees_with_the_scorer_of_factory_cli(real_cases: Path) -> None:
    oracle = Oracle(CaseBook(real_cases / "testcases"))
    expected = json.loads((real_cases / "expected_scores.json").read_text("utf-8"))
    answers: dict[tuple[str, str], list[Json]] = {}
    for name in {row["outputs"] for row in expected}:
        for entry in json.loads((real_cases / name).read_text("utf-8"))["raw_results"]:
            answers.setdefault((name, entry["test_id"]), []).append(entry)
    for row in expected:
        entry = answers[row["outputs"], row["test_id"]][0]
        event = {key: row[key] for key in ("test_id", "batch_id")} | {"output": entry["engine_output"]}
        record = Record("t", 0, 0, None, json.dumps(event | {"archetype": entry["archetype"]}).encode(), (), 0)
        scored = oracle.outcome(record)
        assert isinstance(scored, Scored)
        wanted = {name: row[name] for name in ("test_id", "archetype", "scores", "details", "label")}
        assert {name: scored.document[name] for name in wanted} == wanted


def _scored(record: Record, run: Run, oracle: Oracle) -> Scored:
    [source] = [each for each in run.inputs if each.source == result_source(record)]
    outcome = oracle.outcome(source)
    assert isinstance(outcome, Scored)
    return outcome


def _redirected(run: Run, *, dead: bool) -> Run:
    letter = run.dead_letters[0]
    source = run.results[0].json()["source"] | {"partition": letter.partition, "offset": 9_999}
    if dead:
        source["offset"] = int(letter.header(DLQ + "offset") or -1)
    return run.with_(results=[*run.results, edited(run.results[0], source=source)])


def _further(run: Run) -> dict[int, int]:
    return {partition: offset + 1 for partition, offset in run.committed.items()}


def _next_inputs(run: Run) -> list[Record]:
    last = {record.partition: record for record in run.inputs if record.value is not None}
    return [replace(record, offset=run.committed[partition]) for partition, record in last.items()]


def _wrong_summary(run: Run, by: int) -> Run:
    last = run.results[-1]
    summary = last.json()["summary"]
    return run.with_(
        results=[*run.results[:-1], edited(last, summary=summary | {"total_cases": summary["total_cases"] + by})]
    )


def _letter_changed(run: Run, **changes: Json) -> Run:
    return run.with_(dead_letters=[replace(run.dead_letters[0], **changes), *run.dead_letters[1:]])


def _with_header(run: Run, name: str, value: bytes) -> Run:
    first = run.results[0]
    headers = tuple((key, value if key == name else old) for key, old in first.headers)
    return run.with_(results=[replace(first, headers=headers), *run.results[1:]])
