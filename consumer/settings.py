"""What SAFE is told, and by whom: the only module that reads the environment (contract, section 5).

A flag beats a variable, which beats a secrets file, which beats the configuration file, which beats the default. The
origin of each value is kept: `safe config show` prints it, and every error begins with it.
"""

import difflib
import ipaddress
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple, get_args
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, ValidationError
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SecretsSettingsSource,
    SettingsConfigDict,
)
from typing_extensions import override

from consumer.errors import ConfigurationError
from safe_core import CRITERIA, InvalidPolicy, Policy

PREFIX: Final = "SAFE_V0_"
FILE_NAME: Final = "safe.config.json"
HIDDEN: Final = "********"


# --- what a value may be; each validator's words complete the sentence "SAFE_V0_X=value …"


@dataclass(frozen=True, slots=True)
class Expects:
    """What an error advises to write instead."""

    what: str


def _not_a_boolean(value: object) -> object:
    if isinstance(value, bool):  # pydantic would read true as 1
        raise ValueError("is not a number")  # noqa: TRY004 (pydantic collects ValueError alone)
    return value


def _blank_is_unset(value: object) -> object:
    return None if isinstance(value, str) and not value.strip() else value


def _lower_case(value: object) -> object:
    return value.strip().lower() if isinstance(value, str) else value


def _comma_separated(value: object) -> object:
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


def _topic_name(value: str) -> str:
    if ":" in value:
        raise ValueError("holds a colon, which Kafka allows in no topic name")
    if not re.fullmatch(r"[a-zA-Z0-9._-]{1,249}", value) or value in {".", ".."}:
        raise ValueError("is no legal topic name")
    return value


def _group_id(value: str) -> str:
    # It stands in ce_source, a URI reference; and `<group>.aggregator` is the name of the aggregator's group.
    if not re.fullmatch(r"[a-zA-Z0-9._:/@+-]{1,200}", value) or value.endswith(".aggregator"):
        raise ValueError("is no usable group id")
    return value


def split_address(address: str) -> tuple[str, int]:
    """Split host:port or [IPv6]:port, the brackets taken off; raises ValueError."""
    matched = re.fullmatch(r"(?:\[([0-9A-Fa-f:.]+)\]|([^\s:/@\[\]]+)):([0-9]{1,5})", address)
    if matched is None or int(matched[3]) > 65535:
        raise ValueError("is not host:port")
    if matched[1] is None:
        return matched[2], int(matched[3])
    try:
        ipaddress.IPv6Address(matched[1])
    except ValueError as error:
        raise ValueError("holds no IPv6 address between its brackets") from error
    return matched[1], int(matched[3])


def _address(value: str) -> str:
    split_address(value)
    return value


def _servers(value: str) -> str:
    servers = [server.strip() for server in value.split(",")] if value.strip() else []
    for server in servers:
        if split_address(server)[1] == 0:
            raise ValueError("has port 0")
    return ",".join(servers)


def _expectations(value: str | None) -> str | None:
    if value is None:
        return None
    if value.startswith("topic:"):
        _topic_name(value.removeprefix("topic:"))
    elif "://" in value:
        _base_url(value)
    return value


def _base_url(value: str) -> None:
    try:
        url = urlsplit(value)
        usable = url.scheme in {"http", "https"} and bool(url.hostname) and url.port != 0
    except ValueError as error:  # its words quote the address, and with it a password
        raise ValueError("is no usable URL") from error
    if not usable:
        raise ValueError("is no usable URL")
    if url.query or url.fragment:
        raise ValueError("has a query or a fragment, which a base URL cannot have")


def _one_of(choices: object) -> str:
    *others, last = get_args(choices)
    return f"{', '.join(others)} or {last}"


