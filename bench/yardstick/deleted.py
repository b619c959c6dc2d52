"""Whether a line of the lexicon that is taken away is missed: by a sentence or a labelled case that is kept outside.

The sentences are those of `tests/core/labels/lexicon_sentences.tsv`; for a line that none of them misses, the labelled
cases are asked that have one of its words. Missed means that an answer that was right is no longer.
"""

import random
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Final, NamedTuple

from bench.yardstick import idle, labelled
from bench.yardstick.idle import Answers

_SEED: Final = 20261126
_OF_MUTANTS: Final = frozenset({"turned.tsv", "usage.tsv"})
"""What is put in the place of a word: no text is read by these."""


class Deleted(NamedTuple):
    """A line, and what misses it: a sentence, a labelled case, or nothing."""

    line: str
    missed_by: str


def sentences() -> list[tuple[str, str, str]]:
    """Give a term, a sentence and what it says, for each line of the file."""
    lines = (labelled.LABELS / "lexicon_sentences.tsv").read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines if line and not line.startswith("#")]
    return [(term, text, says) for term, text, says in rows]


def wrong_sentences(_engine: str, positions: Sequence[int]) -> Answers:
    """Give those of the sentences at these positions that are answered wrongly, by position."""
    answer = import_module("safe_core.diagnosis.answers").answer
    asked = sentences()
    return {
        str(at): said for at in positions if (said := str(answer(asked[at][0], [asked[at][1]]).says)) != asked[at][2]
    }


def wrong_cases(engine: str, positions: Sequence[int]) -> Answers:
    """Give those of the labelled cases at these positions whose output's answer or verdict is wrong."""
    cases, said = idle.every_case(), idle.answers(engine, positions)
    wrong: Answers = {}
    for at, one in said.items():
        output_says, _, verdict = one.split("/")
        case = cases[int(at)]
        if (case.output_says and output_says not in case.output_says) or verdict not in (case.verdicts or {verdict}):
            wrong[at] = one
    return wrong


def deleted(engine: str, many: int, seed: int = _SEED) -> Iterator[Deleted]:
    """Take lines that chance chooses away, one at a time."""
    lines = [line for line in idle.lines("") if line[0].name not in _OF_MUTANTS]
    everywhere = range(len(sentences()))
    before = wrong_sentences(engine, everywhere)
    cases = idle.every_case()
    prefixes = [idle.prefixes(f"{each.term} {each.narrative} {each.output}") for each in cases]
    for path, number, line in random.Random(seed).sample(lines, many):
        name, take_away = f"{path.name}:{number + 1} {line}", idle.without_line(path, number)
        now = idle.in_a_fork(engine, everywhere, take_away, "bench.yardstick.deleted", "wrong_sentences")
        if now.keys() - before.keys():
            yield Deleted(name, "a sentence")
            continue
        where = [at for at in range(len(cases)) if prefixes[at] & idle.prefixes(line)]
        was = wrong_cases(engine, where)
        now = idle.in_a_fork(engine, where, take_away, "bench.yardstick.deleted", "wrong_cases")
        yield Deleted(name, "a labelled case" if now.keys() - was.keys() else "")
