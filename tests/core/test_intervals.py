"""Wilson's interval and the exact sign test, against values that were worked out elsewhere or in another way."""

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safe_core.intervals import cases_needed, clustered_wilson, passes_needed, wilson
from safe_core.significance import holm, sign_test

CONFIDENCES = st.floats(0.5, 0.9999)
COUNTS = st.integers(0, 100_000).flatmap(lambda cases: st.tuples(st.integers(0, cases), st.just(cases)))
RATES = st.floats(0, 0.999)


# --- Wilson's interval ------------------------------------------------------------------------------------------------

PUBLISHED = [
    # Newcombe, Statistics in Medicine 17 (1998), 857-872, Table I, method 3 (score, no continuity correction)
    (81, 263, 0.95, "0.2553", "0.3662"),
    (15, 148, 0.95, "0.0624", "0.1605"),
    (0, 20, 0.95, "0.0000", "0.1611"),
    (1, 29, 0.95, "0.0061", "0.1718"),
    # all pass: the lower end is n / (n + 1.96²)
    (29, 29, 0.95, "0.8830", "1.0000"),
    # an everyday one
    (45, 50, 0.95, "0.7864", "0.9565"),
]


@pytest.mark.parametrize(("passes", "cases", "confidence", "low", "high"), PUBLISHED)
def test_published_intervals_are_met(passes: int, cases: int, confidence: float, low: str, high: str) -> None:
    interval = wilson(passes, cases, confidence)
    assert (f"{interval.low:.4f}", f"{interval.high:.4f}") == (low, high)


@given(COUNTS, CONFIDENCES)
def test_the_ends_are_where_a_score_test_would_just_not_reject(counts: tuple[int, int], confidence: float) -> None:
    passes, cases = counts
    for end in wilson(passes, cases, confidence):
        if 0 < end < 1:
            standard_errors = abs(passes - cases * end) / math.sqrt(cases * end * (1 - end))
            assert math.erf(standard_errors / math.sqrt(2)) == pytest.approx(confidence, rel=1e-6)


@given(COUNTS, CONFIDENCES)
def test_the_interval_holds_the_share_and_stays_between_0_and_1(counts: tuple[int, int], confidence: float) -> None:
    passes, cases = counts
    low, high = wilson(passes, cases, confidence)
    share = passes / cases if cases else 0.5
    assert 0.0 <= low <= share <= high <= 1.0


@given(COUNTS, CONFIDENCES)
def test_failures_have_the_mirrored_interval(counts: tuple[int, int], confidence: float) -> None:
    passes, cases = counts
    low, high = wilson(cases - passes, cases, confidence)
    assert wilson(passes, cases, confidence) == pytest.approx((1 - high, 1 - low), abs=1e-15)


@given(st.integers(1, 10**9), CONFIDENCES)
def test_none_and_all_passing_reach_the_very_ends(cases: int, confidence: float) -> None:
    assert wilson(0, cases, confidence).low == 0.0
    assert wilson(cases, cases, confidence).high == 1.0
    assert wilson(0, 0, confidence) == (0.0, 1.0)


@given(COUNTS, CONFIDENCES, CONFIDENCES)
def test_more_confidence_makes_a_wider_interval(counts: tuple[int, int], one: float, other: float) -> None:
    narrow, wide = (wilson(*counts, confidence) for confidence in sorted((one, other)))
    assert wide.low <= narrow.low
    assert narrow.high <= wide.high


CONTRADICTIONS = [
    # more passes than cases, fewer than none
    (3, 2, 0.95, "3 passes of 2 cases"),
    (-1, 2, 0.95, "-1 passes of 2 cases"),
    # the ends have no interval, percent is none
    (1, 2, 0.0, "a confidence of 0.0 is not between 0 and 1"),
    (1, 2, 1.0, "a confidence of 1.0 is not between 0 and 1"),
    (1, 2, 95.0, "a confidence of 95.0 is not between 0 and 1"),
    (1, 2, math.nan, "a confidence of nan is not between 0 and 1"),
]


