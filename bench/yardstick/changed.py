"""Clinicians' notes with one value, side or polarity changed, or with a sentence taken out.

The notes are not part of the repository. By rule, a term is a stretch of a note, and the change is made inside it; by
hand, the term is in a clinician's words, and what is changed is the few words in which the note says it.
"""

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final, NamedTuple

from bench.yardstick.cases import Case, labelled
from bench.yardstick.labelled import LABELS, encounters
from safe_core import Output
from safe_core.matching_rule import normalise

_EACH: Final = 20  # cases of each kind that are made by rule
_LEAST_WORDS, _MOST_WORDS = 4, 14
_SENTENCE = re.compile(r"(?<=[.?!])\s+|\n+")
_CLAUSE = re.compile(r"[;:]\s+|,\s+(?!\d)|\.\s*$")
_NUMBER = re.compile(
    r"(?<![\w.,/%-])(\d{1,3}(?:\.\d)?)(?=\s?(?:mg|mcg|percent|weeks?|days?|months?|pounds|degrees)\b(?! ?/))"
)
_SIDE = re.compile(r"\b(left|right)\b", re.IGNORECASE)
_DENIED = re.compile(r"\b(?:no|not|denie[sd]|without|[Ee]xamination)\b")  # a side may be denied, and the other too
_POLARITY = (
    (re.compile(r"\bdenies(?: any)?\b"), "reports"),
    (re.compile(r"\bdenied(?: any)?\b"), "reported"),
    (re.compile(r"\breports\b(?= (?:some|a|an|having|mild|severe|occasional)\b)"), "denies"),
    (
        re.compile(r"\bno (?=(?:edema|tenderness|murmurs?|swelling|erythema|fractures?|pain|rash|wheez\w+)\b)"),
        "marked ",
    ),
    (re.compile(r"\bis (?=(?:normal|intact|present|clear|negative|positive|noted)\b)"), "is not "),
    (re.compile(r"\bare (?=(?:normal|intact|present|clear|negative|positive|noted)\b)"), "are not "),
)


class Change(NamedTuple):
    """A term, the sentence of the note that has it, and that sentence with one thing changed."""

    name: str
    encounter: str
    term: str
    sentence: str
    changed: str


def changes() -> list[Change]:
    """Make as many of each kind as are asked for, from as many encounters as there are, then those picked by hand."""
    made = [change for kind in ("value", "side", "polarity") for change in islice(_spread(kind), _EACH)]
    return made + list(picked())


def _spread(kind: str) -> Iterator[Change]:
    """Take one of each encounter before taking a second one of any."""
    sources = [iter(_of_note(kind, each["id"], each["note"])) for each in encounters().values()]
    while sources:
        for source in tuple(sources):
            if (change := next(source, None)) is None:
                sources.remove(source)
            else:
                yield change


def _of_note(kind: str, encounter: str, note: str) -> Iterator[Change]:
    """Change each clause that can be changed, if the note says it once."""
    for sentence in sentences(note):
        for clause in _CLAUSE.split(sentence):
            words = clause.split()
            if not _LEAST_WORDS <= len(words) <= _MOST_WORDS or normalise(note).count(normalise(clause)) != 1:
                continue
            if (changed := _changed(kind, clause)) is not None:
                name = f"{kind}/{encounter}/{words[0]}"
                yield Change(name, encounter, clause, sentence, sentence.replace(clause, changed))


def _changed(kind: str, clause: str) -> str | None:
    """Change one thing in a clause; None where it has nothing of this kind, or so much that one change is unclear."""
    if kind == "polarity":
        found = [(pattern, instead) for pattern, instead in _POLARITY if pattern.search(clause)]
        return found[0][0].sub(found[0][1], clause) if len(found) == 1 else None
    if kind == "side":
        sides = _SIDE.findall(clause)
        other = {"left": "right", "right": "left", "Left": "Right", "Right": "Left"}
        clear = len(sides) == 1 and sides[0] in other and not _DENIED.search(clause)
        return _SIDE.sub(lambda match: other[match[0]], clause) if clear else None
    numbers = _NUMBER.findall(clause)
    return _NUMBER.sub(lambda match: _other(match[1]), clause) if len(numbers) == 1 else None


def _other(number: str) -> str:
    """Give a number that is no rounding of the other one."""
    return (
        str(int(number) - max(2, int(number) // 3) if int(number) > 2 else 5)
        if number.isdigit()
        else f"{float(number) * 1.5 + 1:.1f}"
    )


def sentences(note: str) -> list[str]:
    """Cut a note after its sentences and lines."""
    return [part.strip() for part in _SENTENCE.split(note) if part.strip()]


def picked() -> Iterator[Change]:
    """Read the rows picked by hand: encounter, what to find, what to put there, the term in our own words."""
    for line in (LABELS / "changed.tsv").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            encounter, find, instead, term = line.split("\t")
            note = encounters()[encounter]["note"]
            whole = [sentence for sentence in sentences(note) if find in sentence]
            if len(whole) != 1:
                raise ValueError(f"{len(whole)} sentences of {encounter} have {find!r}")
            yield Change(f"picked/{encounter}/{find}", encounter, term, whole[0], whole[0].replace(find, instead, 1))


# ─── as cases ───


def alone() -> Iterator[Case]:
    """Give the changed sentences as the only signal: contradicted."""
    for change in changes():
        yield _case(change, Output((change.changed,), ""), "contradicted")


def whole() -> Iterator[Case]:
    """Give the whole note with one sentence changed: contradicted, or both where it says the same again."""
    for change in changes():
        note = encounters()[change.encounter]["note"].replace(change.sentence, change.changed)
        yield _case(change, Output(summary=note), "contradicted", "both")


def deleted() -> Iterator[Case]:
    """Give the whole note without the sentence: what is left does not contradict the term."""
    for change in changes():
        note = encounters()[change.encounter]["note"].replace(change.sentence, "")
        yield _case(change, Output(summary=note), "part", "absent", "said")


def _case(change: Change, output: Output, *says: str) -> Case:
    narrative = encounters()[change.encounter]["note"]
    verbatim = normalise(change.term) in normalise(narrative)
    made = Case(change.name, change.term, output, narrative, how="verbatim" if verbatim else "")
    return labelled(made, says, {"supported"})
