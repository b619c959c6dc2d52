"""The sample traffic: three batches of test cases as factory-cli writes them, and outputs that answer them.

The cases are invented; the outputs were written to show every label, a forbidden term, an empty output, one output that
is replaced by a better one, and one that no test case expects.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import orjson

from consumer.files.publish_outputs import OutgoingEvent
from consumer.results.scorecard import BatchName
from consumer.wire.keys import event_key


@dataclass(frozen=True, slots=True)
class Samples:
    """The batch files by batch_id, as bytes, and the events in their order; `cases` counts those of each batch."""

    batch_files: Mapping[str, bytes]
    cases: Mapping[BatchName, int]
    events: tuple[OutgoingEvent, ...]

    @classmethod
    def load(cls) -> "Samples":
        """Read what is shipped with the package."""
        folder = files(__package__) / "samples"
        batch_files = {
            file.name.removesuffix(".json"): file.read_bytes()
            for file in sorted((folder / "cases").iterdir(), key=lambda file: file.name)
        }
        test_cases = {name: orjson.loads(raw)["test_cases"] for name, raw in batch_files.items()}
        cases = {BatchName(each[0]["concern_id"], name): len(each) for name, each in test_cases.items()}
        lines = (folder / "outputs.jsonl").read_bytes().splitlines()
        return cls(batch_files, cases, tuple(_event(line) for line in lines))

    def write_batch_files(self, folder: Path) -> None:
        """Write the batch files where a worker may look for them."""
        folder.mkdir()
        for name, raw in self.batch_files.items():
            (folder / f"{name}.json").write_bytes(raw)


def _event(line: bytes) -> OutgoingEvent:
    document = orjson.loads(line)
    return OutgoingEvent(event_key(document["batch_id"], document["test_id"]), line)
