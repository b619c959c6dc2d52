"""Fixtures that every test may ask for, and loud words about what could not be tested."""

import gc
import os
import signal
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NoReturn

import pytest
from hypothesis import HealthCheck, settings

from tests.support.guardian import leave_nothing
from tests.support.kafka_broker import BrokerUnavailableError, KafkaBroker, kafka_libs, shared_broker
from tests.support.outside import Outside

# How long an example takes is measured in bench/; on a busy machine it says nothing.
settings.register_profile("safe", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("safe")


def missing(reason: str) -> NoReturn:
    """Skip the test, whose reason ends the run; but in CI, where all that tests need is installed, it fails."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


def pytest_configure() -> None:
    """Whatever ends the run, its brokers and workers end with it; and what it starts can be interrupted."""
    leave_nothing()
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # as for what a shell runs in the background
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is collected stays until the end: the garbage collector need not look at it again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


ARTEFACTS = {Path(__file__).parent / folder for folder in ("charts", "github", "image", "monitoring")}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run what is quick first, what needs a broker after it, and the chaos last.

    Several processes do it the other way round: a long file that begins last would have them all wait for it.
    """
    for item in items:
        if item.path.parent in ARTEFACTS:
            item.add_marker("artefact")
    in_parallel = os.environ.get("PYTEST_XDIST_WORKER") is not None or bool(config.getoption("numprocesses", None))
    items.sort(
        key=lambda item: [
            item.get_closest_marker(name) is not None for name in ("cluster", "chaos", "broker", "artefact")
        ],
        reverse=in_parallel,
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """What a test has printed may hold a lone surrogate, which no process can tell another."""
    report = yield
    report.sections = [(title, text.encode(errors="backslashreplace").decode()) for title, text in report.sections]
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Close the run with what it has not tested."""
    skipped: list[pytest.TestReport] = terminalreporter.getreports("skipped")
    reasons = Counter(report.longrepr[2] for report in skipped if isinstance(report.longrepr, tuple))
    for reason, tests in reasons.items():
        why = reason.removeprefix("Skipped: ")
        terminalreporter.write_line(f"NOT TESTED ({tests} tests): {why}", yellow=True, bold=True)


def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where what all processes of a run share is."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if os.environ.get("PYTEST_XDIST_WORKER") is not None else base


@pytest.fixture(scope="session")
def broker_log(servers: str, tmp_path_factory: pytest.TempPathFactory) -> Path | None:  # noqa: ARG001 - it has to run
    """The log of the shared broker; None if it was given."""
    given = os.environ.get("SAFE_TEST_BOOTSTRAP_SERVERS")
    return None if given else shared_folder(tmp_path_factory) / "kafka" / "broker.log"


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The addresses of one broker for the whole run; tests share it by topics and groups of their own names."""
    given = os.environ.get("SAFE_TEST_BOOTSTRAP_SERVERS")
    if given:
        yield given
        return
    with ExitStack() as stack:
        try:
            shared = stack.enter_context(shared_broker(shared_folder(tmp_path_factory)))
        except BrokerUnavailableError as error:
            missing(f"no broker: {error}")
        yield shared


@pytest.fixture
def own_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., KafkaBroker]]:
    """Make brokers that a test may stop, kill and freeze: `own_broker(**{"some.setting": "value"})`."""
    made: list[KafkaBroker] = []

    def start(**settings: str) -> KafkaBroker:
        try:
            made.append(KafkaBroker(tmp_path_factory.mktemp("own-kafka"), libs=kafka_libs(), settings=settings))
            return made[-1].start()
        except BrokerUnavailableError as error:
            missing(f"no broker: {error}")

    yield start
    for each in made:
        each.stop(kill=True)


@pytest.fixture(scope="session")
def outside(servers: str) -> Iterator[Outside]:
    """A foreign client of the shared broker."""
    with Outside(servers) as client:
        yield client


@pytest.fixture(scope="session")
def real_cases() -> Path:
    """The folder of real test cases and outputs beside the repository; skipped loudly where there is none."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "real"
    if not folder.is_dir():
        pytest.skip(f"the real cases: there is no {folder.name} folder of them beside the repository")
    return folder
