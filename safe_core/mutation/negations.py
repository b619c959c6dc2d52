"""Alterations that take a denial out of a narrative, or put one in, where grammar decides how (the rest: `turned`)."""

from collections.abc import Iterator
from functools import cache
from typing import Final, NamedTuple

from safe_core.diagnosis.reading import BE, is_negative, read
from safe_core.diagnosis.relations import known
from safe_core.diagnosis.words import word_set
from safe_core.mutation.alteration import Alteration, Cut, usage
from safe_core.mutation.turned import pairs

_UNTIL: Final = 12  # words behind a "not" in which an "until" says when
_NO_NUMBER: Final = word_set("more less fewer later earlier sooner better worse one longer")
_IN_TABLE: Final = word_set("cant wont cannot")
_HYPHENS: Final = frozenset(("-", "\u2010", "\u2011"))


def negations(cut: Cut) -> Iterator[Alteration]:
    """Take out each denial of a narrative, and put one before each claim that has none."""
    for at in range(len(cut.words)):
        last, after = _affirmed(cut, at)
        if after is not None:
            yield cut.altered("negation_removed", at, last, after)
        if added := _added(cut, at):
            yield added


def _affirmed(cut: Cut, at: int) -> tuple[int, str | None]:
    """Give the last word of a denial, and what stands for it where it is taken out; None where there is none."""
    folded, following = cut.folded(at), cut.folded(at + 1)
    is_late = "until" in map(cut.folded, range(at + 1, at + _UNTIL))
    if folded == "non" and cut.between(at + 1) in _HYPHENS:
        return at + 1, cut.written(at + 1)
    if not cut.denies(at) or is_late:
        return at, None
    if folded == "no" and not cut.touches(at + 1):
        return at, "yes"
    if folded == "no":
        return at, None if following in _NO_NUMBER or following[:1].isdecimal() else ""
    if folded in {"not", "never"}:
        return at, None if following == "yet" else ""
    rest = cut.written(at)[:-3] if cut.is_short_not(at) and folded not in _IN_TABLE else ""
    return at, rest or None


class _Claim(NamedTuple):
    """Words that claim something, and what denies it ("{}" is the word); an article behind them may go.

    Before them, or behind them, stands one of some words, or none of them.
    """

    words: frozenset[str]
    after: str
    behind: frozenset[str] = frozenset()
    not_behind: frozenset[str] = frozenset()
    before: frozenset[str] = frozenset()
    takes_article: bool = False


@cache
def _claims() -> tuple[_Claim, ...]:
    words, be = usage(), word_set("was were is are")
    return (
        _Claim(be, "{} no", behind=word_set("there"), takes_article=True),  # there were no signs
        _Claim(be, "{} not", not_behind=word_set("there")),  # was not stable
        _Claim(word_set("can"), "cannot"),
        _Claim(word_set("have has had"), "{} not", before=words["participle"]),
        _Claim(words["finding verb"], "{} no", not_behind=BE, takes_article=True),
        _Claim(word_set("with"), "without", not_behind=words["leads to with"]),
    )


def _added(cut: Cut, at: int) -> Alteration | None:
    """Deny a claim in which nothing is denied; what comes of it must be read as a denial."""
    clause = cut.clause(cut.words[at].start)
    if clause is None or any(map(is_negative, clause.facts)):
        return None
    following = next((fact for fact in clause.facts if fact.start >= cut.words[at].end), None)
    altered = next((each for each in _denied(cut, at) if each is not None), None)
    if altered is None or altered.end > clause.end or (following and following.value):
        return None
    start = min(clause.start, altered.start)
    text = cut.text[start : altered.start] + altered.after + cut.text[altered.end : clause.end]
    denied = [fact.key for each in read(text).clauses for fact in each.facts if is_negative(fact) and fact.tells]
    is_clinical = bool(denied) and not (cut.is_spoken(start, clause.end) and known().isdisjoint(denied))
    return altered if is_clinical else None


def _denied(cut: Cut, at: int) -> Iterator[Alteration | None]:
    folded, behind, before = cut.folded(at), cut.folded(at - 1), cut.folded(at + 1)
    for claim in _claims():
        is_led = (not claim.behind or behind in claim.behind) and behind not in claim.not_behind
        is_followed = not claim.before or before in claim.before or before.endswith("ed")
        is_noun = not claim.takes_article or not before.endswith(("ed", "ly", "ing", "been", "to"))
        if folded in claim.words and cut.touches(at + 1) and is_led and is_followed and is_noun:
            has_article = claim.takes_article and before in usage()["with article"]
            yield cut.altered("negation_added", at, at + has_article, claim.after.format(cut.written(at)))
    is_short = folded in usage()["given"] and not cut.touches(at + 1) and cut.touches(at)
    if is_short and BE.isdisjoint(map(cut.folded, cut.sentence(at))) and not behind.endswith("ly"):
        yield cut.altered("negation_added", at, at, f"not {cut.written(at)}")  # antibiotics given.
    yield _past(cut, at)


def _past(cut: Cut, at: int) -> Alteration | None:
    """Make "he did not take" of "he took", and "he's not" of "he's"."""
    base, behind = pairs("past").get(cut.folded(at)), cut.folded(at - 1) if cut.touches(at) else ""
    after = f"did not {base}" if base and behind in usage()["who"] and cut.folded(at - 2) not in usage()["when"] else ""
    if cut.folded(at) in usage()["who"] and cut.written(at)[-2:].lower() in {"'s", "\u2019s"}:
        after = f"{cut.written(at)} not"
    return cut.altered("negation_added", at, at, after) if after else None
