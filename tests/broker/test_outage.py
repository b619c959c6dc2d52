"""A broker that goes away and comes back, or never comes back; and one that asks for a password."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event, Thread
from typing import Literal

import pytest

from tests.support.cases import event_stream, make_batches, write_batches
from tests.support.feeder import Feeder
from tests.support.kafka_broker import KafkaBroker, free_port
from tests.support.outside import Outside
from tests.support.site import Site
from tests.support.waiting import wait_until
from tests.support.worker import Worker, why_it_ended

pytestmark = pytest.mark.broker

OUTAGE_SECONDS = float(os.environ.get("SAFE_TEST_OUTAGE_SECONDS", "16"))
SEED = 31
BATCHES = make_batches(SEED, batches=4, cases_a_batch=6)
PARTITIONS = 4
RECORDS_A_SECOND = 40
NOTICED_SECONDS = 10.0
WARNED_SECONDS = 10.0
HEALED_SECONDS = 60.0
SHUTDOWN_SECONDS = 25.0
AT_ONCE_SECONDS = 3.0
LOG_LINES = 40
GROWTH_BYTES = 64 * 1024 * 1024
EXIT_UNUSABLE = 3
PASSWORD = "correct-horse-7f3a"  # noqa: S105 # planted, to be looked for


@dataclass
class Health:
    """What a worker's probes have answered, as an orchestrator would have asked for them."""

    ready: list[tuple[float, bool]] = field(default_factory=list)
    live: list[tuple[float, bool]] = field(default_factory=list)

    def first_not_ready(self, since: float) -> float | None:
        """When readiness was first denied, None if never."""
        return next((at for at, yes in self.ready if at >= since and not yes), None)

    @property
    def always_live(self) -> bool:
        """Whether liveness was never denied, nor ever left without an answer."""
        return all(yes for _, yes in self.live)


def told_since(worker: Worker, lines_before: int) -> list[str]:
    """The events that a worker has logged after its first lines."""
    return [line["event"] for line in worker.log_lines()[lines_before:]]


@contextmanager
def probed(worker: Worker) -> Iterator[Health]:
    """Ask both probes again and again for as long as the block lasts."""
    health, done = Health(), Event()

    def ask(path: str) -> bool:
        with suppress(OSError):
            return worker.get(path)[0] == 200
        return False

    def probe() -> None:
        while not done.wait(0.25):
            health.ready.append((time.monotonic(), ask("/readyz")))
            health.live.append((time.monotonic(), ask("/livez")))

    thread = Thread(target=probe, name="probe")
    thread.start()
    try:
        yield health
    finally:
        done.set()
        thread.join()


@contextmanager
def site_on(broker: KafkaBroker, folder: Path, **settings: str) -> Iterator[Site]:
    """An installation on a broker of its own."""
    with Outside(broker.bootstrap_servers) as outside:
        cases = write_batches(folder / "cases", BATCHES)
        site = Site.build(outside, folder, cases, partitions=PARTITIONS, settings=settings)
        yield site
        site.discard()


