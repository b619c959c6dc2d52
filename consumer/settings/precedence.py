"""The settings in force: the sources put together.

A flag beats a variable, which beats a secrets file, which beats the configuration file, which beats the default. The
origin of each value is kept: `safe config show` prints it, and every error begins with it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from consumer.errors import ConfigurationError
from consumer.settings.checks import check_together, policy_of, validated
from consumer.settings.fields import FILE_KEYS, VARIABLES, Settings, expected, flag
from consumer.settings.file import FILE_NAME, ConfigurationFile, read_configuration_file
from consumer.settings.redaction import without_secrets
from consumer.settings.sources import Layer, from_environment, from_file, from_flags, from_secrets
from safe_core import CRITERIA, Policy


class SettingRow(NamedTuple):
    """One line of `safe config show`."""

    name: str
    value: object
    origin: str


@dataclass(frozen=True, slots=True)
class Loaded:
    """The settings in force, the origin of each by its field's name, and the policy made from them."""

    settings: Settings
    origins: Mapping[str, str]
    policy: Policy
    strict_everywhere: bool

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
    given = below | from_secrets((below | above).get("secrets_dir"), folder) | above
    settings = validated(given)
    check_together(settings, given)
    strict_everywhere = flags.get("ah_strict") is True  # only the flag beats the overrides
    policy = policy_of(settings, given, file, strict_everywhere=strict_everywhere)
    return Loaded(settings, origins_of(given, file), policy, strict_everywhere)


def origins_of(given: Layer, file: ConfigurationFile) -> dict[str, str]:
    """Where each setting came from, by its field's name, and each weight by its key."""
    origins = {name: given[name].origin if name in given else "default" for name in Settings.model_fields}
    weights = file.entries.get("weights")
    for criterion in CRITERIA:
        key = f"weights.{criterion}"
        origins[key] = f"{file.name}: {key}" if isinstance(weights, dict) and criterion in weights else "default"
    return origins
