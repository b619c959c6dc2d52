"""The settings themselves: the values each may have, its default, and its name in each source."""

import ipaddress
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal, TypeVar, get_args
from urllib.parse import SplitResult, urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, WithJsonSchema
from pydantic.alias_generators import to_camel
from typing_extensions import override

from consumer.settings.redaction import without_secrets
from safe_core import CRITERIA, DEFAULT_POLICY

PREFIX: Final = "SAFE_V0_"


# --- what a value may be; the message of a validator completes the sentence "SAFE_V0_X=value …"


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
        raise ValueError("contains a lone surrogate, which is not allowed in a path") from error
    if "\0" in text:
        raise ValueError("contains a NUL character, which is not allowed in a path")
    return value


def _comma_separated(value: object) -> object:
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


# In what Python and ECMAScript have in common: the JSON Schema has them too.
_TOPIC_NAME: Final = r"[a-zA-Z0-9._-]{1,249}"
_GROUP_ID: Final = r"[a-zA-Z0-9._:/@+-]{1,200}"
_ADDRESS: Final = r"(?:\[([0-9A-Fa-f:.]+)\]|([^\s:/@\[\]]+)):([0-9]{1,5})"


def _pattern(expression: str) -> WithJsonSchema:
    """Describe the form of a text to editors; the validators check more than this."""
    return WithJsonSchema({"type": "string", "pattern": f"^{expression}$"})


def _topic_name(value: str) -> str:
    if ":" in value:
        raise ValueError("contains a colon, which Kafka does not allow in topic names")
    if not re.fullmatch(_TOPIC_NAME, value) or value in {".", ".."}:
        raise ValueError("is not a legal topic name")
    return value


def _group_id(value: str) -> str:
    # It is part of ce_source, a URI reference; and `<group>.aggregator` is the name of the aggregator's group.
    if not re.fullmatch(_GROUP_ID, value) or value.endswith(".aggregator"):
        raise ValueError("is not a usable group id")
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
        raise ValueError("has no IPv6 address between its brackets") from error
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


def _http_url(value: str) -> SplitResult:
    try:
        url = urlsplit(value)
        usable = url.scheme in {"http", "https"} and bool(url.hostname) and url.port != 0
    except ValueError as error:  # its message quotes the address, which may hold a password
        raise ValueError("is not a usable URL") from error
    if not usable:
        raise ValueError("is not a usable URL")
    return url


def _base_url(value: str) -> None:
    url = _http_url(value)
    if url.query or url.fragment:
        raise ValueError("has a query or a fragment, which a base URL cannot have")


def _token_url(value: str | None) -> str | None:
    if value is None:
        return None
    url = _http_url(value)
    if url.fragment:
        raise ValueError("is not a usable URL")
    if "@" in url.netloc:
        raise ValueError(
            "contains a login, which belongs in SAFE_V0_KAFKA_SASL_OAUTH_CLIENT_ID and "
            "SAFE_V0_KAFKA_SASL_OAUTH_CLIENT_SECRET"
        )
    return value


def _some_and_distinct(formats: tuple[str, ...]) -> tuple[str, ...]:
    if not formats:
        raise ValueError("is empty")
    if len(set(formats)) < len(formats):
        raise ValueError("names one twice")
    return formats


def _not_blank(texts: tuple[str, ...]) -> tuple[str, ...]:
    if not all(text.strip() for text in texts):
        raise ValueError("holds a blank text, which every empty output would equal")
    return texts


def _one_of(choices: object) -> str:
    *others, last = get_args(choices)
    return f"{', '.join(others)} or {last}"


_Number = BeforeValidator(_not_a_boolean)
_Optional = BeforeValidator(_blank_is_unset)
_Score = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False), _Number, Expects("a number from 0 to 1")]
_Count = Annotated[int, Field(ge=1, le=10**10), _Number, Expects("a whole number, at least 1")]
_CountFromZero = Annotated[int, Field(ge=0, le=10**10), _Number, Expects("a whole number, at least 0")]
_Flag = Annotated[bool, Expects("true or false")]
_Text = Annotated[str | None, _Optional, Expects("a string")]
_Path = AfterValidator(_nameable)
_File = Annotated[Path | None, _Optional, _Path, Expects("the path of a file")]
_Folder = Annotated[Path | None, _Optional, _Path, Expects("the path of a folder")]
_Texts = Annotated[
    tuple[Annotated[str, WithJsonSchema({"type": "string", "pattern": r"\S"})], ...],
    AfterValidator(_not_blank),
    Expects("a list of texts"),
]
_Topic = Annotated[
    str,
    AfterValidator(_topic_name),
    _pattern(rf"(?!\.{{1,2}}$){_TOPIC_NAME}"),
    Expects("1 to 249 of the characters a-z, A-Z, 0-9, '.', '_' and '-'"),
]

