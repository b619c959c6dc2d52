"""Settings: each source, each origin, each refusal."""
# ruff: noqa: S105 (settings with "pass" in their names, and a secret that is none)

import json
import re
from pathlib import Path

import pytest

from consumer.errors import ConfigurationError
from consumer.settings import (
    FILE_KEYS,
    VARIABLES,
    Loaded,
    Settings,
    debug_is_asked_for,
    load,
    split_address,
    surroundings,
    without_secrets,
)
from consumer.settings.file import FILE_NAME, without_comments
from safe_core import DEFAULT_POLICY

ROOT = Path(__file__).parents[2]
SECRET = "hunter2-never-shown"


def from_environment(**variables: str) -> Loaded:
    return load({}, {f"SAFE_V0_{name}": value for name, value in variables.items()}, Path("/nonexistent"))


def from_text(folder: Path, text: str) -> Loaded:
    (folder / FILE_NAME).write_text(text, encoding="utf-8")
    return load({}, {}, folder)


def refusal(environ: dict[str, str], folder: Path, **flags: object) -> str:
    with pytest.raises(ConfigurationError) as refused:
        load(flags, environ, folder)
    return str(refused.value)


def test_without_any_source_every_value_is_the_default(tmp_path: Path) -> None:
    loaded = load({}, {}, tmp_path)
    assert set(loaded.origins.values()) == {"default"}
    assert loaded.policy.fingerprint == DEFAULT_POLICY.fingerprint
    assert loaded.settings.kafka_group_id == "safe-v0"
    assert loaded.settings.input_topic == "factory.generation.output"


def test_the_configuration_file_in_the_repository_says_what_the_defaults_are(tmp_path: Path) -> None:
    written = load({"config": ROOT / "config" / FILE_NAME}, {}, tmp_path)
    assert written.settings == Settings()
    assert written.policy.fingerprint == DEFAULT_POLICY.fingerprint


def test_the_configuration_file_in_the_repository_names_every_key() -> None:
    text = (ROOT / "config" / FILE_NAME).read_text(encoding="utf-8")
    last_parts = {key.rpartition(".")[2] for key in FILE_KEYS.values()}
    # secrets are advised against, so their keys are not shown
    assert {key for key in last_parts if f'"{key}"' not in text} == {FILE_KEYS[name] for name in secrets()}


def secrets() -> set[str]:
    """The settings whose values nobody may see."""
    return {name for name, field in Settings.model_fields.items() if "SecretStr" in str(field.annotation)}


def test_each_secret_is_hidden_wherever_a_setting_is_shown() -> None:
    assert {name for name in Settings.model_fields if without_secrets(name, "planted") == "********"} == secrets()


def test_the_settings_never_read_the_environment_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAFE_V0_KAFKA_GROUP_ID", "from-the-environment")
    assert Settings().kafka_group_id == "safe-v0"
    assert load({}).settings.kafka_group_id == "from-the-environment"


def test_variables_of_other_prefixes_are_not_ours(tmp_path: Path) -> None:
    load({}, {"SAFE_TEST_BOOTSTRAP_SERVERS": "x", "SAFE": "x", "safe_v0_cr_pass": "rubbish"}, tmp_path)


PRECEDENCE = [
    # (sources that give the group id, value in force, origin)
    ({"flag", "variable", "secret", "file"}, "by-flag", "--group-id"),
    ({"variable", "secret", "file"}, "by-variable", "SAFE_V0_KAFKA_GROUP_ID"),
    ({"secret", "file"}, "by-secret", "SAFE_V0_KAFKA_GROUP_ID in {folder}"),
    ({"file"}, "by-file", "safe.config.json: kafkaGroupId"),
    (set(), "safe-v0", "default"),
]


@pytest.mark.parametrize(("sources", "value", "origin"), PRECEDENCE)
def test_each_source_beats_those_below_it(tmp_path: Path, sources: set[str], value: str, origin: str) -> None:
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    environ = {"SAFE_V0_SECRETS_DIR": "secrets"}
    if "variable" in sources:
        environ["SAFE_V0_KAFKA_GROUP_ID"] = "by-variable"
    if "secret" in sources:
        (secrets / "SAFE_V0_KAFKA_GROUP_ID").write_text("by-secret\n")
    if "file" in sources:
        (tmp_path / FILE_NAME).write_text('{"kafkaGroupId": "by-file"}')
    loaded = load({"kafka_group_id": "by-flag" if "flag" in sources else None}, environ, tmp_path)
    assert loaded.settings.kafka_group_id == value
    assert loaded.origins["kafka_group_id"] == origin.format(folder=secrets)


