"""SAFE's job as the documentation of Quix Streams has one write it: score, group by batch, fold in state; exactly once.

    python bench/peers/quix_streams.py SERVERS INPUT OUTPUT GROUP CASES STATE

Runs in an environment of its own, with this project on its path: the scores are those of `safe_core`. It has no checks
of the input, no dead letters, no reports and no metrics; the latest result of a test case is the last one that came.
"""

import sys
from pathlib import Path
from typing import Any

import orjson
from quixstreams import Application, State, message_context

from safe_core import DEFAULT_POLICY, Output, TestCase, parse_batch, prepare, score
from safe_core.case_row import result_document

RULES = DEFAULT_POLICY.rules_for(None, None)


def main(servers: str, source: str, target: str, group: str, cases: str, state: str) -> None:
    """Run until the process is stopped."""
    prepared = {}
    for file in Path(cases).glob("*.json"):
        for case in parse_batch(orjson.loads(file.read_bytes())).cases:
            if isinstance(case, TestCase):
                prepared[file.stem, case.test_id] = prepare(case.expectations)

    def scored(event: dict[str, Any]) -> dict[str, Any]:
        place, test_id = message_context(), event["test_id"]
        case = score(prepared[event["batch_id"], test_id], Output.parse(event["output"]), RULES)
        return {
            "concern_id": event["concern_id"],
            "batch_id": event["batch_id"],
            "run_id": event["run_id"],
            "timestamp": event["generated_at"],
            "result": result_document(test_id, None, case),
            "source": {"topic": source, "partition": place.partition, "offset": place.offset},
        }

    application = Application(
        broker_address=servers, consumer_group=group, auto_offset_reset="earliest", state_dir=state,
        processing_guarantee="exactly-once", loglevel="WARNING",
        consumer_extra_config={"max.partition.fetch.bytes": 3 << 20},
        producer_extra_config={"linger.ms": 5, "batch.size": 512 << 10},
    )  # fmt: skip
    events = application.dataframe(application.topic(source, value_deserializer="json"))
    events = events.apply(scored)
    events = events.group_by(_batch_key, name="batch", key_serializer="str", key_deserializer="str")
    events = events.apply(_folded, stateful=True)
    events.to_topic(application.topic(target, key_serializer="str", value_serializer="json"))
    application.run()


def _batch_key(scored: dict[str, Any]) -> str:
    return f"{scored['concern_id']}/{scored['batch_id']}"


def _folded(scored: dict[str, Any], state: State) -> dict[str, Any]:
    labels = state.get("labels") or {}
    labels[scored["result"]["test_id"]] = scored["result"]["label"]
    state.set("labels", labels)
    counts = [list(labels.values()).count(label) for label in ("Pass", "Review", "Fail")]
    names = ("pass", "review", "fail")
    summary = {"total_cases": len(labels), **dict(zip(names, counts, strict=True))}
    return {**scored, "summary": {**summary, "overall_pass_rate": counts[0] / len(labels)}}


if __name__ == "__main__":
    main(*sys.argv[1:])
