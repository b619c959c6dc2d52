"""Which words say that something is not so, or not sure to be so."""

from collections.abc import Sequence

from safe_core.diagnosis.values.number_words import NUMBER_WORDS
from safe_core.diagnosis.values.unit_table import UNITS
from safe_core.diagnosis.word_lists.denial_words import CERTAINTY_CLASSES, DENIALS, NEGATIONS, NOT_WORDS, RULINGS
from safe_core.diagnosis.word_lists.grammar_words import CONNECTIVES
from safe_core.diagnosis.words import Word, word_set

_SIGNS = word_set("sign signs symptom symptoms feature features evidence picture finding findings")
_CHANGES = word_set("change changes appearance appearances")
_AFTER_CHANGE = word_set("consistent compatible suggesting suggestive concerning indicating indicative")
# words that doubt only before certain others: "consistent with", "could be", "about 3"
_DOUBTS_BEFORE = {
    "consistent": word_set("with"),
    "compatible": word_set("with"),
    "concern": word_set("for"),
    "concerns": word_set("for"),
    "concerning": word_set("for"),
    "risk": word_set("of for"),
    "could": word_set("be have represent indicate suggest reflect"),
}
_ONLY_BEFORE_NUMBERS = word_set("about around nearly almost roughly")
_UNNAMED = CONNECTIVES | NEGATIONS | word_set("early late first clinical physical other further possible")
_CONCERNS = word_set("concern concerns")
_MODALS = word_set("may might")
_WORRIED = word_set("expressed voiced family parent parents mother father patient relatives")
_OUTSIDE = word_set("reach range date sight view stock use service control danger proportion")
_UNTIL_WITHIN = 10  # words between "not" and the "until" that takes it back


def may_negate(folded: str) -> bool:
    """Tell whether a word negates among some neighbours."""
    return folded in RULINGS or folded in NEGATIONS or folded == "out"


def may_claim(folded: str) -> bool:
    """Tell whether a word says a doubt or a certainty among some neighbours."""
    return folded in _MAY_CLAIM


def is_negation(cut: Sequence[Word], at: int) -> bool:
    """Tell whether a word negates.

    "Not … until" says when something was, "not without" that there was some, "not only" that there was more, "no. 4"
    which one it was: none of them is a negation. What is "out of reach" is not within reach.
    """
    folded, after = cut[at].folded, _folded(cut, at + 1)
    if folded not in NEGATIONS:
        if folded in RULINGS:
            return after == "out"
        return _is_outside(cut, at) and not (at and _folded(cut, at - 1) in NOT_WORDS)
    if folded == "no":
        return not (after[:1].isdecimal() and _folded(cut, at + 2) not in UNITS)
    if folded in DENIALS and at and _folded(cut, at - 1) in NOT_WORDS:
        return False
    if folded in NOT_WORDS and (after in DENIALS or after == "only" or _is_outside(cut, at + 1)):
        return False
    return folded not in NOT_WORDS or not _until_follows(cut, at)


def _is_outside(cut: Sequence[Word], at: int) -> bool:
    """Tell whether a word begins "out of reach" or the like, perhaps "out of the reach"."""
    if _folded(cut, at) != "out" or _folded(cut, at + 1) != "of":
        return False
    return not _OUTSIDE.isdisjoint((_folded(cut, at + 2), _folded(cut, at + 3)))


_MAY_CLAIM = frozenset(("early", *_SIGNS, *_CHANGES, *CERTAINTY_CLASSES))


def certainty_at(cut: Sequence[Word], at: int) -> str | None:
    """Give the class of doubt or certainty that a word says, if it says one: "suspected", "signs of", "developing"."""
    folded = cut[at].folded
    if folded not in _MAY_CLAIM:  # as most words
        return None
    after = _folded(cut, at + 1)
    if folded == "early" and after in _SIGNS:
        return certainty_at(cut, at + 1)
    if folded in _SIGNS or folded in _CHANGES:
        leads = (after in _AFTER_CHANGE and not _is_named(cut, at)) or (after == "of" and folded in _SIGNS)
        return "sign" if leads and _touch(cut, at) else None
    return None if _says_something_else(cut, at) else CERTAINTY_CLASSES.get(folded)


def _is_named(cut: Sequence[Word], at: int) -> bool:
    """Tell whether a sign has a name and so is a finding itself: "a pucker sign indicating …", not "clinical signs"."""
    return cut[at].folded == "sign" and at > 0 and _touch(cut, at - 1) and cut[at - 1].folded not in _UNNAMED


def _says_something_else(cut: Sequence[Word], at: int) -> bool:
    """Tell whether a word that may doubt does not: "could walk", "about the wait", "family expressed concern"."""
    folded, after = cut[at].folded, _folded(cut, at + 1)
    if folded in _CONCERNS and any(word.folded in _WORRIED for word in cut[max(0, at - 2) : at]):
        return True
    if folded in _DOUBTS_BEFORE:
        return after not in _DOUBTS_BEFORE[folded]
    if folded in _ONLY_BEFORE_NUMBERS:
        return not (after[:1].isdecimal() or after in NUMBER_WORDS)
    return folded in _MODALS and (after[:1].isdecimal() or after in NEGATIONS)


def _until_follows(cut: Sequence[Word], at: int) -> bool:
    """Tell whether "until" follows within the same clause."""
    for place in range(at, min(len(cut), at + _UNTIL_WITHIN) - 1):
        if not _touch(cut, place):
            return False
        if cut[place + 1].folded == "until":
            return True
    return False


def _touch(cut: Sequence[Word], at: int) -> bool:
    """Tell whether no more than one space, so no comma and no full stop, parts a word from the next."""
    return cut[at + 1].start - cut[at].end <= 1


def _folded(cut: Sequence[Word], at: int) -> str:
    return cut[at].folded if at < len(cut) else ""
