"""A miss with what people say of it, and what an engine says: both answers, and the verdict.

The table of verdicts is here once more, apart from the code that it measures: a wrong cell there must not move the
yardstick.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import product
from typing import Any, Final, Literal

from safe_core import Expectations, Output
from safe_core.diagnosis import Miss, diagnose
from safe_core.diagnosis.output_texts import READ_BY
from safe_core.matching_rule import normalise

CONTRADICTING: Final = frozenset({"contradicted", "both"})
LACKING: Final = frozenset({"part", "absent", "elsewhere"})
HAS_IT: Final = frozenset({"supported", "partly"})

_TABLE: Final = {
    "said": ("term", "term", "term", "look"),
    "elsewhere": ("prompt", "prompt", "look", "look"),
    "part": ("prompt", "prompt", "term", "term"),
    "absent": ("prompt", "prompt", "term", "term"),
    "contradicted": ("output", "look", "look", "term"),
    "both": ("look", "look", "look", "look"),
}
_STORIES: Final = {
    "said": "supported",
    "both": "supported",
    "part": "partly",
    "absent": "silent",
    "contradicted": "contradicts",
}
_COLUMNS: Final = {"supported": 0, "partly": 0, "unknown": 1, "silent": 2, "contradicts": 3}


def verdict_of(output_says: str, narrative_says: str, *, narrative_has_it_too: bool = False) -> str:
    """Look the verdict up; where the narrative also says what the output says instead, a person must look.

    `contradicted` is `output` only in the column `supported`: `partly` leaves it to a person.
    """
    if output_says == "contradicted" and (narrative_has_it_too or narrative_says == "partly"):
        return "look"
    return _TABLE[output_says][_COLUMNS[narrative_says]]


@dataclass(frozen=True, slots=True)
class Case:
    """A term, an output and a narrative; what a person accepts on each axis, and nothing where nobody has said."""

    name: str
    term: str
    output: Output
    narrative: str | None = None
    criterion: Literal["CR", "AC"] = "CR"
    output_says: frozenset[str] = frozenset()
    narrative_says: frozenset[str] = frozenset()
    verdicts: frozenset[str] = frozenset()
    how: str = ""  # `read` again by one reader, or mapped from an older label by a `rule`


@dataclass(frozen=True, slots=True)
class Said:
    """What an engine says of a miss; `found` on the first axis where the term was found, and so is no miss."""

    output_says: str
    narrative_says: str = "unknown"
    verdict: str = ""
    row: str = ""
    evidence: str = ""


@dataclass(frozen=True, slots=True)
class Judged:
    """A case, and what an engine says of it."""

    case: Case
    said: Said


Engine = Callable[[Case], Said]


def labelled(case: Case, output_says: Iterable[str], narrative_says: Iterable[str]) -> Case:
    """Give a case the answers that count as right, and the verdicts that follow from them."""
    answers, stories = frozenset(output_says), frozenset(narrative_says)
    verdicts = frozenset(verdict_of(*pair) for pair in product(answers, stories))
    return replace(case, output_says=answers, narrative_says=stories, verdicts=verdicts)


def judged(engine: Engine, cases: Sequence[Case]) -> list[Judged]:
    return [Judged(case, engine(case)) for case in cases]


def miss_of(case: Case) -> Miss | None:
    """Diagnose a case alone; None where its term is found."""
    lists = ((case.term,), (), ()) if case.criterion == "CR" else ((), (), (case.term,))
    misses = diagnose(Expectations(*lists), case.output, case.narrative).misses
    return misses[0] if misses else None


def engine(case: Case) -> Said:
    """Both answers of the diagnosis."""
    miss = miss_of(case)
    if miss is None:
        return Said("found")
    told = {name: str(getattr(miss, name)) for name in ("output_says", "narrative_says", "row", "evidence")}
    return Said(verdict=miss.verdict, **told)


def engine_of_answers(case: Case) -> Said:
    """What the reading and the alignment alone say, without the tables: for work on them.

    What the narrative has too is only seen where it says both.
    """
    answer: Any = import_module("safe_core.diagnosis.answers").answer
    output, read_in = case.output, READ_BY[case.criterion]
    fields = {"signals": output.signals, "summary": (output.summary,), "followup_questions": output.followup_questions}
    found = answer(case.term, [text for field in read_in for text in fields[field]])
    says = str(found.says)
    if says in {"part", "absent"}:
        claims = [text for field in ("signals", "summary") if field not in read_in for text in fields[field]]
        asked = normalise(case.term) in normalise(" ".join(output.followup_questions))
        says = "elsewhere" if asked or answer(case.term, claims).says == "said" else says
    story = "unknown" if case.narrative is None else str(answer(case.term, [case.narrative], narrative=True).says)
    tells = _STORIES.get(story, story)
    verdict = verdict_of(says, tells, narrative_has_it_too=story == "both")
    return Said(says, tells, verdict, f"share {found.share}", str(found))


def engine_of_verdicts(case: Case) -> Said:
    """The answers that a verdict alone stands for, to compare with releases that give no others."""
    miss = miss_of(case)
    if miss is None:
        return Said("found")
    lacking = "elsewhere" if miss.also_in else "part" if miss.passage else "absent"
    says = {"term": "said", "output": "contradicted", "prompt": lacking}.get(miss.verdict, miss.verdict)
    story = {"yes": "supported", "no": "silent"}.get(miss.in_narrative, "unknown")
    return Said(says, story, miss.verdict, miss.kind)


ENGINES: Final[dict[str, Engine]] = {
    "diagnosis": engine,
    "answers": engine_of_answers,
    "today": engine_of_verdicts,
}


def shown(each: Judged, *, in_full: bool = True) -> str:
    """Print what a reader needs to judge one answer; of long texts the lines about the term, unless asked in full."""
    case, said = each.case, each.said
    label = [" or ".join(sorted(part)) or "–" for part in (case.output_says, case.narrative_says, case.verdicts)]
    texts = [
        *(f"signal    {text}" for text in case.output.signals),
        *(f"summary   {line}" for line in _lines(case.output.summary, None if in_full else case.term)),
        *(f"question  {text}" for text in case.output.followup_questions),
        *(f"narrative {line}" for line in _lines(case.narrative or "", None if in_full else case.term)),
        *([f"evidence  {said.evidence}"] if said.evidence else []),
    ]
    head = [
        f"── {case.name} {case.how}",
        f"   term      {case.term!r} ({case.criterion})",
        f"   label     {label[0]} | {label[1]} | {label[2]}",
        f"   said      {said.output_says} | {said.narrative_says} | {said.verdict or '–'}   {said.row}",
    ]
    return "\n".join([*head, *(f"   {line}" for line in texts)])


_LONG: Final = 12  # lines of a text that are all shown
_ROOT: Final = 4  # letters by which a word of the term is looked for


def _lines(text: str, term: str | None) -> list[str]:
    """Cut a text after its sentences, for a long summary is unreadable in one line."""
    lines = [line.strip() for line in re.split(r"(?<=[.?!])\s+|\n+", text) if line.strip()]
    if term is None or len(lines) <= _LONG:
        return lines
    roots = {word[:_ROOT] for word in re.findall(r"[^\W_]+", term.casefold()) if len(word) > 2 or word.isdigit()}
    return [line for line in lines if roots & {word[:_ROOT] for word in re.findall(r"[^\W_]+", line.casefold())}]
