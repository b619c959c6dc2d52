"""What a broker's log complains of in the name of SAFE: those who run Kafka take such a line for a client's defect."""

import re
from collections.abc import Collection, Iterator
from pathlib import Path

from tests.support.site import Site

_WARNS = re.compile(r"^\S+ ?\S* (WARN|ERROR|FATAL) ")

_OUR_CLIENTS = re.compile(r"client[- ]?[iI]d[=: ]+safe\b|\bsafe-[0-9a-f]{8}-[0-9a-f]{4}-")
"""Clients by their id, and members of groups, whose ids begin with it."""


def names_of(site: Site) -> tuple[str, ...]:
    """What is only this installation's: its group, from which its transactional ids follow, and its topics' prefix."""
    return (site.group, site.topics.result.rpartition(".")[0])


def complaints(log: Path, names: Collection[str], *, of_any_client: bool = False) -> list[str]:
    """The warnings and errors that have one of these names, or of any client of SAFE's, in order, each once."""
    found = (
        line
        for line in _lines(log)
        if _WARNS.match(line) and (_has(line, names) or (of_any_client and _OUR_CLIENTS.search(line)))
    )
    return list(dict.fromkeys(map(_without_time, found)))


def _has(line: str, names: Collection[str]) -> bool:
    return any(name in line for name in names)


def _without_time(line: str) -> str:
    matched = _WARNS.match(line)
    return line[matched.start(1) :] if matched else line


def _lines(log: Path) -> Iterator[str]:
    """Each record of the log as one line: what follows it, as a stack trace does, is part of it."""
    record: list[str] = []
    for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
        if re.match(r"\d{4}-\d\d-\d\d", line) and record:
            yield " | ".join(record)
            record = []
        record.append(line)
    if record:
        yield " | ".join(record)
