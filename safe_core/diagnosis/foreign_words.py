"""The words in a passage and beside it that are nowhere in the narrative: whoever wrote them said it in other words."""

from collections.abc import Iterator, Sequence
from typing import Final

from safe_core.diagnosis.passages import Match
from safe_core.diagnosis.same_words import is_same_word, spelled_out
from safe_core.diagnosis.sentence_index import ROOT, Sentences
from safe_core.diagnosis.tokens import Item
from safe_core.diagnosis.words import word_set

_PARTING: Final = word_set("and but while then with due because")
_WITHIN: Final = word_set("since under")  # "hoarse since Monday" and "under strain" are one claim
_MOST_COMPARED: Final = 64  # words of the narrative that begin like another one
_BESIDE: Final = 3  # words on each side of a passage that may belong to it


def foreign_words(match: Match, narrative: Sentences) -> list[Item]:
    """Give the words of content in a passage and beside it that the narrative has in no form."""
    items, spelled = match.items, spelled_out(match.term, match.sentence)
    places = [
        *range(match.first, match.last + 1),
        *_beside(items, range(match.first - 1, -1, -1), 1),
        *_beside(items, range(match.last + 1, len(items)), 0),
    ]
    return [items[at] for at in places if items[at] not in spelled and _is_foreign(items[at], narrative)]


def _beside(items: Sequence[Item], places: range, step: int) -> Iterator[int]:
    """Give the places up to the first word that leads to something else."""
    telling = 0
    for at in places:
        telling += items[at].role in {"content", "value"}
        is_elsewhere = items[at].role == "relation" and items[at].folded not in _WITHIN
        leads_away = items[at + step].pause or items[at].folded in _PARTING or is_elsewhere
        if leads_away or telling > _BESIDE:
            return
        yield at


def _is_foreign(item: Item, narrative: Sentences) -> bool:
    if item.role != "content" or item.key in narrative.holding:
        return False
    return not any(
        is_same_word(item.folded, key) for key in narrative.by_root.get(item.folded[:ROOT], ())[:_MOST_COMPARED]
    )
