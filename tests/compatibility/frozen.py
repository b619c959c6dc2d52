"""What a released version wrote, kept as it stood: test cases, the six topics, and how far each group had come.

A folder `<version>/` holds `cases/`, `offsets.json` and a file for each topic with a line for each record. A value is
JSON where writing it compactly gives the same bytes, else text, else base64. Made by a run of that version on a real
broker over made-up test cases (`tests/broker/test_upgrade.py` says how).
"""

import base64
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import groupby
from pathlib import Path
from typing import Any

from tests.support.outside import Record, Topics

HERE = Path(__file__).parent
GROUP = "safe-v0"
TOPICS = Topics(
    input="factory.generation.output",
    scored="safe.v0.scored",
    state="safe.v0.state",
    result="safe.v0.result",
    report="safe.v0.report",
    dead_letter="safe.v0.dead-letter",
)
NAMES = tuple(each.name for each in fields(Topics))
Json = Any
Offsets = Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Frozen:
    """An installation at rest: its scorer has read all input, its aggregator only the older part of `scored`.

    `ends` are the ends of the partitions of `scored`, `scorer` and `aggregator` the committed offsets of the groups.
    """

    cases: Path
    records: Mapping[str, Sequence[Record]]
    ends: Offsets
    scorer: Offsets
    aggregator: Offsets

    @property
    def partitions(self) -> int:
        """How many partitions each topic has."""
        return len(self.ends)

    def of(self, name: str, partition: int) -> list[Record]:
        """The records of one partition of a topic."""
        return [record for record in self.records[name] if record.partition == partition]

    @property
    def stages(self) -> dict[str, str]:
        """The last stage that the row of each batch names, by the batch's id."""
        rows = {record.key: record.json() for record in self.records["state"] if _is_batch_row(record)}
        return {_batch_of(key or b""): row["stage"] for key, row in rows.items()}


def _is_batch_row(record: Record) -> bool:
    return (record.key or b"").count(b"/") == 1 and record.value is not None


def _batch_of(key: bytes) -> str:
    return key.decode().split("/")[1].replace("%2F", "/").replace("%25", "%")


def versions() -> list[str]:
    """Every version of which something is kept, oldest first."""
    found = [file.parent.name for file in HERE.glob("*/offsets.json")]
    return sorted(found, key=lambda version: [int(part) for part in version.split(".")])


def load(version: str) -> Frozen:
    """Read what a version wrote."""
    folder = HERE / version
    records = {name: [_record(name, json.loads(line)) for line in _lines(folder, name)] for name in NAMES}
    offsets = json.loads((folder / "offsets.json").read_text(encoding="utf-8"))
    read = {name: {int(partition): offset for partition, offset in each.items()} for name, each in offsets.items()}
    return Frozen(folder / "cases", records, **read)


def save(frozen: Frozen, version: str) -> Path:
    """Write what a version wrote; returns the folder. What is there of a version is never written over."""
    folder = HERE / version
    folder.mkdir(exist_ok=True)
    cases = folder / "cases"
    cases.mkdir()
    for file in frozen.cases.glob("*.json"):
        (cases / file.name).write_bytes(file.read_bytes())
    for name, records in frozen.records.items():
        text = "".join(json.dumps(_document(record), ensure_ascii=False) + "\n" for record in records)
        _file(folder, name).write_text(text, encoding="utf-8")
    offsets = {"ends": frozen.ends, "scorer": frozen.scorer, "aggregator": frozen.aggregator}
    (folder / "offsets.json").write_text(json.dumps(offsets, indent=1) + "\n", encoding="utf-8")
    return folder


def _file(folder: Path, name: str) -> Path:
    return folder / f"{name.replace('_', '-')}.jsonl"


def _lines(folder: Path, name: str) -> list[str]:
    return _file(folder, name).read_text(encoding="utf-8").splitlines()


# --- one record -------------------------------------------------------------------------------------------------------


def _document(record: Record) -> Json:
    return {
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": _text(record.key),
        "headers": [[name, _text(value)] for name, value in record.headers],
        "value": _told(record.value),
    }


def _record(name: str, document: Json) -> Record:
    return Record(
        topic=getattr(TOPICS, name),
        partition=document["partition"],
        offset=document["offset"],
        key=_bytes(document["key"]),
        value=_untold(document["value"]),
        headers=tuple((header, _bytes(value)) for header, value in document["headers"]),
        timestamp=document["timestamp"],
    )


def _text(octets: bytes | None) -> str | None:
    return None if octets is None else octets.decode("utf-8")


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def _compact(document: Json) -> bytes:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def _told(value: bytes | None) -> Json:
    if value is None:
        return None
    try:
        text = value.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(value).decode()}
    try:
        document = json.loads(text)
    except ValueError:
        return {"text": text}
    return {"json": document} if _compact(document) == value else {"text": text}


_UNTOLD: Mapping[str, Callable[[Json], bytes]] = {"json": _compact, "text": str.encode, "base64": base64.b64decode}


def _untold(told: Json) -> bytes | None:
    if told is None:
        return None
    [(form, content)] = told.items()
    return _UNTOLD[form](content)


# --- offsets ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Run:
    """Records that follow each other without a gap, and how many offsets behind them hold none."""

    records: Sequence[Record]
    gap: int


def runs(records: Iterable[Record], end: int) -> list[Run]:
    """Part the records of one partition, which ends at `end`, where marks of transactions stood between them."""
    parted = [[each for _, each in group] for _, group in groupby(enumerate(records), lambda at: at[1].offset - at[0])]
    starts = [run[0].offset for run in parted[1:]]
    return [Run(run, following - run[-1].offset - 1) for run, following in zip(parted, [*starts, end], strict=True)]
