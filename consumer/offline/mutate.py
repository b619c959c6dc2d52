"""`safe mutate`: which dangerous errors the expectations of test cases would let through."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from consumer.errors import ConfigurationError, Poison
from consumer.expectations.cases import verdict
from consumer.files.batches import LoadedBatch, has_wildcard, load_batches, narratives_of
from consumer.text import count_of, named, visible
from safe_core import Expectations, Policy, TestCase, is_of_concern, judged_by, prepare
from safe_core.lint import NarratedCase
from safe_core.mutation import KINDS, MOST_MUTANTS, Mutant, MutantKind, MutatedCase

_NAMED = 20


@dataclass(frozen=True, slots=True)
class MutateRequest:
    """Which test cases are asked for: of a folder, by a glob over the names of batches, of one concern or of all."""

    test_dir: Path
    concern: str | None = None
    batch: str = "*"


@dataclass(frozen=True, slots=True)
class NarratedTest:
    """A test case that can be mutated, with its name; a case that stands in several batches is the first one's."""

    batch_id: str
    test_id: str
    case: NarratedCase


@dataclass(frozen=True, slots=True)
class ScoredMutant:
    """A mutant of a test case; `suggestion` is a phrase that would catch it, None where it is caught or none would."""

    test: NarratedTest
    mutant: Mutant
    suggestion: str | None

    def document(self) -> dict[str, Any]:
        """Give its entry in the JSON; offsets are into the narrative, in code points."""
        alteration = self.mutant.alteration
        return {
            "test_id": self.test.test_id,
            "batch_id": self.test.batch_id,
            "kind": alteration.kind,
            "start": alteration.start,
            "end": alteration.end,
            "before": self.mutant.before,
            "after": alteration.after,
            "suggestion": self.suggestion,
        }


@dataclass(frozen=True)
class Mutation:
    """What came of it: every mutant, in the order of the cases; `without_narrative` counts the cases that have none."""

    tests: Sequence[NarratedTest]
    mutants: Sequence[ScoredMutant]
    without_narrative: int

    @cached_property
    def survivors(self) -> list[ScoredMutant]:
        """The mutants that still pass."""
        return [each for each in self.mutants if each.mutant.survived]

    @property
    def by_kind(self) -> Mapping[MutantKind, tuple[int, int]]:
        """How many mutants there are of each kind, and how many of them survived."""
        made = Counter(each.mutant.alteration.kind for each in self.mutants)
        survived = Counter(each.mutant.alteration.kind for each in self.survivors)
        return {kind: (made[kind], survived[kind]) for kind in KINDS}

    def document(self, *, with_caught: bool = False) -> dict[str, Any]:
        """Give what `--format json` prints."""
        caught = [each.document() for each in self.mutants if not each.mutant.survived] if with_caught else None
        return {
            "cases": len(self.tests),
            "without_narrative": self.without_narrative,
            "mutants": len(self.mutants),
            "survived": len(self.survivors),
            "by_kind": {kind: {"mutants": made, "survived": left} for kind, (made, left) in self.by_kind.items()},
            "survivors": [each.document() for each in self.survivors],
            **({} if caught is None else {"caught": caught}),
        }

    def remarks(self) -> Iterator[str]:
        """What the numbers alone do not tell."""
        if self.without_narrative:
            cases = count_of(self.without_narrative, "test case")
            yield f"{cases} not looked at: without a narrative there is nothing to alter"
        counts = Counter(each.test.test_id for each in self.mutants)
        if cut := [test_id for test_id, count in counts.items() if count >= MOST_MUTANTS]:
            yield f"only the first {MOST_MUTANTS} dangerous places were altered in {named(cut)}"


def mutate(policy: Policy, request: MutateRequest, done: Callable[[int], None] = lambda _count: None) -> Mutation:
    """Alter each narrative in each dangerous place and score it; raises ConfigurationError.

    `done` is told of each case.
    """
    tests, without = narrated_tests(policy, request)
    if not tests:
        raise ConfigurationError(f"no selected test case in {visible(str(request.test_dir))} has a narrative to alter")
    mutants: list[ScoredMutant] = []
    for test in tests:
        mutants.extend(mutants_of(test))
        done(1)
    return Mutation(tests, mutants, without)


def mutants_of(test: NarratedTest) -> Iterator[ScoredMutant]:
    """Give the mutants of one test case."""
    mutated = MutatedCase(test.case)
    for mutant in mutated.mutants():
        yield ScoredMutant(test, mutant, mutated.suggestion(mutant.alteration) if mutant.survived else None)


def narrated_tests(policy: Policy, request: MutateRequest) -> tuple[list[NarratedTest], int]:
    """Select the test cases that have a narrative, each once, and count the others.

    Raises ConfigurationError naming what cannot be used, or where nothing is selected.
    """
    held: dict[tuple[str, Expectations], NarratedTest] = {}
    for batch in _batches(request):
        narratives = narratives_of(batch)
        for test_case in _of_concern(batch, request.concern):
            key = test_case.test_id, test_case.expectations
            narrative = narratives.get(test_case.test_id)
            if key not in held or (held[key].case.narrative is None and narrative is not None):
                by = judged_by(test_case, concern_id=request.concern)
                rules = policy.rules_for(by.metric_id, by.archetype)
                case = NarratedCase(prepare(test_case.expectations), narrative, rules)
                held[key] = NarratedTest(batch.name, test_case.test_id, case)
    if not held:
        raise ConfigurationError(_nothing_selected(request))
    told = [test for test in held.values() if test.case.narrative is not None]
    return told, len(held) - len(told)


def _batches(request: MutateRequest) -> Sequence[LoadedBatch]:
    batches = load_batches(request.test_dir, request.batch).all
    if batches:
        return batches
    names = [batch.name for batch in load_batches(request.test_dir).all]
    held = named(names, _NAMED) if names else "no batch files (<batch_id>.json)"
    what = "no batch matches" if has_wildcard(request.batch) else "there is no batch"
    place = visible(str(request.test_dir))
    raise ConfigurationError(f"{what} --batch {visible(request.batch)} in {place}: it holds {held}")


def _of_concern(batch: LoadedBatch, concern: str | None) -> Iterator[TestCase]:
    """Give a batch's test cases of a concern; raises ConfigurationError for one that cannot be used."""
    for test_id, row in batch.rows.items():
        case = verdict(row, visible(str(batch.path)))
        if isinstance(case, Poison):
            raise ConfigurationError(f"{visible(test_id)}: {case.detail}; safe lint shows all that is wrong")
        if concern is None or is_of_concern(concern, case):
            yield case


def _nothing_selected(request: MutateRequest) -> str:
    of_concern = "" if request.concern is None else f" of --concern {visible(request.concern)}"
    return f"no test case{of_concern} in the batches that match --batch {visible(request.batch)}"
