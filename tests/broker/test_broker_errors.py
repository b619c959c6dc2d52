"""What brokers refuse is told in one sentence, with the setting at fault and the remedy, by real brokers."""

import re
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.case_files import GOOD, a_case, event, write_batch, write_events
from tests.support.kafka_broker import PROJECT, KafkaBroker
from tests.support.outside import Outside, Topics
from tests.support.site import Site
from tests.support.worker import Installation, why_it_ended

pytestmark = pytest.mark.broker

EXIT_UNUSABLE = 3


@pytest.fixture
def strict(own_broker: Callable[..., KafkaBroker]) -> Iterator[Outside]:
    """A broker that allows only short transactions, and only long sessions."""
    limits = {"transaction.max.timeout.ms": "2000", "group.min.session.timeout.ms": "30000"}
    with Outside(own_broker(**limits).bootstrap_servers) as outside:
        yield outside


def a_site(outside: Outside, folder: Path, **settings: str) -> Site:
    folder.mkdir(exist_ok=True)
    write_batch(folder / "cases", "batch_1", a_case("case_1"))
    return Site.build(outside, folder, folder / "cases", partitions=1, settings=settings)


def why(site: Site, folder: Path) -> str:
    """Run a worker that cannot serve, and return the sentence with which it ends."""
    done = site.installation.run("worker", folder=folder, timeout_seconds=60)
    assert done.returncode == EXIT_UNUSABLE, done.stderr
    return why_it_ended(done.stderr)


def test_limits_of_the_brokers_end_worker_and_publisher_with_the_setting_to_change(
    strict: Outside, tmp_path: Path
) -> None:
    site = a_site(strict, tmp_path / "short")
    said = why(site, tmp_path)
    for words in (site.group, "group.min.session.timeout.ms", "SAFE_V0_KAFKA_SESSION_TIMEOUT_SECONDS"):
        assert words in said

    long = a_site(strict, tmp_path / "long", SAFE_V0_KAFKA_SESSION_TIMEOUT_SECONDS="40")
    said = why(long, tmp_path)
    assert long.topics.scored in said or long.topics.input in said
    for words in ("transaction.max.timeout.ms", "SAFE_V0_KAFKA_SESSION_TIMEOUT_SECONDS"):
        assert words in said

    topic = f"cases-{uuid.uuid4().hex[:8]}"
    strict.create_topic(topic, config={"cleanup.policy": "compact"})
    done = site.installation.run("publish-cases", str(tmp_path / "short" / "cases"), "--topic", topic, folder=tmp_path)
    assert done.returncode != 0
    assert f"topic {topic}" in done.stderr
    assert "transaction.max.timeout.ms" in done.stderr


def test_an_address_given_to_clients_that_does_not_resolve_is_named(
    own_broker: Callable[..., KafkaBroker], tmp_path: Path
) -> None:
    servers = own_broker(**{"advertised.listeners": "PLAINTEXT://kafka.invalid:{port}"}).bootstrap_servers
    port = servers.rpartition(":")[2]
    (tmp_path / "cases").mkdir()
    impatient = {"SAFE_V0_START_PATIENCE_SECONDS": "1"}
    installation = Installation(servers, Topics.fresh(), "safe", str(tmp_path / "cases"), impatient)

    for command in (["worker"], ["topics", "create"]):
        done = installation.run(*command, folder=tmp_path, timeout_seconds=60)
        assert done.returncode == EXIT_UNUSABLE, done.stderr
        said = why_it_ended(done.stderr)
        for words in (f"{servers} answered", "advertised.listeners", f"kafka.invalid:{port}: "):
            assert words in said


def test_a_topic_that_is_refused_keeps_no_other_from_being_made(outside: Outside, tmp_path: Path) -> None:
    topics = Topics.fresh()
    outside.create_topic(topics.scored.replace(".", "_"))  # Kafka refuses names that differ only in this
    installation = Installation(outside.bootstrap_servers, topics, "safe", str(tmp_path))

    done = installation.run("topics", "create", "--partitions", "1", folder=tmp_path)

    assert done.returncode == EXIT_UNUSABLE
    said = why_it_ended(done.stderr)
    assert f"topic {topics.scored} cannot be created: " in said
    assert "collides" in said
    assert outside.partitions(topics.scored) == 0
    assert all(outside.partitions(name) == 1 for name in (topics.input, topics.state, topics.result, topics.report))


def test_the_page_on_clusters_has_a_command_that_leaves_settings_out(outside: Outside, tmp_path: Path) -> None:
    page = (PROJECT / "docs" / "reference" / "clusters.md").read_text(encoding="utf-8")
    [command] = re.findall(r"```bash\nsafe (.+)\n```", page)
    topics = Topics.fresh()
    installation = Installation(outside.bootstrap_servers, topics, "safe", str(tmp_path))

    done = installation.run(*command.split(), folder=tmp_path)

    assert done.returncode == 0, done.stderr
    assert "left out: min.cleanable.dirty.ratio, unclean.leader.election.enable; " in done.stdout
    assert outside.topic_config(topics.state)["min.cleanable.dirty.ratio"] == "0.5"
    assert outside.topic_config(topics.state)["cleanup.policy"] == "compact"


def test_an_event_that_its_topic_does_not_accept_is_told_with_the_topic_and_its_setting(
    outside: Outside, tmp_path: Path
) -> None:
    site = a_site(outside, tmp_path)
    outside.set_topic_config(site.topics.input, "max.message.bytes", "1000")
    large = event("case_1", {**GOOD, "summary": "x" * 3_000}, batch_id="batch_1")
    write_events(tmp_path / "events.jsonl", large)

    done = site.installation.run("publish", "events.jsonl", folder=tmp_path)

    assert done.returncode != 0
    assert f"topic {site.topics.input}: " in done.stderr
    assert "max.message.bytes" in done.stderr
