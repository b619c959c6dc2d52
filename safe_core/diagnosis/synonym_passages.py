"""Whether a sentence may say a term in words that mean the same."""

from collections.abc import Iterator
from itertools import islice
from typing import Final

from safe_core.diagnosis.passages import Term
from safe_core.diagnosis.sentence_index import Sentence, Sentences
from safe_core.diagnosis.tokens import Item
from safe_core.diagnosis.word_lists.grammar_words import WEAK_WORDS
from safe_core.diagnosis.word_lists.near_synonyms import SYNONYMS

_EXACT: Final = frozenset(("number", "time", "day"))


def is_paraphrased(term: Term, read: Sentences, most: int) -> bool:
    """Tell whether one of at most `most` sentences has more words of a term than it lacks, some in a synonym."""
    telling = [item for item in term.items if item.role in {"content", "value"} and item.key not in WEAK_WORDS]
    return any(_says_most(telling, sentence) for sentence in islice(_candidates(telling, read), most))


def _candidates(telling: list[Item], read: Sentences) -> Iterator[Sentence]:
    """Give the sentences that have a synonym of a word, perhaps several times."""
    for item in telling:
        for synonym in SYNONYMS.get(item.key, ()):
            yield from read.holding.get(synonym, ())


def _says_most(telling: list[Item], sentence: Sentence) -> bool:
    keys = {item.key for item in sentence.items}
    content = {item.key for item in sentence.items if item.role == "content"}
    lost = [item for item in telling if item.key not in keys and content.isdisjoint(SYNONYMS.get(item.key, ()))]
    return not any(map(is_exact, lost)) and 2 * len(lost) < len(telling)


def is_exact(item: Item) -> bool:
    """Tell whether an item is a number, time, day or numbered grade, which no word can mean; "tomorrow" is none."""
    value = item.value
    return value is not None and (value.type in _EXACT or value.scale == "grade") and value.scale != "near day"
