"""`safe mutate`: which dangerous errors the expectations of test cases would let through."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from consumer.case_sources.cases import case_or_poison
from consumer.dead_letter_reasons import Poison
from consumer.errors import ConfigurationError
from consumer.files.batches import LoadedBatch, beside_lines, key_lines
from consumer.files.selection import chosen_batches
from consumer.terminal import NO_BAR, Bar
from consumer.text import count_of, named, visible
from safe_core import Expectations, Policy, TestCase, is_of_concern, judged_by, prepare
from safe_core.ceiling import NarratedCase
from safe_core.mutation import KINDS, MOST_MUTANTS, Mutant, MutantKind, MutatedCase


class NarratedTest(NamedTuple):
    """A test case with its name; one that stands in several batches is the first one's."""

    batch_id: str
    test_id: str
    case: NarratedCase


@dataclass(frozen=True, slots=True)
class MutatedTest:
    """A test case and its mutants."""

    test: NarratedTest
    mutants: Sequence[Mutant]

    @property
    def survivors(self) -> list[Mutant]:
        """The mutants that still pass."""
        return [each for each in self.mutants if each.survived]

    def documents(self, *, survived: bool) -> Iterator[dict[str, Any]]:
        """Give the entries of its mutants in the JSON; offsets are into the narrative, in code points."""
        for mutant in self.mutants:
            if mutant.survived is survived:
                yield {
                    "test_id": self.test.test_id,
                    "batch_id": self.test.batch_id,
                    "kind": mutant.alteration.kind,
                    "start": mutant.alteration.start,
                    "end": mutant.alteration.end,
                    "before": mutant.before,
                    "after": mutant.alteration.after,
                    "suggestion": mutant.suggestion,
                }


@dataclass(frozen=True, slots=True)
class Mutation:
    """What came of it, in the order of the cases; `without_narrative` counts the cases that have none.

    `about_files` is for the person who asked.
    """

    tests: Sequence[MutatedTest]
    without_narrative: int
    about_files: Sequence[str] = ()

    @property
    def mutants(self) -> list[Mutant]:
        """The mutants of all cases."""
        return [mutant for test in self.tests for mutant in test.mutants]

    @property
    def survived(self) -> int:
        """How many mutants still pass."""
        return sum(mutant.survived for mutant in self.mutants)

    @property
    def by_kind(self) -> Mapping[MutantKind, tuple[int, int]]:
        """How many mutants there are of each kind, and how many of them survived."""
        made = Counter(mutant.alteration.kind for mutant in self.mutants)
        survived = Counter(mutant.alteration.kind for mutant in self.mutants if mutant.survived)
        return {kind: (made[kind], survived[kind]) for kind in KINDS}

    def document(self, *, with_caught: bool) -> dict[str, Any]:
        """Give what `--format json` prints."""
        caught = {"caught": [each for test in self.tests for each in test.documents(survived=False)]}
        return {
            "cases": len(self.tests),
            "without_narrative": self.without_narrative,
            "mutants": len(self.mutants),
            "survived": self.survived,
            "by_kind": {kind: {"mutants": made, "survived": left} for kind, (made, left) in self.by_kind.items()},
            "survivors": [each for test in self.tests for each in test.documents(survived=True)],
            **(caught if with_caught else {}),
        }

    def remarks(self) -> Iterator[str]:
        """What the numbers alone do not tell."""
        yield from self.about_files
        if self.without_narrative:
            cases = count_of(self.without_narrative, "test case")
            yield f"{cases} skipped: no narrative to alter"
        if cut := [each.test.test_id for each in self.tests if len(each.mutants) >= MOST_MUTANTS]:
            yield f"only the first {MOST_MUTANTS} dangerous places were altered in {named(cut)}"


def mutate(policy: Policy, test_dir: Path, batch: str, concern: str | None, bar: Bar = NO_BAR) -> Mutation:
    """Alter each narrative in each dangerous place and score it; raises ConfigurationError."""
    batches = chosen_batches(test_dir, batch)
    tests = _narrated_tests(policy, test_dir, batch, batches.all, concern)
    told = [test for test in tests if test.case.narrative is not None]
    if not told:
        raise ConfigurationError(f"no selected test case in {visible(str(test_dir))} has a narrative to alter")
    mutated: list[MutatedTest] = []
    bar.begins("altering", len(told), sum(len(test.case.narrative or "") for test in told))
    for test in told:
        mutated.append(MutatedTest(test, [*MutatedCase(test.case).mutants()]))
        bar(1)
    return Mutation(mutated, len(tests) - len(told), [*key_lines(batches.all), *beside_lines(batches.beside)])


def _narrated_tests(
    policy: Policy, test_dir: Path, pattern: str, batches: Iterable[LoadedBatch], concern: str | None
) -> list[NarratedTest]:
    """Select test cases, each once, with a narrative if any of its batches tells one."""
    held: dict[tuple[str, Expectations], NarratedTest] = {}
    for batch in batches:
        for test_case in _of_concern(batch, concern):
            key = test_case.test_id, test_case.expectations
            narrative = next(iter(batch.narratives.get(test_case.test_id, ())), None)
            if key not in held or (held[key].case.narrative is None and narrative is not None):
                by = judged_by(test_case, concern_id=concern)
                rules = policy.rules_for(by.metric_id, by.archetype)
                case = NarratedCase(prepare(test_case.expectations), narrative, rules)
                held[key] = NarratedTest(batch.name, test_case.test_id, case)
    if not held:
        of_concern = "" if concern is None else f" of --concern {visible(concern)}"
        of_batch = "" if pattern == "*" else f" that match --batch {visible(pattern)}"
        raise ConfigurationError(f"no test case{of_concern} in the batches of {visible(str(test_dir))}{of_batch}")
    return [*held.values()]


def _of_concern(batch: LoadedBatch, concern: str | None) -> Iterator[TestCase]:
    """Give a batch's test cases of a concern; raises ConfigurationError for one that cannot be used."""
    for test_id, row in batch.rows.items():
        case = case_or_poison(row, visible(str(batch.path)))
        if isinstance(case, Poison):
            raise ConfigurationError(f"{visible(test_id)}: {case.detail}; safe lint shows everything that is wrong")
        if concern is None or is_of_concern(concern, case):
            yield case
