"""Brokers that ask who is there: `safe` set up as docs/how-to/install.md says, and what it says where that is wrong."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.conftest import missing
from tests.support.cases import event_stream, make_batches, write_batches
from tests.support.feeder import Feeder
from tests.support.guarded import PASSWORD, SESSION_SECONDS, Guarded, guarded_broker
from tests.support.guarded import site_behind as site_with_cases_behind
from tests.support.kafka_broker import BrokerUnavailableError
from tests.support.site import Site
from tests.support.waiting import wait_until
from tests.support.worker import why_it_ended

pytestmark = pytest.mark.broker

EVENTS = 1_000
SEED = 47
BATCHES = make_batches(SEED, batches=4, cases_a_batch=6)
EXIT_UNUSABLE = 3


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """Start a broker that lets nobody in who is not known."""
    try:
        with guarded_broker(tmp_path_factory.mktemp("guarded")) as started:
            yield started
    except BrokerUnavailableError as error:
        missing(f"no broker: {error}")


def site_behind(guarded: Guarded, name: str, folder: Path, **changed: str) -> AbstractContextManager[Site]:
    """An installation behind one listener, with the batches of these tests."""
    return site_with_cases_behind(guarded, name, folder, write_batches(folder / "cases", BATCHES), settings=changed)


@pytest.mark.parametrize("name", ["PASSWORD", "CERTIFICATE", "TOKEN"])
def test_a_thousand_outputs_are_scored_as_the_documentation_says(guarded: Guarded, name: str, tmp_path: Path) -> None:
    stream = list(event_stream(SEED, BATCHES, EVENTS, partitions=4))
    with site_behind(guarded, name, tmp_path) as site:
        site.send(stream)
        with site.worker() as worker:
            site.await_rest()
            run, problems = site.seen()
            assert worker.stop() == 0
    assert problems == []
    assert len(run.inputs) == EVENTS
    assert PASSWORD not in worker.log_text()


def test_a_broker_that_ends_connections_with_their_tokens_costs_nothing(guarded: Guarded, tmp_path: Path) -> None:
    stream = list(event_stream(SEED, BATCHES, EVENTS, partitions=4))
    asked = guarded.tokens.asked
    with site_behind(guarded, "TOKEN", tmp_path) as site, site.worker() as worker:
        with Feeder(site.outside, site.topics.input, stream, records_a_second=EVENTS / (3 * SESSION_SECONDS)) as feeder:
            wait_until(lambda: feeder.is_done, within_seconds=10 * SESSION_SECONDS, what="all inputs are written")
        site.await_rest()
        _, problems = site.seen()
        assert worker.exit_code is None
        assert worker.stop() == 0
    assert problems == []
    assert guarded.tokens.asked - asked == 1  # for all connections, however often they are made again


WRONG = {
    "a wrong password": (
        "PASSWORD",
        {"SAFE_V0_KAFKA_SASL_USERNAME": "nobody"},
        "refuses the login of user nobody (SCRAM-SHA-512): invalid credentials",
    ),
    "no certificate": (
        "CERTIFICATE",
        {"SAFE_V0_KAFKA_SSL_CERTFILE": "", "SAFE_V0_KAFKA_SSL_KEYFILE": ""},
        "asks for one",
    ),
    "another mechanism": ("PASSWORD", {"SAFE_V0_KAFKA_SASL_MECHANISM": "PLAIN"}, "refuses this kind of login (PLAIN)"),
    "an unknown authority": ("PASSWORD", {"SAFE_V0_KAFKA_SSL_CAFILE": ""}, "is not trusted"),
    "a wrong client": (
        "TOKEN",
        {"SAFE_V0_KAFKA_SASL_OAUTH_CLIENT_ID": "nobody"},
        "client nobody no token (invalid_client)",
    ),
    "a scope too small": ("TOKEN", {"SAFE_V0_KAFKA_SASL_OAUTH_SCOPE": "mail"}, "refuses the token from SAFE_V0_KAFKA"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_said_at_once_and_by_name(guarded: Guarded, case: str, tmp_path: Path) -> None:
    name, changed, told = WRONG[case]
    with site_behind(guarded, name, tmp_path, **changed) as site:
        refused = site.installation.run("worker", folder=tmp_path, timeout_seconds=30)
    assert refused.returncode == EXIT_UNUSABLE, refused.stderr
    assert told in why_it_ended(refused.stderr)
    assert "Traceback" not in refused.stderr
    assert PASSWORD not in refused.stderr
