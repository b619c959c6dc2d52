"""Brokers that ask who is there: `safe` set up as docs/install.md says, and what it says where that is wrong."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from tests.conftest import missing
from tests.support.cases import event_stream, make_batches, write_batches
from tests.support.certificates import Authority
from tests.support.feeder import Feeder
from tests.support.kafka_broker import PROJECT, BrokerUnavailableError, KafkaBroker, free_port, kafka_libs
from tests.support.outside import Outside
from tests.support.site import Site
from tests.support.token_endpoint import TokenEndpoint, token_endpoint
from tests.support.waiting import wait_until
from tests.support.worker import why_it_ended

pytestmark = pytest.mark.broker

EVENTS = 1_000
SEED = 47
BATCHES = make_batches(SEED, batches=4, cases_a_batch=6)
PASSWORD = "correct-horse-9d21"  # noqa: S105 # planted, to be looked for
EXIT_UNUSABLE = 3
SESSION_SECONDS = 4.0
"""How long the broker lets a connection with a token live before it closes it."""


@dataclass(frozen=True, slots=True)
class Guarded:
    """A broker with a listener for each way to log in, and what is needed to get in."""

    broker: KafkaBroker
    addresses: Mapping[str, str]
    authority: Authority
    tokens: TokenEndpoint


def listeners(authority: Authority, addresses: Mapping[str, str], keystore: Path) -> dict[str, str]:
    """Return the broker's settings for SCRAM and tokens over TLS, and for certificates."""
    more = ",".join(f"{name}://{address}" for name, address in addresses.items())
    kafka = "org.apache.kafka.common.security"
    return {
        "listeners": f"PLAINTEXT://127.0.0.1:{{port}},CONTROLLER://127.0.0.1:{{controller_port}},{more}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{{port}},{more}",
        "listener.security.protocol.map": (
            "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,PASSWORD:SASL_SSL,CERTIFICATE:SSL,TOKEN:SASL_SSL"
        ),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(keystore),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.cafile),
        "listener.name.certificate.ssl.client.auth": "required",
        "listener.name.password.sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "listener.name.password.scram-sha-512.sasl.jaas.config": f"{kafka}.scram.ScramLoginModule required;",
        "listener.name.token.sasl.enabled.mechanisms": "OAUTHBEARER",
        "listener.name.token.oauthbearer.sasl.jaas.config": (
            f'{kafka}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker" '
            'unsecuredValidatorRequiredScope="kafka";'
        ),
        "listener.name.token.oauthbearer.connections.max.reauth.ms": f"{SESSION_SECONDS * 1000:.0f}",
    }


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """Start a broker that lets nobody in who is not known."""
    folder = tmp_path_factory.mktemp("guarded")
    authority = Authority(folder / "authority")
    keystore = folder / "server.pem"
    keystore.write_text(authority.key("server").read_text() + authority.certificate("server").read_text())
    addresses = {name: f"127.0.0.1:{free_port()}" for name in ("PASSWORD", "CERTIFICATE", "TOKEN")}
    try:
        broker = KafkaBroker(
            folder / "kafka", libs=kafka_libs(), settings=listeners(authority, addresses, keystore)
        ).start()
    except BrokerUnavailableError as error:
        missing(f"no broker: {error}")
    try:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        credential = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        for done in admin.alter_user_scram_credentials(
            [UserScramCredentialUpsertion("safe", credential, PASSWORD.encode())]
        ).values():
            done.result()
        with token_endpoint("safe", PASSWORD) as tokens:
            yield Guarded(broker, addresses, authority, tokens)
    finally:
        broker.stop(kill=True)


def documented(guarded: Guarded, name: str, folder: Path, **changed: str) -> dict[str, str]:
    """What docs/install.md says for a way to log in, with the addresses and files of this test in place of its own."""
    text = (PROJECT / "docs" / "install.md").read_text(encoding="utf-8")
    section = text.split("## Brokers that require a login")[1].split("\n## ")[0]
    told = " ".join(section.split())
    blocks = re.findall(r"```sh\n(.*?)```", section, flags=re.DOTALL)
    secrets = folder / "secrets"
    secrets.mkdir(exist_ok=True)
    authority = guarded.authority
    here = {
        "SAFE_V0_KAFKA_SSL_CAFILE": str(authority.cafile),
        "SAFE_V0_KAFKA_SSL_CERTFILE": str(authority.certificate("worker")),
        "SAFE_V0_KAFKA_SSL_KEYFILE": str(authority.encrypted_key("worker", PASSWORD)),
        "SAFE_V0_KAFKA_SASL_OAUTH_TOKEN_URL": guarded.tokens.url,
        "SAFE_V0_SECRETS_DIR": str(secrets),
    }
    lines: list[str] = blocks[[*guarded.addresses].index(name)].splitlines()
    block = dict(line.split("=", 1) for line in lines)
    secret = {"PASSWORD": "SASL_PASSWORD", "CERTIFICATE": "SSL_KEY_PASSWORD", "TOKEN": "SASL_OAUTH_CLIENT_SECRET"}[name]
    assert f"`SAFE_V0_KAFKA_{secret}` is a file in the folder" in told
    (secrets / f"SAFE_V0_KAFKA_{secret}").write_text(f"{PASSWORD}\n", encoding="utf-8")
    return {key: here.get(key, value) for key, value in block.items()} | changed


