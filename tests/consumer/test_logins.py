"""What comes of attempts to log in: a refusal is told apart from silence, and ends a process that nobody lets in."""

import math
from typing import Any

import pytest

from consumer.errors import Fatal
from consumer.kafka.logins import REFUSED_SECONDS, Logins
from consumer.kafka.refusals import Refusal

WRONG = Refusal("[who] refuse[s] the login of user safe (SCRAM-SHA-512): invalid credentials", "check the password")
SENTENCE = "the brokers refuse the login of user safe (SCRAM-SHA-512): invalid credentials"
ONE, OTHER = "one:9092", "other:9092"
AGAIN_SECONDS = 2.0


class Clock:
    """Monotonic seconds that only the test moves."""

    now = 1_000.0

    def __call__(self) -> float:
        return self.now


class Connected:
    """A connection that a broker has let in."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last_action = clock.now
        self.is_open = True

    def answer(self) -> None:
        """Bring an answer."""
        self._last_action = self._clock.now

    def connected(self) -> bool:
        """Tell whether it is open, as the client's own does."""
        return self.is_open


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def logins(clock: Clock) -> Logins:
    return Logins(clock)


def refused_for(seconds: float, logins: Logins, clock: Clock, *addresses: str) -> None:
    """Let all brokers at these addresses refuse each attempt for so long; raises what a check raises."""
    for _ in range(math.ceil(seconds / AGAIN_SECONDS)):
        for address in addresses:
            logins.note_refusal(address, WRONG)
        clock.now += AGAIN_SECONDS
        logins.check()


def test_a_refusal_is_named_at_once_and_for_as_long_as_it_is_repeated(logins: Logins, clock: Clock) -> None:
    assert logins.troubles() == []
    refused_for(120, logins, clock, ONE, OTHER)
    assert logins.troubles() == [SENTENCE]
    assert logins.is_refused()
    clock.now += 31
    assert logins.troubles() == []
    assert not logins.is_refused()


def test_after_five_minutes_of_nothing_else_the_process_ends_with_that_sentence(logins: Logins, clock: Clock) -> None:
    refused_for(REFUSED_SECONDS - AGAIN_SECONDS, logins, clock, ONE, OTHER)
    with pytest.raises(Fatal) as ended:
        refused_for(AGAIN_SECONDS, logins, clock, ONE, OTHER)
    assert str(ended.value) == f"{SENTENCE}, for 5 minutes; check the password"


def test_one_broker_that_lets_us_in_is_enough(logins: Logins, clock: Clock) -> None:
    connections: list[Any] = []
    for _ in range(10):
        refused_for(REFUSED_SECONDS - AGAIN_SECONDS, logins, clock, ONE)
        connections.append(Connected(clock))
        logins.note_success(OTHER, connections[-1])
    assert logins.troubles() == ["one:9092 refuses the login of user safe (SCRAM-SHA-512): invalid credentials"]


def test_a_connection_from_before_that_still_answers_keeps_the_process_and_is_worth_five_minutes(
    logins: Logins, clock: Clock
) -> None:
    before: Any = Connected(clock)
    logins.note_success(ONE, before)
    for _ in range(300):
        before.answer()
        refused_for(AGAIN_SECONDS, logins, clock, ONE, OTHER)
    assert len(logins.troubles()) == 2
    before.is_open = False
    refused_for(REFUSED_SECONDS - 2 * AGAIN_SECONDS, logins, clock, ONE, OTHER)
    assert logins.troubles() == [SENTENCE]
    with pytest.raises(Fatal):
        refused_for(2 * AGAIN_SECONDS, logins, clock, ONE, OTHER)


def test_a_connection_that_is_open_and_brings_no_answer_keeps_nothing(logins: Logins, clock: Clock) -> None:
    mute: Any = Connected(clock)
    logins.note_success(ONE, mute)
    with pytest.raises(Fatal):
        refused_for(REFUSED_SECONDS, logins, clock, ONE, OTHER)


def test_a_silent_cluster_is_no_refusal(logins: Logins, clock: Clock) -> None:
    logins.note_refusal(ONE, WRONG)
    logins.note_silence(ONE)
    assert logins.troubles() == []
    for _ in range(1_000):
        logins.note_silence(ONE)
        clock.now += AGAIN_SECONDS
        logins.check()


def test_silence_between_two_refusals_does_not_count(logins: Logins, clock: Clock) -> None:
    """Also where the process was frozen: nothing is known of that time."""
    for _ in range(3):
        refused_for(REFUSED_SECONDS - AGAIN_SECONDS, logins, clock, ONE)
        clock.now += 10 * REFUSED_SECONDS
    assert logins.troubles() == []


def test_a_broker_that_is_down_says_nothing_against_those_that_refuse(logins: Logins, clock: Clock) -> None:
    for _ in range(20):
        logins.note_silence(OTHER)
        refused_for(AGAIN_SECONDS, logins, clock, ONE)
    with pytest.raises(Fatal):
        refused_for(REFUSED_SECONDS - 20 * AGAIN_SECONDS, logins, clock, ONE)


def test_a_token_endpoint_that_is_away_is_named_and_ends_nothing(logins: Logins, clock: Clock) -> None:
    away = Refusal("the token endpoint at login.example does not answer", "wait", ends_by_itself=True)
    for _ in range(200):
        logins.note_refusal(ONE, away)
        refused_for(AGAIN_SECONDS, logins, clock)
    assert logins.troubles() == ["the token endpoint at login.example does not answer"]
    assert not logins.is_refused()
    refused_for(REFUSED_SECONDS - AGAIN_SECONDS, logins, clock, ONE)
    with pytest.raises(Fatal):
        refused_for(2 * AGAIN_SECONDS, logins, clock, ONE)


def test_what_is_wrong_is_told_of_each_kind(logins: Logins) -> None:
    logins.note_refusal(ONE, WRONG)
    logins.note_refusal(OTHER, Refusal("the certificate of [who] is not trusted (expired)", "check the file"))
    assert logins.troubles() == [SENTENCE, "the certificate of the brokers is not trusted (expired)"]
