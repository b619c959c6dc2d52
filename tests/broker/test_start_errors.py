"""What is wrong at start ends the worker at once: exit 3, and one sentence that names the culprit and the remedy."""

import json
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from tests.support.cases import event_stream, make_batches, write_batches
from tests.support.kafka_broker import free_port
from tests.support.outside import Outgoing, Outside, Topics
from tests.support.site import Site
from tests.support.waiting import wait_until
from tests.support.worker import Installation, why_it_ended

pytestmark = pytest.mark.broker

START_ERROR_SECONDS = 15.0
EXIT_UNUSABLE = 3
BATCHES = make_batches(17, batches=1, cases_a_batch=2)


@dataclass(frozen=True, slots=True)
class Mistake:
    """One thing that is wrong with an otherwise usable installation, and the words that its error must hold.

    Words, settings and topics may name a topic by its role: `{state}` is the name of the state topic.
    """

    words: tuple[str, ...]
    settings: Mapping[str, str] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    policies: Mapping[str, str] = field(default_factory=dict)
    partitions: Mapping[str, int] = field(default_factory=dict)


ALL_TOPICS = ("input", "scored", "state", "result", "report", "dead_letter")

# What an operator may get wrong, by the sentence that says it.
IN_THE_CLUSTER: dict[str, Mistake] = {
    "no topic is there": Mistake(("{input}", "{scored}", "{dead_letter}", "safe topics create"), missing=ALL_TOPICS),
    "one topic is missing": Mistake(("{report}", "SAFE_V0_REPORT_TOPIC", "safe topics create"), missing=("report",)),
    "the result topic has more partitions": Mistake(
        ("{result} has 3 partitions", "{scored} has 2", "recreate the wrong one"), partitions={"result": 3}
    ),
    "the state topic has fewer partitions": Mistake(
        ("{state} has 1 partition", "{scored} has 2", "recreate the wrong one"), partitions={"state": 1}
    ),
    "the state topic is not compacted": Mistake(
        ("{state}", "cleanup.policy=delete", "cleanup.policy=compact"), policies={"state": "delete"}
    ),
    # Its rows would be deleted when their time is up.
    "the report topic is compacted and deleted": Mistake(
        ("{report}", "cleanup.policy=compact,delete", "set cleanup.policy=compact"),
        policies={"report": "compact,delete"},
    ),
    # Of two scored records of one case only the later would be folded.
    "the scored topic is compacted": Mistake(
        ("{scored}", "cleanup.policy=compact", "set cleanup.policy=delete"), policies={"scored": "compact"}
    ),
    "the input topic is compacted": Mistake(
        ("{input}", "cleanup.policy=compact", "set cleanup.policy=delete"), policies={"input": "compact"}
    ),
}
IN_THE_SETTINGS: dict[str, Mistake] = {
    "the folder of expectations is missing": Mistake(
        ("SAFE_V0_EXPECTATIONS", "/nowhere/to/be/found"), settings={"SAFE_V0_EXPECTATIONS": "/nowhere/to/be/found"}
    ),
    "no expectations are named": Mistake(("SAFE_V0_EXPECTATIONS", "is not set"), settings={"SAFE_V0_EXPECTATIONS": ""}),
    "a review threshold above its pass": Mistake(
        ("SAFE_V0_CR_REVIEW=0.9", "above", "pass 0.8"), settings={"SAFE_V0_CR_REVIEW": "0.9"}
    ),
    "an unknown variable": Mistake(
        ("SAFE_V0_CR_PAS", "did you mean SAFE_V0_CR_PASS?"), settings={"SAFE_V0_CR_PAS": "0.9"}
    ),
    "a value that does not parse": Mistake(
        ("SAFE_V0_BATCH_TTL_SECONDS=soon", "a whole number"), settings={"SAFE_V0_BATCH_TTL_SECONDS": "soon"}
    ),
    "two topics of one name": Mistake(
        ("SAFE_V0_REPORT_TOPIC={result}", "the same topic", "each needs its own"),
        settings={"SAFE_V0_REPORT_TOPIC": "{result}"},
    ),
    "a topic name with a colon": Mistake(
        ("SAFE_V0_RESULT_TOPIC=safe:v0:result", "colon"), settings={"SAFE_V0_RESULT_TOPIC": "safe:v0:result"}
    ),
    "credentials that would not be used": Mistake(
        ("SAFE_V0_KAFKA_SASL_USERNAME", "SAFE_V0_KAFKA_SECURITY_PROTOCOL"),
        settings={"SAFE_V0_KAFKA_SASL_USERNAME": "someone"},
    ),
    "TLS where the broker speaks none": Mistake(
        ("SAFE_V0_KAFKA_BOOTSTRAP_SERVERS", "security settings"), settings={"SAFE_V0_KAFKA_SECURITY_PROTOCOL": "SSL"}
    ),
}


