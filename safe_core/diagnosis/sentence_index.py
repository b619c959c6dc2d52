"""Where words stand in some fields of an output."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from safe_core.diagnosis.denial_scope import may_deny
from safe_core.diagnosis.diagnosis_types import Passage
from safe_core.diagnosis.joined_text import JoinedText
from safe_core.diagnosis.output_texts import Element
from safe_core.diagnosis.tokens import Item, Reading
from safe_core.diagnosis.words import Word, word_set

ROOT = 4
"""Letters that the forms of a word have in common, at least."""
CALLED_OFF = word_set("cancelled canceled abandoned")
"""What is said to be so did not take place."""
_FINDS = 200  # places inside words that are passed over before a term is said not to stand there


@dataclass(frozen=True)
class Sentence:
    """The items of one sentence of an element."""

    number: int  # among all sentences of these fields
    element: Element
    items: list[Item]

    @cached_property
    def may_deny(self) -> bool:
        """Tell whether any word may deny another one; most sentences have none."""
        return any(may_deny(item) or item.folded in CALLED_OFF for item in self.items)


class Sentences:
    """The sentences of some fields, and which of them hold each key; cut when they are first asked for."""

    def __init__(self, elements: Sequence[Element], reading: Reading = list) -> None:
        self.elements = elements
        self._reading = reading
        self._read: dict[Reading, Sentences] = {}

    def read(self, reading: Reading) -> "Sentences":
        """Give the same sentences, with their items read in another way; once for all who ask."""
        if reading not in self._read:
            self._read[reading] = Sentences(self.elements, reading)
        return self._read[reading]

    @cached_property
    def sentences(self) -> list[Sentence]:
        """All sentences, element by element."""
        cut = ((element, items) for element in self.elements for items in element.sentences)
        return [Sentence(number, element, self._reading(items)) for number, (element, items) in enumerate(cut)]

    @cached_property
    def holding(self) -> dict[str, list[Sentence]]:
        """The sentences that hold each key, but for connectives."""
        holding: dict[str, list[Sentence]] = {}
        for sentence in self.sentences:
            for item in sentence.items:
                if item.role != "connective":
                    held = holding.get(item.key)
                    if held is None:
                        holding[item.key] = [sentence]
                    elif held[-1] is not sentence:
                        held.append(sentence)
        return holding

    @cached_property
    def by_root(self) -> dict[str, list[str]]:
        """The same keys by the letters that forms of a word have in common at least."""
        keys: dict[str, list[str]] = {}
        for key in self.holding:
            keys.setdefault(key[:ROOT], []).append(key)
        return keys

    @cached_property
    def capitals(self) -> dict[str, list[tuple[Sentence, int]]]:
        """The places of the words of content that are written in capitals, by their first letter, folded."""
        places: dict[str, list[tuple[Sentence, int]]] = {}
        for sentence in self.sentences:
            for at, item in enumerate(sentence.items):
                if item.role == "content" and sentence.element.text[item.start : item.end].isupper():
                    places.setdefault(item.folded[:1], []).append((sentence, at))
        return places

    def without_form(self, needle: str) -> Passage | None:
        """Find a folded text where a word begins; it may end inside a word, as by the literal rule, not in a number."""
        at = self._folded_text.find(needle) if needle else -1
        if at < 0:  # as for most terms
            return None
        text, begins, words_of = self._folded
        for _ in range(_FINDS):
            if at < 0:
                return None
            end = at + len(needle)
            first = bisect_left(begins, at)
            begins_word = first < len(begins) and begins[first] == at
            if begins_word and not (text[end - 1].isdecimal() and text[end : end + 1].isdecimal()):
                element, word = words_of[first]
                _, last = words_of[bisect_left(begins, end) - 1]
                return element.passage(word.start, last.end)
            at = text.find(needle, at + 1)
        return None

    @cached_property
    def joined(self) -> JoinedText:
        """The texts as the literal rule searches them."""
        return JoinedText(self.elements)

    @cached_property
    def _folded_text(self) -> str:
        return "\n".join(element.folded.text for element in self.elements)

    @cached_property
    def _folded(self) -> tuple[str, list[int], list[tuple[Element, Word]]]:
        """All texts without form, a line for each; where each word begins there; the words."""
        begins: list[int] = []
        at = 0
        for element in self.elements:
            begins.extend(at + begin for begin in element.folded.begins)
            at += len(element.folded.text) + 1
        return self._folded_text, begins, [(element, word) for element in self.elements for word in element.cut]