@pytest.mark.parametrize("end", ["clean", "killed"])
def test_a_broker_that_goes_and_comes_back_costs_time_and_nothing_else(
    end: Literal["clean", "killed"], own_broker: Callable[..., KafkaBroker], tmp_path: Path
) -> None:
    broker = own_broker()
    stream = list(event_stream(SEED, BATCHES, int((OUTAGE_SECONDS + 4) * RECORDS_A_SECOND), partitions=PARTITIONS))
    with site_on(broker, tmp_path) as site, site.worker() as worker, probed(worker) as health:
        pid, memory = worker.pid, worker.memory_bytes()
        with Feeder(site.outside, site.topics.input, stream, records_a_second=RECORDS_A_SECOND) as feeder:
            wait_until(
                lambda: worker.total("safe_records_total") > RECORDS_A_SECOND, within_seconds=30, what="traffic flows"
            )
            lost_at, lines_before = time.monotonic(), len(worker.log_lines())
            broker.stop(kill=end == "killed")
            wait_until(
                lambda: time.monotonic() - lost_at > OUTAGE_SECONDS and "not ready" in told_since(worker, lines_before),
                within_seconds=OUTAGE_SECONDS + WARNED_SECONDS,
                what="the outage is over, and the worker has warned of it",
            )
            told = told_since(worker, lines_before)
            broker.start()
            wait_until(worker.is_ready, within_seconds=HEALED_SECONDS, what="it is ready again")
            wait_until(lambda: feeder.is_done, within_seconds=HEALED_SECONDS, what="all inputs are written")
        site.await_rest()
        run, problems = site.seen()

        noticed_at = health.first_not_ready(lost_at)
        assert noticed_at is not None
        assert noticed_at - lost_at < NOTICED_SECONDS
        assert health.always_live
        assert (worker.pid, worker.exit_code) == (pid, None)
        assert len(told) < LOG_LINES
        assert told.count("not ready") == 1
        wait_until(lambda: "ready again" in worker.log_text(), within_seconds=10, what="it says that it is ready again")
        assert worker.memory_bytes() - memory < GROWTH_BYTES
        poison = worker.total("safe_dead_letters_total")

    # The oracle knows which inputs are poison: a dead letter for want of a broker would be one too many.
    assert problems == []
    assert len(run.inputs) == len(stream)
    # A commit of which the answer was lost is not counted.
    assert poison <= len(run.dead_letters)


def ends_when_asked_again(worker: Worker) -> bool:
    """Whether a worker has ended; asks it once more if not."""
    if worker.exit_code is not None:
        return True
    os.kill(worker.pid, signal.SIGTERM)
    return False


def test_a_worker_without_its_broker_still_ends_when_asked(
    own_broker: Callable[..., KafkaBroker], tmp_path: Path
) -> None:
    broker = own_broker()
    stream = list(event_stream(SEED, BATCHES, 1200, partitions=PARTITIONS))
    with site_on(broker, tmp_path, SAFE_V0_KAFKA_SESSION_TIMEOUT_SECONDS="4") as site:
        patient, hurried, last = (site.spawn(name) for name in ("patient", "hurried", "last"))
        for worker in (patient, hurried, last):
            worker.await_ready()
        wait_until(lambda: len(site.outside.members(site.group)) == 3, within_seconds=30, what="all have joined")
        with Feeder(site.outside, site.topics.input, stream, records_a_second=300):
            wait_until(lambda: patient.total("safe_records_total") > 0, within_seconds=30, what="traffic flows")
            broker.freeze()  # connections stay open, and nothing answers
            asked_at = time.monotonic()
            patient.terminate()
            hurried.terminate()
            wait_until(lambda: "draining" in hurried.log_text(), within_seconds=5, what="it has heard the first signal")
            wait_until(lambda: ends_when_asked_again(hurried), within_seconds=AT_ONCE_SECONDS, what="it gives up")
            assert hurried.wait(within_seconds=AT_ONCE_SECONDS) in {0, 1}
            assert patient.wait(within_seconds=SHUTDOWN_SECONDS) == 0
            assert time.monotonic() - asked_at < SHUTDOWN_SECONDS

            broker.stop(kill=True)  # connections are refused
            assert last.stop(within_seconds=SHUTDOWN_SECONDS) == 0
            broker.start()
        # A client of ours that spoke to the frozen broker may wait for its answers for ever.
        with Outside(broker.bootstrap_servers) as outside:
            after = Site(outside, site.folder, site.installation, site.oracle)
            with after.worker(name="heir"):
                after.await_rest(within_seconds=HEALED_SECONDS)
                _, problems = after.seen()
    assert problems == []


