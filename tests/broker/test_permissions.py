"""What permissions.md grants is enough, and each of its grants is needed: whoever lacks one is told so.

The page's commands are read as `kafka-acls.sh` reads them, and made so on a broker that asks for a user.
"""

import os
import random
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)
from typing_extensions import override

from tests.compatibility.frozen import GROUP, TOPICS
from tests.conftest import missing
from tests.support.cases import encoded, make_batches, make_event, write_batches
from tests.support.kafka_broker import PROJECT, BrokerUnavailableError, KafkaBroker, free_port, kafka_libs
from tests.support.outside import CALL_SECONDS, Outgoing, Outside, Record, Topics
from tests.support.waiting import wait_until
from tests.support.worker import Installation, Worker, running

pytestmark = pytest.mark.broker

PAGE = (PROJECT / "docs" / "reference" / "permissions.md").read_text(encoding="utf-8")
CASES = "safe.v0.cases"
BATCHES = make_batches(71, batches=2, cases_a_batch=8)
PASSWORD = "correct-horse-2b9d"  # noqa: S105 # of a broker that lives for a minute
EXIT_UNUSABLE = 3
NOTICED_SECONDS = 40.0
QUICK = {"SAFE_V0_KAFKA_SESSION_TIMEOUT_SECONDS": "3"}


# --- what the page grants ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, order=True)
class Grant:
    """One rule: who may do what to which resource."""

    user: str
    kind: str
    name: str
    prefixed: bool
    operation: str

    @override
    def __str__(self) -> str:
        return f"{self.operation} {self.kind} {self.name}"

    def binding(self) -> AclBinding:
        """The rule as the client writes it."""
        return AclBinding(
            ResourceType[self.kind],
            self.name,
            ResourcePatternType.PREFIXED if self.prefixed else ResourcePatternType.LITERAL,
            f"User:{self.user}",
            "*",
            AclOperation[self.operation],
            AclPermissionType.ALLOW,
        )

    def filter(self) -> AclBindingFilter:
        """What matches this one rule."""
        rule = self.binding()
        return AclBindingFilter(
            rule.restype,
            rule.name,
            rule.resource_pattern_type,
            rule.principal,
            rule.host,
            rule.operation,
            rule.permission_type,
        )


KINDS = {"--topic": "TOPIC", "--group": "GROUP", "--transactional-id": "TRANSACTIONAL_ID"}
WHAT_ACL_IS = 'acl() { kafka-acls.sh --bootstrap-server broker-1:9092 --add --allow-principal "User:$1" "${@:2}"; }'


def grants_of(command: str) -> Iterator[Grant]:
    """Read one command as the tool does: every operation on every resource."""
    _, user, *words = shlex.split(command)
    given = list(zip(words[::2], words[1::2], strict=True))
    assert {name for name, _ in given} <= {"--operation", "--resource-pattern-type", *KINDS}
    prefixed = ("--resource-pattern-type", "prefixed") in given
    for option, name in given:
        for operation in [value for each, value in given if each == "--operation"] if option in KINDS else []:
            yield Grant(user, KINDS[option], name, prefixed, operation.upper())


