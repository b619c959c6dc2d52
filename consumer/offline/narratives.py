"""What test cases tell in words, and which of these texts an output is explained by (contract.md, "The right patient").

Batches that repeat a case may tell its story in other words, and so may one file that has a test_id twice. An output is
explained by the narrative that it was made from. Where that is not known, or is none of them, the batch that it answers
decides, and then the first one that tells anything.
"""

from collections.abc import Iterable, Iterator

from consumer.files.batches import LoadedBatch, all_narratives_of
from consumer.files.outputs import Entry
from consumer.offline.selection import Answers, Selection
from safe_core.narrative_digests import digest_of_narrative

_Told = dict[str, list[tuple[str | None, str]]]
"""By test_id: the digest and the text of each narrative."""


def with_digest(narratives: Iterable[str], digest: str | None) -> str | None:
    """Give the text with a digest; None if it is none of them, or only its digest is known."""
    return next((text for text in narratives if digest_of_narrative(text) == digest), None)


class Narratives:
    """The narratives of selected test cases; raises ConfigurationError if a batch file has changed."""

    def __init__(self, selection: Selection, answers: Answers) -> None:
        self._selection, self._answers = selection, answers
        self._told = {batch.name: _told(batch) for batch in selection.batches}

    def of_case(self, test_id: str, rank: int = 0) -> str | None:
        """Give the narrative of a case: of its batch with this rank if that tells any, else of the first that does."""
        selected = self._selection.cases[test_id]
        answered = selected.batches[rank : rank + 1]
        told = self._of(test_id, (*answered, *selected.batches))
        return next((text for digest, text in told if digest in selected.narratives), None)

    def of_output(self, entry: Entry, rank: int) -> str | None:
        """Give the narrative that an entry of this rank was made from, else that of its case.

        None also where only a digest is known of the narrative that it was made from: no other text may judge it.
        """
        if entry.narrative not in self._answers.narratives(entry, rank):
            return self.of_case(entry.test_id, rank)
        holders = (*self._selection.cases[entry.test_id].batches, *self._answers.unselected_holders(entry, rank))
        told = self._of(entry.test_id, holders)
        return next((text for digest, text in told if digest == entry.narrative), None)

    def _of(self, test_id: str, batches: Iterable[LoadedBatch]) -> Iterator[tuple[str | None, str]]:
        for batch in batches:
            if batch.name not in self._told:
                self._told[batch.name] = _told(batch)
            yield from self._told[batch.name].get(test_id, ())


def _told(batch: LoadedBatch) -> _Told:
    return {
        test_id: [(digest_of_narrative(text), text) for text in texts]
        for test_id, texts in all_narratives_of(batch).items()
    }
