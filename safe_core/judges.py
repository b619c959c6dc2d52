"""What judges a case: its concern, its metric_id and its archetype (contract.md, "Configuration", "Archetype")."""

from typing import NamedTuple, Protocol

from safe_core.testcases import BadTestCase, known_archetype


class Judging(Protocol):
    """What may say who judges a case: an output, or its test case. None is what it does not say."""

    @property
    def concern_id(self) -> str | None: ...
    @property
    def metric_id(self) -> str | None: ...
    @property
    def archetype(self) -> str | None: ...


class JudgedBy(NamedTuple):
    """What a case belongs to, by which its rules are chosen; `metric_id` is None only where `concern_id` is."""

    concern_id: str | None
    metric_id: str | None
    archetype: str | None


def judged_by(case: Judging, output: Judging | None = None, *, concern_id: str | None = None) -> JudgedBy:
    """Give what judges a test case: what its output says, else what it says itself.

    `concern_id` is for a case whose concern neither of them names; a placeholder archetype says nothing.
    """
    said = case if output is None else output
    concern_id = said.concern_id or case.concern_id or concern_id
    return JudgedBy(
        concern_id,
        said.metric_id or case.metric_id or concern_id,
        known_archetype(said.archetype) or known_archetype(case.archetype),
    )


def is_of_concern(asked: str, said: Judging | BadTestCase) -> bool:
    """Tell whether an output or a test case is of the concern asked for: one that names none is of any."""
    return said.concern_id is None or said.concern_id.casefold() == asked.casefold()
