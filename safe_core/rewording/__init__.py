"""How an expectation could ask for the same in the narrative's own words (contract.md, "Proposals")."""

from safe_core.rewording.claims import answers_how_much
from safe_core.rewording.narrative import Narrative
from safe_core.rewording.phrases import Stretch

__all__ = ["Narrative", "Stretch", "answers_how_much"]
