"""Eight secrets are planted, and nothing that SAFE says, writes or shows in any trouble holds a piece of one.

Logs of every level and form, metrics, health answers, command lines, headers, results, reports, error sentences.
"""

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from consumer.dead_letter_reasons import REASONS
from tests.support.case_service import CaseService, Mode
from tests.support.cases import encoded, make_batches, make_event, write_batches
from tests.support.kafka_broker import KafkaBroker, free_port
from tests.support.outside import Outgoing, Outside, Record
from tests.support.secrecy import OF_OTHERS, OUTPUT, SASL_PASSWORD, TEST_ID, TOKEN, leaks, with_userinfo
from tests.support.site import Site
from tests.support.waiting import wait_until
from tests.support.worker import Worker

pytestmark = pytest.mark.broker

Json = Any
BATCHES = make_batches(59, batches=2, cases_a_batch=4)
BATCH = BATCHES[0]
EXIT_UNUSABLE = 3
PASSWORD = SASL_PASSWORD.text
NOTICED_SECONDS = 30.0
RECOVERED_SECONDS = 40.0
PLAINLY = {"SAFE_V0_LOG_LEVEL": "debug", "SAFE_V0_MAX_VALUE_BYTES": "32768", **OF_OTHERS}
FORMATS = ("json", "console")
PAGES = ("/metrics", "/readyz", "/livez", "/elsewhere")


# --- what is sent -----------------------------------------------------------------------------------------------------


def event(at: int = 0, **changes: Json) -> bytes:
    """An event whose output holds the secret in every field, read or not."""
    good = make_event(random.Random(at), BATCH.cases[at], quality="pass", size=900)
    output = {name: [OUTPUT.text] for name in ("signals", "followup_questions")}
    answer = {**good["output"], **output, "summary": OUTPUT.text, "raw_input": OUTPUT.text}
    return encoded({**good, "output": answer, **changes})


def held_back(**changes: Json) -> bytes:
    """An event whose test_id is secret."""
    return event(**{"test_id": TEST_ID.text, **changes})


# reason → an input that becomes a dead letter for it, with secrets wherever it has room for them
POISON: Mapping[str, Outgoing] = {
    "empty_value": Outgoing(b""),
    "too_large": Outgoing(held_back(trace="x" * 33_000)),
    "unsupported_version": Outgoing(held_back(), headers=(("ce_specversion", b"0.3"),)),
    "not_utf8": Outgoing(held_back() + b"\xff"),
    "invalid_json": Outgoing(held_back()[:-1]),
    "too_deep": Outgoing(b"[" * 70 + held_back() + b"]" * 70),
    "duplicate_key": Outgoing(held_back()[:-1] + f', "{TEST_ID.text}": 1, "{TEST_ID.text}": 2}}'.encode()),
    "invalid_number": Outgoing(held_back()[:-1] + f', "{TEST_ID.text}": 1e999}}'.encode()),
    "not_object": Outgoing(encoded([TEST_ID.text, OUTPUT.text])),
    "invalid_event": Outgoing(held_back(output=OUTPUT.text)),
    "invalid_id": Outgoing(event(test_id=f"{TEST_ID.text}\n")),
    "expectations_not_found": Outgoing(held_back()),
    "expectations_ambiguous": Outgoing(held_back(test_id=f"{TEST_ID.text} twice", batch_id="none")),
    "expectations_invalid": Outgoing(held_back(test_id=f"{TEST_ID.text} blank")),
    "result_too_large": Outgoing(held_back(test_id=f"{TEST_ID.text} large")),
}
NO_INPUT_GIVES = frozenset({"scorer_error"})


def good_inputs() -> list[Outgoing]:
    return [
        Outgoing(event(at), key=OUTPUT.text.encode(), headers=(("trace", OUTPUT.text.encode()),)) for at in range(4)
    ]


def inputs() -> list[Outgoing]:
    """Good ones, and one of each reason, each with a key and headers that tell."""
    told = (("safe.dlq.detail", TEST_ID.text.encode()), ("traceparent", OUTPUT.text.encode()))
    poison = [
        replace(each, key=TEST_ID.text.encode(), headers=(*each.headers, *told), partition=0)
        for each in POISON.values()
    ]
    return [*good_inputs(), *poison]


