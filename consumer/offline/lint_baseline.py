"""Findings that are known and stay: what an earlier `safe lint --format json` printed, perhaps with reasons added."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from consumer.errors import ConfigurationError, Poison
from consumer.files.json_text import parse_json_of_file
from consumer.files.outputs import readable, unusable
from consumer.offline.stored_report import part_of


class Entry(Struct, frozen=True):
    """A finding of the baseline; `reason` is what people wrote beside it. Lines and positions may have moved since."""

    code: str
    file: str
    test_id: str | None = None
    term: str | None = None
    reason: str | None = None

    @property
    def key(self) -> tuple[str, str, str | None, str | None]:
        return self.code, Path(self.file).name, self.test_id, self.term


class _Document(Struct):
    findings: tuple[Entry, ...]


class Baseline:
    """The entries of a baseline that no finding has been matched with yet."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._entries: dict[object, list[Entry]] = {}
        for entry in entries:
            self._entries.setdefault(entry.key, []).append(entry)

    @classmethod
    def read(cls, path: Path) -> "Baseline":
        """Read a baseline; raises ConfigurationError naming file and place."""
        with readable(path):
            raw = path.read_bytes()
        try:
            document = parse_json_of_file(raw)
        except Poison as error:
            raise unusable(path, f"cannot be read: {error.detail}") from error
        if not isinstance(document, dict) or "findings" not in document:
            raise ConfigurationError(f"{path}: is not a baseline; safe lint --format json > {path} writes one")
        return cls(part_of(document, _Document, str(path)).findings)

    def take(self, finding: Mapping[str, Any]) -> Entry | None:
        """Take out the entry of a finding, as `--format json` gives it; None if there is none."""
        key = Entry(finding["code"], finding["file"], finding["test_id"], finding["term"]).key
        entries = self._entries.get(key)
        return entries.pop(0) if entries else None

    @property
    def left(self) -> int:
        """How many entries no finding was found for."""
        return sum(map(len, self._entries.values()))
