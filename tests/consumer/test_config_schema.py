"""The JSON Schema of the configuration file: what is committed, and that it says what the loader does."""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from consumer.cli.main import main
from consumer.errors import ConfigurationError
from consumer.settings import FILE_KEYS, Loaded, Settings, load
from consumer.settings.file import FILE_NAME, without_comments
from consumer.settings.schema import configuration_schema
from safe_core import DEFAULT_POLICY
from tests.support.json_schema import draft_2020_12

CONFIG = Path(__file__).parents[2] / "config"
SCHEMA = configuration_schema()

REGENERATE = "safe config schema > config/safe.config.schema.json"


@cache
def validator() -> Any:
    return draft_2020_12()(SCHEMA)


def loaded(document: object, folder: Path) -> Loaded:
    (folder / FILE_NAME).write_text(json.dumps(document), encoding="utf-8")
    return load({}, {}, folder)


def objects(schema: Any) -> Iterator[Mapping[str, Any]]:
    """The schemas of all objects, at any depth."""
    if isinstance(schema, dict):
        if schema.get("type") == "object":
            yield schema
        for inner in schema.values():
            yield from objects(inner)


def test_the_committed_schema_is_what_the_command_prints(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "schema"]) == 0
    committed = (CONFIG / "safe.config.schema.json").read_text(encoding="utf-8")
    assert committed == capsys.readouterr().out, f"the settings have changed; regenerate it: {REGENERATE}"


def test_the_schema_is_one_of_its_draft() -> None:
    assert SCHEMA["$schema"] == draft_2020_12().META_SCHEMA["$id"]
    draft_2020_12().check_schema(SCHEMA)


def test_every_key_has_a_description() -> None:
    properties = {key: schema for each in objects(SCHEMA) for key, schema in each.get("properties", {}).items()}
    assert set(properties) >= {key.rpartition(".")[2] for key in FILE_KEYS.values()}
    assert not {key for key, schema in properties.items() if not schema["description"].endswith(".")}


def test_no_object_takes_keys_that_are_not_listed_but_the_names_under_overrides() -> None:
    others = [each for each in objects(SCHEMA) if each["additionalProperties"] is not False]
    kinds = SCHEMA["properties"]["overrides"]["properties"]
    assert others == [kinds["metric_id"], kinds["archetype"]]
    assert {each["additionalProperties"]["$ref"] for each in others} == {"#/$defs/override"}


