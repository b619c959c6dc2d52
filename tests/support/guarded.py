"""A broker that lets nobody in who is not known: one listener for each way to log in, and what is needed to get in."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialAlteration,
    UserScramCredentialUpsertion,
)

from tests.support.certificates import Authority
from tests.support.kafka_broker import PROJECT, KafkaBroker, free_port, kafka_libs
from tests.support.outside import Outside
from tests.support.site import Site
from tests.support.token_endpoint import TokenEndpoint, token_endpoint

PASSWORD = "correct-horse-9d21"  # noqa: S105 # planted, to be looked for
SESSION_SECONDS = 4.0
"""How long the broker lets a connection with a token live before it closes it."""


@dataclass(slots=True)
class Guarded:
    """The broker, the address of each listener, and who vouches for it and its clients."""

    broker: KafkaBroker
    addresses: Mapping[str, str]
    authority: Authority
    tokens: TokenEndpoint
    folder: Path
    password: str = PASSWORD

    def set_password(self, password: str) -> None:
        """Let the user log in with this password, and with no other one."""
        set_password(self.broker.bootstrap_servers, password)
        self.password = password

    def trust(self, authority: Authority) -> None:
        """Show a certificate of this authority, and accept only its clients; from the broker's next start on."""
        show(self.folder, authority)
        self.authority = authority


def logins(folder: Path) -> dict[str, str]:
    """Return the settings of brokers with listeners for SCRAM and tokens over TLS, and for certificates.

    `folder` has the broker's key and certificate, and whom it trusts.
    """
    kafka = "org.apache.kafka.common.security"
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(folder / "server.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(folder / "trusted.crt"),
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


PROTOCOLS = {"PASSWORD": "SASL_SSL", "CERTIFICATE": "SSL", "TOKEN": "SASL_SSL"}
"""The protocol of each listener."""


def show(folder: Path, authority: Authority, *, addresses: Sequence[str] = ("127.0.0.1",)) -> None:
    """Write what a broker shows and trusts, both of this authority; it reads that when it starts."""
    certificate = authority.certificate("server", addresses=addresses).read_text(encoding="utf-8")
    (folder / "server.pem").write_text(authority.key("server").read_text(encoding="utf-8") + certificate, "utf-8")
    (folder / "trusted.crt").write_text(authority.cafile.read_text(encoding="utf-8"), encoding="utf-8")


def set_password(bootstrap_servers: str, password: str) -> None:
    """Let the user `safe` log in with this password, and with no other one."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    credential = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    changes: list[UserScramCredentialAlteration] = [UserScramCredentialUpsertion("safe", credential, password.encode())]
    for done in admin.alter_user_scram_credentials(changes).values():
        done.result()


@contextmanager
def guarded_broker(folder: Path, **more: str) -> Iterator[Guarded]:
    """Run one for as long as the block lasts; raises BrokerUnavailableError. `more` are settings of the broker."""
    authority = Authority(folder / "authority")
    addresses = {name: f"127.0.0.1:{free_port()}" for name in PROTOCOLS}
    at = ",".join(f"{name}://{address}" for name, address in addresses.items())
    protocols = ",".join(f"{name}:{protocol}" for name, protocol in PROTOCOLS.items())
    settings = logins(folder) | {
        "listeners": f"PLAINTEXT://127.0.0.1:{{port}},CONTROLLER://127.0.0.1:{{controller_port}},{at}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{{port}},{at}",
        "listener.security.protocol.map": f"PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,{protocols}",
        **{name.replace("__", "-").replace("_", "."): value for name, value in more.items()},
    }
    broker = KafkaBroker(folder / "kafka", libs=kafka_libs(), settings=settings)
    with token_endpoint("safe", PASSWORD) as tokens:
        guarded = Guarded(broker, addresses, authority, tokens, folder)
        guarded.trust(authority)
        try:
            broker.start()
            guarded.set_password(PASSWORD)
            yield guarded
        finally:
            broker.stop(kill=True)


def documented(guarded: Guarded, name: str, folder: Path, **changed: str) -> dict[str, str]:
    """What docs/how-to/install.md says for a way to log in, with this test's own addresses and files."""
    text = (PROJECT / "docs" / "how-to" / "install.md").read_text(encoding="utf-8")
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
    secret = SECRETS[name]
    assert f"`{secret}` is a file in the folder" in told
    (secrets / secret).write_text(f"{PASSWORD}\n", encoding="utf-8")
    return {key: here.get(key, value) for key, value in block.items()} | changed


SECRETS = {
    "PASSWORD": "SAFE_V0_KAFKA_SASL_PASSWORD",
    "CERTIFICATE": "SAFE_V0_KAFKA_SSL_KEY_PASSWORD",
    "TOKEN": "SAFE_V0_KAFKA_SASL_OAUTH_CLIENT_SECRET",
}
"""The file of the secret, by listener."""


@contextmanager
def site_behind(
    guarded: Guarded, name: str, folder: Path, cases: Path, *, settings: Mapping[str, str] | None = None
) -> Iterator[Site]:
    """An installation that reaches the broker by one listener alone; the test itself uses the open one."""
    with Outside(guarded.broker.bootstrap_servers) as outside:
        site = Site.build(outside, folder, cases, settings=documented(guarded, name, folder, **(settings or {})))
        site.installation = replace(site.installation, bootstrap_servers=guarded.addresses[name])
        try:
            yield site
        finally:
            site.discard()