VALUES = [
    # (variable, text, field's value)
    ("CR_PASS", "0.9", 0.9),
    ("AH_STRICT", "true", True),
    ("AH_STRICT", "0", False),
    ("REPORT_DIR", "/var/reports", Path("/var/reports")),
    ("KAFKA_BOOTSTRAP_SERVERS", "a:9092, [::1]:9093", "a:9092,[::1]:9093"),  # blanks after a comma
    ("KAFKA_BOOTSTRAP_SERVERS", "", ""),  # unset
    ("HTTP_ADDRESS", "[::1]:9464", "[::1]:9464"),
    ("HTTP_ADDRESS", "0.0.0.0:0", "0.0.0.0:0"),  # any free port
    ("INPUT_TYPES", "a.b, c", ("a.b", "c")),
    ("INPUT_TYPES", "", ()),  # any
    ("INPUT_START", "", None),  # an empty variable, as templates write it
    ("LOG_LEVEL", "INFO", "info"),
    ("EXPECTATIONS", "topic:test.cases", "topic:test.cases"),
    ("EXPECTATIONS", "https://store:8443/base", "https://store:8443/base"),
    ("EXPECTATIONS", "./cases", "./cases"),
    ("EXPECTATIONS_GRACE_SECONDS", "0", 0),
]


@pytest.mark.parametrize(("variable", "text", "value"), VALUES)
def test_a_variable_is_read_as_its_setting(variable: str, text: str, value: object) -> None:
    assert getattr(from_environment(**{variable: text}).settings, variable.lower()) == value


REFUSED_VARIABLES = [
    # (variable, value, what the sentence says after naming both)
    ("CR_PASS", "high", "cannot be used; write a number from 0 to 1"),
    ("CR_PASS", "nan", "cannot be used; write a number from 0 to 1"),
    ("CR_PASS", "1.5", "cannot be used; write a number from 0 to 1"),
    ("CR_PASS", "-0.1", "cannot be used; write a number from 0 to 1"),
    ("AH_STRICT", "maybe", "cannot be used; write true or false"),
    (
        "RESULT_TOPIC",
        "safe:v0:result",
        "contains a colon, which Kafka does not allow in topic names; write 1 to 249 of",
    ),
    ("INPUT_TOPIC", "..", "is not a legal topic name"),
    ("INPUT_TOPIC", "a" * 250, "is not a legal topic name"),
    ("INPUT_TOPIC", "über", "is not a legal topic name"),
    ("KAFKA_GROUP_ID", "x.aggregator", "is not a usable group id"),  # the aggregator's group of x
    ("KAFKA_BOOTSTRAP_SERVERS", "broker", "is not host:port; write host:port,host:port,…"),
    ("KAFKA_BOOTSTRAP_SERVERS", "a:9092,", "is not host:port"),
    ("KAFKA_BOOTSTRAP_SERVERS", "a:0", "has port 0"),
    ("KAFKA_SECURITY_PROTOCOL", "TLS", "cannot be used; write PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL"),
    ("DELIVERY", "at_most_once", "cannot be used; write exactly_once or at_least_once"),
    ("HTTP_ADDRESS", ":9464", "is not host:port"),
    ("HTTP_ADDRESS", "localhost:65536", "is not host:port"),
    ("HTTP_ADDRESS", "[::g]:1", "is not host:port"),
    ("HTTP_ADDRESS", "[1.2.3]:1", "has no IPv6 address between its brackets"),
    ("EXPECTATIONS", "ftp://store/", "is not a usable URL; write a folder, an http(s):// URL or topic:NAME"),
    ("EXPECTATIONS", "http://store:port/", "is not a usable URL"),
    ("EXPECTATIONS", "http://store/?a=b", "has a query or a fragment"),
    ("EXPECTATIONS", "topic:a:b", "contains a colon"),
    ("BATCH_TTL_SECONDS", "0", "cannot be used; write a whole number, at least 1"),
    ("SHUTDOWN_SECONDS", "1.5", "cannot be used; write a whole number, at least 1"),
    ("EXPECTATIONS_GRACE_SECONDS", "-1", "cannot be used; write a whole number, at least 0"),
    ("MAX_VALUE_BYTES", "1024", "cannot be used; write a whole number from 32768"),
    ("INPUT_START", "now", "cannot be used; write earliest or latest"),
    ("OFFSET_OUT_OF_RANGE", "latest", "cannot be used; write stop or earliest"),
    ("LOG_FORMAT", "xml", "cannot be used; write json or console"),
]


@pytest.mark.parametrize(("variable", "value", "problem"), REFUSED_VARIABLES)
def test_a_value_that_cannot_be_used_is_refused_by_its_variable(
    tmp_path: Path, variable: str, value: str, problem: str
) -> None:
    sentence = refusal({f"SAFE_V0_{variable}": value}, tmp_path)
    assert sentence.startswith(f"SAFE_V0_{variable}=")
    assert problem in sentence
    # What follows a question mark may be a token.
    assert value[:100].partition("?")[0] in sentence or not value.isascii()


