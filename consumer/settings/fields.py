"""What SAFE is told, and by whom: the only module that reads the environment.

A flag beats a variable, which beats a secrets file, which beats the configuration file, which beats the default. The
origin of each value is kept: `safe config show` prints it, and every error begins with it.
"""

import ipaddress
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeVar, get_args
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, ValidationError, WithJsonSchema
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
from consumer.settings.file import FILE_NAME, ConfigurationFile, Keys, read_configuration_file, suggestion
from safe_core import CRITERIA, InvalidPolicy, Policy

PREFIX: Final = "SAFE_V0_"
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


_Nameable = TypeVar("_Nameable")


def _nameable(value: _Nameable) -> _Nameable:
    """A path, or None, that a file system can be asked for."""
    text = "" if value is None else str(value)
    try:
        text.encode(errors="surrogateescape")
    except UnicodeEncodeError as error:
        raise ValueError("holds a lone surrogate, which no path may") from error
    if "\0" in text:
        raise ValueError("holds a NUL character, which no path may")
    return value


def _comma_separated(value: object) -> object:
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


# In what Python and ECMAScript have in common: the JSON Schema has them too.
_TOPIC_NAME: Final = r"[a-zA-Z0-9._-]{1,249}"
_GROUP_ID: Final = r"[a-zA-Z0-9._:/@+-]{1,200}"
_ADDRESS: Final = r"(?:\[([0-9A-Fa-f:.]+)\]|([^\s:/@\[\]]+)):([0-9]{1,5})"


def _pattern(expression: str) -> WithJsonSchema:
    """Tell editors what a validator checks; they see the form alone, not every rule."""
    return WithJsonSchema({"type": "string", "pattern": f"^{expression}$"})


def _topic_name(value: str) -> str:
    if ":" in value:
        raise ValueError("holds a colon, which Kafka allows in no topic name")
    if not re.fullmatch(_TOPIC_NAME, value) or value in {".", ".."}:
        raise ValueError("is no legal topic name")
    return value


def _group_id(value: str) -> str:
    # It stands in ce_source, a URI reference; and `<group>.aggregator` is the name of the aggregator's group.
    if not re.fullmatch(_GROUP_ID, value) or value.endswith(".aggregator"):
        raise ValueError("is no usable group id")
    return value


def split_address(address: str) -> tuple[str, int]:
    """Split host:port or [IPv6]:port, the brackets taken off; raises ValueError."""
    matched = re.fullmatch(_ADDRESS, address)
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
    return _nameable(value)


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


def _some_and_distinct(formats: tuple[str, ...]) -> tuple[str, ...]:
    if not formats:
        raise ValueError("is empty")
    if len(set(formats)) < len(formats):
        raise ValueError("names one twice")
    return formats


def _one_of(choices: object) -> str:
    *others, last = get_args(choices)
    return f"{', '.join(others)} or {last}"


_Number = BeforeValidator(_not_a_boolean)
_Optional = BeforeValidator(_blank_is_unset)
_Score = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False), _Number, Expects("a number from 0 to 1")]
_Count = Annotated[int, Field(ge=1, le=10**10), _Number, Expects("a whole number, at least 1")]
_CountFromZero = Annotated[int, Field(ge=0, le=10**10), _Number, Expects("a whole number, at least 0")]
_Flag = Annotated[bool, Expects("true or false")]
_Text = Annotated[str | None, _Optional, Expects("a text")]
_Path = AfterValidator(_nameable)
_File = Annotated[Path | None, _Optional, _Path, Expects("the path of a file")]
_Folder = Annotated[Path | None, _Optional, _Path, Expects("the path of a folder")]
_Topic = Annotated[
    str,
    AfterValidator(_topic_name),
    _pattern(rf"(?!\.{{1,2}}$){_TOPIC_NAME}"),
    Expects("1 to 249 of the characters a-z, A-Z, 0-9, '.', '_' and '-'"),
]