def write_cases(folder: Path) -> Path:
    """Test cases for the good inputs, and those that the secret test_ids are refused for."""
    twice, blank, large = (f"{TEST_ID.text} {what}" for what in ("twice", "blank", "large"))
    write_batches(folder, BATCHES)
    for name, cases in {
        "Z_1": [
            demanding(twice, "fever"),
            demanding(blank, " "),
            demanding(large, *(f"{at:0500d}" for at in range(60))),
        ],
        "Z_2": [demanding(twice, "shock")],
    }.items():
        (folder / f"{name}.json").write_text(json.dumps({"test_cases": cases}), encoding="utf-8")
    return folder


def demanding(test_id: str, *terms: str) -> Json:
    return {
        "test_id": test_id,
        "concern_id": BATCH.cases[0].concern_id,
        "expectations": {"signal_generation": {"must_find_signals": terms}},
    }


# --- what is looked through -------------------------------------------------------------------------------------------


@dataclass
class Said:
    """All that was said, by who said it."""

    texts: dict[str, list[str | bytes]] = field(default_factory=dict)

    def note(self, who: str, *texts: str | bytes | None) -> None:
        """Keep what was said."""
        self.texts.setdefault(who, []).extend(text for text in texts if text is not None)

    def note_worker(self, worker: Worker) -> None:
        """Keep what a running worker answers, and how it was called."""
        for page in PAGES:
            self.note(page, worker.get(page)[1])
        self.note("command line", Path(f"/proc/{worker.pid}/cmdline").read_bytes())

    def note_topics(self, site: Site) -> None:
        """Keep what stands in SAFE's topics; of a dead letter, which is a copy of its input, SAFE's own headers."""
        topics = site.topics
        for topic in (topics.scored, topics.state, topics.result, topics.report):
            for record in ours(site, topic):
                self.note(topic, record.key, record.value, *(text for header in record.headers for text in header))
        for record in site.outside.read(topics.dead_letter):
            self.note("dead letter", *(text for name, text in record.headers if name.startswith("safe.dlq.")))

    @property
    def leaks(self) -> dict[str, list[str]]:
        """Who told which secrets."""
        found = {who: leaks(*texts) for who, texts in self.texts.items()}
        return {who: names for who, names in found.items() if names}


def ours(site: Site, topic: str) -> list[Record]:
    """The records that SAFE itself wrote: another's are marked as planted."""
    return [record for record in site.outside.read(topic) if record.header("planted") is None]


def reasons(site: Site) -> set[str | None]:
    return {record.header("safe.dlq.reason") for record in site.outside.read(site.topics.dead_letter)}


# --- a folder, and every reason ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("log_format", FORMATS)
def test_no_dead_letter_of_any_reason_tells_a_secret(
    log_format: str, site_over: Callable[..., Site], tmp_path: Path
) -> None:
    settings = PLAINLY | {"SAFE_V0_LOG_FORMAT": log_format}
    site, said = site_over(write_cases(tmp_path / "cases"), partitions=1, settings=settings), Said()
    (tmp_path / "cases" / "broken.json").write_text(f'{{"test_cases": ["{OUTPUT.text}", {TEST_ID.text}', "utf-8")
    site.send(inputs())
    with site.worker() as worker:
        site.await_rest()
        # What only SAFE should write there, and cannot be read.
        marks = (("safe.schema", b"1"), ("safe.group", site.group.encode()), ("planted", b""))
        rubbish = [Outgoing(held_back(), headers=marks, partition=0), Outgoing(b"\xff", headers=marks, partition=0)]
        site.outside.produce(site.topics.scored, rubbish)
        wait_until(
            lambda: "aggregator" in {record.header("safe.dlq.stage") for record in dead_letters(site)},
            within_seconds=NOTICED_SECONDS,
            what="the aggregator buries it",
        )
        said.note_worker(worker)
        assert worker.stop() == 0
        said.note("log", worker.log_text())
    said.note_topics(site)

    assert reasons(site) == set(REASONS) - NO_INPUT_GIVES
    assert len(ours(site, site.topics.result)) == len(good_inputs())
    assert said.leaks == {}


