"""What a topic does not accept holds up nothing: it becomes a dead letter with a reason, also when a limit shrinks."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.case_files import a_case, event, write_batch
from tests.support.cases import encoded
from tests.support.outside import Outgoing, Record
from tests.support.site import Site
from tests.support.waiting import wait_until

pytestmark = pytest.mark.broker

SOON_SECONDS = 60.0
LIMIT = 40_000
FITS, TOO_LARGE = "fits", "too_large"


def an_output(test_id: str) -> Outgoing:
    return Outgoing(encoded(event(test_id, batch_id="b")), partition=0)


@pytest.fixture
def site(site_over: Callable[..., Site], tmp_path: Path) -> Site:
    """An installation with a test case whose scored record is larger than LIMIT."""
    cases = tmp_path / "cases"
    write_batch(cases, "b", a_case(FITS), a_case(TOO_LARGE, ["x" * LIMIT]))
    return site_over(cases, partitions=1)


def letters(site: Site, count: int) -> list[Record]:
    """The dead letters, once there are so many."""
    wait_until(
        lambda: len(site.outside.read(site.topics.dead_letter)) >= count,
        within_seconds=SOON_SECONDS,
        what=f"there are {count} dead letters",
        every_seconds=0.5,
    )
    found = site.outside.read(site.topics.dead_letter)
    assert len(found) == count
    return found


def results(site: Site) -> list[str]:
    return [record.json()["result"]["test_id"] for record in site.outside.read(site.topics.result)]


@pytest.mark.parametrize("topic", ["scored", "state", "result"])
def test_a_limit_that_shrinks_makes_dead_letters_of_what_is_too_large_and_of_nothing_else(
    topic: str, site: Site
) -> None:
    name = getattr(site.topics, topic)
    with site.worker():
        site.send([an_output(FITS), an_output(TOO_LARGE)])
        site.await_rest()
        assert results(site) == [FITS, TOO_LARGE]

        site.outside.set_topic_config(name, "max.message.bytes", str(LIMIT))
        site.send([an_output(TOO_LARGE), an_output(FITS)])
        [letter] = letters(site, 1)
        site.await_rest()

    assert letter.header("safe.dlq.reason") == "result_too_large"
    assert f"{name} accepts {LIMIT} (max.message.bytes)" in (letter.header("safe.dlq.detail") or "")
    assert results(site) == [FITS, TOO_LARGE, FITS]


def test_a_dead_letter_topic_whose_limit_shrinks_is_looked_at_again(site: Site) -> None:
    poison = random.Random(36).randbytes(2 * LIMIT)  # no compression makes it smaller
    with site.worker():
        site.send([Outgoing(poison, partition=0)])
        [whole] = letters(site, 1)

        site.outside.set_topic_config(site.topics.dead_letter, "max.message.bytes", str(LIMIT))
        site.send([Outgoing(poison, partition=0), an_output(FITS)])
        [_, without] = letters(site, 2)
        site.await_rest()

    assert whole.value == poison
    assert without.value is None
    assert without.header("safe.dlq.value_bytes") == str(len(poison))
    assert results(site) == [FITS]