ReportFormat = Literal["json", "console", "markdown"]
SecurityProtocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
SaslMechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
LogLevel = Literal["debug", "info", "warning", "error", "critical"]
LogFormat = Literal["json", "console"]


class Settings(BaseSettings):
    """Every setting, checked; a field's variable is SAFE_V0_ and its name in capitals."""

    model_config = SettingsConfigDict(frozen=True, extra="forbid", env_prefix=PREFIX, hide_input_in_errors=True)

    cr_pass: _Score = Field(0.8, description="The lowest CR that passes.")
    cr_review: _Score = Field(0.5, description="The lowest CR that is to be reviewed, not failed; not above pass.")
    ah_pass: _Score = Field(1.0, description="The lowest AH that passes.")
    ah_review: _Score = Field(0.5, description="The lowest AH that is to be reviewed, not failed; not above pass.")
    ac_pass: _Score = Field(0.8, description="The lowest AC that passes.")
    ac_review: _Score = Field(0.5, description="The lowest AC that is to be reviewed, not failed; not above pass.")
    ah_strict: _Flag = Field(default=False, description="Whether one forbidden term makes AH 0.")
    report_dir: Annotated[Path, _Path, Expects("the path of a folder")] = Field(
        Path("reports"), description="Where safe score puts Markdown and, of several formats, JSON."
    )

    # "" where none is given: `Loaded.require` asks for it where a command cannot do without.
    kafka_bootstrap_servers: Annotated[
        str,
        AfterValidator(_servers),
        _pattern(rf"\s*({_ADDRESS}(\s*,\s*{_ADDRESS})*\s*)?"),
        Expects("host:port,host:port,…"),
    ] = Field("", description="Brokers of the Kafka cluster: host:port,host:port. worker, publish and topics need it.")
    kafka_group_id: Annotated[
        str,
        AfterValidator(_group_id),
        _pattern(rf"(?!.*\.aggregator$){_GROUP_ID}"),
        Expects("1 to 200 of a-z, A-Z, 0-9 and . _ - : / @ +, not ending in .aggregator"),
    ] = Field("safe-v0", description="Consumer group of the scorer; the aggregator's is this and .aggregator.")
    kafka_security_protocol: Annotated[SecurityProtocol, Expects(_one_of(SecurityProtocol))] = Field(
        "PLAINTEXT", description="How to talk to the brokers."
    )
    kafka_sasl_mechanism: Annotated[SaslMechanism | None, _Optional, Expects(_one_of(SaslMechanism))] = Field(
        None, description="How to log in; the SASL protocols need it, the others refuse it."
    )
    kafka_sasl_username: _Text = Field(None, description="Who logs in; as kafkaSaslMechanism.")
    kafka_sasl_password: Annotated[SecretStr | None, _Optional, Expects("a text")] = Field(
        None, description="Better kept in a file SAFE_V0_KAFKA_SASL_PASSWORD in the folder secretsDir than here."
    )
    kafka_ssl_cafile: _File = Field(None, description="Certificates (PEM) to trust; for the SSL protocols alone.")
    kafka_ssl_certfile: _File = Field(None, description="SAFE's own certificate (PEM); for the SSL protocols alone.")
    kafka_ssl_keyfile: _File = Field(None, description="The key (PEM) of kafkaSslCertfile, which it needs beside it.")
    kafka_session_timeout_seconds: _Count = Field(
        10, description="A worker that is silent for this long loses its partitions."
    )
    secrets_dir: _Folder = Field(
        None, description="Folder of secrets: files named as the variables, each with its value."
    )

    input_topic: _Topic = Field(
        "factory.generation.output", description="Outputs to score. No two topics may be the same one."
    )
    scored_topic: _Topic = Field("safe.v0.scored", description="Internal: scored cases, by batch.")
    state_topic: _Topic = Field("safe.v0.state", description="Internal, compacted: the aggregator's state.")
    result_topic: _Topic = Field("safe.v0.result", description="A result for each scored case.")
    report_topic: _Topic = Field("safe.v0.report", description="Compacted: the latest report of each batch.")
    dead_letter_topic: _Topic = Field("safe.v0.dead-letter", description="Records that can never be scored.")

    delivery: Annotated[Literal["exactly_once", "at_least_once"], Expects("exactly_once or at_least_once")] = Field(
        "exactly_once", description="at_least_once is for brokers without transactions."
    )
    expectations: Annotated[
        str | None, _Optional, AfterValidator(_expectations), Expects("a folder, an http(s):// URL or topic:NAME")
    ] = Field(None, description="Where the test cases are: a folder of batch files, a service, or a compacted topic.")
    expectations_grace_seconds: _CountFromZero = Field(
        0, description="How long a partition waits for a test case that is not there yet."
    )
    expectations_token: Annotated[SecretStr | None, _Optional, Expects("a text")] = Field(
        None, description="Bearer token of the service; better kept in a file of that name in the folder secretsDir."
    )
    expectations_timeout_seconds: _Count = Field(
        10, description="How long one look-up at the service may take, all its tries together; one try, half of it."
    )
    expectations_max_requests: _Count = Field(16, description="How many requests the service gets at once at most.")
    expectations_cache_seconds: _CountFromZero = Field(
        60, description="How long an answer of the service is used before it is asked whether it still holds."
    )
    expectations_cache_size: _Count = Field(
        20_000, description="How many answers of the service are kept, of some 6 kB each; the longest unused go first."
    )
    expectations_use_proxy: _Flag = Field(
        default=False, description="Whether the service is reached by the proxy that HTTP_PROXY and the like name."
    )
    input_start: Annotated[Literal["earliest", "latest"] | None, _Optional, Expects("earliest or latest")] = Field(
        None, description="Where to begin when the group's offsets have expired; unset, SAFE stops and asks."
    )
    offset_out_of_range: Annotated[Literal["stop", "earliest"], Expects("stop or earliest")] = Field(
        "stop", description="What to do when the offset to read next is gone."
    )
    input_types: Annotated[
        tuple[Annotated[str, Field(min_length=1)], ...],
        NoDecode,  # else pydantic-settings would read the variable as JSON
        BeforeValidator(_comma_separated),
        Expects("event types, separated by commas"),
    ] = Field((), description="Accepted types (ce_type) of CloudEvents; none means any.")
    # A scored record may be 16 KiB below this limit (contract.md, "Dead letters"): the lower bound leaves room for it.
    max_value_bytes: Annotated[
        int, Field(ge=32_768, le=104_857_600), _Number, Expects("a whole number from 32768 to 104857600")
    ] = Field(1_048_576, description="The largest value of a record that is read or written.")
    max_batch_bytes: Annotated[
        int, Field(ge=1_048_576, le=2**31 - 1), _Number, Expects("a whole number from 1048576 to 2147483647")
    ] = Field(
        134_217_728, description="The largest batch of records, decompressed; a larger one makes its partition wait."
    )
    poison_run_limit: Annotated[
        int | None, Field(ge=1, le=10**10), _Optional, _Number, Expects("a whole number, at least 1")
    ] = Field(None, description="So many dead letters in a row stop a partition; unset, none do.")
    poison_share_limit: Annotated[
        float | None, Field(gt=0, lt=1, allow_inf_nan=False), _Optional, _Number, Expects("a number between 0 and 1")
    ] = Field(
        None,
        description="A greater share of dead letters in a partition's last 1,000 records stops it; unset, none does.",
    )

    batch_ttl_seconds: _Count = Field(604_800, description="A batch without news for this long is forgotten.")
    max_exported_batches: _Count = Field(1000, description="How many batches have metrics of their own.")
    http_address: Annotated[
        str,
        AfterValidator(_address),
        _pattern(_ADDRESS),
        Expects("host:port, as 127.0.0.1:9464, [::1]:9464 or 0.0.0.0:9464 for everyone"),
    ] = Field("127.0.0.1:9464", description="host:port of /metrics, /livez and /readyz.")
    start_patience_seconds: _Count = Field(
        600, description="How long a worker that starts waits for brokers that do not answer."
    )
    shutdown_seconds: _Count = Field(20, description="How long a worker may take to stop.")
    log_level: Annotated[LogLevel, BeforeValidator(_lower_case), Expects(_one_of(LogLevel))] = Field(
        "info", description="The least severe records that are logged."
    )
    log_format: Annotated[LogFormat | None, _Optional, Expects(_one_of(LogFormat))] = Field(
        None, description="Unset: console on a terminal, else json."
    )

    # From the configuration file alone, as are `weights` and `overrides`, which only the policy knows.
    report_formats: Annotated[
        tuple[ReportFormat, ...],
        AfterValidator(_some_and_distinct),
        Field(json_schema_extra={"minItems": 1, "uniqueItems": True}),
        Expects(f"a list of {_one_of(ReportFormat)}"),
    ] = Field(("console",), description="What safe score writes where no --format is given.")

    @property
    def aggregator_group_id(self) -> str:
        """The group of the aggregators; `kafka_group_id` is that of the scorers."""
        return f"{self.kafka_group_id}.aggregator"

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
_SECRETS: Final = frozenset({"kafka_sasl_password", "expectations_token"})
_POLICY_KEYS: Final = ("weights", "overrides")


