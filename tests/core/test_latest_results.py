"""The rolling aggregate against the oracle."""

import random
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from safe_core import (
    CaseRow,
    CaseScore,
    Details,
    Expectations,
    LatestResults,
    Output,
    Passed,
    Rules,
    Scores,
    Terms,
    Vacuous,
    Weights,
    prepare,
    score,
)
from safe_core.lenient_scores import Marks
from safe_core.lowest import LowestNames
from safe_core.result_version import Version
from tests.core.oracle import Arrival, Settings, oracle_aggregate, oracle_score, standing

WEIGHTS = (0.1, 1.5, 0.7)  # composites that no decimal writes exactly
WORDS = ("fracture", "Hand", "pulse", "OR", "delay", "é", "𝛼", "Z", "a")


def case_of(lists: Any, answer: Any) -> CaseScore:
    output = Output(tuple(answer[0]), answer[1][0], tuple(answer[2]))
    return score(prepare(Expectations(*map(tuple, lists))), output, Rules(weights=Weights(*WEIGHTS)))


def offer(fold: LatestResults, arrival: Arrival, case: CaseScore) -> bool:
    row = CaseRow.of(
        version=arrival.version,
        archetype=arrival.archetype,
        run_id=arrival.run_id,
        fingerprint=arrival.fingerprint,
        expected=arrival.expected,
        case=case,
        input_matches=arrival.input_matches,
        marks=None if arrival.marks is None else Marks(*arrival.marks),
    )
    return fold.offer(arrival.test_id, row)


def seen(fold: LatestResults) -> dict[str, Any]:
    """Everything that a fold tells, in the shape of the oracle."""
    analysis = fold.failure_analysis()
    return {
        "summary": fold.summary(),
        "mean_scores": fold.snapshot().mean_scores,
        "pass_rates": {**fold.snapshot().pass_ratios, "overall": fold.snapshot().pass_ratio},
        "label_distribution": fold.snapshot().label_distribution,
        "by_archetype": fold.by_archetype(),
        "worst": [result["test_id"] for result in analysis.pop("worst_performers")],
        **analysis,
        "beside": fold.snapshot().marks.means,
        "vacuous": fold.vacuous(),
        "empty_outputs": fold.empty_outputs,
        "input_mismatches": fold.input_mismatches,
        "failed_generations": fold.failed_generations,
        "answered": {
            "cases": fold.snapshot().answered_cases,
            "pass_ratio": fold.snapshot().answered_pass_ratio,
            "mean_scores": fold.snapshot().answered_mean_scores,
        },
        "expected_present": fold.expected_present,
        "runs": fold.runs,
        "fingerprints": fold.fingerprints,
    }


words = st.lists(st.sampled_from(WORDS), max_size=4)
lists = st.tuples(words, words, words)
answers = st.tuples(words, st.lists(st.sampled_from((*WORDS, "")), min_size=1, max_size=1), words)
steps = st.lists(
    st.one_of(
        st.sampled_from(["t1", "t2", "t3", "T1", "\U0001f600", "\uffff"]),  # a removal; the last two: code point order
        st.tuples(
            st.sampled_from(["t1", "t2", "t3", "T1", "\U0001f600", "\uffff", "t4", "t5"]),
            st.tuples(st.booleans(), st.sampled_from([-1, 0, 5]), st.integers(0, 1), st.integers(0, 2)),
            st.sampled_from([None, "Unknown", "A", "B"]),
            st.sampled_from([None, "r1", "r2"]),
            st.sampled_from(["f1", "f2"]),
            st.booleans(),
            st.sampled_from([None, True, False]),
            lists,
            answers,
        ),
    ),
    max_size=25,
)


def arrival_of(move: Any) -> tuple[Arrival, CaseScore]:
    """Score the case of a move twice: as the oracle does, and as the product does."""
    lists, answer = move[-2:]
    case = oracle_score(lists, answer, Settings(weights=WEIGHTS))
    test_id, version, archetype, run_id, fingerprint, expected, input_matches = move[:-2]
    arrival = Arrival(test_id, version, archetype, run_id, fingerprint, expected, case, input_matches)
    return arrival, case_of(lists, answer)