_Number = BeforeValidator(_not_a_boolean)
_Optional = BeforeValidator(_blank_is_unset)
_Score = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False), _Number, Expects("a number from 0 to 1")]
_Count = Annotated[int, Field(ge=1, le=10**10), _Number, Expects("a whole number, at least 1")]
_Flag = Annotated[bool, Expects("true or false")]
_Text = Annotated[str | None, _Optional, Expects("a text")]
_File = Annotated[Path | None, _Optional, Expects("the path of a file")]
_Folder = Annotated[Path | None, _Optional, Expects("the path of a folder")]
_Topic = Annotated[
    str, AfterValidator(_topic_name), Expects("1 to 249 of the characters a-z, A-Z, 0-9, '.', '_' and '-'")
]

ReportFormat = Literal["json", "console", "markdown"]
SecurityProtocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
SaslMechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
LogLevel = Literal["debug", "info", "warning", "error", "critical"]
LogFormat = Literal["json", "console"]


class Settings(BaseSettings):
    """Every setting, checked; a field's variable is SAFE_V0_ and its name in capitals."""

    model_config = SettingsConfigDict(frozen=True, extra="forbid", env_prefix=PREFIX, hide_input_in_errors=True)

    cr_pass: _Score = 0.8
    cr_review: _Score = 0.5
    ah_pass: _Score = 1.0
    ah_review: _Score = 0.5
    ac_pass: _Score = 0.8
    ac_review: _Score = 0.5
    ah_strict: _Flag = False
    report_dir: Annotated[Path, Expects("the path of a folder")] = Path("reports")

    # "" where none is given: `Loaded.require` asks for it where a command cannot do without.
    kafka_bootstrap_servers: Annotated[str, AfterValidator(_servers), Expects("host:port,host:port,…")] = ""
    kafka_group_id: Annotated[
        str,
        AfterValidator(_group_id),
        Expects("1 to 200 of a-z, A-Z, 0-9 and . _ - : / @ +, not ending in .aggregator"),
    ] = "safe-v0"
    kafka_security_protocol: Annotated[SecurityProtocol, Expects(_one_of(SecurityProtocol))] = "PLAINTEXT"
    kafka_sasl_mechanism: Annotated[SaslMechanism | None, _Optional, Expects(_one_of(SaslMechanism))] = None
    kafka_sasl_username: _Text = None
    kafka_sasl_password: Annotated[SecretStr | None, _Optional, Expects("a text")] = None
    kafka_ssl_cafile: _File = None
    kafka_ssl_certfile: _File = None
    kafka_ssl_keyfile: _File = None
    kafka_session_timeout_seconds: _Count = 10
    secrets_dir: _Folder = None

    input_topic: _Topic = "factory.generation.output"
    scored_topic: _Topic = "safe.v0.scored"
    state_topic: _Topic = "safe.v0.state"
    result_topic: _Topic = "safe.v0.result"
    report_topic: _Topic = "safe.v0.report"
    dead_letter_topic: _Topic = "safe.v0.dead-letter"

    delivery: Annotated[Literal["exactly_once", "at_least_once"], Expects("exactly_once or at_least_once")] = (
        "exactly_once"
    )
    expectations: Annotated[
        str | None, _Optional, AfterValidator(_expectations), Expects("a folder, an http(s):// URL or topic:NAME")
    ] = None
    expectations_grace_seconds: Annotated[
        int, Field(ge=0, le=10**10), _Number, Expects("a whole number, at least 0")
    ] = 0
    input_start: Annotated[Literal["earliest", "latest"] | None, _Optional, Expects("earliest or latest")] = None
    offset_out_of_range: Annotated[Literal["stop", "earliest"], Expects("stop or earliest")] = "stop"
    # Accepted `ce_type`s; none means any.
    input_types: Annotated[
        tuple[Annotated[str, Field(min_length=1)], ...],
        NoDecode,  # else pydantic-settings would read the variable as JSON
        BeforeValidator(_comma_separated),
        Expects("event types, separated by commas"),
    ] = ()
    # A scored record may be 16 KiB below this limit (contract, section 3): the lower bound leaves room for it.
    max_value_bytes: Annotated[
        int, Field(ge=32_768, le=104_857_600), _Number, Expects("a whole number from 32768 to 104857600")
    ] = 1_048_576

    batch_ttl_seconds: _Count = 604_800
    max_exported_batches: _Count = 1000
    http_address: Annotated[
        str, AfterValidator(_address), Expects("host:port, as 127.0.0.1:9464, [::1]:9464 or 0.0.0.0:9464 for everyone")
    ] = "127.0.0.1:9464"
    shutdown_seconds: _Count = 20
    log_level: Annotated[LogLevel, BeforeValidator(_lower_case), Expects(_one_of(LogLevel))] = "info"
    log_format: Annotated[LogFormat | None, _Optional, Expects(_one_of(LogFormat))] = None

    # From the configuration file alone, as are `weights` and `overrides`, which only the policy knows.
    report_formats: Annotated[tuple[ReportFormat, ...], Expects(f"a list of {_one_of(ReportFormat)}")] = ("console",)

    @property
    def expectations_folder(self) -> Path | None:
        """The folder that `expectations` names, None where it names a service, a topic or nothing."""
        if self.expectations is None or "://" in self.expectations or self.expectations.startswith("topic:"):
            return None
        return Path(self.expectations)

    @classmethod
    @override
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Take values from the caller alone: `load` reads the sources one by one, to know which gave what."""
        return (init_settings,)

    @override
    def __repr_args__(self) -> Iterator[tuple[str, object]]:
        return ((name, shown(name, getattr(self, name))) for name in type(self).model_fields)


# --- what each setting is called in each place, and how its value may be shown

_FILE_ONLY: Final = frozenset({"report_formats"})
VARIABLES: Final = {name: PREFIX + name.upper() for name in Settings.model_fields if name not in _FILE_ONLY}
_FLAGS: Final = {
    "kafka_bootstrap_servers": "--bootstrap-servers",
    "kafka_group_id": "--group-id",
    "ah_strict": "--strict-ah",
}
_SECRETS: Final = frozenset({"kafka_sasl_password"})
_POLICY_KEYS: Final = ("weights", "overrides")
_OBJECT_KEYS: Final = frozenset({"thresholds", *(f"thresholds.{criterion}" for criterion in CRITERIA)})


def _file_key(name: str) -> str:
    criterion, _, bound = name.partition("_")
    if criterion.upper() in CRITERIA and bound in {"pass", "review"}:
        return f"thresholds.{criterion.upper()}.{bound}"
    return "strictAH" if name == "ah_strict" else to_camel(name)


FILE_KEYS: Final = {name: _file_key(name) for name in Settings.model_fields}


def _flag(name: str) -> str:
    return _FLAGS.get(name, "--" + name.replace("_", "-"))


def shown(name: str, value: object) -> object:
    """Give a value as JSON can hold it, without its secrets: the password, and what precedes an @ in an address."""
    if value is None or value == "":
        return None
    if name in _SECRETS:
        return HIDDEN
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, str) and (name == "kafka_bootstrap_servers" or "://" in value):
        return re.sub(r"^([a-zA-Z]+://)?.*@", rf"\1{HIDDEN}@", value)
    return list(value) if isinstance(value, tuple) else value


def _quoted(name: str, value: object) -> str:
    value = "" if value == "" else shown(name, value)
    plain = isinstance(value, str) and re.fullmatch(r"[!-~]+", value)
    text = str(value) if plain else json.dumps(value, default=lambda other: type(other).__name__)
    return text if len(text) <= 120 else text[:120] + "…"


# --- the sources, each giving what it holds with the words that name it


@dataclass(frozen=True, slots=True)
class Given:
    """A value as a source gave it, unread, and where it stands there."""

    value: object = field(repr=False)
    origin: str


_Layer = dict[str, Given]


@dataclass(frozen=True, slots=True)
class ConfigurationFile:
    """The configuration file as parsed, {} where there is none; thresholds by dotted keys (specification, 6.2)."""

    name: str
    entries: Mapping[str, object]


def _from_flags(flags: Mapping[str, object]) -> _Layer:
    return {name: Given(value, _flag(name)) for name, value in flags.items() if value is not None}


def _from_environment(environ: Mapping[str, str]) -> _Layer:
    _refuse_unknown((name for name in environ if name.startswith(PREFIX)), "variable")
    source = EnvSettingsSource(Settings)
    source.env_vars = {name.lower(): value for name, value in environ.items() if name.startswith(PREFIX)}
    return {name: Given(value, VARIABLES[name]) for name, value in source().items()}


class _SecretFiles(SecretsSettingsSource):
    """The files themselves: reading them here would strip blanks that may belong to a password."""

    @override
    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        path = self.find_case_path(self.secrets_paths[0], PREFIX + field_name, case_sensitive=False)
        return path, field_name, False


def _from_secrets(directory: Path, origin: str) -> _Layer:
    if not directory.is_dir():
        raise ConfigurationError(f"{origin}={directory} is no folder; mount the secrets there or name another")
    try:
        names = [path.name.upper() for path in directory.iterdir()]
    except OSError as error:
        raise ConfigurationError(f"{origin}={directory} cannot be read: {error.strerror}") from error
    _refuse_unknown((name for name in names if name.startswith(PREFIX)), f"file in {directory}")
    files: dict[str, Path] = _SecretFiles(Settings, secrets_dir=directory)()
    return {name: Given(_secret(path), f"{path.name} in {directory}") for name, path in files.items()}


def _secret(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").rstrip("\r\n")
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError:
        raise ConfigurationError(f"{path} is not UTF-8 text; write it anew") from None  # the error holds the secret


def _refuse_unknown(names: Iterator[str], what: str) -> None:
    known = set(VARIABLES.values())
    for name in sorted(set(names) - known):
        if re.search(r"_SERVICE_(HOST|PORT(_.+)?)$|_PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?$", name):
            advice = "if Kubernetes set it for a service of that name, set enableServiceLinks: false"
        else:
            # Without the prefix, which makes all of them look alike.
            advice = _suggestion(name.removeprefix(PREFIX), {other.removeprefix(PREFIX): other for other in known})
        raise ConfigurationError(f"{name} is not a {what} that SAFE knows; {advice}")


def _suggestion(name: str, known: Mapping[str, str]) -> str:
    """Advise on an unknown name; `known` maps each spelling one might have meant to the right one."""
    close = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {known[close[0]]}?" if close else "remove it"


def _read_file(path: str | Path | None, folder: Path) -> ConfigurationFile:
    if path is None and not (folder / FILE_NAME).exists():
        return ConfigurationFile(FILE_NAME, {})
    name = FILE_NAME if path is None else str(path)
    try:
        text = (folder / name).read_text(encoding="utf-8-sig")  # editors on Windows write the mark
    except OSError as error:
        origin = name if path is None else f"--config {name}"
        raise ConfigurationError(f"{origin} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{name} is not UTF-8 text; save it as UTF-8") from error
    return ConfigurationFile(name, dict(_leaves(_parse(text, name), name)))


def without_comments(text: str) -> str:
    """Blank out // comments, so that lines and columns stay; what stands in a string stays too."""
    pattern = r'"(?:[^"\\\r\n]|\\.)*"|//[^\r\n]*'
    return re.sub(pattern, lambda found: found[0] if found[0].startswith('"') else " " * len(found[0]), text)


