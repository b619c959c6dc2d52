"""How often SAFE and negspacy tell a denied term from one that is not denied, on the same planted sentences.

python -m venv /tmp/negation && /tmp/negation/bin/pip install spacy negspacy==1.1.0
PYTHONPATH=. /tmp/negation/bin/python -m bench.negation            both, on the planted sentences
PYTHONPATH=. /tmp/negation/bin/python -m bench.negation --wrong    also the sentences that each gets wrong

SAFE itself needs neither library. No language model is downloaded: an entity ruler marks the term in each sentence.
Only sentences without a narrative are compared, because negspacy knows none; nor is it asked about other values.
"""

import argparse
import importlib
import sys
from collections.abc import Callable, Sequence
from typing import Any

from tests.core.planted_doubtful import PlantedHit, planted_hits

INSTALL = "bench.negation compares with negspacy, which is not installed here: pip install spacy negspacy==1.1.0"
Says = Callable[[PlantedHit], bool]


def compared() -> list[PlantedHit]:
    """Give the planted sentences about denials that need no narrative."""
    return [hit for hit in planted_hits() if hit.family == "negated" and hit.narrative is None]


def safe_says(hit: PlantedHit) -> bool:
    return hit.kind_said() == "negated"


class Negspacy:
    """negspacy with its clinical list of words, on a blank English pipeline."""

    def __init__(self) -> None:
        spacy = importlib.import_module("spacy")
        termsets = importlib.import_module("negspacy.termsets")
        importlib.import_module("negspacy.negation")
        self._nlp: Any = spacy.blank("en")
        self._nlp.add_pipe("sentencizer")
        self._ruler: Any = self._nlp.add_pipe("entity_ruler", config={"phrase_matcher_attr": "LOWER"})
        words = termsets.termset("en_clinical").get_patterns()
        self._nlp.add_pipe("negex", config={"neg_termset": words, "ent_types": ["TERM"]})

    def __call__(self, hit: PlantedHit) -> bool:
        """Tell whether every occurrence of the term that is a whole word is denied; none is no denial."""
        self._ruler.clear()
        self._ruler.add_patterns([{"label": "TERM", "pattern": hit.term}])
        found = [entity._.negex for entity in self._nlp(hit.text).ents]
        return bool(found) and all(found)


def report(name: str, says: Says, hits: Sequence[PlantedHit], *, show_wrong: bool) -> None:
    """Print how many sentences are told right, all and by half and by sort."""
    wrong = [hit for hit in hits if says(hit) != (hit.kind == "negated")]
    print(f"\n{name}: {len(hits) - len(wrong)} of {len(hits)} right, {1 - len(wrong) / len(hits):.1%}")
    for group in ("tune", "final", *dict.fromkeys(hit.sort for hit in hits)):
        members = [hit for hit in hits if group in {hit.half, hit.sort}]
        right = sum(hit not in wrong for hit in members)
        print(f"  {group:20} {right:4} of {len(members):4} {right / len(members):7.1%}")
    for hit in wrong if show_wrong else ():
        print(f"    denied: {hit.kind == 'negated'!s:5} {hit.term!r} in {hit.text!r}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wrong", action="store_true", help="print the sentences that each gets wrong")
    show_wrong = parser.parse_args().wrong
    try:
        negspacy = Negspacy()
    except ModuleNotFoundError:
        sys.exit(INSTALL)
    hits = compared()
    report("SAFE", safe_says, hits, show_wrong=show_wrong)
    report("negspacy", negspacy, hits, show_wrong=show_wrong)


if __name__ == "__main__":
    main()