def run(moves: Iterable[Any]) -> tuple[LatestResults, list[Arrival | str]]:
    """Let the moves happen to a fold; give it and what the oracle needs."""
    fold = LatestResults()
    arrivals: list[Arrival | str] = []
    for move in moves:
        if isinstance(move, str):
            if move in fold:
                fold.remove(move)
            arrivals.append(move)
            continue
        arrival, case = arrival_of(move)
        arrivals.append(arrival)
        stood = offer(fold, arrival, case)
        assert stood == (standing(arrivals)[arrival.test_id] is arrival)
    return fold, arrivals


@settings(max_examples=300)
@given(steps)
def test_any_order_of_offers_replacements_and_removals_equals_the_oracle_to_the_last_bit(moves: list[Any]) -> None:
    fold, arrivals = run(moves)
    rows = standing(arrivals)
    assert seen(fold) == oracle_aggregate(rows)
    assert (len(fold), sorted(fold)) == (len(rows), sorted(rows))
    assert fold.mixed_runs == (len(fold.runs) > 1)
    for test_id, arrival in rows.items():
        row = fold.row(test_id)
        kept = {name: getattr(row, name) for name in arrival.case}
        told = (row.version, row.archetype, row.run_id, row.shared.fingerprint, row.shared.expected)
        assert kept == arrival.case
        assert told == (arrival.version, arrival.archetype, arrival.run_id, arrival.fingerprint, arrival.expected)


@given(steps, st.randoms(use_true_random=False))
def test_distinct_versions_may_come_in_any_order(moves: list[Any], shuffler: random.Random) -> None:
    distinct = {(move[0], move[1]): move for move in moves if not isinstance(move, str)}
    one, other = list(distinct.values()), list(distinct.values())
    shuffler.shuffle(other)
    assert seen(run(one)[0]) == seen(run([*other, *other])[0])


@given(steps)
def test_a_look_in_between_changes_nothing(moves: list[Any]) -> None:
    looked_at = LatestResults()
    arrivals: list[Arrival | str] = []
    for move in moves:
        if isinstance(move, str):
            if move in looked_at:
                looked_at.remove(move)
            arrivals.append(move)
            continue
        arrival, case = arrival_of(move)
        arrivals.append(arrival)
        offer(looked_at, arrival, case)
        looked_at.failure_analysis()
    assert seen(looked_at) == oracle_aggregate(standing(arrivals))


@given(steps)
def test_a_snapshot_tells_its_moment_for_ever(moves: list[Any]) -> None:
    fold, arrivals = run(moves)
    snapshot = fold.snapshot()
    offer(
        fold,
        Arrival("later", (True, 9, 9, 9), "C", "r9", "f9", expected=True, case={}, input_matches=None),
        case_of((["x"], [], []), ([], [""], [])),
    )
    then = oracle_aggregate(standing(arrivals))
    overall = then["pass_rates"].pop("overall")
    assert snapshot.total_cases == then["summary"]["total_cases"]
    assert snapshot.label_distribution == then["label_distribution"]
    assert (snapshot.pass_ratio, snapshot.pass_ratios) == (overall, then["pass_rates"])
    assert snapshot.mean_scores == then["mean_scores"]
    assert snapshot.vacuous == tuple(then["vacuous"].values())
    assert snapshot.failed_generations == then["failed_generations"]
    assert snapshot.answered_pass_ratio == then["answered"]["pass_ratio"]
    assert (snapshot.empty_outputs, snapshot.expected_present) == (then["empty_outputs"], then["expected_present"])
    groups = then["by_archetype"]
    assert {name: cases for name, (cases, _) in snapshot.archetypes.items()} == {
        n: g["count"] for n, g in groups.items()
    }
    assert {n: passes / cases for n, (cases, passes) in snapshot.archetypes.items()} == {
        n: g["pass_rate"] for n, g in groups.items()
    }


