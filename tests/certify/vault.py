"""Brokers of a cluster that ask who is there, and the files from which workers read what they show."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from tests.support.certificates import Authority
from tests.support.guarded import PROTOCOLS, SECRETS, logins, set_password, show
from tests.support.kafka_cluster import GUARDED_PORT, KafkaCluster
from tests.support.mounted import mount
from tests.support.token_endpoint import TokenEndpoint, token_endpoint

Way = Literal["PASSWORD", "CERTIFICATE", "TOKEN"]
TOKEN_SECONDS = 25.0
"""Brokers end a connection with its token. A new one is asked for after 20 s, soon enough for a refusal to be named."""


class Vault:
    """What brokers ask for and what workers show; `change` alters the one, `follow` the other."""

    def __init__(self, way: Way, folder: Path, tokens: TokenEndpoint) -> None:
        self.way = way
        self._folder = folder
        self._tokens = tokens
        self._number = 0
        self._hosts: list[str] = []
        folder.mkdir(parents=True)
        self._renew()

    def _renew(self) -> None:
        self._number += 1
        self._secret = f"secret-{self._number}"
        self._authority = Authority(self._folder / f"authority-{self._number}")

    def broker_settings(self) -> dict[str, str]:
        """Return what all brokers are told."""
        protocols = f"CLIENT:PLAINTEXT,INSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT,{self.way}:{PROTOCOLS[self.way]}"
        return logins(self._folder) | {
            "listener.security.protocol.map": protocols,
            # Their tokens alone end connections: else those of three workers would be made again all the time.
            "listener.name.token.oauthbearer.connections.max.reauth.ms": "0",
        }

    def worker_settings(self) -> Mapping[str, str]:
        """Return what all workers are told."""
        tls, secrets = self._folder / "tls", self._folder / "secrets"
        settings = {
            "SAFE_V0_KAFKA_SECURITY_PROTOCOL": PROTOCOLS[self.way],
            "SAFE_V0_KAFKA_SSL_CAFILE": str(tls / "ca.crt"),
            "SAFE_V0_SECRETS_DIR": str(secrets),
        }
        of_the_way = {
            "PASSWORD": {"SASL_MECHANISM": "SCRAM-SHA-512", "SASL_USERNAME": "safe"},
            "CERTIFICATE": {"SSL_CERTFILE": str(tls / "tls.crt"), "SSL_KEYFILE": str(tls / "tls.key")},
            "TOKEN": {
                "SASL_MECHANISM": "OAUTHBEARER",
                "SASL_OAUTH_TOKEN_URL": self._tokens.url,
                "SASL_OAUTH_CLIENT_ID": "safe",
                "SASL_OAUTH_SCOPE": "kafka",
            },
        }
        return settings | {f"SAFE_V0_KAFKA_{name}": value for name, value in of_the_way[self.way].items()}

    def prepare(self, cluster: KafkaCluster) -> None:
        """Write the files of both sides, before the brokers start for the first time."""
        self._hosts = [broker.address.rpartition(":")[0] for broker in cluster.brokers.values()]
        show(self._folder, self._authority, addresses=self._hosts)
        self._tokens.client_secret = self._secret
        self.follow()

    def open(self, cluster: KafkaCluster) -> None:
        """Tell the brokers the password, which is in their records."""
        set_password(cluster.bootstrap_servers, self._secret)

    def change(self, cluster: KafkaCluster) -> None:
        """Ask for something else from now on; brokers show and trust another authority once they are restarted."""
        self._renew()
        self._tokens.client_secret = self._secret
        if self.way == "CERTIFICATE":
            show(self._folder, self._authority, addresses=self._hosts)
        else:
            self.open(cluster)

    def follow(self) -> None:
        """Let the files of the workers follow."""
        mount(self._folder / "secrets", {SECRETS[self.way]: f"{self._secret}\n"})
        if self.way == "CERTIFICATE" or self._number == 1:
            key = self._authority.encrypted_key("worker", self._secret)
            files = {"ca.crt": self._authority.cafile, "tls.crt": self._authority.certificate("worker"), "tls.key": key}
            mount(self._folder / "tls", {name: file.read_text(encoding="utf-8") for name, file in files.items()})


@contextmanager
def vault_of(way: Way, folder: Path) -> Iterator[Vault]:
    """Make one, with a token endpoint that lasts as long as the block."""
    with token_endpoint("safe", "") as tokens:
        tokens.life_seconds = TOKEN_SECONDS
        yield Vault(way, folder, tokens)


def addresses(cluster: KafkaCluster) -> str:
    """Return the addresses where the brokers ask who is there."""
    return ",".join(f"{broker.address.rpartition(':')[0]}:{GUARDED_PORT}" for broker in cluster.brokers.values())
