"""Alterations that take a denial out of a narrative, or put one in, where grammar decides how (the rest: `turned`)."""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from safe_core.mutation.alteration import Alteration, Cut, article_of, usage
from safe_core.mutation.turned import has_denied_subject, pairs

_Rule = Callable[[Cut, int], Alteration | None]
_COUNTED_S: Final = ("ss", "us", "is")
_NO_PLURAL: Final = ("ness", "ing", "emia", "aemia")
_LONGEST_PHRASE: Final = 6
_LONGEST_SUBJECT: Final = 12
_HYPHENS: Final = frozenset(("-", "\u2010", "\u2011"))


def negations(cut: Cut) -> Iterator[Alteration]:
    """Take out each denial of a narrative, and put one before each claim that has none."""
    for at in range(len(cut.words)):
        removed = next((altered for rule in _REMOVED_BY if (altered := rule(cut, at))), None)
        yield from (altered for altered in (removed, _added(cut, at)) if altered)


# --- taken out --------------------------------------------------------------------------------------------------------


def _not(cut: Cut, at: int) -> Alteration | None:
    """Leave out "not"; "not given until 18:00" says when."""
    is_late = "until" in map(cut.folded, range(at + 1, at + 2 * _LONGEST_PHRASE))
    is_denial = cut.folded(at) in {"not", "never"} and cut.denies(at) and cut.folded(at + 1) != "yet"
    return cut.altered("negation_removed", at, at, "") if is_denial and not is_late else None


def _not_short(cut: Cut, at: int) -> Alteration | None:
    """Make "has" of "hasn't"; the table has "can't" and "won't"."""
    is_in_table = cut.folded(at) in {"cant", "wont", "cannot"}
    rest = cut.written(at)[:-3] if cut.is_short_not(at) and cut.folded(at + 2) != "until" else ""
    return cut.altered("negation_removed", at, at, rest) if rest and not is_in_table else None


def _no(cut: Cut, at: int) -> Alteration | None:
    """Make "a fracture" of "no fracture", "signs" of "no signs", and "yes" of "no"."""
    following = cut.folded(at + 1)
    if cut.folded(at) != "no" or not cut.denies(at):
        return None
    if not cut.touches(at + 1):
        return cut.altered("negation_removed", at, at, "yes")
    if following in usage()["no number"] | {"one", "longer"} or following[:1].isdecimal():
        return None
    affirmed = "" if _needs_no_article(cut, at) else article_of(following)
    return cut.altered("negation_removed", at, at, affirmed)


def _needs_no_article(cut: Cut, at: int) -> bool:
    """Tell whether what "no" denies can stand alone: a plural, or what is not counted."""
    last = at + 1
    while last - at < _LONGEST_PHRASE and cut.touches(last + 1) and cut.folded(last + 1) not in usage()["ends phrase"]:
        last += 1
    head = cut.folded(last)
    is_plural = head.endswith("s") and not head.endswith(_COUNTED_S)
    return is_plural or head in usage()["uncounted"] or head.endswith(_NO_PLURAL)


def _neither(cut: Cut, at: int) -> Alteration | None:
    """Make "both … and" of "neither … nor"."""
    for other in range(at + 2, min(len(cut.words), at + 12) if cut.folded(at) == "neither" else 0):
        if cut.folded(other) == "nor":
            between = cut.text[cut.words[at].end : cut.words[other].start]
            return cut.altered("negation_removed", at, other, f"both{between}and")
    return None


def _non(cut: Cut, at: int) -> Alteration | None:
    """Make "smoker" of "nonsmoker" and "non-smoker"."""
    folded = cut.folded(at)
    if folded == "non" and cut.between(at + 1) in _HYPHENS:
        return cut.altered("negation_removed", at, at + 1, cut.written(at + 1))
    rest = folded.removeprefix("non")
    is_known = folded.startswith("non") and rest in usage()["non"]
    return cut.altered("negation_removed", at, at, rest) if is_known else None


_REMOVED_BY: Final[tuple[_Rule, ...]] = (_not, _not_short, _no, _neither, _non)

# --- put in -----------------------------------------------------------------------------------------------------------


class _Claim(NamedTuple):
    """Words that claim something, by their class in usage.tsv, and what denies it ("{}" is the word).

    What stands before and behind them is of a class, or of none; an article behind them goes.
    """

    words: str
    after: str
    behind: str = ""
    not_behind: str = ""
    before: str = ""
    not_before: str = ""
    takes_article: bool = False
    ends: bool = False  # stands at the end of a clause


_CLAIMS: Final = (
    _Claim("be", "{} no", behind="there", takes_article=True),  # there were no signs
    _Claim("be", "{} not", not_behind="no subject", not_before="not denied"),  # was not stable
    _Claim("can", "cannot", not_before="not denied"),
    _Claim("modal", "{} not", not_before="not denied"),
    _Claim("have", "{} not", before="participle", not_before="not denied"),
    _Claim("finding verb", "{} no", not_behind="auxiliary", not_before="no object", takes_article=True),
    _Claim("with", "without", not_behind="leads to with", not_before="no finding"),
    _Claim("given", "not {}", not_behind="ends phrase", ends=True),  # antibiotics not given.
)


def _added(cut: Cut, at: int) -> Alteration | None:
    for claim in _CLAIMS:
        if cut.folded(at) in usage()[claim.words] and _fits(cut, at, claim):
            has_article = claim.takes_article and cut.folded(at + 1) in usage()["with article"]
            after = claim.after.format(cut.written(at))
            return cut.altered("negation_added", at, at + has_article, after)
    return _past(cut, at)


def _fits(cut: Cut, at: int, claim: _Claim) -> bool:
    """Tell whether words claim something here, which is not denied."""
    words, behind, before = usage(), cut.folded(at - 1), cut.folded(at + 1)
    if behind in words.get(claim.not_behind, ()) or before in words.get(claim.not_before, ()):
        return False
    if claim.behind and behind not in words[claim.behind]:
        return False
    if claim.before and before not in words[claim.before] and not before.endswith("ed"):
        return False
    if claim.ends:
        subject = [cut.folded(back) for back in range(at - _LONGEST_SUBJECT, at)]
        is_short = words["auxiliary"].isdisjoint(subject) and cut.touches(at) and not behind.endswith("ly")
        return is_short and not cut.touches(at + 1) and not cut.denies(at - 1)
    is_told = before in words["telling"] and any(cut.folded(back) in words["told"] for back in range(at - 3, at))
    is_no_noun = claim.takes_article and before.endswith("ly")
    is_free = claim.takes_article or claim.words == "with" or not has_denied_subject(cut, at)
    return cut.touches(at + 1) and not is_told and not is_no_noun and is_free and _is_affirmed(cut, at)


def _is_affirmed(cut: Cut, at: int) -> bool:
    """Tell whether no denial stands within the next words, as far as the next pause."""
    for ahead in range(at + 1, at + 4):
        if not cut.touches(ahead):
            break
        if cut.denies(ahead):
            return False
    return not cut.denies(at)


def _past(cut: Cut, at: int) -> Alteration | None:
    """Make "he did not take" of "he took", and "he's not" of "he's"."""
    base, behind = pairs("past").get(cut.folded(at)), cut.folded(at - 1) if cut.touches(at) else ""
    after = f"did not {base}" if base and behind in usage()["who"] and cut.folded(at - 2) not in usage()["when"] else ""
    if cut.folded(at) in usage()["contracted"] and cut.written(at)[-2:].lower() in {"'s", "\u2019s"}:
        after = f"{cut.written(at)} not"
    return cut.altered("negation_added", at, at, after) if after and _is_affirmed(cut, at) else None