ReportFormat = Literal["json", "console", "markdown"]
SecurityProtocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
SaslMechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]
LogLevel = Literal["debug", "info", "warning", "error", "critical"]
LogFormat = Literal["json", "console"]


_DEFAULTS = DEFAULT_POLICY.default.thresholds


class Settings(BaseModel):
    """Every setting, checked; a variable is SAFE_V0_ and the name in capitals. The string below is the description."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", validate_default=True, hide_input_in_errors=True, use_attribute_docstrings=True
    )

    cr_pass: _Score = _DEFAULTS.CR.pass_
    """The lowest CR that passes."""
    cr_review: _Score = _DEFAULTS.CR.review
    """The lowest CR that leads to Review, not Fail; at most the pass threshold."""
    ah_pass: _Score = _DEFAULTS.AH.pass_
    """The lowest AH that passes."""
    ah_review: _Score = _DEFAULTS.AH.review
    """The lowest AH that leads to Review, not Fail; at most the pass threshold."""
    ac_pass: _Score = _DEFAULTS.AC.pass_
    """The lowest AC that passes."""
    ac_review: _Score = _DEFAULTS.AC.review
    """The lowest AC that leads to Review, not Fail; at most the pass threshold."""
    ah_strict: _Flag = False
    """Whether AH is 0 as soon as one forbidden term is used."""
    report_dir: Annotated[Path, _Path, Expects("the path of a folder")] = Path("reports")
    """The folder for what safe score writes if --format is markdown, html or all, and --output is not given."""

    # "" if none is given: a command that needs one calls `Loaded.require`.
    kafka_bootstrap_servers: Annotated[
        str,
        AfterValidator(_servers),
        _pattern(rf"\s*({_ADDRESS}(\s*,\s*{_ADDRESS})*\s*)?"),
        Expects("host:port,host:port,…"),
    ] = ""
    """Brokers of the Kafka cluster: host:port,host:port. Every command that uses Kafka needs it."""
    kafka_group_id: Annotated[
        str,
        AfterValidator(_group_id),
        _pattern(rf"(?!.*\.aggregator$){_GROUP_ID}"),
        Expects("1 to 200 of the characters a-z, A-Z, 0-9 and . _ - : / @ +, not ending in .aggregator"),
    ] = "safe-v0"
    """Consumer group of the scorer; the aggregator's is this name followed by .aggregator."""
    kafka_group_guard: Annotated[bool | None, _Optional, Expects("true or false")] = None
    """Whether the groups take workers of this version alone. Unset: if the group is new, or was once guarded."""
    kafka_security_protocol: Annotated[SecurityProtocol, Expects(_one_of(SecurityProtocol))] = "PLAINTEXT"
    """The protocol of the connections to the brokers."""
    kafka_sasl_mechanism: Annotated[SaslMechanism | None, _Optional, Expects(_one_of(SaslMechanism))] = None
    """How to log in; required with the SASL protocols, not allowed with the others."""
    kafka_sasl_username: _Text = None
    """The user name; required with the mechanisms PLAIN and SCRAM, not allowed with the others."""
    kafka_sasl_password: Annotated[SecretStr | None, _Optional, Expects("a string")] = None
    """The password; better kept in a file SAFE_V0_KAFKA_SASL_PASSWORD in secretsDir."""
    kafka_sasl_oauth_token_url: Annotated[
        str | None, _Optional, AfterValidator(_token_url), Expects("the https:// address of a token endpoint")
    ] = None
    """Where OAUTHBEARER gets its tokens (OAuth 2.0 client-credentials grant); required with OAUTHBEARER."""
    kafka_sasl_oauth_client_id: _Text = None
    """The client's id at the token endpoint; required with OAUTHBEARER."""
    kafka_sasl_oauth_client_secret: Annotated[SecretStr | None, _Optional, Expects("a string")] = None
    """The client's secret; better kept in a file SAFE_V0_KAFKA_SASL_OAUTH_CLIENT_SECRET in secretsDir."""
    kafka_sasl_oauth_scope: _Text = None
    """The scope to request for the tokens; if unset, the token endpoint decides."""
    kafka_ssl_cafile: _File = None
    """Certificates (PEM) to trust; only for the SSL protocols."""
    kafka_ssl_certfile: _File = None
    """SAFE's own certificate (PEM); only for the SSL protocols."""
    kafka_ssl_keyfile: _File = None
    """The private key (PEM); kafkaSslCertfile, its certificate, must be set too."""
    kafka_ssl_key_password: Annotated[SecretStr | None, _Optional, Expects("a string")] = None
    """The passphrase of an encrypted key; better kept in a file SAFE_V0_KAFKA_SSL_KEY_PASSWORD in secretsDir."""
    kafka_client_rack: _Text = None
    """The rack of this worker, as in broker.rack. If brokers allow it, input is read from a replica in that rack."""
    kafka_session_timeout_seconds: _Count = 10
    """A worker that is silent for this long loses its partitions."""
    secrets_dir: _Folder = None
    """Folder of secrets: each file is named after a variable and holds its value."""

    input_topic: _Topic = "factory.generation.output"
    """Outputs to score. All topics must be different."""
    scored_topic: _Topic = "safe.v0.scored"
    """Internal: scored cases, partitioned by batch."""
    state_topic: _Topic = "safe.v0.state"
    """Internal, compacted: the aggregator's state."""
    result_topic: _Topic = "safe.v0.result"
    """A result for each scored case."""
    result_ids: Annotated[Literal["topic_name", "topic_id"] | None, _Optional, Expects("topic_name or topic_id")] = None
    """What the ids of results have of the input topic. Unset: as so far; the id, if this installation is a new one."""
    report_topic: _Topic = "safe.v0.report"
    """Compacted: the latest report of each batch."""
    dead_letter_topic: _Topic = "safe.v0.dead-letter"
    """Records that can never be scored."""

    delivery: Annotated[Literal["exactly_once", "at_least_once"], Expects("exactly_once or at_least_once")] = (
        "exactly_once"
    )
    """at_least_once is for brokers without transactions."""
    expectations: Annotated[
        str | None, _Optional, AfterValidator(_expectations), Expects("a folder, an http(s):// URL or topic:NAME")
    ] = None
    """Where the test cases are: a folder of batch files, a service, or a compacted topic."""
    expectations_grace_seconds: _CountFromZero = 0
    """How long a partition waits for a test case that is not there yet."""
    expectations_token: Annotated[SecretStr | None, _Optional, Expects("a string")] = None
    """Bearer token for the service; better kept in a file SAFE_V0_EXPECTATIONS_TOKEN in secretsDir."""
    expectations_timeout_seconds: _Count = 10
    """How long a look-up may take, with all its tries, before the partition waits; a try may take half of that time."""
    expectations_max_requests: _Count = 16
    """The maximum number of concurrent requests to the service."""
    expectations_cache_seconds: _CountFromZero = 60
    """How long a cached response of the service is used before SAFE asks whether it has changed."""
    expectations_cache_size: _Count = 20_000
    """How many answers of the service are kept, about 6 kB each; the least recently used are dropped first."""
    expectations_use_proxy: _Flag = False
    """Whether to reach the service through the proxy in HTTP_PROXY and similar variables."""
    input_start: Annotated[Literal["earliest", "latest"] | None, _Optional, Expects("earliest or latest")] = None
    """Where to start without offsets. Unset: earliest for a new group; if a group has lost its offsets, SAFE exits."""
    offset_out_of_range: Annotated[Literal["stop", "earliest"], Expects("stop or earliest")] = "stop"
    """What to do if the next offset to read no longer exists."""
    input_types: Annotated[
        tuple[Annotated[str, Field(min_length=1)], ...],
        BeforeValidator(_comma_separated),
        Expects("event types, separated by commas"),
    ] = ()
    """Accepted types (ce_type) of CloudEvents; empty means any."""
    event_time_ahead_seconds: _Count = 3_600
    """An output's generated_at is not believed if it is further ahead of its record's timestamp, which then counts."""
    lenient: _Flag = False
    """Whether results, reports and gauges also have lenient recall and coverage, which take most of a scorer's time."""
    unsupported: _Flag = False
    """Whether values of an output that its narrative lacks are counted, which takes longer than all else in scoring."""
    # A scored record may be 16 KiB below this limit (contract.md, "Dead letters"): the lower bound leaves room for it.
    max_value_bytes: Annotated[
        int, Field(ge=32_768, le=104_857_600), _Number, Expects("a whole number from 32768 to 104857600")
    ] = 1_048_576
    """The largest record value that is read or written."""
    max_batch_bytes: Annotated[
        int, Field(ge=1_048_576, le=2**31 - 1), _Number, Expects("a whole number from 1048576 to 2147483647")
    ] = 134_217_728
    """The largest Kafka record batch, after decompression; a larger one makes its partition wait."""
    poison_run_limit: Annotated[
        int | None, Field(ge=1, le=10**10), _Optional, _Number, Expects("a whole number, at least 1")
    ] = None
    """Stops a partition after this many dead letters in a row; unset means no limit."""
    poison_share_limit: Annotated[
        float | None, Field(gt=0, le=1, allow_inf_nan=False), _Optional, _Number, Expects("a number above 0, at most 1")
    ] = 0.5
    """Stops a partition if more than this share of its last 1,000 records are dead letters; 1 means no limit."""

    batch_ttl_seconds: _Count = 604_800
    """A batch without new results for this long is forgotten."""
    max_exported_batches: _Count = 1000
    """The maximum number of batches that one worker exports metrics for; those that changed last are chosen."""
    http_address: Annotated[
        str,
        AfterValidator(_address),
        _pattern(_ADDRESS),
        Expects("host:port, such as 127.0.0.1:9464, [::1]:9464, or 0.0.0.0:9464 for all interfaces"),
    ] = "127.0.0.1:9464"
    """Where /metrics, /livez and /readyz are served."""
    start_patience_seconds: _Count = 600
    """How long a starting worker waits for brokers that do not answer."""
    shutdown_seconds: _Count = 20
    """How long a worker may take to stop."""
    traces: Annotated[Literal["off", "otlp"], Expects("off or otlp")] = "off"
    """otlp exports spans of each output, set up by the OTEL_… variables; it needs the Python extra `opentelemetry`."""
    log_level: Annotated[LogLevel, BeforeValidator(_lower_case), Expects(_one_of(LogLevel))] = "info"
    """The lowest level that is logged."""
    log_format: Annotated[LogFormat | None, _Optional, Expects(_one_of(LogFormat))] = None
    """If unset: console on a terminal, else json."""

    # Only in the configuration file, like `weights` and `overrides`, which only the policy knows.
    report_formats: Annotated[
        tuple[ReportFormat, ...],
        AfterValidator(_some_and_distinct),
        Field(json_schema_extra={"minItems": 1, "uniqueItems": True}),
        Expects(f"a list of {_one_of(ReportFormat)}"),
    ] = ("console",)
    """What safe score writes if no --format is given."""
    error_texts: _Texts = tuple(sorted(DEFAULT_POLICY.engine_texts.errors))
    """An output whose summary is exactly one of these is a failed generation: the call of the model failed."""
    placeholder_texts: _Texts = tuple(sorted(DEFAULT_POLICY.engine_texts.placeholders))
    """A field of an output that has nothing but these was not asked for."""

    @property
    def aggregator_group_id(self) -> str:
        """The group of the aggregators; `kafka_group_id` is that of the scorers."""
        return f"{self.kafka_group_id}.aggregator"

    @property
    def expectations_folder(self) -> Path | None:
        """The folder that `expectations` names; None if it is a service, a topic or unset."""
        if self.expectations is None or "://" in self.expectations or self.expectations.startswith("topic:"):
            return None
        return Path(self.expectations)

    @override
    def __repr_args__(self) -> Iterator[tuple[str, object]]:
        return ((name, without_secrets(name, getattr(self, name))) for name in type(self).model_fields)


# --- what each setting is called in each place, and what it expects

FILE_ONLY: Final = frozenset({"report_formats", "error_texts", "placeholder_texts"})
VARIABLES: Final = {name: PREFIX + name.upper() for name in Settings.model_fields if name not in FILE_ONLY}
_FLAGS: Final = {
    "kafka_bootstrap_servers": "--bootstrap-servers",
    "kafka_group_id": "--group-id",
    "ah_strict": "--strict-ah",
}
POLICY_KEYS: Final = ("weights", "overrides")


def _file_key(name: str) -> str:
    criterion, _, bound = name.partition("_")
    if criterion.upper() in CRITERIA and bound in {"pass", "review"}:
        return f"thresholds.{criterion.upper()}.{bound}"
    return "strictAH" if name == "ah_strict" else to_camel(name)


FILE_KEYS: Final = {name: _file_key(name) for name in Settings.model_fields}


def flag(name: str) -> str:
    """The option of the command line that gives a setting."""
    return _FLAGS.get(name, "--" + name.replace("_", "-"))


def expected(name: str) -> str:
    """What an error advises to write as a setting."""
    return next(entry.what for entry in Settings.model_fields[name].metadata if isinstance(entry, Expects))