UNKNOWN_VARIABLES = [
    ("SAFE_V0_CR_PAS", "did you mean SAFE_V0_CR_PASS?"),
    ("SAFE_V0_INPUT_TOPICS", "did you mean SAFE_V0_INPUT_TOPIC?"),
    ("SAFE_V0_XYZZY", "remove it"),  # like nothing
    ("SAFE_V0_REPORT_FORMATS", "write it as reportFormats in safe.config.json"),  # from the file alone
    ("SAFE_V0_OVERRIDES", "write it as overrides in safe.config.json"),
    ("SAFE_V0_WEIGHTS_AH", "write it as weights.AH in safe.config.json"),
    ("SAFE_V0_cr_pass", "did you mean SAFE_V0_CR_PASS?"),  # names are exact
    ("SAFE_V0_SERVICE_HOST", "set enableServiceLinks: false"),  # Kubernetes, for a service safe-v0
    ("SAFE_V0_METRICS_PORT_9464_TCP_ADDR", "set enableServiceLinks: false"),
]


@pytest.mark.parametrize(("variable", "advice"), UNKNOWN_VARIABLES)
def test_an_unknown_variable_is_refused_with_advice_and_without_its_value(
    tmp_path: Path, variable: str, advice: str
) -> None:
    sentence = refusal({variable: SECRET}, tmp_path)
    assert sentence.startswith(f"{variable} is not a variable that SAFE knows; ")
    assert advice in sentence
    assert SECRET not in sentence


def test_a_variable_without_the_version_in_its_name_is_not_ignored(tmp_path: Path) -> None:
    sentence = refusal({"SAFE_KAFKA_SASL_PASSWORD": SECRET}, tmp_path)
    assert sentence == (
        "SAFE_KAFKA_SASL_PASSWORD is not a variable that SAFE knows; its name is SAFE_V0_KAFKA_SASL_PASSWORD"
    )


def test_variables_of_others_are_ignored(tmp_path: Path) -> None:
    loaded = load({}, {"SAFE_PORT": "tcp://10.0.0.1:9464", "SAFE_SERVICE_HOST": "10.0.0.1"}, tmp_path)
    assert loaded.settings == Settings()


def test_a_bad_flag_is_named_as_the_flag(tmp_path: Path) -> None:
    sentence = refusal({"SAFE_V0_DELIVERY": "exactly_once"}, tmp_path, delivery="sometimes")
    assert sentence == "--delivery=sometimes cannot be used; write exactly_once or at_least_once"


def test_several_bad_values_are_told_at_once(tmp_path: Path) -> None:
    sentence = refusal({"SAFE_V0_CR_PASS": "x", "SAFE_V0_LOG_LEVEL": "loud"}, tmp_path)
    assert sentence.count(";") == 3
    assert sentence.index("SAFE_V0_CR_PASS=x") < sentence.index("SAFE_V0_LOG_LEVEL=loud")


# --- the configuration file


def test_a_file_with_comments_as_in_the_specification_is_read(tmp_path: Path) -> None:
    loaded = from_text(
        tmp_path,
        """// safe.config.json
        {
          "thresholds": {"CR": {"pass": 0.9}},
          "weights": {"AH": 1.5},  // weight AH higher
          "strictAH": true,
          "expectations": "http://store//cases", // "not this"
          "inputTypes": ["a", "b"],
          "reportFormats": ["json", "markdown"]
        } // the end""",
    )
    assert loaded.settings.cr_pass == 0.9
    assert loaded.settings.ah_strict
    assert loaded.settings.expectations == "http://store//cases"
    assert loaded.settings.input_types == ("a", "b")
    assert loaded.settings.report_formats == ("json", "markdown")
    assert loaded.policy.default.weights.AH == 1.5
    assert loaded.origins["cr_pass"] == "safe.config.json: thresholds.CR.pass"
    assert loaded.origins["weights.AH"] == "safe.config.json: weights.AH"
    assert loaded.origins["weights.CR"] == "default"


def test_the_name_of_a_schema_is_for_editors_alone(tmp_path: Path) -> None:
    loaded = from_text(tmp_path, '{"$schema": "./safe.config.schema.json"}')
    assert loaded.settings == Settings()
    assert set(loaded.origins.values()) == {"default"}


COMMENTED = [
    ('{"a": 1} // x', '{"a": 1}     '),
    ('{"a": "http://x"}', '{"a": "http://x"}'),  # in a string
    (r'{"a": "\"// x"}', r'{"a": "\"// x"}'),  # after an escaped quote
    ('{"a": "\\\\"}// x', '{"a": "\\\\"}    '),  # after an escaped backslash
    ('// "a\n1', "     \n1"),  # a quote in a comment
    ("1 / 2", "1 / 2"),  # one slash
]


@pytest.mark.parametrize(("text", "stripped"), COMMENTED)
def test_comments_become_blanks_and_strings_stay(text: str, stripped: str) -> None:
    assert without_comments(text) == stripped