def on_the_page() -> dict[str, list[Grant]]:
    """The grants of each user, by the command that stands above them in a comment."""
    [script] = re.findall(r"^```bash\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    lines = script.replace("\\\n", " ").splitlines()
    found: dict[str, list[Grant]] = {}
    command = ""
    for line in lines:
        if line.startswith("# "):
            command = line.removeprefix("# ")
        elif line.startswith("acl "):
            found.setdefault(command, []).extend(grants_of(line))
        else:
            assert line in {"", WHAT_ACL_IS}
    return found


GRANTS = on_the_page()
ROLES = {"all": "safe worker", "scorer": "safe worker --role scorer", "aggregator": "safe worker --role aggregator"}
COLUMNS = {
    "input": TOPICS.input,
    "scored": TOPICS.scored,
    "state": TOPICS.state,
    "result": TOPICS.result,
    "report": TOPICS.report,
    "dead-letter": TOPICS.dead_letter,
    "cases": CASES,
}


def test_the_table_says_what_the_commands_grant() -> None:
    head, _, *rows = [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in PAGE.splitlines() if line.startswith("|")
    ]
    granted = {
        command: [
            ", ".join(sorted({grant.operation.capitalize() for grant in grants if belongs(grant, column)}))
            for column in head[1:]
        ]
        for command, grants in GRANTS.items()
    }
    assert {row[0].replace("`", ""): row[1:] for row in rows} == granted


def belongs(grant: Grant, column: str) -> bool:
    if grant.kind == "TOPIC":
        return COLUMNS.get(column) == grant.name
    return column == {"GROUP": "group", "TRANSACTIONAL_ID": "transactional ids"}[grant.kind]


def test_both_roles_in_one_need_what_each_needs() -> None:
    def resources(*roles: str) -> set[tuple[str, str, str]]:
        grants = [grant for role in roles for grant in GRANTS[ROLES[role]]]
        ids = f"{GROUP}:"
        return {(grant.operation, grant.kind, ids if grant.name.startswith(ids) else grant.name) for grant in grants}

    assert resources("all") == resources("scorer", "aggregator")
    assert all(grant.name != TOPICS.scored or grant.operation == "WRITE" for grant in GRANTS[ROLES["scorer"]])


# --- a cluster that asks ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Cluster:
    """A broker with an authorizer; `outside` may do everything, at `servers` one must log in."""

    outside: Outside
    servers: str
    folder: Path

    def grant(self, grants: Sequence[Grant]) -> None:
        """Allow, and wait until it holds."""
        for done in self.outside.admin.create_acls([grant.binding() for grant in grants]).values():
            done.result(CALL_SECONDS)
        self._await(lambda: all(self._holds(grant) for grant in grants))

    def take_away(self, grants: Sequence[Grant]) -> None:
        """Allow no more, and wait until that holds."""
        for done in self.outside.admin.delete_acls([grant.filter() for grant in grants]).values():
            done.result(CALL_SECONDS)
        self._await(lambda: not any(self._holds(grant) for grant in grants))

    @contextmanager
    def without(self, grant: Grant) -> Iterator[None]:
        """Take one away for as long as the block lasts."""
        self.take_away([grant])
        try:
            yield
        finally:
            self.grant([grant])

    def _await(self, condition: Callable[[], bool]) -> None:
        wait_until(condition, within_seconds=CALL_SECONDS, what="the broker knows its rules")

    def _holds(self, grant: Grant) -> bool:
        return bool(self.outside.admin.describe_acls(grant.filter()).result(CALL_SECONDS))

    def installation(self, user: str, **settings: str) -> Installation:
        """The installation as this user reaches it."""
        login = {
            "SAFE_V0_KAFKA_SECURITY_PROTOCOL": "SASL_PLAINTEXT",
            "SAFE_V0_KAFKA_SASL_MECHANISM": "PLAIN",
            "SAFE_V0_KAFKA_SASL_USERNAME": user,
            "SAFE_V0_KAFKA_SASL_PASSWORD": PASSWORD,
        }
        return Installation(self.servers, TOPICS, GROUP, f"topic:{CASES}", QUICK | login | settings)

    def run(self, user: str, *arguments: str) -> tuple[int, str]:
        """Run a command as a user; returns the exit code and its last line."""
        done = self.installation(user).run(*arguments, folder=self.folder)
        said = (done.stdout + done.stderr).strip().splitlines()
        assert "Traceback" not in done.stderr
        return done.returncode, said[-1]


def asking_broker(folder: Path, users: Sequence[str]) -> tuple[KafkaBroker, str]:
    """A broker with an authorizer; its second listener, at the address returned, asks for a user and the password."""
    port, login = free_port(), "org.apache.kafka.common.security.plain.PlainLoginModule"
    listener = f"SASL_PLAINTEXT://127.0.0.1:{port}"
    known = " ".join(f'user_{user}="{PASSWORD}"' for user in users)
    settings = {
        "listeners": f"PLAINTEXT://127.0.0.1:{{port}},CONTROLLER://127.0.0.1:{{controller_port}},{listener}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{{port}},{listener}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f"{login} required {known};",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",  # whoever comes by the first listener
    }
    return KafkaBroker(folder, libs=kafka_libs(), settings=settings), f"127.0.0.1:{port}"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster with every user of the page, and the topics as they make them."""
    folder = tmp_path_factory.mktemp("asking")
    everything = [grant for grants in GRANTS.values() for grant in grants]
    try:
        broker, servers = asking_broker(folder, sorted({grant.user for grant in everything}))
        broker.start()
    except BrokerUnavailableError as error:
        missing(f"no broker: {error}")
    try:
        with Outside(broker.bootstrap_servers) as outside:
            made = Cluster(outside, servers, folder)
            made.grant(everything)
            assert made.run("safe-topics", "topics", "create", "--partitions", "1")[0] == 0
            write_batches(folder / "cases", BATCHES)
            assert made.run("safe-cases", "publish-cases", str(folder / "cases"))[0] == 0
            yield made
    finally:
        broker.stop(kill=True)


# --- workers ----------------------------------------------------------------------------------------------------------


def inputs(at: int = 0) -> list[Outgoing]:
    """One that can be scored, and one that cannot."""
    event = make_event(random.Random(at), BATCHES[0].cases[at], quality="pass", size=0)
    return [Outgoing(encoded(event), partition=0), Outgoing(b"rubbish", partition=0)]


@pytest.fixture(scope="module")
def scored(cluster: Cluster) -> Record:
    """A scored record, as a worker of both roles has made it that has what the page grants."""
    cluster.outside.produce(TOPICS.input, inputs())
    with running(cluster.installation("safe"), cluster.folder) as worker:
        await_rest(cluster, "all")
        assert "not authorized" not in worker.log_text()
        assert worker.stop() == 0
    [record] = cluster.outside.read(TOPICS.scored)
    assert len(cluster.outside.read(TOPICS.dead_letter)) == 1
    return record


def feed(cluster: Cluster, role: str, scored: Record) -> None:
    """Give a role something to do that takes all of its rights."""
    if role == "scorer":
        cluster.outside.produce(TOPICS.input, inputs(1))
        return
    again = [Outgoing(value, scored.key, scored.headers, partition=0) for value in (scored.value, b"rubbish")]
    cluster.outside.produce(TOPICS.scored, again)


def rests(cluster: Cluster, role: str) -> bool:
    by_scorer = role == "aggregator" or cluster.outside.lag(GROUP, TOPICS.input) == 0
    return by_scorer and (role == "scorer" or cluster.outside.lag(f"{GROUP}.aggregator", TOPICS.scored) == 0)


def await_rest(cluster: Cluster, role: str) -> None:
    wait_until(lambda: rests(cluster, role), within_seconds=NOTICED_SECONDS, what="all is read", every_seconds=0.2)
    cluster.outside.await_decided(TOPICS.outputs())


def test_both_roles_do_their_work_with_what_is_granted(cluster: Cluster, scored: Record) -> None:
    [result] = cluster.outside.read(TOPICS.result)
    assert result.json()["source"]["offset"] == scored.json()["source"]["offset"] == 0


@pytest.mark.parametrize("role", ["scorer", "aggregator"])
def test_a_role_alone_does_its_work_with_what_is_granted(role: str, cluster: Cluster, scored: Record) -> None:
    dead = len(cluster.outside.read(TOPICS.dead_letter))
    feed(cluster, role, scored)
    with running(cluster.installation(f"safe-{role}"), cluster.folder, role=role) as worker:
        await_rest(cluster, role)
        told = [line["why"] for line in worker.log_lines() if line["event"] == "the brokers do not tell the time"]
        assert worker.stop() == 0
    assert len(cluster.outside.read(TOPICS.dead_letter)) == dead + 1
    assert [TOPICS.scored in why and "not authorised" in why for why in told] == [True] * (role == "scorer")


APART = [(role, grant) for role in ("scorer", "aggregator") for grant in GRANTS[ROLES[role]]]


@pytest.mark.parametrize(("role", "lacking"), APART, ids=[f"{role} {grant}" for role, grant in APART])
def test_a_role_that_lacks_one_grant_does_not_serve_and_says_why(
    role: str, lacking: Grant, cluster: Cluster, scored: Record
) -> None:
    words = named(lacking)
    with cluster.without(lacking):
        feed(cluster, role, scored)
        worker = Worker(cluster.installation(lacking.user), cluster.folder, role=role)
        try:
            said = wait_until(
                lambda: told(worker, words),
                within_seconds=NOTICED_SECONDS,
                what=f"it lacks {lacking}",
                every_seconds=0.1,
            )
            assert not rests(cluster, role), f"{lacking} is not needed"
        finally:
            worker.discard()
    assert "Traceback" not in worker.log_text()
    assert words in said


def told(worker: Worker, words: str) -> str | None:
    """Its last line if it has ended, or why it is not ready, in these words; None while it says neither."""
    if worker.exit_code is not None:
        assert worker.exit_code == EXIT_UNUSABLE
        return worker.log_text().splitlines()[-1]
    with suppress(OSError):
        status, text = worker.get("/readyz")
        return text if status != 200 and words in text else None
    return None


def named(grant: Grant) -> str:
    return "transactional ids" if grant.kind == "TRANSACTIONAL_ID" else grant.name


@pytest.mark.parametrize("kind", ["input", "scored", "state", "report"])
def test_a_right_that_is_taken_away_ends_the_worker_with_that_sentence_alone(
    kind: str, cluster: Cluster, scored: Record
) -> None:
    assert scored.topic == TOPICS.scored
    topic = COLUMNS[kind]
    grants = [grant for grant in GRANTS[ROLES["all"]] if grant.name == topic]
    with running(cluster.installation("safe"), cluster.folder) as worker:
        cluster.take_away(grants)
        try:
            assert worker.wait(within_seconds=NOTICED_SECONDS) == EXIT_UNUSABLE
        finally:
            cluster.grant(grants)
        log = worker.log_text()
    said = log.splitlines()[-1]
    assert topic in said
    assert "not authorised for the topic" in said
    assert "disappeared" not in log
    assert "polling fails" not in log


def test_without_transactions_no_transactional_id_is_needed(cluster: Cluster, scored: Record) -> None:
    [ids] = [grant for grant in GRANTS[ROLES["all"]] if grant.kind == "TRANSACTIONAL_ID"]
    plain = cluster.installation(ids.user, SAFE_V0_DELIVERY="at_least_once")
    with cluster.without(ids):
        feed(cluster, "scorer", scored)
        with running(plain, cluster.folder) as worker:
            await_rest(cluster, "all")
            assert worker.stop() == 0


def test_whoever_may_describe_configurations_is_warned_of_them(cluster: Cluster, scored: Record) -> None:
    assert scored.topic == TOPICS.scored
    more = [Grant("safe", "TOPIC", topic, prefixed=False, operation="DESCRIBE_CONFIGS") for topic in COLUMNS.values()]
    cluster.outside.set_topic_config(TOPICS.scored, "retention.ms", "3600000")
    with running(cluster.installation("safe"), cluster.folder, name="blind") as worker:
        blind = worker.log_text()
    cluster.grant(more)
    with running(cluster.installation("safe"), cluster.folder, name="seeing") as worker:
        seeing = worker.log_text()
    cluster.take_away(more)
    cluster.outside.set_topic_config(TOPICS.scored, "retention.ms", "604800000")

    assert "retention.ms" not in blind
    assert f"{TOPICS.scored} has retention.ms=3600000; 604800000 is recommended" in seeing


# --- commands ---------------------------------------------------------------------------------------------------------


def lacking_one(command: str) -> Sequence[object]:
    """Every grant of a command, as parameters."""
    return [pytest.param(grant, id=str(grant)) for grant in GRANTS[command]]


def assert_refused(answer: tuple[int, str], lacking: Grant) -> None:
    exit_code, said = answer
    assert exit_code == EXIT_UNUSABLE, f"{lacking} is not needed: {said}"
    assert said.startswith("safe: error: ")
    assert lacking.name.removeprefix("safe-publish-cases:") in said


def may_create(cluster: Cluster, fresh: Topics) -> tuple[Installation, list[Grant]]:
    """Allow the page's user to create other topics than those of the page."""
    names = {getattr(TOPICS, each.name): getattr(fresh, each.name) for each in fields(Topics)}
    names |= {CASES: f"{fresh.input}.cases"}
    grants = [replace(grant, name=names.get(grant.name, grant.name)) for grant in GRANTS["safe topics create"]]
    cluster.grant(grants)
    cases = {"SAFE_V0_EXPECTATIONS": f"topic:{names[CASES]}"}
    return replace(cluster.installation(grants[0].user, **cases), topics=fresh), grants


@pytest.mark.parametrize("operation", ["CREATE", "DESCRIBE"])
def test_topics_are_made_by_whom_the_page_says_and_by_nobody_else(operation: str, cluster: Cluster) -> None:
    installation, grants = may_create(cluster, Topics.fresh())
    lacking = next(grant for grant in grants if grant.operation == operation)
    with cluster.without(lacking):
        done = installation.run("topics", "create", folder=cluster.folder)
    again = installation.run("topics", "create", folder=cluster.folder)

    assert_refused((done.returncode, done.stderr.splitlines()[-1]), lacking)
    assert again.returncode == 0
    assert len(again.stdout.splitlines()) == len({grant.name for grant in grants if grant.kind == "TOPIC"})


@pytest.mark.parametrize("may_ask", [True, False])
def test_only_who_may_ask_about_the_group_notices_a_lost_state(may_ask: bool, cluster: Cluster) -> None:
    fresh = Topics.fresh()
    installation, grants = may_create(cluster, fresh)
    assert installation.run("topics", "create", folder=cluster.folder).returncode == 0
    [of_group] = [grant for grant in grants if grant.kind == "GROUP"]
    read = ConsumerGroupTopicPartitions(of_group.name, [TopicPartition(fresh.scored, 0, 0)])
    for done in cluster.outside.admin.alter_consumer_group_offsets([read]).values():
        done.result(CALL_SECONDS)
    cluster.outside.delete_topic(fresh.state)
    with nullcontext() if may_ask else cluster.without(of_group):
        again = installation.run("topics", "create", folder=cluster.folder)
    assert again.returncode == (EXIT_UNUSABLE if may_ask else 0), again.stderr
    assert ("are lost, and an empty topic would not" in again.stderr) is may_ask


@pytest.mark.parametrize("lacking", lacking_one("safe publish"))
def test_events_are_published_by_whom_the_page_says(lacking: Grant, cluster: Cluster) -> None:
    file = cluster.folder / "events.jsonl"
    file.write_bytes(inputs(2)[0].value or b"")
    with cluster.without(lacking):
        assert_refused(cluster.run(lacking.user, "publish", str(file)), lacking)
    assert cluster.run(lacking.user, "publish", str(file))[0] == 0


@pytest.mark.parametrize("lacking", lacking_one("safe publish-cases"))
def test_test_cases_are_published_by_whom_the_page_says(lacking: Grant, cluster: Cluster, tmp_path: Path) -> None:
    write_batches(tmp_path, make_batches(len(str(lacking)), batches=1))  # others than those that are there
    with cluster.without(lacking):
        assert_refused(cluster.run(lacking.user, "publish-cases", str(tmp_path)), lacking)
    assert cluster.run(lacking.user, "publish-cases", str(tmp_path))[0] == 0


def commit_without_note(cluster: Cluster) -> None:
    """Do for the end of the input what an operator does with Kafka's own tool."""
    end = cluster.outside.ends(TOPICS.input)[0].stable
    strange = ConsumerGroupTopicPartitions(GROUP, [TopicPartition(TOPICS.input, 0, end)])
    for done in cluster.outside.admin.alter_consumer_group_offsets([strange]).values():
        done.result(CALL_SECONDS)


OFFSETS = {
    "show": ("show",),
    "accept": ("accept", "--to-last-result", "--execute"),
    "reset": ("reset", "--to-latest", "--execute"),
}


@pytest.mark.parametrize(
    ("command", "lacking"),
    [
        pytest.param(command, grant, id=f"{command} {grant}")
        for command in OFFSETS
        for grant in GRANTS[f"safe offsets {command}"]
    ],
)
def test_offsets_are_changed_by_whom_the_page_says(
    command: str, lacking: Grant, cluster: Cluster, scored: Record
) -> None:
    commit_without_note(cluster)
    with cluster.without(lacking):
        exit_code, said = cluster.run(lacking.user, "offsets", *OFFSETS[command])
        assert exit_code == EXIT_UNUSABLE, f"{lacking} is not needed: {said}"
        assert said.startswith("safe: error: ")
        assert named(lacking) in said
    assert cluster.run(lacking.user, "offsets", *OFFSETS[command])[0] == 0
    assert cluster.run("safe-offsets-reset", "offsets", "reset", "--to-latest", "--execute")[0] == 0
    assert scored.topic == TOPICS.scored


@pytest.fixture(scope="module")
def letters(cluster: Cluster, scored: Record) -> int:
    """Dead letters of both stages, of each one whose value is too large to be kept; returns how many."""
    large = os.urandom(1_060_000)
    cluster.outside.produce(TOPICS.input, [Outgoing(large, partition=0)])
    cluster.outside.produce(TOPICS.scored, [Outgoing(large, b"x", scored.headers, partition=0)])
    feed(cluster, "scorer", scored)
    feed(cluster, "aggregator", scored)
    with running(cluster.installation("safe"), cluster.folder) as worker:
        await_rest(cluster, "all")
        assert worker.stop() == 0
    found = cluster.outside.read(TOPICS.dead_letter)
    omitted = {record.header("safe.dlq.stage") for record in found if record.header("safe.dlq.value_omitted")}
    assert omitted == {"scorer", "aggregator"}
    return len(found)


@pytest.mark.parametrize("lacking", lacking_one("safe dead-letters list, show"))
def test_dead_letters_are_looked_at_by_whom_the_page_says(lacking: Grant, letters: int, cluster: Cluster) -> None:
    for command in (("list",), ("show", "0/0")):
        with cluster.without(lacking):
            assert_refused(cluster.run(lacking.user, "dead-letters", *command), lacking)
        assert cluster.run(lacking.user, "dead-letters", *command)[0] == 0
    assert letters > 0


@pytest.mark.parametrize("lacking", [*lacking_one("safe results"), *lacking_one("safe results --outputs")])
def test_results_are_looked_at_by_whom_the_page_says(lacking: Grant, scored: Record, cluster: Cluster) -> None:
    shows = {TOPICS.report: ("--format", "json", "--reports"), TOPICS.result: ("--format", "json")}
    options = shows.get(lacking.name, ("--outputs", "--batch", "*"))
    with cluster.without(lacking):
        assert_refused(cluster.run(lacking.user, "results", *options), lacking)
    assert cluster.run(lacking.user, "results", *options)[0] == 0
    assert scored.topic == TOPICS.scored


@pytest.mark.parametrize("lacking", lacking_one("safe dead-letters replay"))
def test_dead_letters_are_sent_again_by_whom_the_page_says(lacking: Grant, letters: int, cluster: Cluster) -> None:
    with cluster.without(lacking):
        exit_code, said = cluster.run(lacking.user, "dead-letters", "replay", "--all", "--yes")
    assert exit_code != 0, f"{lacking} is not needed: {said}"
    exit_code, said = cluster.run(lacking.user, "dead-letters", "replay", "--all", "--yes")
    assert exit_code == 0
    assert re.match(rf"replayed {letters} of {letters} dead letters", said)
