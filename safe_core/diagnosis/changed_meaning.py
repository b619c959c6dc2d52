"""Whether a passage with all words of a term may mean something else: "planned" for "done", "from A to B" turned round.

It decides nothing; where it may, a person has to look.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, dropwhile, islice, takewhile
from typing import Final

from safe_core.diagnosis.accounts import PEOPLE
from safe_core.diagnosis.passages import Match
from safe_core.diagnosis.tokens import Item
from safe_core.diagnosis.told_words import At
from safe_core.diagnosis.word_lists.denial_words import NOT_WORDS
from safe_core.diagnosis.word_lists.grammar_words import WEAK_WORDS
from safe_core.diagnosis.words import by_spelling, word_set

_TURNING: Final = by_spelling(
    {
        "from": "from",
        "to": "to into onto",
        "by": "by",
        "before": "before",
        "after": "after",
        "than": "than",
        "because": "due because owing causing caused",
    }
)
"""Words whose meaning depends on what follows them, by what they say."""

_BEFORE_TO: Final = word_set("due owing")  # "delayed due to traffic" is "delayed by traffic"
_AGAINST: Final = {"from": ("to", "by"), "to": ("from", "by"), "by": ("from", "to")}
"""Words that make another claim of the same number or thing: "reduced by 10 kg", "reduced to 10 kg"."""

_CHANGING: Final = by_spelling(
    {
        "not so": "plan plans planned planning schedule scheduled should would will must tomorrow await awaits "
        "awaited awaiting pending intend intended intends instead",
        "as good as": "nearly almost narrowly",
        "former": "old previous previously former formerly past healed resolved historical longer ex",
        "another": "family further another",
        "prevented": "prevented averted avoided",
        "in part": "partly poorly hardly barely scarcely intermittently occasionally sometimes",
        "proposed": "recommended suggested proposed offered",
        "off": "off",
        "not all": "except apart",
        "on record": "documented recorded",
        "new": "new newly",
    }
)
"""The words that change what a claim says, by what they make of it: one of them on one side only is another claim."""
_CONTRASTING: Final = word_set("while whilst whereas but")
_WAS: Final = word_set("was were had used")
_WILL: Final = word_set("will would")
_SPEAKING_OF: Final = word_set(
    "about regarding consider considers considered considering discuss discussed suggest suggests suggested recommend "
    "recommends recommended propose proposes proposed advise advised"
)
_WAS_DONE: Final = word_set("was were been")
_DONE: Final = word_set("done performed carried taken sent checked measured made obtained")
_UNDOING: Final = NOT_WORDS | {"no"}
_SUPPOSING: Final = word_set("if unless")
_BESIDE: Final = 3  # words on each side of a passage that may change what it says


def may_mean_otherwise(pieces: Sequence[Match], told: Sequence[At]) -> bool:
    """Tell whether the passages that hold a term together may say something else than the narrative with its words."""
    return _is_changed(pieces, told) or any(
        _is_turned(match)
        or _is_parted(match)
        or _are_people_turned(match)
        or _is_denied_otherwise(match, told)
        or _is_only_proposed(match, told)
        or _has_result(match)
        for match in pieces
    )


def _is_changed(pieces: Sequence[Match], told: Sequence[At]) -> bool:
    """Tell whether only the term, or only a passage and not the narrative, makes something else of the claim."""
    if not pieces:
        return False
    term = pieces[0].term.items
    expected = {change for change, _ in _changes(term, range(len(term)))}
    found = [*chain.from_iterable(_changes(match.items, _near(match)) for match in pieces)]
    if not expected <= {change for change, _ in found}:
        return True
    if any(item.folded in _WAS for item in term):
        expected.add("former")
    if any(item.folded in _SUPPOSING for item in term):  # "to be called if" is "call if"
        expected.add("not so")
    own = {item.key for item in (*term, *(item for at in told[:1] for item in at.sentence.items))} if found else set()
    return any(change not in expected and key not in own for change, key in found)


def _is_turned(match: Match) -> bool:
    """Tell whether another word of the term follows a word such as "from" or "by"."""
    kinds = {_TURNING[item.folded] for item in match.term.items if item.folded in _TURNING}
    return any(_follows_otherwise(match, kind) for kind in kinds)


def _follows_otherwise(match: Match, kind: str) -> bool:
    expected, found = _following(match.term.items, kind), _following(match.window, kind)
    if not expected.isdisjoint(_named(match.window, kind)):  # "from the cord of a gown", "from a gown cord"
        return False
    against = frozenset[str]().union(*(_following(match.window, other) for other in _AGAINST.get(kind, ())))
    if expected & against and expected.isdisjoint(found):
        return True
    own = {item.key for item in match.term.items}
    return bool(found) and expected.isdisjoint(found) and found <= own and expected <= match.keys.keys()


def _following(items: Sequence[Item], kind: str) -> set[str]:
    """Give the next word that tells something after each word of a kind."""
    following = (next(filter(_names, items[at + 1 :]), None) for at in _places(items, kind))
    return {item.key for item in following if item}


def _places(items: Sequence[Item], kind: str) -> list[int]:
    return [
        at
        for at, item in enumerate(items)
        if _TURNING.get(item.folded) == kind and not (at and items[at - 1].folded in _BEFORE_TO)
    ]


def _named(items: Sequence[Item], kind: str) -> set[str]:
    """Give all words of the things that are named after each word of a kind."""
    runs = (
        takewhile(_names, dropwhile(lambda item: item.role == "connective", items[at + 1 :]))
        for at in _places(items, kind)
    )
    return {item.key for run in runs for item in run}


def _names(item: Item) -> bool:
    """Tell whether a word tells something by itself, unlike the "left" of "the left leg"."""
    return item.role == "content" or (item.value is not None and item.value.type != "side")


def _is_parted(match: Match) -> bool:
    """Tell whether a passage says a part of a term of one thing, and the rest of another: "… while his wife …"."""
    own = {item.folded for item in match.term.items}
    near = [match.items[at] for at in _near(match)]
    if all(item.role != "content" or item.key in WEAK_WORDS or item.key in match.term.core for item in near):
        return False
    core = [item.key in match.term.core and item.role == "content" for item in match.window]
    return any(
        item.folded in _CONTRASTING and item.folded not in own and any(core[:at]) and any(core[at:])
        for at, item in enumerate(match.window)
    )


def _are_people_turned(match: Match) -> bool:
    """Tell whether two people changed places, in two clauses that are both active or both passive."""
    expected, found = _people(match.term.items), _people(match.window)
    are_both = [any(item.folded == "by" for item in items) for items in (match.term.items, match.window)]
    return len(expected) == 2 and found == expected[::-1] and are_both[0] == are_both[1]


def _people(items: Sequence[Item]) -> list[str]:
    return [item.key for item in items if item.folded in PEOPLE]


def _is_denied_otherwise(match: Match, told: Sequence[At]) -> bool:
    """Tell whether a passage denies one word that the narrative claims, and claims another one that it denies."""
    if not (match.sentence.may_deny and any(at.sentence.may_deny for at in told)):
        return False
    claims = {at.item.key: at.is_denied() for at in told if at.item.role == "content"}
    turned = {
        claims[item.key]
        for place, item in enumerate(match.window, match.first)
        if item.key in claims and claims[item.key] != At(match.sentence, place).is_denied()
    }
    return len(turned) > 1


def _is_only_proposed(match: Match, told: Sequence[At]) -> bool:
    """Tell whether a passage says that something was done that the narrative only speaks of: "about reducing it"."""
    proposed = {at.item.key for at in told if _follows(at, "ing", _SPEAKING_OF)}
    if not proposed:
        return False
    places = (At(match.sentence, at) for at in range(len(match.items)) if match.items[at].key in proposed)
    return any(_follows(at, "ed", _WAS_DONE) for at in places)


def _has_result(match: Match) -> bool:
    """Tell whether a passage says that a test was negative which, to the term, was not done."""
    own = {item.folded for item in match.term.items}
    is_undone = not own.isdisjoint(_DONE) and not own.isdisjoint(_UNDOING)
    return is_undone and "negative" not in own and any(match.items[at].folded == "negative" for at in _near(match))


def _follows(at: At, ending: str, before: Collection[str]) -> bool:
    """Tell whether a word that is written with an ending follows one of some words at once."""
    written = at.sentence.element.text[at.item.start : at.item.end].lower()
    return at.at > 0 and written.endswith(ending) and at.sentence.items[at.at - 1].folded in before


def _changes(items: Sequence[Item], places: Iterable[int]) -> Iterator[tuple[str, str]]:
    """Give what the words at some places make of a claim, and their keys."""
    for at in places:
        if change := _change(items, at):
            yield change, items[at].key


def _change(items: Sequence[Item], at: int) -> str | None:
    """Say what a word makes of a claim; "had to be", "30 years old" and "previously 131" change nothing."""
    folded = items[at].folded
    if folded == "be":  # "to be given"
        is_due = at > 0 and items[at - 1].folded == "to" and (at == 1 or items[at - 2].folded != "had")
        return "not so" if is_due else None
    change = _CHANGING.get(folded)
    if change == "on record":  # what is not recorded may still be so
        return change if any(item.role == "negation" for item in items) else None
    if change != "former":
        return change
    beside = items[at - 1 : at] if folded == "old" else items[at + 1 : at + 2]
    return None if any(item.value for item in beside) else change


def _near(match: Match) -> Iterator[int]:
    """Give the places of a passage and of the words beside it in its clause."""
    items = match.items
    before = takewhile(lambda at: not items[at + 1].pause, range(match.first - 1, -1, -1))
    after = takewhile(lambda at: not _begins_clause(items, at), range(match.last + 1, len(items)))
    after = takewhile(lambda at: not _is_instead_of(items, at), after)  # "a metal stent instead of a plastic one"
    return chain(islice(before, _BESIDE), range(match.first, match.last + 1), islice(after, _BESIDE))


def _is_instead_of(items: Sequence[Item], at: int) -> bool:
    return items[at].folded == "instead" and at + 1 < len(items) and items[at + 1].folded == "of"


def _begins_clause(items: Sequence[Item], at: int) -> bool:
    """Tell whether something else is told from a place on: after a comma, or as in "… and will be seen"."""
    following = items[at + 1].folded if at + 1 < len(items) else ""
    return items[at].pause or (items[at].folded == "and" and following in _WILL)