MANY_OVERRIDES = json.dumps(
    {"overrides": {kind: {f"N{number}": {} for number in range(400)} for kind in ("metric_id", "archetype")}}
)
REFUSED_FILES = [
    # (text, what the sentence says)
    ("", "safe.config.json is not valid JSON (// comments are allowed): Expecting value at line 1, column 1"),
    ('{\n"logLevel": "info",}', "is not valid JSON (// comments are allowed): "),  # a trailing comma
    ('{"logLevel": "info" // x', "at line 1, column "),  # cut off
    ("[]", "safe.config.json must hold one JSON object"),
    ('{"logLevel": "info", "logLevel": "debug"}', 'the key "logLevel" appears twice in one object'),
    ('{"overrides": {"archetype": {"X": {}, "X": {}}}}', 'the key "X" appears twice'),  # at any depth
    ('{"weights": {"CR": NaN}}', "NaN is not allowed in JSON (write a finite number) at line 1, column 20"),
    ('{"expectations": "NaN", // NaN\n"weights": {"CR": NaN}}', "at line 2, column 19"),  # the number, not the text
    ('{"shutdownSeconds": -Infinity}', "-Infinity is not allowed in JSON (write a finite number) at line 1, column 21"),
    ('{"thresholds": {"CR": {"pass": 1e999}}}', "thresholds.CR.pass=Infinity cannot be used; write a number from 0"),
    ('{"weights": {"CR": 1e999}}', "weights.CR is not finite; write numbers from 0 up, not all 0"),
    ('{"overrides": 5}', "overrides: not an object; write { … } there"),
    ('{"$schema": 5}', "$schema is not a string; write the path or the address of the schema"),
    ('{"$schema": null}', "$schema is not a string"),
    ('{"schema": "x"}', '"schema" is not a key that SAFE knows; did you mean $schema?'),
    ('{"thresholds": {"$schema": "x"}}', '"thresholds.$schema" is not a key that SAFE knows'),  # at the top alone
    ("[" * 100_000, "safe.config.json is nested too deeply"),
    ('{"kafkaGroupID": "x"}', '"kafkaGroupID" is not a key that SAFE knows; did you mean kafkaGroupId?'),
    ('{"kafka_group_id": "x"}', "did you mean kafkaGroupId?"),
    ('{"crPass": 1}', "did you mean thresholds.CR.pass?"),
    ('{"ahStrict": true}', "did you mean strictAH?"),
    ('{"threshold": {}}', "did you mean thresholds?"),
    ('{"LOGLEVEL": "info"}', "did you mean logLevel?"),  # capitals alone
    ('{"thresholds": {"ah": {}}}', "did you mean thresholds.AH?"),  # the one with these letters
    ('{"thresholds": {"AC": {"fail": 0}}}', "did you mean thresholds.AC.pass?"),  # not the object that it stands in
    ('{"thresholds": {"CR": {"passed": 1}}}', '"thresholds.CR.passed" is not a key that SAFE knows'),
    ('{"thresholds": {"CX": {}}}', '"thresholds.CX" is not a key that SAFE knows; did you mean thresholds.C'),
    ('{"thresholds.CR.pass": 0.9}', '"thresholds.CR.pass" is not a key; nest it'),
    ('{"thresholds": {"CR.pass": 0.9}}', '"CR.pass" is not a key; nest it'),  # it could stand there twice
    ('{"weights.CR": 1}', '"weights.CR" is not a key; nest it'),  # also where weights are read elsewhere
    ('{"thresholds": 5}', "thresholds is not an object; write { … } there"),
    ('{"thresholds": {"CR": 0.8}}', "thresholds.CR is not an object"),
    ('{"thresholds": {"CR": {"pass": true}}}', "thresholds.CR.pass=true is not a number; write a number from 0 to 1"),
    ('{"thresholds": {"CR": {"pass": null}}}', "safe.config.json: thresholds.CR.pass=null cannot be used"),
    ('{"logLevel": 5}', "safe.config.json: logLevel=5 cannot be used; write debug, info,"),
    ('{"inputTopic": 5}', "safe.config.json: inputTopic=5 cannot be used; write 1 to 249 of"),
    ('{"inputTypes": ["a", ""]}', 'safe.config.json: inputTypes=["a", ""] cannot be used'),
    ('{"reportFormats": ["pdf"]}', 'reportFormats=["pdf"] cannot be used; write a list of json, console or markdown'),
    ('{"reportFormats": []}', "safe.config.json: reportFormats=[] is empty; write a list of json, console or markdown"),
    ('{"reportFormats": ["json", "json"]}', 'reportFormats=["json", "json"] names one twice; write a list of json, '),
    (
        '{"errorTexts": [" "]}',
        'errorTexts=[" "] holds a blank text, which every empty output would equal; write a list ',
    ),
    ('{"placeholderTexts": [1]}', "placeholderTexts=[1] cannot be used; write a list of texts"),
    ('{"reportFormats": "json"}', "reportFormats=json cannot be used; write a list of json, console or markdown"),
    ('{"batchTtlSeconds": 1e999}', "safe.config.json: batchTtlSeconds=Infinity cannot be used"),
    (
        '{"thresholds": {"CR": {"review": 0.9}}}',
        (
            "safe.config.json: thresholds.CR.review=0.9: this review threshold is above its pass threshold, "
            "which is CR pass 0.8"
        ),
    ),
    ('{"weights": {"CR": -1}}', "safe.config.json: weights: CR -1.0 is below 0; write numbers from 0 up, not all 0"),
    ('{"weights": {"CR": 0, "AH": 0, "AC": 0}}', "weights: the sum of the weights is 0; write numbers from 0 up, not"),
    ('{"weights": {"XX": 1}}', 'safe.config.json: weights: unknown key "XX"; known are CR, AH, AC'),
    ('{"weights": 5}', "safe.config.json: weights: not an object; write { … } there"),
    ('{"overrides": {"metric": {}}}', 'overrides: unknown key "metric"; did you mean "metric_id"?'),
    ('{"overrides": {"archetype": {"X": 5}}}', "overrides.archetype.X: not an object; write { … } there"),
    (
        '{"overrides": {"archetype": {"X": {"weight": {}}}}}',
        'archetype.X: unknown key "weight"; did you mean "weights"?',
    ),
    (
        '{"overrides": {"metric_id": {"X": {"thresholds": {"CX": {}}}}}}',
        'overrides.metric_id.X: thresholds: unknown key "CX"; did you mean "',
    ),
    (
        '{"overrides": {"metric_id": {"X": {"thresholds": {"CR": {"passed": 1}}}}}}',
        'overrides.metric_id.X: thresholds.CR: unknown key "passed"; did you mean "pass"?',
    ),
    (
        '{"overrides": {"metric_id": {"X": {"thresholds": {"CR": {"pass": 1e999}}}}}}',
        "overrides.metric_id.X: thresholds.CR.pass is not finite",
    ),
    (
        '{"overrides": {"archetype": {"weights": {"strictAH": "yes"}}}}',  # a name that is a key elsewhere
        "overrides.archetype.weights: strictAH is neither true nor false; write true or false",
    ),
    (
        '{"overrides": {"archetype": {"X": {"weights": {"CR": 0, "AH": 0, "AC": 0}}}}}',
        "overrides.archetype.X: weights: the sum of the weights is 0; write numbers from 0 up, not all 0",
    ),
    (MANY_OVERRIDES, "combinations; remove some of them"),
    ('{"overrides": {"archetype": {" ": {}}}}', "overrides.archetype: a name is blank; write a name of 1 to 256"),
]