def _file_key(name: str) -> str:
    criterion, _, bound = name.partition("_")
    if criterion.upper() in CRITERIA and bound in {"pass", "review"}:
        return f"thresholds.{criterion.upper()}.{bound}"
    return "strictAH" if name == "ah_strict" else to_camel(name)


FILE_KEYS: Final = {name: _file_key(name) for name in Settings.model_fields}
_KEYS: Final = Keys((*FILE_KEYS.values(), *_POLICY_KEYS), {to_camel(name): key for name, key in FILE_KEYS.items()})


def _flag(name: str) -> str:
    return _FLAGS.get(name, "--" + name.replace("_", "-"))


def shown(name: str, value: object) -> object:
    """Give a value as JSON can hold it, without its secrets: passwords, tokens, what an address holds of them."""
    if value is None or value == "":
        return None
    if name in _SECRETS:
        return HIDDEN
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, str) and _is_address(name, value):
        return _without_secrets(value)
    return list(value) if isinstance(value, tuple) else value


def _is_address(name: str, value: str) -> bool:
    """Tell an address from a path, which may hold an @ of its own; one with a slip in its scheme is an address, too."""
    holds_user = name == "expectations" and ":" in value.partition("@")[0]
    return name in {"kafka_bootstrap_servers", "http_address"} or "://" in value or holds_user


