"""What was found: a line for each finished run, kept over interruptions, and a table over all of them."""

import hashlib
import json
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.certify.load import DELIVERIES, Delivery
from tests.certify.run import Order
from tests.certify.scenarios import SCENARIOS, Scenario

PRODUCT = ("consumer", "safe_core", "safe_scorer")


def code_of(checkout: Path) -> str:
    """Return a digest of the product's code, by which runs of the same code are known."""
    digest = hashlib.sha256()
    for file in sorted(file for folder in PRODUCT for file in (checkout / folder).rglob("*.py")):
        digest.update(str(file.relative_to(checkout)).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:16]


def commit_of(checkout: Path) -> str:
    """Return the commit that is checked out, with a + where files differ from it; empty outside of a repository."""
    command = ["git", "-C", str(checkout), "describe", "--always", "--dirty=+", "--abbrev=10", "--exclude=*"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


@dataclass(frozen=True, slots=True)
class Results:
    """A file of JSON lines, one for each finished run."""

    file: Path

    def lines(self) -> list[dict[str, Any]]:
        """Return all lines that are there."""
        if not self.file.exists():
            return []
        return [json.loads(line) for line in self.file.read_text(encoding="utf-8").splitlines() if line.strip()]

    def has(self, order: Order, code: str) -> bool:
        """Tell whether this run of this code is done already."""
        wanted = (order.scenario.name, order.delivery, order.number, order.rounds, order.seed, code)
        names = ("scenario", "delivery", "run", "asked", "seed", "code")
        return any(tuple(line.get(name) for name in names) == wanted for line in self.lines())

    def add(self, line: dict[str, Any]) -> None:
        """Append a finished run."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with self.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")


def breaches(line: dict[str, Any]) -> int:
    """Count what a run broke: every problem, and every worker that ended by itself."""
    counted: int = sum(line.get("problem_counts", {}).values())
    return max(counted, len(line["problems"])) + len(line.get("deaths", []))


HEADINGS = ("scenario", "delivery", "rounds", "of", "inputs", "results", "worker harms", "deaths", "breaches", "bound")
WIDTHS = (20, 14, 7, 5, 9, 9, 14, 8, 10, 24)


def table(lines: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield the rows of a table over all runs of one code: what was done how often, and what zero failures bound."""
    yield _row(HEADINGS)
    for delivery in DELIVERIES:
        for scenario in SCENARIOS:
            yield _row(_cells(scenario, delivery, lines))


def _cells(scenario: Scenario, delivery: Delivery, lines: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    own = [line for line in lines if (line["scenario"], line["delivery"]) == (scenario.name, delivery)]
    rounds, broken = sum(line["rounds"] for line in own), sum(map(breaches, own))
    counts = [sum(line.get(name, 0) for line in own) for name in ("inputs", "results")]
    harms = sum(sum(line.get("workers", {}).values()) for line in own)
    deaths = sum(len(line.get("deaths", [])) for line in own)
    numbers = [rounds, scenario.rounds_in(delivery), *counts, harms, deaths, broken]
    return (scenario.name, delivery, *(f"{number:,}" for number in numbers), bound(rounds, broken))


def bound(rounds: int, broken: int) -> str:
    """Say which share of failures so many rounds without one exclude: the rule of three."""
    if broken or not rounds:
        return "–"
    return "nothing" if rounds < 3 else f"below {3 / rounds:.1%} (95 %)"


def _row(cells: Sequence[str]) -> str:
    return "".join(
        cell.ljust(width) if at < 2 else cell.rjust(width)
        for at, (cell, width) in enumerate(zip(cells, WIDTHS, strict=True))
    ).rstrip()
