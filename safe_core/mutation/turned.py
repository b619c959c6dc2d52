"""Alterations that put other words in the place of some: `lexicon/turned.tsv`, where `usage.tsv` allows it."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final, NamedTuple

from safe_core.diagnosis.lexicon import rows
from safe_core.mutation.alteration import KINDS, Alteration, Cut, MutantKind, usage

_MOST_WORDS: Final = 3  # of a phrase
_QUADRANT: Final = re.compile("[LR](?:[LU][QEL]|ML)")  # of the abdomen, a limb, a lobe of the lung
_OTHER_LETTER: Final = {"L": "R", "R": "L"}
_NOT_A_SIDE_AFTER: Final = re.compile(r"[\w.'’/-]\Z|\d \Z")  # "5 L", "L4-L5"
_OPPOSITES: Final[frozenset[MutantKind]] = frozenset(("normal_abnormal", "grade", "certainty"))
_LONGEST_SUBJECT: Final = 12


class _Turned(NamedTuple):
    kind: MutantKind
    one: str
    after: str


@cache
def pairs(kind: str) -> Mapping[str, str]:
    """Give what each word or phrase of a kind becomes."""
    found: dict[str, str] = {}
    for _, (own, *cells) in rows("turned"):
        for cell in cells if own == kind else ():
            one, sign, other = cell.partition(" = ")
            if not sign:
                one, _, other = cell.partition(" > ")
            else:
                found[other] = one
            found[one] = other
    return found


@cache
def _table() -> Mapping[str, _Turned]:
    """Give all phrases; one that is in two kinds belongs to the first."""
    return {one: _Turned(kind, one, other) for kind in reversed(KINDS) for one, other in pairs(kind).items()}


def turned(cut: Cut) -> Iterator[Alteration]:
    """Put what is said in its place for each phrase of the table; of those that begin with a word, the longest."""
    done = 0
    for at in range(len(cut.words)):
        for length in range(_MOST_WORDS, 0, -1):
            last = at + length - 1
            found = _found(cut, at, last) if last < len(cut.words) and at >= done else None
            if found and _means_it(cut, at, last, found):
                yield cut.altered(found.kind, at, last, found.after)
                done = last + 1
                break
        if _is_short_side(cut, at):
            start = cut.words[at].start
            yield Alteration("side", start, start + 1, _OTHER_LETTER[cut.text[start]])


def _found(cut: Cut, first: int, last: int) -> _Turned | None:
    """Look a phrase up, a word also as the adverb or the participle of one."""
    phrase = " ".join(cut.written(first, last).replace("\u2019", "'").lower().split())
    if phrase == "without" and cut.folded(last + 1).endswith("ing"):  # "without walking"
        return _Turned("negation_removed", phrase, "while")
    if (found := _table().get(phrase)) is not None:
        return found
    for ending, instead in (("ly", ""), ("ly", "le"), ("ing", "ed")):
        base = _table().get(phrase.removesuffix(ending) + instead) if phrase.endswith(ending) else None
        if base is not None and base.kind in {"side", *_OPPOSITES} and base.after.endswith(instead):
            return base._replace(after=base.after.removesuffix(instead) + ending)
    return None


def _means_it(cut: Cut, first: int, last: int, found: _Turned) -> bool:
    """Tell whether a phrase says here what the table takes it for."""
    kind, word, _ = found
    before, after = cut.folded(first - 1), cut.folded(last + 1)
    for each in (word, cut.folded(first)):
        if after in usage().get(f"not before {each}", ()) or before in usage().get(f"not after {each}", ()):
            return False
    is_led = before in usage().get(f"only after {word}", {before})
    if not is_led or after not in usage().get(f"only before {word}", {after}):
        return False
    if kind == "negation_added":
        return not cut.denies(first - 1) and not cut.denies(first - 2)
    is_absent = word == "present" and has_denied_subject(cut, first)
    is_part = kind in _OPPOSITES and (cut.between(first) == "-" or cut.denies(first))
    return not is_absent and not (is_part and word not in {"negative", "unlikely"})


def has_denied_subject(cut: Cut, at: int) -> bool:
    """Tell whether the subject of a verb is denied already: "no signs of infection were noted"."""
    for before in range(at - 1, max(-1, at - _LONGEST_SUBJECT), -1):
        if not cut.touches(before + 1):
            return False
        if cut.folded(before) in usage()["denied subject"]:
            return True
    return False


def _is_short_side(cut: Cut, at: int) -> bool:
    """Tell whether a word begins with the letter of a side: "R leg", "LLQ"."""
    written = cut.written(at)
    if _QUADRANT.fullmatch(written):
        return True
    is_led = _NOT_A_SIDE_AFTER.search(cut.text, max(0, cut.words[at].start - 2), cut.words[at].start) is not None
    is_joined = cut.between(at + 1) in {" ", "-", "\u2010", "\u2011"}
    return written in _OTHER_LETTER and not is_led and is_joined and cut.folded(at + 1) in usage()["sided"]
