"""The pages that people read: README, docs and what is beside them; their headings, links and blocks of code."""

import re
import shlex
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


# --- what a page tells people to do -----------------------------------------------------------------------------------

_SAVED = re.compile(r"as\s+`([\w./-]+)`:\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^(?:[A-Z_][A-Z0-9_]*=\S* )*safe (.*)$")


def section(page: Path | str, heading: str) -> str:
    """The text below a heading of the second level, up to the next one."""
    below = text_of(page).split(f"\n## {heading}\n")[1]
    return below.partition("\n## ")[0]


def blocks_of(text: str) -> list[Block]:
    """The blocks of code of a part of a page, in its order."""
    return [Block(language, code) for _, language, code in _FENCE.findall(text)]


def saved_files(text: str) -> dict[str, str]:
    """What a page asks its reader to save: names of files, and their contents."""
    return dict(_SAVED.findall(text))


def lines_of(block: Block) -> list[str]:
    """The commands of a block, one each, without comments and with what was wrapped put together."""
    wrapped = re.sub(r"\\\n\s*", "", block.text)
    lines = (re.sub(r"(^|\s)#\s.*", "", line).strip() for line in wrapped.splitlines())
    return [line for line in lines if line]


def safe_commands(text: str) -> list[list[str]]:
    """The words behind `safe` of each command in the blocks of a part of a page, without pipes and redirections."""
    blocks_with_commands = [block for block in blocks_of(text) if block.language == "bash"]
    found = [match for block in blocks_with_commands for line in lines_of(block) if (match := _COMMAND.match(line))]
    return [_own_words(match.group(1)) for match in found]


def _own_words(command: str) -> list[str]:
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.wordchars += "~:@,+%{}"
    words = list(lexer)
    end = next((at for at, word in enumerate(words) if set(word) <= set("|&;<>()")), len(words))
    return words[:end]