def _parse(text: str, name: str) -> dict[str, object]:
    try:
        document = json.loads(without_comments(text), object_pairs_hook=_unique, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise ConfigurationError(f"{name} is not JSON with // comments: {error.msg} at {place}") from error
    except ValueError as error:
        raise ConfigurationError(f"{name} cannot be used: {error}") from error
    except RecursionError as error:
        raise ConfigurationError(f"{name} is nested too deeply") from error
    if not isinstance(document, dict):
        raise ConfigurationError(f"{name} must hold one JSON object: begin it with {{")
    return document


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    document = dict(pairs)
    if len(document) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {json.dumps(twice)} stands twice in one object; remove one")
    return document


def _no_constant(constant: str) -> object:
    raise ValueError(f"{constant} is not a number of JSON")


def _leaves(document: Mapping[str, object], file: str, parent: str = "") -> Iterator[tuple[str, object]]:
    """Walk the entries with their dotted keys, refusing those that no setting has."""
    known = {**{to_camel(name): key for name, key in FILE_KEYS.items()}, **{key: key for key in FILE_KEYS.values()}}
    for key, value in ((parent + key, value) for key, value in document.items()):
        if key in _OBJECT_KEYS:
            if not isinstance(value, dict):
                raise ConfigurationError(f"{file}: {key} is not an object; write it as in the specification, 6.2")
            yield from _leaves(value, file, f"{key}.")
        elif key in FILE_KEYS.values() or key in _POLICY_KEYS:
            yield key, value
        else:
            advice = _suggestion(key, known | {key: key for key in (*_POLICY_KEYS, *_OBJECT_KEYS)})
            raise ConfigurationError(f"{file}: {json.dumps(key)} is not a key that SAFE knows; {advice}")


def _from_file(file: ConfigurationFile) -> _Layer:
    return {
        name: Given(file.entries[key], f"{file.name}: {key}") for name, key in FILE_KEYS.items() if key in file.entries
    }


# --- the layers put together


class Row(NamedTuple):
    """One line of `safe config show`."""

    name: str
    value: object
    origin: str


@dataclass(frozen=True, slots=True)
class Loaded:
    """The settings in force, the origin of each by its field's name, and the policy that they make."""

    settings: Settings
    origins: Mapping[str, str]
    policy: Policy
    strict_everywhere: bool

    def require(self, *names: str) -> None:
        """Raise ConfigurationError unless each of these settings has a value."""
        for name in names:
            if not getattr(self.settings, name):
                ways = f"give {_expected(name)} there, as {_flag(name)}, or as {FILE_KEYS[name]} in {FILE_NAME}"
                raise ConfigurationError(f"{VARIABLES[name]} is not set; {ways}")

    def notes(self) -> Iterator[str]:
        """Say what no single row can say of precedence."""
        if self.policy.metric_id or self.policy.archetype:
            yield "Overrides beat the default layer, wherever that was set: archetype over metric_id over default."
        if self.strict_everywhere:
            yield "--strict-ah beats all: AH is strict for every case, whatever an override says."

    def rows(self) -> Iterator[Row]:
        """Name every setting by its variable, or, where it has none, by its key in the configuration file."""
        for name in Settings.model_fields:
            value = shown(name, getattr(self.settings, name))
            yield Row(VARIABLES.get(name, FILE_KEYS[name]), value, self.origins[name])
        for criterion in CRITERIA:
            key = f"weights.{criterion}"
            yield Row(key, getattr(self.policy.default.weights, criterion), self.origins[key])


def load(flags: Mapping[str, object], environ: Mapping[str, str] | None = None, cwd: Path | None = None) -> Loaded:
    """Read every source and check the whole; raises ConfigurationError.

    `flags` are by the names of the settings, and `config` is the file's path; None means not given.
    """
    folder = cwd or Path.cwd()
    path = flags.get("config")
    file = _read_file(None if path is None else str(path), folder)
    above = _from_environment(os.environ if environ is None else environ)
    above |= _from_flags({name: value for name, value in flags.items() if name != "config"})
    below = _from_file(file)
    given = below | _from_named_folder((below | above).get("secrets_dir"), folder) | above
    settings = _validated(given)
    _check_together(settings, given)
    strict_everywhere = flags.get("ah_strict") is True  # only the flag beats the overrides
    policy = _policy(settings, given, file, strict_everywhere=strict_everywhere)
    return Loaded(settings, _origins(given, file), policy, strict_everywhere)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What others than SAFE's users put into the environment.

    `source_date_epoch` is the moment of a reproducible build, in seconds since 1970; `step_summary` the file that
    GitHub Actions shows on the page of a run.
    """

    source_date_epoch: int | None
    step_summary: Path | None


_LAST_SECOND_OF_9999: Final = 253_402_300_799


def surroundings(environ: Mapping[str, str] | None = None) -> Surroundings:
    """Read what surrounds a command; raises ConfigurationError for a moment that is none."""
    variables = os.environ if environ is None else environ
    moment = variables.get("SOURCE_DATE_EPOCH", "").strip()
    if moment and not (re.fullmatch(r"[0-9]{1,12}", moment) and int(moment) <= _LAST_SECOND_OF_9999):
        raise ConfigurationError(
            f"SOURCE_DATE_EPOCH={_quoted('source_date_epoch', moment)} is no moment; "
            "write the seconds since 1970, such as 1772438400, or unset it"
        )
    summary = variables.get("GITHUB_STEP_SUMMARY", "") if variables.get("GITHUB_ACTIONS") == "true" else ""
    return Surroundings(int(moment) if moment else None, Path(summary) if summary else None)


def debug_is_asked_for(environ: Mapping[str, str] | None = None) -> bool:
    """Tell whether SAFE_V0_LOG_LEVEL asks for debug; answers even where the settings cannot be read."""
    variables = os.environ if environ is None else environ
    return variables.get(VARIABLES["log_level"], "").strip().lower() == "debug"


def _from_named_folder(secrets_dir: Given | None, folder: Path) -> _Layer:
    if secrets_dir is None or not str(secrets_dir.value or "").strip():
        return {}
    return _from_secrets(folder / str(secrets_dir.value), secrets_dir.origin)


def _validated(given: _Layer) -> Settings:
    try:
        return Settings.model_validate({name: entry.value for name, entry in given.items()})
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
        # One problem a setting: a list of ten wrong elements is one wrong setting.
        problems = {str(problem["loc"][0]): problem.get("ctx", {}).get("error") for problem in reversed(found)}
        raise ConfigurationError(
            "; ".join(_unusable(name, given[name], problem) for name, problem in reversed(problems.items()))
        ) from None  # pydantic's words may quote a secret


def _unusable(name: str, entry: Given, problem: object) -> str:
    why = problem if isinstance(problem, ValueError) else "cannot be used"
    return f"{entry.origin}={_quoted(name, entry.value)} {why}; write {_expected(name)}"


def _expected(name: str) -> str:
    return next(entry.what for entry in Settings.model_fields[name].metadata if isinstance(entry, Expects))


def _named(name: str, settings: Settings, given: _Layer, *, default: str) -> str:
    """Name a setting with its value, by its origin where it has one; `default` names it where it has none."""
    value = _quoted(name, getattr(settings, name))
    return f"{given[name].origin}={value}" if name in given else f"{default} {value} (default)"


def _inverted_thresholds(settings: Settings, given: _Layer) -> Iterator[str]:
    for criterion in CRITERIA:
        review, enough = f"{criterion.lower()}_review", f"{criterion.lower()}_pass"
        if getattr(settings, review) > getattr(settings, enough):
            low = _named(review, settings, given, default=f"{criterion} review")
            high = _named(enough, settings, given, default=f"{criterion} pass")
            yield f"{low} is above {high}; lower the one or raise the other"


def _repeated_topics(settings: Settings, given: _Layer) -> Iterator[str]:
    topics = {name: getattr(settings, name) for name in Settings.model_fields if name.endswith("_topic")}
    topics["expectations"] = (settings.expectations or "").removeprefix("topic:")
    for one, other in combinations(topics, 2):
        if topics[one] == topics[other]:
            names = (_named(name, settings, given, default=name.replace("_", " ")) for name in (other, one))
            yield f"{' is the same topic as '.join(names)}; each needs its own"


_SECURED_BY: Final = {
    "SASL": ("kafka_sasl_mechanism", "kafka_sasl_username", "kafka_sasl_password"),
    "SSL": ("kafka_ssl_cafile", "kafka_ssl_certfile", "kafka_ssl_keyfile"),
}


def _unsecured(settings: Settings, given: _Layer) -> Iterator[str]:
    """Credentials that would silently not be used are as wrong as those that are missing."""
    variable = VARIABLES["kafka_security_protocol"]
    protocol = settings.kafka_security_protocol
    named = _named("kafka_security_protocol", settings, given, default=variable)
    for kind, names in _SECURED_BY.items():
        for name in names:
            value = getattr(settings, name)
            if value is not None and kind not in protocol:
                choice = "SASL_SSL" if "SASL" in {kind, protocol[:4]} else "SSL"
                yield f"{given[name].origin} is given, but {named} does not use it; set {variable}={choice} or drop it"
            if value is None and kind in protocol and kind == "SASL":
                yield f"{named} needs {VARIABLES[name]}; set it to {_expected(name)}"
    if settings.kafka_ssl_keyfile and not settings.kafka_ssl_certfile:
        yield f"{given['kafka_ssl_keyfile'].origin} needs its certificate; set {VARIABLES['kafka_ssl_certfile']}"


_CHECKS: Final[tuple[Callable[[Settings, _Layer], Iterator[str]], ...]] = (
    _inverted_thresholds,
    _repeated_topics,
    _unsecured,
)


def _check_together(settings: Settings, given: _Layer) -> None:
    problems = [problem for check in _CHECKS for problem in check(settings, given)]
    if problems:
        raise ConfigurationError("; ".join(problems))


def _policy(settings: Settings, given: _Layer, file: ConfigurationFile, *, strict_everywhere: bool) -> Policy:
    document = {
        "thresholds": {criterion: _threshold(settings, criterion) for criterion in CRITERIA},
        "strictAH": settings.ah_strict,
        **{key: file.entries[key] for key in _POLICY_KEYS if key in file.entries},
    }
    try:
        return Policy.from_document(document, strict_ah_everywhere=strict_everywhere)
    except InvalidPolicy as error:  # the thresholds by themselves are right: the file's weights or overrides are not
        raise ConfigurationError(f"{file.name}: {error}{_layer_beneath(str(error), settings, given)}") from error


def _threshold(settings: Settings, criterion: str) -> dict[str, float]:
    return {bound: getattr(settings, f"{criterion.lower()}_{bound}") for bound in ("pass", "review")}


def _layer_beneath(problem: str, settings: Settings, given: _Layer) -> str:
    """Name the default layer's thresholds, where an override failed together with them."""
    found = re.search(r"thresholds\.(CR|AH|AC)", problem)
    if found is None:
        return ""
    bounds = (f"{found[1].lower()}_{bound}" for bound in ("pass", "review"))
    named = [_named(name, settings, given, default=name.replace("_", " ")) for name in bounds]
    return f" (the default layer has {' and '.join(named)})"


def _origins(given: _Layer, file: ConfigurationFile) -> dict[str, str]:
    origins = {name: given[name].origin if name in given else "default" for name in Settings.model_fields}
    weights = file.entries.get("weights")
    for criterion in CRITERIA:
        key = f"weights.{criterion}"
        origins[key] = f"{file.name}: {key}" if isinstance(weights, dict) and criterion in weights else "default"
    return origins