@pytest.mark.parametrize(("text", "problem"), REFUSED_FILES, ids=[problem[:40] for _, problem in REFUSED_FILES])
def test_a_bad_file_is_refused_by_its_key(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(problem)) as refused:
        from_text(tmp_path, text)
    assert str(refused.value).startswith("safe.config.json")


def test_a_file_that_editors_on_windows_wrote_is_read(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_bytes('\ufeff{\r\n"logLevel": "debug" // x\r\n}'.encode())
    assert load({}, {}, tmp_path).settings.log_level == "debug"


def test_a_file_of_another_encoding_is_refused(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_bytes('{"kafkaGroupId": "ü"}'.encode("latin-1"))
    assert refusal({}, tmp_path) == "safe.config.json is not UTF-8 text; save it as UTF-8"


def test_a_file_that_the_flag_names_must_be_there(tmp_path: Path) -> None:
    sentence = refusal({}, tmp_path, config="missing.json")
    assert sentence == "--config missing.json cannot be read: No such file or directory"


def test_a_file_that_the_flag_names_replaces_the_one_that_is_here(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_text('{"logLevel": "debug"}')
    (tmp_path / "other.json").write_text("{}")
    assert load({"config": Path("other.json")}, {}, tmp_path).settings.log_level == "info"


# --- secrets


@pytest.mark.parametrize("name", ["SAFE_V0_KAFKA_SASL_PASSWORD", "safe_v0_kafka_sasl_password"])
@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_a_secret_is_read_from_its_file_without_the_end_of_its_line(tmp_path: Path, name: str, end: str) -> None:
    (tmp_path / name).write_bytes(f" {SECRET} {end}".encode())
    (tmp_path / "unrelated").mkdir()
    loaded = load({}, with_sasl(SAFE_V0_SECRETS_DIR=str(tmp_path)), tmp_path)
    assert loaded.settings.kafka_sasl_password is not None
    assert loaded.settings.kafka_sasl_password.get_secret_value() == f" {SECRET} "


def test_a_secret_in_a_mounted_volume_is_read_through_its_links(tmp_path: Path) -> None:
    (tmp_path / "..2026").mkdir()
    (tmp_path / "..2026" / "SAFE_V0_KAFKA_SASL_PASSWORD").write_text(SECRET)
    (tmp_path / "..data").symlink_to("..2026")
    (tmp_path / "SAFE_V0_KAFKA_SASL_PASSWORD").symlink_to("..data/SAFE_V0_KAFKA_SASL_PASSWORD")
    loaded = load({}, with_sasl(SAFE_V0_SECRETS_DIR=str(tmp_path)), tmp_path)
    assert loaded.origins["kafka_sasl_password"] == f"SAFE_V0_KAFKA_SASL_PASSWORD in {tmp_path}"


def test_a_secrets_directory_that_is_not_there_is_refused(tmp_path: Path) -> None:
    sentence = refusal({"SAFE_V0_SECRETS_DIR": "gone"}, tmp_path)
    assert (
        sentence
        == f"SAFE_V0_SECRETS_DIR={tmp_path / 'gone'} is not a folder; mount the secrets there or name another one"
    )


def test_an_unknown_secret_is_refused(tmp_path: Path) -> None:
    (tmp_path / "SAFE_V0_KAFKA_PASSWORD").write_text(SECRET)
    sentence = refusal({"SAFE_V0_SECRETS_DIR": str(tmp_path)}, tmp_path)
    assert sentence.startswith(
        f"SAFE_V0_KAFKA_PASSWORD is not a secrets file (in {tmp_path}) that SAFE knows; did you mean "
    )
    assert SECRET not in sentence


def test_a_secret_that_is_no_text_is_refused_without_being_shown(tmp_path: Path) -> None:
    (tmp_path / "SAFE_V0_KAFKA_SASL_PASSWORD").write_bytes(SECRET.encode() + b"\xff")
    sentence = refusal({"SAFE_V0_SECRETS_DIR": str(tmp_path)}, tmp_path)
    assert sentence == f"{tmp_path / 'SAFE_V0_KAFKA_SASL_PASSWORD'} is not UTF-8 text; write it again as UTF-8"
    assert SECRET not in sentence


def with_sasl(**more: str) -> dict[str, str]:
    return {
        "SAFE_V0_KAFKA_SECURITY_PROTOCOL": "SASL_SSL",
        "SAFE_V0_KAFKA_SASL_MECHANISM": "PLAIN",
        "SAFE_V0_KAFKA_SASL_USERNAME": "safe",
        **more,
    }


def test_no_secret_is_shown_by_anything_that_shows_settings(tmp_path: Path) -> None:
    environ = with_sasl(
        SAFE_V0_KAFKA_SASL_PASSWORD=SECRET, SAFE_V0_EXPECTATIONS=f"https://user:{SECRET},a@store.example/base"
    )
    loaded = load({}, environ, tmp_path)
    everything = f"{loaded} {loaded!r} {loaded.settings} {list(loaded.rows())}"
    assert SECRET not in everything
    values = {row.name: row.value for row in loaded.rows()}
    assert values["SAFE_V0_KAFKA_SASL_PASSWORD"] == "********"
    assert values["SAFE_V0_EXPECTATIONS"] == "https://********@store.example/base"


LEAKING = [
    # (the variable at fault, and its value)
    ("SAFE_V0_EXPECTATIONS", f"https://user:{SECRET}@store.example:port/"),
    ("SAFE_V0_EXPECTATIONS", f"https://user:{SECRET}@[bad/"),
    ("SAFE_V0_KAFKA_BOOTSTRAP_SERVERS", f"user:{SECRET}@broker:9092"),
    ("SAFE_V0_KAFKA_BOOTSTRAP_SERVERS", f"a:1,sasl://user:{SECRET}@broker:9092"),
]


@pytest.mark.parametrize(("variable", "value"), LEAKING)
def test_no_secret_is_shown_by_an_error(tmp_path: Path, variable: str, value: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        load({}, {variable: value}, tmp_path)
    error: BaseException | None = refused.value
    assert variable in str(error)
    assert SECRET not in str(error)
    assert error is not None
    assert error.__cause__ is None


def test_a_password_in_the_file_of_a_wrong_type_is_not_shown(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as refused:
        from_text(tmp_path, json.dumps({"kafkaSaslPassword": [SECRET]}))
    assert str(refused.value) == "safe.config.json: kafkaSaslPassword=******** cannot be used; write a string"


# --- settings that must fit each other

UNFIT = [
    # (environment, what the sentence says)
    (
        {"CR_REVIEW": "0.9"},
        (
            "SAFE_V0_CR_REVIEW=0.9: this review threshold is above its pass threshold, which is CR pass 0.8 (default); "
            "lower the review threshold or raise the pass threshold"
        ),
    ),
    (
        {"AC_PASS": "0.4"},
        "AC review 0.5 (default): this review threshold is above its pass threshold, which is SAFE_V0_AC_PASS=0.4",
    ),
    ({"INPUT_TOPIC": "t", "DEAD_LETTER_TOPIC": "t"}, "SAFE_V0_DEAD_LETTER_TOPIC=t is the same topic as SAFE_V0_INPUT"),
    (
        {"RESULT_TOPIC": "safe.v0.state"},
        "SAFE_V0_RESULT_TOPIC=safe.v0.state is the same topic as the state topic safe.",
    ),
    (
        {"EXPECTATIONS": "topic:safe.v0.state"},
        "SAFE_V0_EXPECTATIONS=topic:safe.v0.state is the same topic as the state",
    ),
    ({"KAFKA_SECURITY_PROTOCOL": "SASL_SSL"}, "needs SAFE_V0_KAFKA_SASL_MECHANISM: PLAIN, SCRAM-SHA"),
    (
        {"KAFKA_SECURITY_PROTOCOL": "SASL_SSL", "KAFKA_SASL_MECHANISM": "PLAIN", "KAFKA_SASL_USERNAME": "safe"},
        "SAFE_V0_KAFKA_SASL_MECHANISM=PLAIN needs SAFE_V0_KAFKA_SASL_PASSWORD: a string",
    ),
    (
        {
            "KAFKA_SECURITY_PROTOCOL": "SASL_SSL",
            "KAFKA_SASL_MECHANISM": "PLAIN",
            "KAFKA_SASL_USERNAME": "safe",
            "KAFKA_SASL_PASSWORD": " ",
        },
        "SAFE_V0_KAFKA_SASL_PASSWORD is empty, and SAFE_V0_KAFKA_SASL_MECHANISM=PLAIN needs it; write a string",
    ),
    (
        {"KAFKA_SECURITY_PROTOCOL": "SASL_SSL", "KAFKA_SASL_MECHANISM": "OAUTHBEARER"},
        "SAFE_V0_KAFKA_SASL_MECHANISM=OAUTHBEARER needs SAFE_V0_KAFKA_SASL_OAUTH_TOKEN_URL: the https://",
    ),
    (
        {"KAFKA_SECURITY_PROTOCOL": "SASL_SSL", "KAFKA_SASL_MECHANISM": "OAUTHBEARER", "KAFKA_SASL_PASSWORD": SECRET},
        "SAFE_V0_KAFKA_SASL_PASSWORD is set, but SAFE_V0_KAFKA_SASL_MECHANISM=OAUTHBEARER does not use it; remove it",
    ),
    (
        {"KAFKA_SECURITY_PROTOCOL": "SASL_SSL", "KAFKA_SASL_MECHANISM": "PLAIN", "KAFKA_SASL_OAUTH_SCOPE": "kafka"},
        "SAFE_V0_KAFKA_SASL_OAUTH_SCOPE is set, but SAFE_V0_KAFKA_SASL_MECHANISM=PLAIN does not use it; remove it",
    ),
    (
        {"KAFKA_SASL_OAUTH_TOKEN_URL": f"https://safe:{SECRET}@login.example/token"},
        (
            "/token contains a login, which belongs in SAFE_V0_KAFKA_SASL_OAUTH_CLIENT_ID and "
            "SAFE_V0_KAFKA_SASL_OAUTH_CLIENT_SECRET; write the https://"
        ),
    ),
    ({"KAFKA_SASL_OAUTH_TOKEN_URL": "login.example/token"}, "=login.example/token is not a usable URL; write the"),
    (
        {"KAFKA_SASL_PASSWORD": SECRET},
        "SAFE_V0_KAFKA_SASL_PASSWORD is set, but SAFE_V0_KAFKA_SECURITY_PROTOCOL PLAIN",
    ),
    ({"KAFKA_SSL_CAFILE": "ca.pem"}, "does not use it; remove it, or set SAFE_V0_KAFKA_SECURITY_PROTOCOL=SSL"),
    (
        {"KAFKA_SECURITY_PROTOCOL": "SSL", "KAFKA_SSL_KEYFILE": "k.pem"},
        "SAFE_V0_KAFKA_SSL_KEYFILE needs its certificate; set SAFE_V0_KAFKA_SSL_CERTFILE",
    ),
]


@pytest.mark.parametrize(("variables", "problem"), UNFIT)
def test_settings_that_contradict_each_other_are_refused_by_their_origins(
    tmp_path: Path, variables: dict[str, str], problem: str
) -> None:
    sentence = refusal({f"SAFE_V0_{name}": value for name, value in variables.items()}, tmp_path)
    assert problem in sentence
    assert SECRET not in sentence


def test_an_override_that_fails_with_the_layer_beneath_names_both(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_text('{"overrides": {"archetype": {"X": {"thresholds": {"CR": {"pass": 0.4}}}}}}')
    sentence = refusal({"SAFE_V0_CR_REVIEW": "0.6"}, tmp_path)
    assert sentence == (
        "safe.config.json: overrides.archetype.X: thresholds.CR: review 0.6 is above pass 0.4"
        " (the general settings have CR pass 0.8 (default) and SAFE_V0_CR_REVIEW=0.6); write 0 <= review <= pass <= 1"
    )


def test_an_override_that_fails_by_itself_does_not_name_the_layer_beneath(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_text('{"overrides": {"archetype": {"X": {"thresholds": {"CR": {"pas": 1}}}}}}')
    assert refusal({}, tmp_path) == (
        'safe.config.json: overrides.archetype.X: thresholds.CR: unknown key "pas"; did you mean "pass"?'
    )


# --- the policy

LENIENT_OVERRIDE = '{"overrides": {"archetype": {"X": {"strictAH": false, "weights": {"AH": 3}}}}}'


def test_the_variable_for_strictness_is_beaten_by_an_override_and_the_flag_is_not(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_text(LENIENT_OVERRIDE)
    by_variable = load({}, {"SAFE_V0_AH_STRICT": "true"}, tmp_path)
    by_flag = load({"ah_strict": True}, {"SAFE_V0_AH_STRICT": "false"}, tmp_path)
    assert not by_variable.policy.rules_for("I25", "X").strict_ah
    assert by_variable.policy.rules_for("I25", None).strict_ah
    assert by_flag.policy.rules_for("I25", "X").strict_ah
    assert by_flag.origins["ah_strict"] == "--strict-ah"
    assert len(list(by_variable.notes())) == 1
    assert len(list(by_flag.notes())) == 2


def test_thresholds_of_every_source_reach_the_policy(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_text('{"thresholds": {"CR": {"pass": 0.7}, "AH": {"pass": 0.9}}}')
    rules = load({}, {"SAFE_V0_CR_PASS": "0.6"}, tmp_path).policy.default
    assert (rules.thresholds.CR.pass_, rules.thresholds.AH.pass_, rules.thresholds.AC.pass_) == (0.6, 0.9, 0.8)


# --- what others ask


def test_a_missing_setting_is_required_by_all_its_names(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as refused:
        load({}, {}, tmp_path).require("kafka_group_id", "kafka_bootstrap_servers")
    assert str(refused.value) == (
        "SAFE_V0_KAFKA_BOOTSTRAP_SERVERS is not set; set it to host:port,host:port,…, or give the value as "
        "--bootstrap-servers or as kafkaBootstrapServers in safe.config.json"
    )


def test_every_setting_has_a_row_and_an_origin(tmp_path: Path) -> None:
    loaded = load({}, {}, tmp_path)
    names = [row.name for row in loaded.rows()]
    assert set(names) == {
        *VARIABLES.values(), "reportFormats", "errorTexts", "placeholderTexts", "weights.CR", "weights.AH", "weights.AC"
    }  # fmt: skip
    json.dumps([row.value for row in loaded.rows()])


FOLDERS = [
    ("", None),
    ("./cases", Path("cases")),
    ("topic:cases", None),
    ("https://store/cases", None),
]


@pytest.mark.parametrize(("expectations", "folder"), FOLDERS)
def test_only_a_folder_of_expectations_is_a_folder(expectations: str, folder: Path | None) -> None:
    assert from_environment(EXPECTATIONS=expectations).settings.expectations_folder == folder


def test_an_address_is_split_without_its_brackets() -> None:
    assert split_address("[::1]:9464") == ("::1", 9464)
    assert split_address("localhost:0") == ("localhost", 0)


def test_debug_is_asked_for_even_where_the_rest_is_wrong() -> None:
    assert debug_is_asked_for({"SAFE_V0_LOG_LEVEL": " DEBUG", "SAFE_V0_NONSENSE": "x"})
    assert not debug_is_asked_for({})


# --- what others than SAFE's users put into the environment

MOMENTS = [
    # (text of SOURCE_DATE_EPOCH, what it means in seconds since 1970)
    ("1772438400", 1_772_438_400),
    ("0", 0),
    (" 1772438400\n", 1_772_438_400),  # as $(cat file) and templates leave it
    ("253402300799", 253_402_300_799),  # the last second of the year 9999
    ("", None),
    (" ", None),
]


@pytest.mark.parametrize(("text", "seconds"), MOMENTS)
def test_the_moment_of_a_reproducible_build_is_read(text: str, seconds: int | None) -> None:
    assert surroundings({"SOURCE_DATE_EPOCH": text}).source_date_epoch == seconds


NO_MOMENTS = [
    "yesterday",
    "-1",
    "1772438400.5",
    "1e9",
    "1_000",  # int() would take it
    "٣",  # so would it this digit
    "253402300800",  # the year 10000
    "9" * 5000,  # more digits than int() takes
]


@pytest.mark.parametrize("text", NO_MOMENTS, ids=lambda text: text[:12])
def test_a_moment_that_is_none_is_refused_with_a_remedy(text: str) -> None:
    with pytest.raises(
        ConfigurationError, match=r"is not a time; write the seconds since 1970, such as \d+, or unset it$"
    ) as no:
        surroundings({"SOURCE_DATE_EPOCH": text})
    assert str(no.value).startswith("SOURCE_DATE_EPOCH=")
    assert len(str(no.value)) < 300


SUMMARIES = [
    # (environment, the file)
    ({"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": "summary.md"}, Path("summary.md")),
    ({"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": ""}, None),
    ({"GITHUB_ACTIONS": "true"}, None),
    ({"GITHUB_ACTIONS": "false", "GITHUB_STEP_SUMMARY": "summary.md"}, None),
    ({"GITHUB_STEP_SUMMARY": "summary.md"}, None),  # left over, or set by others: nobody shows it
    ({}, None),
]


@pytest.mark.parametrize(("environ", "path"), SUMMARIES)
def test_a_summary_is_written_only_where_github_shows_it(environ: dict[str, str], path: Path | None) -> None:
    assert surroundings(environ).step_summary == path
