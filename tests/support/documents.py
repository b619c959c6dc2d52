"""The pages that people read: README, docs and what is beside them; their headings, links and blocks of code."""

import re
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.support.kafka_broker import PROJECT

_FENCE = re.compile(r"^(```+)(\w*)[^\n]*\n(.*?)^\1$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^()\s]+)\)")


@dataclass(frozen=True, slots=True)
class Block:
    """A block of code: its language, as the page names it, and its text."""

    language: str
    text: str


@cache
def documents() -> tuple[Path, ...]:
    """Every page of the project, but not those that only tests read."""
    beside = [*PROJECT.glob("*.md"), PROJECT / "bench" / "README.md", PROJECT / "charts" / "safe" / "README.md"]
    return tuple(sorted([*beside, *(PROJECT / "docs").rglob("*.md")]))


def text_of(page: Path | str) -> str:
    return (PROJECT / page).read_text(encoding="utf-8")


def blocks(page: Path | str) -> list[Block]:
    """The blocks of code of a page, in its order."""
    return [Block(language, text) for _, language, text in _FENCE.findall(text_of(page))]


@cache
def anchors(page: Path) -> frozenset[str]:
    """The anchors that a page's headings have where it is read; a heading that is repeated gets a number."""
    titles = re.findall(r"^#+ (.+)$", _FENCE.sub("", text_of(page)), re.MULTILINE)
    plain = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title) for title in titles]
    names = [re.sub(r"[^\w\- ]", "", title).strip().lower().replace(" ", "-") for title in plain]
    seen: Counter[str] = Counter()
    found = set()
    for name in names:
        found.add(f"{name}-{seen[name]}" if seen[name] else name)
        seen[name] += 1
    return frozenset(found)


def links(page: Path) -> list[str]:
    """Where a page's links lead within the project: a path, an anchor, or both."""
    prose = re.sub(r"`[^`]*`", "", _FENCE.sub("", text_of(page)))
    return [each for each in _LINK.findall(prose) if "://" not in each]


def leads_somewhere(page: Path, link: str) -> bool:
    """Whether a link of a page leads to a file of the project and, if it names a heading, to one that is there."""
    path, _, anchor = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    return target.exists() and target.is_relative_to(PROJECT) and (not anchor or anchor in anchors(target))
