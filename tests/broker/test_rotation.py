"""Passwords and certificates that are replaced while workers run, and what becomes of a worker that is not told."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from tests.conftest import missing
from tests.support.cases import event_stream, make_batches, write_batches
from tests.support.certificates import Authority
from tests.support.guarded import PASSWORD, SECRETS, SESSION_SECONDS, Guarded, guarded_broker, site_behind
from tests.support.kafka_broker import BrokerUnavailableError
from tests.support.mounted import mount
from tests.support.waiting import wait_until
from tests.support.worker import Worker, why_it_ended

pytestmark = pytest.mark.broker

EVENTS = 400
SEED = 53
BATCHES = make_batches(SEED, batches=3, cases_a_batch=5)
NEW_PASSWORD = "battery-staple-77f0"  # noqa: S105 # planted, to be looked for
NAMED_SECONDS = 30.0
EXIT_REFUSED = 3
TOKEN_SECONDS = 6.0


LOGIN_REFUSED = {
    "PASSWORD": "the brokers refuse the login of user safe (SCRAM-SHA-512): invalid credentials",
    "TOKEN": "gives client safe no token (invalid_client)",
}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """Start a broker whose secrets these tests change."""
    session = f"{SESSION_SECONDS * 1000:.0f}"
    reauthentication = "listener_name_password_scram__sha__512_connections_max_reauth_ms"
    try:
        with guarded_broker(tmp_path_factory.mktemp("guarded"), **{reauthentication: session}) as started:
            started.tokens.life_seconds = TOKEN_SECONDS
            yield started
    except BrokerUnavailableError as error:
        missing(f"no broker: {error}")


def tls_files(authority: Authority, passphrase: str) -> Mapping[str, str]:
    """Return what a worker needs of an authority; the key is encrypted."""
    files = {"ca.crt": authority.cafile, "tls.crt": authority.certificate("worker")}
    files["tls.key"] = authority.encrypted_key("worker", passphrase)
    return {name: file.read_text(encoding="utf-8") for name, file in files.items()}


class Rotating:
    """An installation behind one listener, whose secrets are mounted."""

    def __init__(
        self,
        guarded: Guarded,
        name: str,
        folder: Path,
        stack: ExitStack,
        *,
        altered: Mapping[str, float] | None = None,
    ) -> None:
        self.name = name
        self._tls, self._secrets = folder / "tls", folder / "mounted"
        self.show(guarded.authority, guarded.password)
        at = {"SAFE_V0_SECRETS_DIR": str(self._secrets), "SAFE_V0_KAFKA_SSL_CAFILE": str(self._tls / "ca.crt")}
        if name == "CERTIFICATE":
            at["SAFE_V0_KAFKA_SSL_CERTFILE"] = str(self._tls / "tls.crt")
            at["SAFE_V0_KAFKA_SSL_KEYFILE"] = str(self._tls / "tls.key")
        cases = write_batches(folder / "cases", BATCHES)
        self.site = stack.enter_context(site_behind(guarded, name, folder, cases, settings=at))
        self.site.installation = replace(self.site.installation, altered=altered or {})
        self.worker = self.site.spawn(name)
        self.stream = list(event_stream(SEED, BATCHES, EVENTS, partitions=4))

    def show(self, authority: Authority, secret: str) -> None:
        """Replace what the worker shows."""
        mount(self._secrets, {SECRETS[self.name]: f"{secret}\n"})
        mount(self._tls, tls_files(authority, secret))


def troubles(worker: Worker) -> str:
    """Return what /readyz names."""
    assert worker.exit_code is None, worker.last_words()
    return worker.get("/readyz")[1]


def names(worker: Worker, words: str) -> Callable[[], bool]:
    """Tell whether /readyz of the worker has these words."""
    return lambda: words in troubles(worker)


def test_every_secret_may_be_replaced_while_workers_run(guarded: Guarded, tmp_path: Path) -> None:
    with ExitStack() as stack:
        installations = [Rotating(guarded, name, tmp_path / name, stack) for name in SECRETS]
        for each in installations:
            each.worker.await_ready()
            each.site.send(each.stream[: EVENTS // 2])
        for each in installations:
            each.site.await_rest()

        successor = Authority(guarded.folder / "successor")
        guarded.set_password(NEW_PASSWORD)
        guarded.tokens.client_secret = NEW_PASSWORD
        for each in installations:
            each.site.send(each.stream[EVENTS // 2 :])
        # Their sessions end within seconds; a certificate is shown only once.
        for each in installations:
            if each.name in LOGIN_REFUSED:
                wait_until(
                    names(each.worker, LOGIN_REFUSED[each.name]),
                    within_seconds=NAMED_SECONDS,
                    what=f"{each.name}: the refusal is named",
                )
                assert each.worker.series("safe_login_refused") == {(): 1}
        guarded.trust(successor)
        guarded.broker.restart()
        for each in installations:
            wait_until(
                names(each.worker, "the certificate of the brokers is not trusted"),
                within_seconds=NAMED_SECONDS,
                what=f"{each.name}: the certificate that is not trusted is named",
            )

        for each in installations:
            each.show(successor, NEW_PASSWORD)
        for each in installations:
            each.worker.await_ready(within_seconds=NAMED_SECONDS)
        for each in installations:
            each.site.await_rest()
            run, problems = each.site.seen()
            assert problems == []
            assert len(run.inputs) == EVENTS
            assert each.worker.series("safe_login_refused") == {(): 0}
            assert each.worker.stop() == 0
            assert not [secret for secret in (PASSWORD, NEW_PASSWORD) if secret in each.worker.log_text()]


def test_a_worker_whose_files_do_not_follow_names_the_refusal_and_ends_with_it(
    guarded: Guarded, tmp_path: Path
) -> None:
    soon = {"consumer.kafka.logins:REFUSED_SECONDS": 3.0}
    with ExitStack() as stack:
        each = Rotating(guarded, "PASSWORD", tmp_path, stack, altered=soon)
        each.worker.await_ready()
        guarded.set_password("another-secret-31c4")
        assert each.worker.wait(within_seconds=NAMED_SECONDS) == EXIT_REFUSED
        said = each.worker.log_text()
    assert why_it_ended(said).startswith(LOGIN_REFUSED["PASSWORD"])
    assert "SAFE_V0_KAFKA_SASL_PASSWORD" in why_it_ended(said)
