"""Where settings come from: flags, the environment, secret files and the file, each value with the name of its origin.

The only module that reads the environment.
"""

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from consumer.errors import ConfigurationError
from consumer.settings.fields import FILE_KEYS, FILE_ONLY, POLICY_KEYS, PREFIX, VARIABLES, flag
from consumer.settings.file import FILE_NAME, ConfigurationFile, suggestion
from consumer.settings.redaction import quoted
from safe_core import CRITERIA


@dataclass(frozen=True, slots=True)
class Given:
    """A value as a source gave it, not yet checked, and its name there; `hidden` if no error may quote it."""

    value: object = field(repr=False)
    origin: str
    hidden: bool = False


Layer = dict[str, Given]


def from_flags(flags: Mapping[str, object]) -> Layer:
    """What the command line gives; None means not given."""
    return {name: Given(value, flag(name)) for name, value in flags.items() if value is not None}


def from_environment(environ: Mapping[str, str] | None) -> Layer:
    """What the variables give, of this process if none are passed; raises ConfigurationError for an unknown one."""
    environ = os.environ if environ is None else environ
    _refuse_unknown(environ, "variable")
    return {name: Given(environ[variable], variable) for name, variable in VARIABLES.items() if variable in environ}


def from_secrets(secrets_dir: Given | None, folder: Path) -> Layer:
    """What the folder of secrets gives, nothing if none is named; raises ConfigurationError."""
    if secrets_dir is None or not str(secrets_dir.value or "").strip():
        return {}
    directory = folder / str(secrets_dir.value)
    named = f"{secrets_dir.origin}={directory}"
    if not directory.is_dir():
        raise ConfigurationError(f"{named} is not a folder; mount the secrets there or name another one")
    try:
        paths = {path.name.upper(): path for path in directory.iterdir()}
    except OSError as error:
        raise ConfigurationError(f"{named} cannot be read: {error.strerror}") from error
    _refuse_unknown(paths, f"secrets file (in {directory})")
    files = {name: paths[variable] for name, variable in VARIABLES.items() if variable in paths}
    return {name: Given(_secret(path), f"{path.name} in {directory}", hidden=True) for name, path in files.items()}


def _secret(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").rstrip("\r\n")
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError:
        raise ConfigurationError(
            f"{path} is not UTF-8 text; write it again as UTF-8"
        ) from None  # the error quotes the secret


_WITHOUT_VARIABLE: Final = {
    PREFIX + key.replace(".", "_").upper(): key for key in (*POLICY_KEYS, *(f"weights.{c}" for c in CRITERIA))
} | {PREFIX + name.upper(): FILE_KEYS[name] for name in FILE_ONLY}


def _refuse_unknown(names: Iterable[str], what: str) -> None:
    names, known = set(names), set(VARIABLES.values())
    for name in sorted(known):
        without_version = name.replace(PREFIX, PREFIX.partition("_")[0] + "_")
        if without_version in names:
            raise ConfigurationError(f"{without_version} is not a {what} that SAFE knows; its name is {name}")
    for name in sorted({name for name in names if name.startswith(PREFIX)} - known):
        if re.search(r"_SERVICE_(HOST|PORT(_.+)?)$|_PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?$", name):
            advice = "if Kubernetes has set it for a service, set enableServiceLinks: false in the pod's specification"
        elif name in _WITHOUT_VARIABLE:
            advice = f"write it as {_WITHOUT_VARIABLE[name]} in {FILE_NAME}"
        else:
            # Without the prefix, which makes all names look alike.
            advice = suggestion(name.removeprefix(PREFIX), {other.removeprefix(PREFIX): other for other in known})
        raise ConfigurationError(f"{name} is not a {what} that SAFE knows; {advice}")


def from_file(file: ConfigurationFile) -> Layer:
    """What the configuration file gives, but for the policy's own keys."""
    return {
        name: Given(file.entries[key], f"{file.name}: {key}") for name, key in FILE_KEYS.items() if key in file.entries
    }


# --- variables that are not SAFE's own


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Variables that are not SAFE's own: those of build tools and of GitHub Actions.

    `source_date_epoch` is the time of a reproducible build, in seconds since 1970; `github_actions` is whether GitHub
    Actions runs the command, and `step_summary` is the file that it shows on the page of a run.
    """

    source_date_epoch: int | None
    github_actions: bool
    step_summary: Path | None


_LAST_SECOND_OF_9999: Final = 253_402_300_799


def surroundings(environ: Mapping[str, str] | None = None) -> Surroundings:
    """Read these variables; raises ConfigurationError if SOURCE_DATE_EPOCH is not a time."""
    variables = os.environ if environ is None else environ
    moment = variables.get("SOURCE_DATE_EPOCH", "").strip()
    if moment and not (re.fullmatch(r"[0-9]{1,12}", moment) and int(moment) <= _LAST_SECOND_OF_9999):
        raise ConfigurationError(
            f"SOURCE_DATE_EPOCH={quoted('source_date_epoch', moment)} is not a time; "
            "write the seconds since 1970, such as 1772438400, or unset it"
        )
    github_actions = variables.get("GITHUB_ACTIONS") == "true"
    summary = variables.get("GITHUB_STEP_SUMMARY", "") if github_actions else ""
    return Surroundings(int(moment) if moment else None, github_actions, Path(summary) if summary else None)


_LEADING_ELSEWHERE = frozenset(
    ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "OPENAI_BASE_URL", "OPENAI_API_BASE", "AZURE_OPENAI_ENDPOINT")
)


def model_key(name: str) -> str:
    """Give the key of a model's endpoint, from a variable of its client; raises ConfigurationError if there is none."""
    key = os.environ.get(name, "").strip()
    if not key:
        raise ConfigurationError(f"{name} is not set; an endpoint that wants no key takes any, such as {name}=none")
    if not (key.isascii() and key.isprintable()):
        raise ConfigurationError(f"{name} has a character that no header can have; copy the key again")
    return key


def leading_elsewhere() -> list[str]:
    """Name the variables that are set and would lead what is sent to a model through or to another host."""
    return sorted(name for name in os.environ if name.upper() in _LEADING_ELSEWHERE)


def debug_is_asked_for(environ: Mapping[str, str] | None = None) -> bool:
    """Tell whether SAFE_V0_LOG_LEVEL asks for debug; answers even where the settings cannot be read."""
    variables = os.environ if environ is None else environ
    return variables.get(VARIABLES["log_level"], "").strip().lower() == "debug"


def json_log_is_asked_for(environ: Mapping[str, str] | None = None) -> bool:
    """Tell whether SAFE_V0_LOG_FORMAT asks for JSON; answers even where the settings cannot be read."""
    variables = os.environ if environ is None else environ
    return variables.get(VARIABLES["log_format"], "").strip().lower() == "json"