def defaults(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The document that writes out the default of every key."""
    document = {}
    for key, inner in schema["properties"].items():
        if "properties" in inner:
            document[key] = defaults(inner)
        elif "default" in inner:
            document[key] = inner["default"]
    return document


def test_the_defaults_that_it_shows_are_those_of_the_settings(tmp_path: Path) -> None:
    document = defaults(SCHEMA)
    assert set(document) == set(SCHEMA["properties"]) - {"$schema"}
    validator().validate(document)
    written_out = loaded(document, tmp_path)
    assert written_out.settings == Settings()
    assert written_out.policy.fingerprint == DEFAULT_POLICY.fingerprint


def test_an_override_has_no_defaults_since_what_it_leaves_out_is_as_outside() -> None:
    assert "default" not in json.dumps(SCHEMA["$defs"])


def test_the_configuration_file_in_the_repository_fits_and_names_the_schema() -> None:
    document = json.loads(without_comments((CONFIG / FILE_NAME).read_text(encoding="utf-8")))
    validator().validate(document)
    assert (CONFIG / document["$schema"]).samefile(CONFIG / "safe.config.schema.json")
    load({"config": CONFIG / FILE_NAME}, {})


OF_THE_SPECIFICATION = """
// safe.config.json
{
  "thresholds": {
    "CR": { "pass": 0.8, "review": 0.5 },
    "AH": { "pass": 1.0, "review": 0.5 },
    "AC": { "pass": 0.8, "review": 0.5 }
  },
  "weights": {
    "CR": 1.0,
    "AH": 1.5,  // Weight AH higher for clinical safety
    "AC": 1.0
  },
  "strictAH": true,
  "reportFormats": ["json", "console", "markdown"]
}
"""


def test_the_sample_of_the_specification_fits_and_loads(tmp_path: Path) -> None:
    validator().validate(json.loads(without_comments(OF_THE_SPECIFICATION)))
    (tmp_path / FILE_NAME).write_text(OF_THE_SPECIFICATION, encoding="utf-8")
    assert load({}, {}, tmp_path).policy.default.weights.AH == 1.5


def under(kind: str, name: str, layer: object) -> dict[str, Any]:
    return {"overrides": {kind: {name: layer}}}


TAKEN: list[dict[str, Any]] = [
    {},
    {"$schema": "https://example.org/safe.config.schema.json"},
    {"thresholds": {}, "weights": {}, "overrides": {}},  # nothing said
    {"thresholds": {"CR": {"pass": 0, "review": 0}, "AH": {"review": 1}}},  # at both bounds
    {"weights": {"CR": 0, "AH": 1e-9}},
    under("metric_id", "I25", {"weights": {"AH": 1.5}}),
    under("archetype", "Unknown", {"thresholds": {"CR": {"pass": 0.9}}, "strictAH": True}),  # in part
    under("archetype", "Größe; \U0001f600 " + "x" * 247, {}),  # any printable name, up to 256 characters
    {"reportFormats": ["markdown", "json"]},
    {"expectations": None, "inputStart": None, "logFormat": None, "kafkaSslCafile": None},  # unset, written out
    {"kafkaBootstrapServers": ""},
    {"kafkaBootstrapServers": "a:9092, [::1]:9093,b.example:1"},
    {"kafkaGroupId": "a.aggregator.b"},
    {"inputTopic": "..."},
    {"httpAddress": "[::]:0"},
    {"expectationsGraceSeconds": 0, "maxValueBytes": 32_768, "batchTtlSeconds": 1},
    {"inputTypes": []},
    {"errorTexts": ["ENGINE_ERROR", "QUOTA"], "placeholderTexts": []},
]


@pytest.mark.parametrize("document", TAKEN, ids=lambda document: json.dumps(document)[:60])
def test_a_right_document_is_taken_by_schema_and_loader(tmp_path: Path, document: dict[str, Any]) -> None:
    validator().validate(document)
    loaded(document, tmp_path)


REFUSED: list[Any] = [
    [],  # no object
    {"$schema": 1},
    {"threshold": {}},  # an unknown key, at every depth
    {"kafka_group_id": "x"},
    {"thresholds": {"CX": {}}},
    {"thresholds": {"CR": {"fail": 0}}},
    {"thresholds.CR.pass": 0.9},
    {"weights": {"composite": 1}},
    {"overrides": {"concern_id": {}}},
    under("archetype", "X", {"reportDir": "x"}),  # not for some cases alone
    under("metric_id", "X", {"thresholds": {"CR": {"fail": 0}}}),
    under("metric_id", "X", {"weights": {"XX": 1}}),
    {"thresholds": 0.8},  # a wrong type, at every depth
    {"thresholds": {"CR": 0.8}},
    {"thresholds": {"CR": {"pass": "high"}}},
    {"thresholds": {"CR": {"pass": True}}},
    {"weights": [1, 1, 1]},
    {"strictAH": "perhaps"},
    under("archetype", "X", None),
    under("archetype", "X", {"strictAH": "true"}),
    {"thresholds": {"CR": {"pass": 1.01}}},  # out of bounds
    {"thresholds": {"AH": {"review": -0.01}}},
    {"weights": {"AC": -1}},
    under("archetype", "X", {"thresholds": {"AC": {"pass": 2}}}),
    under("archetype", "X", {"weights": {"CR": -1}}),
    {"shutdownSeconds": 0},
    {"shutdownSeconds": 1.5},
    {"maxValueBytes": 1024},
    {"reportFormats": []},  # lists
    {"reportFormats": ["json", "json"]},
    {"reportFormats": ["pdf"]},
    {"inputTypes": [""]},
    {"errorTexts": [" "]},
    {"placeholderTexts": "none"},
    {"logLevel": "loud"},  # not among the choices
    {"kafkaSaslMechanism": "GSSAPI"},
    {"inputTopic": "safe:v0:result"},  # texts of the wrong form
    {"inputTopic": ".."},
    {"kafkaGroupId": "safe.aggregator"},
    {"kafkaBootstrapServers": "broker"},
    {"kafkaBootstrapServers": "a:9092,"},
    {"httpAddress": "http://localhost:9464"},
    under("archetype", "", {}),  # names of overrides that are no ids
    under("archetype", " ", {}),
    under("metric_id", "a\nb", {}),
    under("metric_id", "x" * 257, {}),
]


@pytest.mark.parametrize("document", REFUSED, ids=lambda document: json.dumps(document)[:60])
def test_a_wrong_document_is_refused_by_schema_and_loader(tmp_path: Path, document: object) -> None:
    assert not validator().is_valid(document)
    with pytest.raises(ConfigurationError):
        loaded(document, tmp_path)


BEYOND = [
    # (text, what the loader says, though the schema takes it)
    ('{"thresholds": {"CR": {"pass": 0.4, "review": 0.6}}}', "is above"),
    ('{"thresholds": {"CR": {"pass": 0.4}}}', "is above"),  # than the default of review
    ('{"overrides": {"archetype": {"X": {"thresholds": {"CR": {"pass": 0.4}}}}}}', "is above"),
    ('{"weights": {"CR": 0, "AH": 0, "AC": 0}}', "the sum of the weights is 0"),
    ('{"weights": {"CR": 1e308, "AH": 1e308}}', "the sum of the weights is not finite; write smaller numbers"),
    ('{"logLevel": "info", "logLevel": "info"}', "appears twice"),  # which only the parser sees
    ('{"inputTopic": "t", "resultTopic": "t"}', "is the same topic as"),
    ('{"kafkaSecurityProtocol": "SASL_SSL"}', "needs SAFE_V0_KAFKA_SASL_MECHANISM"),
    ('{"kafkaSslCafile": "ca.pem"}', "does not use it"),
    ('{"kafkaBootstrapServers": "a:0"}', "has port 0"),
    ('{"httpAddress": "localhost:65536"}', "is not host:port"),
    ('{"expectations": "ftp://store/"}', "is not a usable URL"),
]


@pytest.mark.parametrize(("text", "problem"), BEYOND)
def test_some_rules_only_the_loader_knows(tmp_path: Path, text: str, problem: str) -> None:
    validator().validate(json.loads(text))
    (tmp_path / FILE_NAME).write_text(text)
    with pytest.raises(ConfigurationError, match=problem):
        load({}, {}, tmp_path)


WRITTEN_OTHERWISE: list[dict[str, Any]] = [
    # As in a variable, which is a text.
    {"thresholds": {"CR": {"pass": "0.8"}}},
    {"strictAH": "true"},
    {"logLevel": "INFO"},
    {"inputTypes": "a,b"},
    {"inputStart": "", "kafkaSaslMechanism": " ", "logFormat": ""},  # blank is unset
    {"strictAH": 1},
    {"weights": None, "overrides": None},  # as if left out
]


@pytest.mark.parametrize("document", WRITTEN_OTHERWISE)
def test_what_is_written_otherwise_than_editors_advise_is_taken_all_the_same(
    tmp_path: Path, document: dict[str, Any]
) -> None:
    assert not validator().is_valid(document)
    loaded(document, tmp_path)