def plain_row(version: Version, composite: float = 0.5, **changes: Any) -> CaseRow:
    case = CaseScore(
        scores=Scores(composite, composite, composite, composite),
        details=changes.pop("details", Details((), (), (), (), ())),
        terms=Terms(0, 0, 0),
        passed=Passed(CR=False, AH=False, AC=False),
        vacuous=Vacuous(CR=False, AH=False, AC=False),
        empty_output=False,
        label="Review",
    )
    given_ = {"archetype": None, "run_id": None, "fingerprint": "f", "expected": True} | changes
    return CaseRow.of(version=version, case=case, **given_)


@pytest.mark.parametrize(
    ("standing_version", "version", "stands"),
    [
        ((5, 0, 0), (6, 0, 0), True),  # later in time
        ((5, 0, 0), (4, 9, 9), False),  # earlier in time, wherever it was read
        ((5, 0, 0), (5, 1, 0), True),  # the same time: the greater partition
        ((5, 1, 0), (5, 0, 9), False),
        ((5, 1, 3), (5, 1, 4), True),  # the same partition: the greater offset
        ((5, 1, 3), (5, 1, 2), False),
        ((5, 1, 3), (5, 1, 3), True),  # the very same source: what came later in `scored`
        ((-1, 0, 0), (0, 0, 0), True),  # a record without a timestamp has -1
        ((-(2**62), 0, 0), (-1, 0, 0), True),  # times before 1970 too
        ((2**40, 0, 0), (2**40 + 1, 0, 0), True),
    ],
)
def test_the_greatest_version_stands(
    standing_version: tuple[int, int, int], version: tuple[int, int, int], stands: bool
) -> None:
    fold = LatestResults()
    before, after = (True, *standing_version), (True, *version)
    assert fold.offer("t", plain_row(before, 0.25))
    assert fold.offer("t", plain_row(after, 0.75)) is stands
    assert fold.row("t").version == (after if stands else before)
    assert fold.snapshot().mean_scores["composite"] == (0.75 if stands else 0.25)
    assert len(fold) == 1


@pytest.mark.parametrize(
    ("before", "after", "stands"),
    [
        ((True, 5, 0, 0), (False, 6, 0, 0), False),  # a failed generation never replaces an answer, however late it is
        ((False, 6, 0, 0), (True, 5, 0, 0), True),  # and any answer replaces it
        ((False, 5, 0, 0), (False, 6, 0, 0), True),  # of two failed ones, the later stands
        ((False, 6, 0, 0), (False, 5, 0, 0), False),
    ],
)
def test_an_answer_goes_before_a_failed_generation(before: Version, after: Version, stands: bool) -> None:
    fold = LatestResults()
    fold.offer("t", plain_row(before))
    assert fold.offer("t", plain_row(after)) is stands
    assert fold.failed_generations == fold.snapshot().failed_generations == int(not (before[0] or after[0]))


def test_sums_are_exact_where_adding_in_turn_would_drift() -> None:
    values = [0.1, 1e-300, 0.7, 5e-324, 1 / 3, 1.0, 2**-1074, 0.1]
    fold, backwards = LatestResults(), LatestResults()
    for position, value in enumerate(values):
        fold.offer(str(position), plain_row((True, 0, 0, 0), value))
        backwards.offer(str(position), plain_row((True, 0, 0, 0), values[-1 - position]))
    assert fold.snapshot().mean_scores == backwards.snapshot().mean_scores
    for position in range(len(values) - 1):
        fold.remove(str(position))
    assert fold.snapshot().mean_scores["composite"] == 0.1


def test_an_empty_fold_answers_with_zeros() -> None:
    fold = LatestResults()
    assert seen(fold) == oracle_aggregate({})
    assert not fold.mixed_runs
    assert fold.snapshot().mean_scores == {"CR": 0.0, "AH": 0.0, "AC": 0.0, "composite": 0.0}
    with pytest.raises(KeyError):
        fold.remove("t")