def _without_secrets(address: str) -> str:
    """Hide what precedes an @, and what follows a ? or #: a token may be written there."""
    named = re.sub(r"^([a-zA-Z]+:/+)?.*@", rf"\1{HIDDEN}@", address, flags=re.DOTALL)
    return re.sub(r"([?#]).+", rf"\1{HIDDEN}", named, flags=re.DOTALL)


def _quoted(name: str, value: object, *, hidden: bool = False) -> str:
    value = "" if value == "" else HIDDEN if hidden else shown(name, value)
    plain = isinstance(value, str) and re.fullmatch(r"[!-~]+", value)
    text = str(value) if plain else json.dumps(value, default=lambda other: type(other).__name__)
    return text if len(text) <= 120 else text[:120] + "…"


# --- the sources, each giving what it holds with the words that name it


@dataclass(frozen=True, slots=True)
class Given:
    """A value as a source gave it, unread, and where it stands there; `hidden` if no error may repeat it."""

    value: object = field(repr=False)
    origin: str
    hidden: bool = False


_Layer = dict[str, Given]


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
    return {name: Given(_secret(path), f"{path.name} in {directory}", hidden=True) for name, path in files.items()}


def _secret(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").rstrip("\r\n")
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError:
        raise ConfigurationError(f"{path} is not UTF-8 text; write it anew") from None  # the error holds the secret


_WITHOUT_VARIABLE: Final = {
    PREFIX + key.replace(".", "_").upper(): key for key in (*_POLICY_KEYS, *(f"weights.{c}" for c in CRITERIA))
} | {PREFIX + name.upper(): FILE_KEYS[name] for name in _FILE_ONLY}


def _refuse_unknown(names: Iterator[str], what: str) -> None:
    known = set(VARIABLES.values())
    for name in sorted(set(names) - known):
        if re.search(r"_SERVICE_(HOST|PORT(_.+)?)$|_PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?$", name):
            advice = "if Kubernetes set it for a service of that name, set enableServiceLinks: false"
        elif name in _WITHOUT_VARIABLE:
            advice = f"write it as {_WITHOUT_VARIABLE[name]} in {FILE_NAME}"
        else:
            # Without the prefix, which makes all of them look alike.
            advice = suggestion(name.removeprefix(PREFIX), {other.removeprefix(PREFIX): other for other in known})
        raise ConfigurationError(f"{name} is not a {what} that SAFE knows; {advice}")


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
    file = read_configuration_file(None if path is None else str(path), folder, _KEYS)
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

    `source_date_epoch` is the moment of a reproducible build, in seconds since 1970; `github_actions` tells that GitHub
    Actions runs the command, and `step_summary` is the file that it shows on the page of a run.
    """

    source_date_epoch: int | None
    github_actions: bool
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
    github_actions = variables.get("GITHUB_ACTIONS") == "true"
    summary = variables.get("GITHUB_STEP_SUMMARY", "") if github_actions else ""
    return Surroundings(int(moment) if moment else None, github_actions, Path(summary) if summary else None)


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
    return f"{entry.origin}={_quoted(name, entry.value, hidden=entry.hidden)} {why}; write {_expected(name)}"


def _expected(name: str) -> str:
    return next(entry.what for entry in Settings.model_fields[name].metadata if isinstance(entry, Expects))


def _named(name: str, settings: Settings, given: _Layer, *, default: str) -> str:
    """Name a setting with its value, by its origin where it has one; `default` names it where it has none."""
    value = _quoted(name, getattr(settings, name), hidden=name in given and given[name].hidden)
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
        problem = str(error)
        beneath = _layer_beneath(problem, settings, given)
        raise ConfigurationError(f"{file.name}: {problem}{beneath}{_remedy(problem)}") from error


def _threshold(settings: Settings, criterion: str) -> dict[str, float]:
    return {bound: getattr(settings, f"{criterion.lower()}_{bound}") for bound in ("pass", "review")}


def _layer_beneath(problem: str, settings: Settings, given: _Layer) -> str:
    """Name the default layer's thresholds, where an override failed together with them."""
    found = re.search(r"thresholds\.(CR|AH|AC): review \S+ is above pass", problem)
    if found is None:
        return ""
    bounds = (f"{found[1].lower()}_{bound}" for bound in ("pass", "review"))
    named = [_named(name, settings, given, default=name.replace("_", " ")) for name in bounds]
    return f" (the default layer has {' and '.join(named)})"


_POLICY_EXPECTS: Final = {
    "thresholds": "0 <= review <= pass <= 1",
    "weights": "numbers from 0 up, not all 0",
    "strictAH": "true or false",
}


def _remedy(problem: str) -> str:
    """Say what to write instead, where the policy's words do not."""
    if "; " in problem:  # an unknown key, with a suggestion
        return ""
    if problem.endswith("not an object"):
        return "; write { … } there"
    # The last one: the name of an override, which precedes it, may hold any word.
    named = re.findall("|".join(_POLICY_EXPECTS), problem)
    return f"; write {_POLICY_EXPECTS[named[-1]] if named else 'a name of 1 to 256 printable characters'}"


def _origins(given: _Layer, file: ConfigurationFile) -> dict[str, str]:
    origins = {name: given[name].origin if name in given else "default" for name in Settings.model_fields}
    weights = file.entries.get("weights")
    for criterion in CRITERIA:
        key = f"weights.{criterion}"
        origins[key] = f"{file.name}: {key}" if isinstance(weights, dict) and criterion in weights else "default"
    return origins
