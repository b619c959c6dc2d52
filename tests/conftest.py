"""Fixtures that every test may ask for, and loud words about what could not be tested."""

import os
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest

from tests.support.kafka_broker import BrokerUnavailableError, ForeignBroker, KafkaBroker, kafka_libs
from tests.support.outside import Outside

_untested: list[str] = []


def untested(reason: str) -> None:
    """Skip the test, and say at the end of the run why; without a broker that is a failure in CI."""
    if reason not in _untested:
        _untested.append(reason)
    pytest.skip(reason)


def _without_broker(error: BrokerUnavailableError) -> None:
    reason = f"no broker: {error}"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    untested(reason)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run what is quick first, what needs a broker after it, and the chaos last."""
    items.sort(key=lambda item: [item.get_closest_marker(name) is not None for name in ("chaos", "broker")])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """What a test has printed may hold a lone surrogate, which no process can tell another."""
    report = yield
    report.sections = [(title, text.encode(errors="backslashreplace").decode()) for title, text in report.sections]
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Close the run with what it has not tested."""
    for reason in _untested:
        terminalreporter.write_line(f"NOT TESTED: {reason}", yellow=True, bold=True)


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker | ForeignBroker]:
    """One broker for the whole run; tests share it by topics and groups of their own names."""
    given = os.environ.get("SAFE_TEST_BOOTSTRAP_SERVERS")
    if given:
        yield ForeignBroker(given)
        return
    try:
        started = KafkaBroker(tmp_path_factory.mktemp("kafka"), libs=kafka_libs()).start()
    except BrokerUnavailableError as error:
        _without_broker(error)
        return
    yield started
    started.stop(kill=True)


@pytest.fixture
def own_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., KafkaBroker]]:
    """Make brokers that a test may stop, kill and freeze: `own_broker(**{"some.setting": "value"})`."""
    made: list[KafkaBroker] = []

    def start(**settings: str) -> KafkaBroker:
        try:
            made.append(KafkaBroker(tmp_path_factory.mktemp("own-kafka"), libs=kafka_libs(), settings=settings))
            return made[-1].start()
        except BrokerUnavailableError as error:
            _without_broker(error)
            raise

    yield start
    for each in made:
        each.stop(kill=True)


@pytest.fixture(scope="session")
def outside(broker: KafkaBroker | ForeignBroker) -> Iterator[Outside]:
    """A foreign client of the shared broker."""
    with Outside(broker.bootstrap_servers) as client:
        yield client


@pytest.fixture(scope="session")
def real_cases() -> Path:
    """The folder of real test cases and outputs beside the repository; skipped loudly where there is none."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "real"
    if not folder.is_dir():
        untested(f"the real cases: there is no {folder.name} folder of them beside the repository")
    return folder