def test_a_worker_that_starts_before_its_broker_waits_for_it(
    own_broker: Callable[..., KafkaBroker], tmp_path: Path
) -> None:
    broker = own_broker()
    stream = list(event_stream(SEED, BATCHES, 50, partitions=PARTITIONS))
    with site_on(broker, tmp_path) as site:
        site.send(stream)
        broker.stop()
        early, unwanted = site.spawn("early"), site.spawn("unwanted")
        wait_until(
            lambda: all("waiting for the brokers" in worker.log_text() for worker in (early, unwanted)),
            within_seconds=20,
            what="both wait",
        )
        assert early.get("/livez")[0] == 200
        status, said = early.get("/readyz")
        assert status == 503
        assert f"waiting for the brokers: {broker.bootstrap_servers} refuses connections" in said
        assert unwanted.stop(within_seconds=SHUTDOWN_SECONDS) == 0
        broker.start()
        early.await_ready()
        site.await_rest()
        _, problems = site.seen()
        assert early.stop() == 0
    assert problems == []
    [waiting] = [line for line in early.log_lines() if line.get("event") == "waiting for the brokers"]
    assert waiting["why"] == f"{broker.bootstrap_servers} refuses connections"


# --- a password -------------------------------------------------------------------------------------------------------


def asking_for_a_password(own_broker: Callable[..., KafkaBroker]) -> tuple[KafkaBroker, str]:
    """A broker with a second listener, at the address returned, that lets nobody in without the password."""
    port, login = free_port(), "org.apache.kafka.common.security.plain.PlainLoginModule"
    listener = f"SASL_PLAINTEXT://127.0.0.1:{port}"
    broker = own_broker(
        **{
            "listeners": f"PLAINTEXT://127.0.0.1:{{port}},CONTROLLER://127.0.0.1:{{controller_port}},{listener}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{{port}},{listener}",
            "listener.security.protocol.map": (
                "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT"
            ),
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{login} required user_safe="{PASSWORD}";',
        }
    )
    return broker, f"127.0.0.1:{port}"


def secured(site: Site, servers: str, secrets: Path) -> Site:
    """The same installation by way of the other listener, with its password in a file."""
    settings = {
        "SAFE_V0_KAFKA_SECURITY_PROTOCOL": "SASL_PLAINTEXT",
        "SAFE_V0_KAFKA_SASL_MECHANISM": "PLAIN",
        "SAFE_V0_KAFKA_SASL_USERNAME": "safe",
        "SAFE_V0_SECRETS_DIR": str(secrets),
        "SAFE_V0_LOG_LEVEL": "debug",
    }
    installation = replace(site.installation, bootstrap_servers=servers, settings=settings)
    return Site(site.outside, site.folder, installation, site.oracle, site.workers)


def test_a_password_from_a_file_is_used_and_never_shown(own_broker: Callable[..., KafkaBroker], tmp_path: Path) -> None:
    broker, servers = asking_for_a_password(own_broker)
    file = tmp_path / "secrets" / "SAFE_V0_KAFKA_SASL_PASSWORD"
    file.parent.mkdir()
    file.write_text(f"{PASSWORD}\n", encoding="utf-8")
    with site_on(broker, tmp_path) as plain:
        site = secured(plain, servers, file.parent)
        site.send(list(event_stream(SEED, BATCHES, 50, partitions=PARTITIONS)))
        with site.worker() as worker:
            site.await_rest()
            _, problems = site.seen()
            shown = [worker.get(path)[1] for path in ("/metrics", "/readyz", "/livez")]
            shown += [Path(f"/proc/{worker.pid}/{name}").read_text("utf-8") for name in ("cmdline", "environ")]
            assert worker.stop() == 0
            shown.append(worker.log_text())
        config = site.installation.run("config", "show", folder=tmp_path)

        file.write_text(f"{PASSWORD}-of-yesterday", encoding="utf-8")
        began = time.monotonic()
        refused = site.installation.run("worker", folder=tmp_path)
        seconds = time.monotonic() - began

    assert problems == []
    assert config.returncode == 0
    assert "SAFE_V0_KAFKA_SASL_PASSWORD" in config.stdout
    said = [*shown, config.stdout, config.stderr, refused.stdout, refused.stderr]
    assert [text for text in said if PASSWORD in text] == []
    assert refused.returncode == EXIT_UNUSABLE
    assert seconds < 15
    sentence = why_it_ended(refused.stderr)
    assert f"{servers} refuses the login of user safe (PLAIN): invalid credentials" in sentence
    assert "Traceback" not in refused.stderr
