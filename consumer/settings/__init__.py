"""Settings: from flags, environment, secret files and a configuration file, checked before anything starts."""

from consumer.settings.fields import FILE_KEYS, PREFIX, VARIABLES, Settings, split_address
from consumer.settings.last_good import LastGood
from consumer.settings.precedence import Loaded, load
from consumer.settings.redaction import without_secrets
from consumer.settings.sources import (
    Surroundings,
    debug_is_asked_for,
    json_log_is_asked_for,
    leading_elsewhere,
    model_key,
    surroundings,
)

__all__ = [
    "FILE_KEYS",
    "PREFIX",
    "VARIABLES",
    "LastGood",
    "Loaded",
    "Settings",
    "Surroundings",
    "debug_is_asked_for",
    "json_log_is_asked_for",
    "leading_elsewhere",
    "load",
    "model_key",
    "split_address",
    "surroundings",
    "without_secrets",
]