def test_ties_go_by_code_point_and_five_are_named() -> None:
    fold = LatestResults()
    missed = Details((), ("b", "a", "b", "\U0001f600", "\uffff", "Z", "c"), (), (), ())
    for test_id in ("t9", "t10", "T1", "\U0001f600", "\uffff", "é"):
        fold.offer(test_id, plain_row((True, 0, 0, 0), details=missed))
    analysis = fold.failure_analysis()
    assert [result["test_id"] for result in analysis["worst_performers"]] == ["T1", "t10", "t9", "é", "\uffff"]
    assert [miss["signal"] for miss in analysis["common_CR_misses"]] == ["b", "Z", "a", "c", "\uffff"]
    assert analysis["common_CR_misses"][0] == {"signal": "b", "miss_count": 12}  # listed twice, counted twice


def test_a_version_beyond_64_bits_is_refused() -> None:
    with pytest.raises(ValueError, match="64 bits"):
        plain_row((True, 2**63, 0, 0))


def test_the_worst_performers_of_a_large_batch_follow_its_changes() -> None:
    fold = LatestResults()

    def worst() -> list[str]:
        return [result["test_id"] for result in fold.failure_analysis()["worst_performers"]]

    for number in range(200):
        fold.offer(f"t{number:03}", plain_row((True, 0, 0, 0), 0.5 + number / 1_000))
    assert worst() == ["t000", "t001", "t002", "t003", "t004"]
    fold.offer("t199", plain_row((True, 1, 0, 0), 0.25))  # the best becomes the worst
    fold.offer("t000", plain_row((True, 1, 0, 0), 1.0))  # and the other way round
    fold.remove("t002")
    assert worst() == ["t199", "t001", "t003", "t004", "t005"]


@pytest.mark.parametrize("size", [10, 300, 9000])
def test_the_lowest_names_are_right_after_every_kind_of_change(size: int) -> None:
    """At 300 names some are out of sight, at 9000 the notes of changes overflow."""
    rng = random.Random(size)
    keys = {f"n{i}": rng.randrange(50) for i in range(size)}
    ranking = LowestNames()
    for turn in range(30):
        for name in rng.sample(sorted(keys), rng.choice((1, size // 10, size // 2))):
            keys[name] = rng.randrange(50)
            ranking.touch(name, keys)
        for name in [*ranking.first(5, keys, lambda n: (keys[n], n)), rng.choice(sorted(keys))]:
            if keys.pop(name, None) is not None:
                ranking.touch(name, keys)
        for name in (f"new{turn}-{i}" for i in range(6)):
            keys[name] = rng.randrange(50)
            ranking.touch(name, keys)
        assert ranking.first(5, keys, lambda n: (keys[n], n)) == sorted(keys, key=lambda n: (keys[n], n))[:5]


@pytest.mark.parametrize("size", [60, 300, 2000])
def test_names_out_of_sight_come_into_sight_as_the_lowest_leave(size: int) -> None:
    keys = {f"n{i}": i for i in random.Random(size).sample(range(size), size)}
    ranking = LowestNames()
    for turn in range(2 * size):
        lowest = ranking.first(5, keys, lambda n: (keys[n], n))
        assert [keys[name] for name in lowest] == list(range(turn, turn + 5))
        keys[lowest[0]] = size + turn
        ranking.touch(lowest[0], keys)


@pytest.mark.parametrize("look_every", [1, 17])
def test_the_lowest_names_are_right_while_few_become_many_and_few_again(look_every: int) -> None:
    """Few enough are looked at each time; with many, what was noted meanwhile counts."""
    rng = random.Random(look_every)
    keys: dict[str, int] = {}
    ranking = LowestNames()
    for step in range(1_000):
        name = f"n{rng.randrange(300)}"
        if step < 500:
            keys[name] = rng.randrange(50)
        else:
            keys.pop(name, None)
        ranking.touch(name, keys)
        if step % look_every == 0:
            assert ranking.first(5, keys, lambda n: (keys[n], n)) == sorted(keys, key=lambda n: (keys[n], n))[:5]