def dead_letters(site: Site) -> list[Record]:
    return site.outside.read(site.topics.dead_letter)


# --- a broker that asks for a password, and a service that asks for another -------------------------------------------


def asking_for_a_password(own_broker: Callable[..., KafkaBroker]) -> tuple[KafkaBroker, str]:
    """A broker with a second listener, at the address returned, that asks for the planted password."""
    port, login = free_port(), "org.apache.kafka.common.security.plain.PlainLoginModule"
    listener = f"SASL_PLAINTEXT://127.0.0.1:{port}"
    broker = own_broker(
        **{
            "listeners": f"PLAINTEXT://127.0.0.1:{{port}},CONTROLLER://127.0.0.1:{{controller_port}},{listener}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{{port}},{listener}",
            "listener.security.protocol.map": ",".join(f"{name}:{name}" for name in ("PLAINTEXT", "SASL_PLAINTEXT"))
            + ",CONTROLLER:PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{login} required user_safe="{PASSWORD}";',
        }
    )
    return broker, f"127.0.0.1:{port}"


LOGIN = {
    "SAFE_V0_KAFKA_SECURITY_PROTOCOL": "SASL_PLAINTEXT",
    "SAFE_V0_KAFKA_SASL_MECHANISM": "PLAIN",
    "SAFE_V0_KAFKA_SASL_USERNAME": "safe",
}
# Every look-up asks the service, and a try is over soon.
ASKING = {"SAFE_V0_EXPECTATIONS_CACHE_SECONDS": "0", "SAFE_V0_EXPECTATIONS_TIMEOUT_SECONDS": "2"}
TROUBLES: tuple[Mode, ...] = ("500", "rubbish", "redirect", "half_body", "off")

# how the service knows the worker, in which form the log is
WITH: Sequence[tuple[str, str]] = [("userinfo", "json"), ("token", "console")]


def told(site: Site, servers: str, **settings: str) -> Site:
    """The same installation, by another address and with more settings."""
    changed = replace(site.installation, bootstrap_servers=servers, settings={**site.installation.settings, **settings})
    return Site(site.outside, site.folder, changed, site.oracle, site.workers)


def secrets(folder: Path, **secret: str) -> str:
    """A folder of secrets."""
    folder.mkdir()
    for name, text in secret.items():
        (folder / name).write_text(f"{text}\n", encoding="utf-8")
    return str(folder)


@contextmanager
def asking(service: CaseService, outside: Outside, tmp_path: Path, **settings: str) -> Iterator[Site]:
    """A site whose expectations a service holds, and whose cases hold none of the secret ones."""
    site = Site.build(outside, tmp_path, tmp_path / "cases", partitions=1, settings=settings, expectations=service.url)
    yield site
    site.discard()


@pytest.mark.parametrize(("known_by", "log_format"), WITH)
def test_no_trouble_with_a_service_or_the_broker_tells_a_secret(
    known_by: str, log_format: str, own_broker: Callable[..., KafkaBroker], tmp_path: Path
) -> None:
    broker, servers = asking_for_a_password(own_broker)
    write_batches(tmp_path / "cases", BATCHES)
    said = Said()
    by_token = known_by == "token"
    planted = {"SAFE_V0_KAFKA_SASL_PASSWORD": PASSWORD} | (
        {"SAFE_V0_EXPECTATIONS_TOKEN": TOKEN.text} if by_token else {}
    )
    with (
        Outside(broker.bootstrap_servers) as outside,
        CaseService(tmp_path / "cases", token=TOKEN.text if by_token else None) as service,
        asking(service, outside, tmp_path, **PLAINLY, **ASKING, **LOGIN, SAFE_V0_LOG_FORMAT=log_format) as plain,
    ):
        site = told(
            plain,
            servers,
            SAFE_V0_SECRETS_DIR=secrets(tmp_path / "secrets", **planted),
            SAFE_V0_EXPECTATIONS=service.url if by_token else with_userinfo(service.url),
        )
        with site.worker() as worker:
            site.send([*good_inputs(), Outgoing(held_back(), partition=0)])
            site.await_rest()
            said.note_worker(worker)
            said.note_topics(site)
            for trouble in TROUBLES:
                in_trouble(trouble, service, site, worker)
                said.note_worker(worker)
            service.behave_as("normal")
            wait_until(worker.is_ready, within_seconds=RECOVERED_SECONDS, what="it is ready again")
            site.await_rest()
            note_commands(said, site, tmp_path)
            broker.stop(kill=True)
            await_not_ready(worker)
            said.note_worker(worker)
            assert worker.stop() == 0
            said.note("log", worker.log_text())
        results = len(said.texts[site.topics.result])

    assert results > 0
    assert "(401)" not in worker.log_text()  # the secrets were right, and were used
    assert said.leaks == {}