@contextmanager
def site_behind(guarded: Guarded, name: str, folder: Path, **changed: str) -> Iterator[Site]:
    """An installation that reaches the broker by one listener alone; the test itself uses the open one."""
    settings = documented(guarded, name, folder, **changed)
    with Outside(guarded.broker.bootstrap_servers) as outside:
        site = Site.build(outside, folder, write_batches(folder / "cases", BATCHES), settings=settings)
        site.installation = replace(site.installation, bootstrap_servers=guarded.addresses[name])
        yield site
        site.discard()


@pytest.mark.parametrize("name", ["PASSWORD", "CERTIFICATE", "TOKEN"])
def test_a_thousand_outputs_are_scored_as_the_documentation_says(guarded: Guarded, name: str, tmp_path: Path) -> None:
    stream = list(event_stream(SEED, BATCHES, EVENTS, partitions=4))
    with site_behind(guarded, name, tmp_path) as site:
        site.send(stream)
        with site.worker() as worker:
            site.await_rest()
            run, problems = site.seen()
            assert worker.stop() == 0
    assert problems == []
    assert len(run.inputs) == EVENTS
    assert PASSWORD not in worker.log_text()


def test_a_broker_that_ends_connections_with_their_tokens_costs_nothing(guarded: Guarded, tmp_path: Path) -> None:
    stream = list(event_stream(SEED, BATCHES, EVENTS, partitions=4))
    asked = guarded.tokens.asked
    with site_behind(guarded, "TOKEN", tmp_path) as site, site.worker() as worker:
        with Feeder(site.outside, site.topics.input, stream, records_a_second=EVENTS / (3 * SESSION_SECONDS)) as feeder:
            wait_until(lambda: feeder.is_done, within_seconds=10 * SESSION_SECONDS, what="all inputs are written")
        site.await_rest()
        _, problems = site.seen()
        assert worker.exit_code is None
        assert worker.stop() == 0
    assert problems == []
    assert guarded.tokens.asked - asked == 1  # for all connections, however often they are made again


WRONG = {
    "a wrong password": (
        "PASSWORD",
        {"SAFE_V0_KAFKA_SASL_USERNAME": "nobody"},
        "refuses the user name or the password",
    ),
    "no certificate": (
        "CERTIFICATE",
        {"SAFE_V0_KAFKA_SSL_CERTFILE": "", "SAFE_V0_KAFKA_SSL_KEYFILE": ""},
        "asks for a certificate",
    ),
    "another mechanism": ("PASSWORD", {"SAFE_V0_KAFKA_SASL_MECHANISM": "PLAIN"}, "does not accept this kind of login"),
    "an unknown authority": ("PASSWORD", {"SAFE_V0_KAFKA_SSL_CAFILE": ""}, "its certificate is not trusted"),
    "a wrong client": ("TOKEN", {"SAFE_V0_KAFKA_SASL_OAUTH_CLIENT_ID": "nobody"}, "gives no token (invalid_client)"),
    "a scope too small": ("TOKEN", {"SAFE_V0_KAFKA_SASL_OAUTH_SCOPE": "mail"}, "refuses the token from SAFE_V0_KAFKA"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_said_at_once_and_by_name(guarded: Guarded, case: str, tmp_path: Path) -> None:
    name, changed, told = WRONG[case]
    with site_behind(guarded, name, tmp_path, **changed) as site:
        refused = site.installation.run("worker", folder=tmp_path, timeout_seconds=30)
    assert refused.returncode == EXIT_UNUSABLE, refused.stderr
    assert told in why_it_ended(refused.stderr)
    assert "Traceback" not in refused.stderr
    assert PASSWORD not in refused.stderr
