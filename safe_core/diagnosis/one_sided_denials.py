"""Where a word is denied in the narrative or in the output alone, and both may be true all the same."""

from collections.abc import Sequence
from typing import Final

from safe_core.diagnosis.tokens import Item
from safe_core.diagnosis.told_words import At
from safe_core.diagnosis.word_lists.denial_words import FAILURES
from safe_core.diagnosis.word_lists.grammar_words import WEAK_WORDS

_ADJECTIVES: Final = ("al", "ic", "ary", "ous", "ive", "ular")
_NEAR: Final = 3  # words before another in which "last" belongs to it


def agrees_all_the_same(told: At, found: At, clause: Sequence[At], *, denied: bool) -> bool:
    """Tell whether a word of the narrative and one of the output agree though only one is denied.

    `denied` says whether it is the narrative's; `clause` is what the term asks for of its clause.
    """
    if denied:
        return _denies_too(found, clause) or _is_of_another_noun(told, found)
    return _is_since(told, found) or _is_attribute(told, found)


def _denies_too(found: At, clause: Sequence[At]) -> bool:
    """Tell whether a sentence denies another word of a denied clause, or says of this one that it failed.

    "Images could not be sent, so the transfer was delayed" is "images could not be transferred".
    """
    after = _noun_after(found)
    if after is not None and after.folded in FAILURES:
        return True
    denied = {at.item.key for at in clause if at.item.role == "content" and at.item.key != found.item.key}
    places = (At(found.sentence, number) for number, item in enumerate(found.sentence.items) if item.key in denied)
    return any(at.item.key not in WEAK_WORDS and (at.is_denied() or at.is_beside_denial()) for at in places)


def _is_of_another_noun(told: At, found: At) -> bool:
    """Tell whether a denied adjective stands before another noun: "no neurological deficit", "… recovery"."""
    if not told.sentence.element.text[told.item.start : told.item.end].lower().endswith(_ADJECTIVES):
        return False
    denied, claimed = _noun_after(told), _noun_after(found)
    if denied is None or claimed is None:
        return False
    return denied.key != claimed.key and denied.key not in found.company()


def _is_attribute(told: At, found: At) -> bool:
    """Tell whether a word only describes a thing, and is denied as what is done: "repeat sample", "not repeated"."""
    is_in_another_form = told.item.folded != found.item.folded and not told.item.folded.endswith("ing")
    return is_in_another_form and _noun_after(told) is not None and _noun_after(found) is None


def _is_since(told: At, found: At) -> bool:
    """Tell whether a word was last so, and has not been so since: "last updated in May", "not updated since May"."""
    is_last = any(item.folded == "last" for item in told.sentence.items[max(0, told.at - _NEAR) : told.at])
    return is_last and any(item.folded == "since" for item in found.sentence.items[found.at :])


def _noun_after(at: At) -> Item | None:
    after = at.sentence.items[at.at + 1 : at.at + 2]
    return after[0] if after and after[0].role == "content" and not after[0].pause else None
