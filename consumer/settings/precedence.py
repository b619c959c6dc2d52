"""The settings in force: the sources put together.

A flag beats a variable, which beats a secrets file, which beats the configuration file, which beats the default. The
origin of each value is kept: `safe config show` prints it, and every error begins with it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from consumer.errors import ConfigurationError
from consumer.settings.checks import check_together, policy_of, validated
from consumer.settings.fields import FILE_KEYS, VARIABLES, Settings, expected, flag
from consumer.settings.file import FILE_NAME, ConfigurationFile, read_configuration_file
from consumer.settings.redaction import SECRETS, without_secrets
from consumer.settings.sources import Given, Layer, from_environment, from_file, from_flags, from_secrets
from safe_core import CRITERIA, Policy

_READ_AGAIN: Final = SECRETS | {"kafka_sasl_username", "kafka_sasl_oauth_client_id", "expectations"}
"""What may change while a process runs, if it is in a file: secrets, who they belong to, and the address of a service,
which may hold a login."""


class SettingRow(NamedTuple):
    """One line of `safe config show`."""

    name: str
    value: object
    origin: str


@dataclass(frozen=True, slots=True)
class _Sources:
    """Where the values came from, in order; `above` has what cannot change: flags and the environment."""

    path: str | None
    folder: Path
    below: Layer
    secrets_dir: Given | None
    above: Layer

    def given(self, below: Layer) -> Layer:
        return below | from_secrets(self.secrets_dir, self.folder) | self.above

    def given_now(self) -> Layer:
        """What they give now. A configuration file without secrets that cannot be read takes nothing from those."""
        try:
            below = from_file(read_configuration_file(self.path, self.folder))
        except ConfigurationError:
            if SECRETS & self.below.keys():
                raise
            below = self.below
        return self.given(below)


@dataclass(frozen=True, slots=True)
class Loaded:
    """The settings in force, the origin of each by its field's name, and the policy made from them."""

    settings: Settings
    origins: Mapping[str, str]
    policy: Policy
    strict_everywhere: bool
    _given: Layer
    _sources: _Sources

    def settings_now(self) -> Settings:
        """The same settings, but with the logins that the files hold now; raises ConfigurationError."""
        now = self._sources.given_now()
        fixed = {name: entry for name, entry in self._given.items() if name not in _READ_AGAIN}
        given = fixed | {name: entry for name, entry in now.items() if name in _READ_AGAIN}
        settings = validated(given)
        check_together(settings, given)
        return settings

    def require(self, *names: str) -> None:
        """Raise ConfigurationError unless each of these settings has a value."""
        for name in names:
            if not getattr(self.settings, name):
                where = f"{flag(name)} or as {FILE_KEYS[name]} in {FILE_NAME}"
                ways = f"set it to {expected(name)}, or give the value as {where}"
                raise ConfigurationError(f"{VARIABLES[name]} is not set; {ways}")

    def notes(self) -> Iterator[str]:
        """Explain what takes precedence, where a single row cannot show it."""
        if self.policy.metric_id or self.policy.archetype:
            general = "Overrides beat the general settings, no matter where those were set"
            yield f"{general}; an archetype's override beats a metric_id's."
        if self.strict_everywhere:
            yield "--strict-ah beats all: AH is strict for every case, whatever an override says."

    def rows(self) -> Iterator[SettingRow]:
        """Name every setting by its variable or, if it has none, by its key in the configuration file."""
        for name in Settings.model_fields:
            value = without_secrets(name, getattr(self.settings, name))
            yield SettingRow(VARIABLES.get(name, FILE_KEYS[name]), value, self.origins[name])
        for criterion in CRITERIA:
            key = f"weights.{criterion}"
            yield SettingRow(key, getattr(self.policy.default.weights, criterion), self.origins[key])


def load(flags: Mapping[str, object], environ: Mapping[str, str] | None = None, cwd: Path | None = None) -> Loaded:
    """Read every source and check the whole; raises ConfigurationError.

    `flags` are by the names of the settings, and `config` is the file's path; None means not given.
    """
    folder = cwd or Path.cwd()
    path = flags.get("config")
    file = read_configuration_file(None if path is None else str(path), folder)
    above = from_environment(environ)
    above |= from_flags({name: value for name, value in flags.items() if name != "config"})
    below = from_file(file)
    name = None if path is None else str(path)
    sources = _Sources(name, folder, below, (below | above).get("secrets_dir"), above)
    given = sources.given(below)
    settings = validated(given)
    check_together(settings, given)
    strict_everywhere = flags.get("ah_strict") is True  # only the flag beats the overrides
    policy = policy_of(settings, given, file, strict_everywhere=strict_everywhere)
    return Loaded(settings, origins_of(given, file), policy, strict_everywhere, given, sources)


def origins_of(given: Layer, file: ConfigurationFile) -> dict[str, str]:
    """Where each setting came from, by its field's name, and each weight by its key."""
    origins = {name: given[name].origin if name in given else "default" for name in Settings.model_fields}
    weights = file.entries.get("weights")
    for criterion in CRITERIA:
        key = f"weights.{criterion}"
        origins[key] = f"{file.name}: {key}" if isinstance(weights, dict) and criterion in weights else "default"
    return origins