def said_at_start(installation: Installation, folder: Path) -> str:
    """Run a worker that cannot start, and return its one sentence; before it there may be lines of the log, no more."""
    began = time.monotonic()
    done = installation.run("worker", folder=folder, timeout_seconds=60)
    seconds = time.monotonic() - began
    log = done.stderr.splitlines()
    assert done.returncode == EXIT_UNUSABLE, done.stderr
    assert seconds < START_ERROR_SECONDS, f"{seconds:.1f} s: {done.stderr}"
    assert not [line for line in log if "exception" in json.loads(line)], done.stderr
    assert done.stdout == ""
    return why_it_ended(done.stderr)


@pytest.fixture(scope="module")
def usable(outside: Outside, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """An installation with which nothing is wrong."""
    folder = tmp_path_factory.mktemp("usable")
    topics = Topics.fresh()
    outside.create_contract_topics(topics, partitions=2)
    expectations = str(write_batches(folder / "cases", BATCHES))
    anywhere = {"SAFE_V0_HTTP_ADDRESS": "127.0.0.1:0"}
    return Installation(outside.bootstrap_servers, topics, topics.input.partition(".")[0], expectations, anywhere)


def named(text: str, topics: Topics) -> str:
    """Put the names of topics where a text names them by their roles."""
    return text.format(**{role: getattr(topics, role) for role in ALL_TOPICS})


@pytest.mark.parametrize("sentence", IN_THE_SETTINGS)
def test_a_setting_that_cannot_be_used_is_named(sentence: str, usable: Installation, tmp_path: Path) -> None:
    mistake = IN_THE_SETTINGS[sentence]
    changed = {name: named(value, usable.topics) for name, value in mistake.settings.items()}

    said = said_at_start(replace(usable, settings={**usable.settings, **changed}), tmp_path)

    for word in mistake.words:
        assert named(word, usable.topics) in said


def with_the_mistake(mistake: Mistake, outside: Outside) -> Topics:
    """Make topics that are right but for the mistake."""
    topics = Topics.fresh()
    for role in set(ALL_TOPICS) - set(mistake.missing):
        compacted = role in {"state", "report"}
        policy = mistake.policies.get(role, "compact" if compacted else "delete")
        count = mistake.partitions.get(role, 2)
        outside.create_topic(getattr(topics, role), partitions=count, config={"cleanup.policy": policy})
    return topics


@pytest.mark.parametrize("sentence", IN_THE_CLUSTER)
def test_a_topic_that_cannot_be_used_is_named(
    sentence: str, usable: Installation, outside: Outside, tmp_path: Path
) -> None:
    mistake = IN_THE_CLUSTER[sentence]
    topics = with_the_mistake(mistake, outside)

    said = said_at_start(replace(usable, topics=topics), tmp_path)

    for word in mistake.words:
        assert named(word, topics) in said


@contextmanager
def listening() -> Iterator[int]:
    """A port on which somebody listens who never says anything."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        yield taken.getsockname()[1]


def test_a_port_in_use_is_named(usable: Installation, tmp_path: Path) -> None:
    with listening() as port:
        address = f"127.0.0.1:{port}"
        said = said_at_start(replace(usable, settings={"SAFE_V0_HTTP_ADDRESS": address}), tmp_path)

    assert f"SAFE_V0_HTTP_ADDRESS={address}" in said
    assert "choose another address or port" in said


@contextmanager
def nobody() -> Iterator[str]:
    """An address at which nobody listens."""
    yield f"127.0.0.1:{free_port()}"


@contextmanager
def mute() -> Iterator[str]:
    """An address at which somebody listens who is no broker."""
    with listening() as port:
        yield f"127.0.0.1:{port}"


@contextmanager
def unknown_host() -> Iterator[str]:
    """A host that no name server knows."""
    yield "broker.invalid:9092"


@pytest.mark.parametrize("address", [nobody, mute, unknown_host])
def test_an_address_without_a_broker_is_named(
    address: Callable[[], AbstractContextManager[str]], usable: Installation, tmp_path: Path
) -> None:
    with address() as servers:
        impatient = {"SAFE_V0_START_PATIENCE_SECONDS": "1", **usable.settings}
        said = said_at_start(replace(usable, bootstrap_servers=servers, settings=impatient), tmp_path)

    assert servers in said
    assert "SAFE_V0_KAFKA_BOOTSTRAP_SERVERS" in said


# --- what an earlier run has left -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def used(outside: Outside, tmp_path_factory: pytest.TempPathFactory) -> Site:
    """An installation that has scored something and has stopped in order."""
    folder = tmp_path_factory.mktemp("used")
    site = Site.build(outside, folder, write_batches(folder / "cases", BATCHES), partitions=2)
    run_to_rest(site, 20)
    return site


def run_to_rest(site: Site, count: int) -> None:
    """Have a worker score so many inputs, and stop it."""
    site.send(inputs(site, count))
    with site.worker() as worker:
        site.await_rest()
        assert worker.stop() == 0


def inputs(site: Site, count: int) -> list[Outgoing]:
    """Inputs of which none is poison, in the topic's partitions in turn."""
    partitions = site.outside.partitions(site.topics.input)
    stream = event_stream(17, BATCHES, count, partitions=1, poison=0.0)
    return [replace(record, partition=at % partitions) for at, record in enumerate(stream)]


def told(site: Site, **settings: str) -> Site:
    """The same installation with other settings, listening anywhere."""
    changed = {**site.installation.settings, "SAFE_V0_HTTP_ADDRESS": "127.0.0.1:0", **settings}
    return Site(site.outside, site.folder, replace(site.installation, settings=changed), site.oracle, site.workers)


@pytest.mark.parametrize("role", ["state", "result", "report"])
def test_a_topic_of_another_group_is_named_with_both_groups(
    role: str, used: Site, usable: Installation, tmp_path: Path
) -> None:
    topics = replace(usable.topics, input=used.topics.input, **{role: getattr(used.topics, role)})
    second = replace(usable, topics=topics, group="a-second-group")

    said = said_at_start(second, tmp_path)

    for word in (getattr(used.topics, role), used.group, "a-second-group", "SAFE_V0_KAFKA_GROUP_ID"):
        assert word in said


@pytest.fixture
def fresh(outside: Outside, tmp_path: Path) -> Iterator[Site]:
    """An installation that has scored something, for one test to break."""
    site = Site.build(outside, tmp_path, write_batches(tmp_path / "cases", BATCHES), partitions=1)
    run_to_rest(site, 10)
    yield site
    site.discard()


def test_a_state_that_was_deleted_under_its_offsets_is_not_begun_anew(fresh: Site) -> None:
    offset = fresh.outside.committed(f"{fresh.group}.aggregator", fresh.topics.scored)[0]
    fresh.outside.delete_topic(fresh.topics.state)
    wait_until(lambda: fresh.outside.partitions(fresh.topics.state) == 0, within_seconds=30, what="it is gone")
    fresh.outside.create_topic(fresh.topics.state, config={"cleanup.policy": "compact"})

    said = said_at_start(told(fresh).installation, fresh.folder)

    for word in (f"committed up to {offset}", fresh.topics.state, "Restore it from a copy", "Starting over"):
        assert word in said
    assert len(fresh.outside.read(fresh.topics.result)) == 10


def forget_input_offsets(site: Site) -> None:
    """Take the scorer's offsets away, as their expiry does."""
    site.outside.admin.delete_consumer_groups([site.group])[site.group].result(30)
    wait_until(
        lambda: not site.outside.committed(site.group, site.topics.input), within_seconds=30, what="no offset is left"
    )


def test_input_offsets_that_have_expired_are_asked_for_and_begun_as_told(fresh: Site) -> None:
    forget_input_offsets(fresh)

    said = said_at_start(told(fresh).installation, fresh.folder)
    for word in (fresh.group, fresh.topics.input, "SAFE_V0_INPUT_START=earliest", "latest"):
        assert word in said

    run_to_rest(told(fresh, SAFE_V0_INPUT_START="earliest"), 1)
    ids = [record.header("ce_id") for record in fresh.outside.read(fresh.topics.result)]
    assert ids == [*ids[:10], *ids[:10], ids[-1]]  # everything once more, and what is new
    before, again = (fresh.outside.read(fresh.topics.result)[at].json()["summary"] for at in (9, 19))
    assert before == again


def test_from_the_latest_on_is_from_where_the_first_worker_began(outside: Outside, tmp_path: Path) -> None:
    site = Site.build(outside, tmp_path, write_batches(tmp_path / "cases", BATCHES), partitions=2)
    latest = told(site, SAFE_V0_INPUT_START="latest")
    site.send([replace(record, partition=0) for record in inputs(site, 5)])
    with latest.worker(name="first") as first:
        wait_until(
            lambda: site.outside.committed(site.group, site.topics.input) == {0: 5, 1: 0},
            within_seconds=20,
            what="both beginnings are noted",
        )
        assert first.stop() == 0
    # While nobody listens: to the partition that had records, and to the one that had none.
    site.send(inputs(site, 6))
    with latest.worker(name="second"):
        site.await_rest()

    sources = [record.json()["source"] for record in outside.read(site.topics.result)]
    assert sorted((source["partition"], source["offset"]) for source in sources) == [
        *((0, offset) for offset in (5, 6, 7)),
        *((1, offset) for offset in (0, 1, 2)),
    ]


def test_records_deleted_before_they_were_read_stop_the_worker_or_are_passed_over_as_told(fresh: Site) -> None:
    fresh.send(inputs(fresh, 6))
    # Fifteen of sixteen records are deleted; ten had been read.
    fresh.outside.delete_records(fresh.topics.input, 0, 15)

    worker = told(fresh).spawn("stopped")
    assert worker.wait(within_seconds=START_ERROR_SECONDS) == EXIT_UNUSABLE
    said = worker.log_text().splitlines()[-1]
    for word in ("offset 10", f"{fresh.topics.input}/0", "SAFE_V0_OFFSET_OUT_OF_RANGE=earliest"):
        assert word in said
    assert "Traceback" not in worker.log_text()

    run_to_rest(told(fresh, SAFE_V0_OFFSET_OUT_OF_RANGE="earliest"), 1)
    offsets = [record.json()["source"]["offset"] for record in fresh.outside.read(fresh.topics.result)]
    assert offsets == [*range(10), 15, 16]
