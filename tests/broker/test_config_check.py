"""`safe config check` on a real broker: what a worker with these settings would find, and nothing is changed."""

from pathlib import Path

import pytest

from tests.support.cases import make_batches, write_batches
from tests.support.forked_commands import run_safe
from tests.support.outside import Outside
from tests.support.site import Site

pytestmark = pytest.mark.broker
SECONDS = 60.0


def checked(site: Site, folder: Path, **changes: str) -> tuple[int, str]:
    environment = site.installation.environment() | changes
    said = run_safe(["config", "check"], folder=folder, environment=environment, timeout_seconds=SECONDS)
    return said.returncode, said.stdout + said.stderr


@pytest.fixture
def site(outside: Outside, tmp_path: Path) -> Site:
    return Site.build(outside, tmp_path, write_batches(tmp_path / "cases", make_batches(1, batches=1, cases_a_batch=2)))


def test_brokers_topics_and_test_cases_are_asked(site: Site, tmp_path: Path) -> None:
    code, said = checked(site, tmp_path)
    assert code == 0, said
    for words in ("settings: valid", "brokers: ", "topics: ", "test cases: "):
        assert words in said


@pytest.mark.parametrize(
    ("expectations", "words"),
    [("{cases}", "test cases: {cases} answers look-ups"), ("{cases}/none", "{cases}/none cannot be read")],
)
def test_where_no_broker_answers_a_folder_of_test_cases_is_tried_all_the_same(
    site: Site, tmp_path: Path, expectations: str, words: str
) -> None:
    cases = site.installation.expectations
    code, said = checked(
        site, tmp_path,
        SAFE_V0_KAFKA_BOOTSTRAP_SERVERS="127.0.0.1:1", SAFE_V0_EXPECTATIONS=expectations.format(cases=cases),
    )  # fmt: skip
    assert code == 3
    assert "check --bootstrap-servers" in said
    assert words.format(cases=cases) in said


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("SAFE_V0_STATE_TOPIC", "no.such.topic", "missing topic: no.such.topic"),
        ("SAFE_V0_EXPECTATIONS", "topic:no.such.cases", "no.such.cases"),
        ("SAFE_V0_KAFKA_BOOTSTRAP_SERVERS", "127.0.0.1:1", "127.0.0.1:1"),
    ],
)
def test_what_is_not_there_is_named(site: Site, tmp_path: Path, variable: str, value: str, words: str) -> None:
    code, said = checked(site, tmp_path, **{variable: value})
    assert code == 3
    assert words in said
