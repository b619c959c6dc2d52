"""The tools that these tests need; without one the test is skipped loudly, and fails in CI."""

import pytest

from tests.conftest import missing
from tests.support.prometheus import ToolMissingError, tool


def _need(*names: str) -> None:
    try:
        for name in names:
            tool(name)
    except ToolMissingError as error:
        missing(str(error))


@pytest.fixture(scope="session")
def promtool() -> None:
    """The judge of rules and pages."""
    _need("promtool")


@pytest.fixture(scope="session")
def amtool() -> None:
    """The judge of what Alertmanager is told."""
    _need("amtool")


@pytest.fixture(scope="session")
def compose_go() -> None:
    """The parser that container engines use for compose files."""
    _need("compose-go")


@pytest.fixture(scope="session")
def watchers() -> None:
    """A Prometheus and an Alertmanager to run."""
    _need("promtool", "prometheus", "alertmanager")
