"""Everything here asks Helm."""

import pytest

from tests.support.chart import need


@pytest.fixture(scope="session", autouse=True)
def helm() -> None:
    """What renders the chart."""
    need("helm")
