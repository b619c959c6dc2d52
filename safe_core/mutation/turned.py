"""Alterations that put other words in the place of some: what excludes them in the lexicon, or `lexicon/turned.tsv`."""

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
_RIVALS: Final[Mapping[str, MutantKind]] = {
    **dict.fromkeys(("side", "nearness", "midline", "front", "surface"), "side"),
    **dict.fromkeys(("depth", "severity", "onset"), "grade"),
    "level": "normal_abnormal",
}
"""The kinds of rival.tsv of which one word can stand in the place of another; besides, the kinds of drugs."""
_OTHER_GRAMMAR: Final = frozenset(("help", "bend", "allergy", "more", "before", "fast", "long", "early", "large"))
"""The lines of opposite.tsv, by their first word, in which they cannot, or which say little."""
_PREFIXES: Final = ("un", "in", "non", "dis")
_TURNED: Final = (("hyper", "hypo"), ("tachy", "brady"))


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
            ones, sign, others = cell.replace(" = ", " > = ").partition(" > ")
            for one, other in zip(ones.split("|"), others.removeprefix("= ").split("|"), strict=True):
                found[one] = other
                if sign and others.startswith("= "):
                    found.setdefault(other, one)
    return found


def _related() -> Iterator[_Turned]:
    """Give what stands for each word by the relations of the lexicon: its rival, or the first of its opposites."""
    kinds: dict[str, list[list[str]]] = {}
    for _, (name, *cells) in rows("rival"):
        kinds.setdefault(name, []).extend(cell.lower().split(", ") for cell in cells)
    for name, things in kinds.items():
        kind: MutantKind | None = "drug" if name.startswith("drug ") else _RIVALS.get(name)
        for at, thing in enumerate(things if kind and len(things) > 1 else ()):
            other = things[at ^ 1 if at ^ 1 < len(things) else 0][0]
            yield from (_Turned(kind, word, other) for word in thing if kind)
    for _, (left, right) in rows("opposite"):
        ones, others = left.split(", "), right.split(", ")
        if ones[0] not in _OTHER_GRAMMAR:
            yield from (_Turned("normal_abnormal", one, others[0]) for one in ones)
            yield from (_Turned("normal_abnormal", other, ones[0]) for other in others)
    for _, names in rows("measure"):
        for one, other in ((one, other) for pair in _TURNED for one, other in (pair, pair[::-1])):
            turned = {name: other + name.removeprefix(one) for name in names if name.startswith(one)}
            yield from (_Turned("normal_abnormal", name, after) for name, after in turned.items() if after in names)
    for _, (prefix, *words) in (row for row in rows("turned") if row[1][0] in _PREFIXES):
        for word in " ".join(words).split():
            yield _Turned("normal_abnormal", word, f"{prefix}{word}")
            yield from (_Turned("normal_abnormal", f"{prefix}{hyphen}{word}", word) for hyphen in ("", "-"))


@cache
def _table() -> Mapping[str, _Turned]:
    """Give all phrases; one that is in two kinds belongs to the first, and turned.tsv comes before the relations."""
    own = {one: _Turned(kind, one, other) for kind in reversed(KINDS) for one, other in pairs(kind).items()}
    return {each.one: each for each in _related()} | own


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
    is_part = kind in _OPPOSITES and (cut.between(first) == "-" or cut.denies(first))
    return not is_part or word in {"negative", "unlikely"}


def _is_short_side(cut: Cut, at: int) -> bool:
    """Tell whether a word begins with the letter of a side: "R leg", "LLQ"."""
    written = cut.written(at)
    if _QUADRANT.fullmatch(written):
        return True
    is_led = _NOT_A_SIDE_AFTER.search(cut.text, max(0, cut.words[at].start - 2), cut.words[at].start) is not None
    is_joined = cut.between(at + 1) in {" ", "-", "\u2010", "\u2011"}
    return written in _OTHER_LETTER and not is_led and is_joined and cut.folded(at + 1) in usage()["sided"]
