"""What `safe gate` and `safe verify` say of a report: the verdict, and what is worth knowing beside it.

The console leaves out what is worth knowing: it is on standard error.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from consumer.offline.destinations import Format
from consumer.offline.gate import Decision
from consumer.offline.pages.console_layout import console_text
from consumer.offline.pages.document import Document, Item, Name, Section, Sentence
from consumer.offline.pages.formats import formats
from consumer.offline.verify import Verification
from consumer.text import count_of

_MOST: Final = 20


@dataclass(frozen=True, slots=True)
class Gated:
    """What a gate decided on a report, and what is worth knowing about it."""

    report: Path
    decision: Decision
    remarks: Sequence[str]

    def document(self) -> dict[str, Any]:
        """As JSON (contract.md, "Gate")."""
        return self.decision.document(self.remarks)


def gate_page(found: Gated) -> Document:
    """Give the gate's line."""
    headline, _, summary = found.decision.line.partition(": ")
    title = Sentence("SAFE v0: gate of {}", (Name(str(found.report)),))
    return Document(
        "gate", title, headline, summary, is_good=found.decision.passed, warnings=[*map(_remark, found.remarks)]
    )


def verification_page(found: Verification) -> Document:
    """Give the differences; of many, the console lists the first ones."""
    count = len(found.differences)
    report = found.recomputed
    equal = (
        f"{count_of(len(report['results']), 'result')} and every aggregate equal, "
        f"{count_of(len(report['inputs']), 'input file')} unchanged, rules {report['scorer']['fingerprint']}"
    )
    differences = [Item(_remark(str(each))) for each in found.differences]
    return Document(
        "verification",
        Sentence("SAFE v0: verification of {}", (Name(str(found.report)),)),
        "NOT verified" if count else "verified",
        count_of(count, "difference") if count else equal,
        is_good=not count,
        warnings=[*map(_remark, found.remarks)],
        sections=[Section(Sentence("Differences"), differences, most=_MOST)],
    )


def _remark(text: str) -> Sentence:
    return Sentence("{}", (Name(text),))


def _alone(document: Document) -> str:
    return console_text(replace(document, warnings=()))


GATED: Final[Mapping[Format, Callable[[Gated], str]]] = {
    **formats(gate_page, Gated.document),
    "console": lambda found: _alone(gate_page(found)),
}
VERIFIED: Final[Mapping[Format, Callable[[Verification], str]]] = {
    **formats(verification_page, Verification.document),
    "console": lambda found: _alone(verification_page(found)),
}
