"""Sites on the shared broker."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from consumer.kafka.patches import install_patches
from consumer.settings import Settings
from tests.support.broker_log import complaints, names_of
from tests.support.outside import Outside
from tests.support.site import Site


@pytest.fixture(autouse=True, scope="session")
def patched_client() -> None:
    """The client as every command has it, for the tests that use one in this process."""
    install_patches(Settings())


@pytest.fixture
def site_over(
    outside: Outside, tmp_path: Path, broker_log: Path | None, request: pytest.FixtureRequest
) -> Iterator[Callable[..., Site]]:
    """Make an installation over a folder of test cases: `site_over(folder, partitions=4, settings={…})`.

    What the shared broker's log complains of in its name fails the test, unless it is marked `provokes_warnings`.
    """
    made: list[Site] = []

    def build(cases: Path, *, partitions: int = 4, settings: dict[str, str] | None = None) -> Site:
        made.append(Site.build(outside, tmp_path, cases, partitions=partitions, settings=settings))
        return made[-1]

    yield build
    for site in made:
        site.discard()
        if broker_log is not None and not request.node.get_closest_marker("provokes_warnings"):
            assert complaints(broker_log, names_of(site)) == []