def test_no_proxy_that_is_down_tells_a_secret(site_over: Callable[..., Site], tmp_path: Path) -> None:
    settings = PLAINLY | ASKING | {
        "SAFE_V0_EXPECTATIONS": with_userinfo("http://cases.invalid/base"),
        "SAFE_V0_EXPECTATIONS_USE_PROXY": "true",  # the one of the environment, at which nobody listens
        "NO_PROXY": "",
        "no_proxy": "",
    }  # fmt: skip
    site, said = site_over(write_batches(tmp_path / "cases", BATCHES), partitions=1, settings=settings), Said()
    site.send(good_inputs())
    worker = site.spawn("behind a proxy")
    wait_until(lambda: "xpectations" in answer(worker, "/readyz"), within_seconds=60, what="the trouble is told")
    said.note_worker(worker)
    assert worker.stop() == 0  # in the middle of it
    said.note("log", worker.log_text())

    assert "draining" in worker.log_text()
    assert said.leaks == {}


def answer(worker: Worker, page: str) -> str:
    """What a page says, nothing while nobody serves it."""
    with suppress(OSError):
        return worker.get(page)[1]
    return ""


def in_trouble(trouble: Mode, service: CaseService, site: Site, worker: Worker) -> None:
    """Let the service misbehave until the worker has noticed."""
    before = service.requests
    service.behave_as(trouble)
    site.send([*good_inputs(), Outgoing(held_back(), partition=0)])
    await_not_ready(worker)
    if trouble != "off":
        wait_until(lambda: service.requests > before, within_seconds=NOTICED_SECONDS, what=f"{trouble} was met")


def await_not_ready(worker: Worker) -> None:
    wait_until(lambda: worker.get("/readyz")[0] != 200, within_seconds=NOTICED_SECONDS, what="readiness is denied")


def note_commands(said: Said, site: Site, folder: Path) -> None:
    """Keep what the other commands say of the same settings, right and wrong."""
    for form in ("console", "json"):
        shown = site.installation.run("config", "show", "--format", form, folder=folder)
        assert shown.returncode == 0
        said.note("config show", shown.stdout, shown.stderr)
    wrong = told(site, site.installation.bootstrap_servers, SAFE_V0_KAFKA_SASL_USERNAME="another")
    both = told(
        site,
        site.installation.bootstrap_servers,
        SAFE_V0_EXPECTATIONS=with_userinfo("http://127.0.0.1:9/x"),
        SAFE_V0_EXPECTATIONS_TOKEN=TOKEN.text,
    )
    broken = told(site, site.installation.bootstrap_servers, SAFE_V0_EXPECTATIONS_TOKEN=f"{TOKEN.text} \u00e9")
    taken = told(site, site.installation.bootstrap_servers, SAFE_V0_HTTP_ADDRESS="192.0.2.1:9464")
    for mistaken in (wrong, both, broken, taken):
        installation = mistaken.installation
        done = installation.run("worker", folder=folder)
        assert done.returncode == EXIT_UNUSABLE, done.stderr
        said.note("a worker that cannot start", done.stdout, done.stderr)
    done = wrong.installation.run("topics", "create", folder=folder)
    assert done.returncode == EXIT_UNUSABLE
    said.note("a command that cannot log in", done.stdout, done.stderr)