@pytest.mark.parametrize(("passes", "cases", "confidence", "message"), CONTRADICTIONS)
def test_what_contradicts_itself_is_refused(passes: int, cases: int, confidence: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        wilson(passes, cases, confidence)


def test_a_confidence_as_near_to_1_as_can_be_is_no_failure() -> None:
    low, high = wilson(5, 10, math.nextafter(1, 0))
    assert 0 < low < 0.1
    assert 0.9 < high < 1


# --- what it takes ----------------------------------------------------------------------------------------------------


@given(st.integers(0, 500), RATES, CONFIDENCES)
def test_the_passes_needed_are_the_fewest_that_do(cases: int, rate: float, confidence: float) -> None:
    enough = [passes for passes in range(cases + 1) if wilson(passes, cases, confidence).low >= rate]
    assert passes_needed(cases, rate, confidence) == (enough[0] if enough else None)


@given(RATES, CONFIDENCES)
def test_the_cases_needed_are_the_fewest_that_do(rate: float, confidence: float) -> None:
    cases = cases_needed(rate, confidence)
    assert cases is not None
    assert wilson(cases, cases, confidence).low >= rate
    assert passes_needed(cases, rate, confidence) is not None
    if cases:
        assert wilson(cases - 1, cases - 1, confidence).low < rate
        assert passes_needed(cases - 1, rate, confidence) is None


NEEDED = [
    # rate, confidence, cases needed: the first whole number from rate × z² / (1 - rate) on
    (0.0, 0.95, 0),
    (0.5, 0.95, 4),
    (0.8, 0.95, 16),
    (0.9, 0.95, 35),
    (0.95, 0.95, 73),
    (0.99, 0.99, 657),
    # never
    (1.0, 0.95, None),
]


@pytest.mark.parametrize(("rate", "confidence", "cases"), NEEDED)
def test_so_many_cases_are_needed(rate: float, confidence: float, cases: int | None) -> None:
    assert cases_needed(rate, confidence) == cases


def test_no_number_of_passes_shows_a_rate_of_1_even_where_the_bound_rounds_to_it() -> None:
    assert wilson(2**64, 2**64).low == 1.0
    assert passes_needed(2**64, 1.0) is None


def test_any_number_of_passes_shows_a_rate_of_0() -> None:
    assert passes_needed(10, 0.0) == 0


@pytest.mark.parametrize("rate", [-0.1, 1.1, 80.0, math.nan])
def test_a_rate_that_is_none_is_refused(rate: float) -> None:
    with pytest.raises(ValueError, match="is not from 0 to 1"):
        passes_needed(10, rate)
    with pytest.raises(ValueError, match="is not from 0 to 1"):
        cases_needed(rate)


def test_the_rate_nearest_to_1_needs_very_many_cases_and_not_for_ever() -> None:
    cases = cases_needed(math.nextafter(1, 0))
    assert cases is not None
    assert cases > 10**15


# --- the sign test ----------------------------------------------------------------------------------------------------


def p_by_tossing_coins(better: int, worse: int) -> Fraction:
    """The share of all ways in which so many coins can fall that are at least as uneven."""
    tosses = list(itertools.product((1, -1), repeat=better + worse))
    return Fraction(sum(abs(sum(toss)) >= abs(better - worse) for toss in tosses), len(tosses))


@pytest.mark.parametrize(("better", "worse"), [(b, w) for b in range(8) for w in range(8) if b + w <= 11])
def test_p_is_the_share_of_splits_at_least_as_uneven(better: int, worse: int) -> None:
    assert sign_test(better, worse) == float(p_by_tossing_coins(better, worse))


KNOWN = [
    # nothing changed; one change says nothing
    (0, 0, 1.0),
    (1, 0, 1.0),
    # six of six is the first one-sided lot below 0.05
    (5, 0, 0.0625),
    (6, 0, 0.03125),
    # R: binom.test(3, 10)$p.value, binom.test(8, 10)$p.value
    (3, 7, 0.34375),
    (8, 2, 0.109375),
]


@pytest.mark.parametrize(("better", "worse", "p"), KNOWN)
def test_known_values_of_p(better: int, worse: int, p: float) -> None:
    assert sign_test(better, worse) == p


@given(st.integers(0, 400), st.integers(0, 400))
def test_p_is_rounded_only_once(better: int, worse: int) -> None:
    changed = better + worse
    tail = sum(Fraction(math.comb(changed, taken), 2**changed) for taken in range(min(better, worse) + 1))
    assert sign_test(better, worse) == sign_test(worse, better) == float(min(Fraction(1), 2 * tail))


HOLM = [
    # p = 0.0625 twice at best: no test can name anything, so none takes anything from another
    ([(5, 0), (0, 5)], [0.0625, 0.0625]),
    # the second and third cannot reach 0.05
    ([(6, 0), (5, 0), (0, 0)], [0.03125, 0.0625, 1.0]),
    # the smallest p times three, the next times two, the last as it is
    ([(10, 0), (9, 1), (6, 0)], [3 * 2 / 1024, 2 * 22 / 1024, 22 * 2 / 1024]),
    # the larger p is never smaller than the smaller one
    ([(6, 0), (7, 1)], [0.0625, 0.0703125]),
    ([(8, 8), (8, 8)], [1.0, 1.0]),
]


@pytest.mark.parametrize(("splits", "expected"), HOLM)
def test_several_sign_tests_are_judged_together(splits: list[tuple[int, int]], expected: list[float]) -> None:
    assert holm(splits) == expected


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=5))
def test_no_p_falls_by_other_tests_and_their_order_is_kept(splits: list[tuple[int, int]]) -> None:
    alone, together = [sign_test(*split) for split in splits], holm(splits)
    assert all(one <= other <= 1 for one, other in zip(alone, together, strict=True))
    assert holm(splits[::-1]) == together[::-1]


# --- an interval over cases -------------------------------------------------------------------------------------------


def test_terms_that_stand_and_fall_together_are_fewer() -> None:
    alike = clustered_wilson([(4, 8)] * 20)
    apart = clustered_wilson([(8, 8), (0, 8)] * 10)
    assert alike == wilson(80, 160)
    low, high = wilson(10, 20)
    assert apart.low == pytest.approx(low, abs=0.01)
    assert apart.high == pytest.approx(high, abs=0.01)


def test_one_term_a_case_is_the_plain_interval() -> None:
    found = clustered_wilson([(1, 1)] * 30 + [(0, 1)] * 10)
    plain = wilson(30, 40)
    assert (found.low, found.high) == pytest.approx(plain, abs=0.005)


@given(st.lists(st.integers(0, 9).flatmap(lambda size: st.tuples(st.integers(0, size), st.just(size))), max_size=9))
def test_an_interval_over_cases_holds_the_share_in_any_order(clusters: list[tuple[int, int]]) -> None:
    found = clustered_wilson(clusters)
    hits, size = sum(hit for hit, _ in clusters), sum(own for _, own in clusters)
    assert found == clustered_wilson(clusters[::-1])
    assert 0 <= found.low <= found.high <= 1
    assert not size or found.low - 1e-12 <= hits / size <= found.high + 1e-12


def test_so_uneven_a_split_that_p_has_no_binary64_is_0() -> None:
    assert sign_test(5_000, 0) == 0.0
    assert sign_test(10_000, 10_000) == 1.0
