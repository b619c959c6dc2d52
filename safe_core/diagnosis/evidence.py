"""What is known of one missed term, worked out when a rule asks for it."""

from dataclasses import dataclass
from functools import cached_property

from safe_core.diagnosis.items import Item
from safe_core.diagnosis.model import Passage
from safe_core.diagnosis.passages import Match, Term, nearest
from safe_core.diagnosis.places import Places


@dataclass(frozen=True)
class Evidence:
    """A missed term, the sentences that its criterion reads, and those that it does not."""

    term: Term
    read: Places
    unread: Places
    most_sentences: int

    @cached_property
    def matches(self) -> list[Match]:
        """The passages that the criterion reads, nearest first."""
        return nearest(self.term, self.read, self.most_sentences)

    @cached_property
    def unread_matches(self) -> list[Match]:
        """The passages that the criterion does not read, nearest first."""
        return nearest(self.term, self.unread, self.most_sentences)

    def stands_anywhere(self, expected: Item) -> bool:
        """Tell whether a value of the term stands, as a value of its type, anywhere in what the criterion reads."""
        return any(
            item.key == expected.key and item.value and expected.value and item.value.type == expected.value.type
            for sentence in self.read.holding.get(expected.key, ())
            for item in sentence.items
        )


@dataclass(frozen=True, slots=True)
class Finding:
    """The passage that a rule points at, and the items of the term that it lacks or says otherwise."""

    passage: Passage | None
    absent: tuple[Item, ...] = ()
