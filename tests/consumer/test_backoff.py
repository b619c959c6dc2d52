"""Waiting before the next try: longer each time, up to a bound, and not all at the same moment."""

from consumer.backoff import Backoff


def test_it_doubles_to_its_bound_and_starts_again_after_a_success() -> None:
    backoff = Backoff()
    ceilings = [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
    assert all(ceiling / 2 <= backoff.next() <= ceiling for ceiling in ceilings)
    backoff.reset()
    assert backoff.next() <= 0.1


def test_half_of_a_delay_is_certain_and_the_other_half_chance() -> None:
    asked: list[tuple[float, float]] = []

    def lowest(low: float, high: float) -> float:
        asked.append((low, high))
        return low

    backoff = Backoff(1.0, 3.0, lowest)
    assert [backoff.next() for _ in range(3)] == [0.5, 1.0, 1.5]
    assert asked == [(0.5, 1.0), (1.0, 2.0), (1.5, 3.0)]
