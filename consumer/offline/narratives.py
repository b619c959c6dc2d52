"""The narratives of the selected test cases (contract.md, "The right patient")."""

from collections.abc import Mapping, Sequence

from consumer.files.batches import LoadedBatch, narratives_of
from consumer.offline.selection import Selection
from safe_core import Expectations, Output
from safe_core.diagnosis import Passage, diagnose


def nearest_in(narrative: str, terms: Sequence[str]) -> Mapping[str, Passage]:
    """Find the places where a narrative has terms, or comes closest to them, if it has anything like them."""
    asked = diagnose(Expectations(tuple(terms), (), ()), Output((narrative,), "", ()), None)
    near = {miss.term: miss.passage for miss in asked.misses if miss.kind != "absent" and miss.passage is not None}
    return near | {found.term: found.passage for found in asked.occurrences}


class Narratives:
    """What the holders of each selected case tell; they are read once, since scoring itself does not need them."""

    def __init__(self, selection: Selection) -> None:
        self._selection = selection
        self._told = {batch.name: narratives_of(batch) for batch in selection.batches}

    def of(self, test_id: str, answered: LoadedBatch | None = None) -> str | None:
        """Give the narrative of a case: of the batch that was answered, else of the first that tells any.

        Batches that repeat a case may tell its story in other words.
        """
        holders = self._selection.cases[test_id].batches
        asked = (answered or holders[0], *holders)
        narratives = (self._told[batch.name].get(test_id) for batch in asked)
        return next((text for text in narratives if text is not None), None)
