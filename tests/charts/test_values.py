"""The values of the chart: each documented, each known to the schema, and a slip in one refused in words."""

import json
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import yaml

from consumer.settings.schema import configuration_schema
from tests.support.chart import CHART, SETS, Values, refused, rendered, with_values
from tests.support.chart_page import chart_page, values_with_comments
from tests.support.chart_schema import values_schema
from tests.support.golden import UPDATE

SCHEMA_FILE = CHART / "values.schema.json"
VALUES_TEXT = (CHART / "values.yaml").read_text(encoding="utf-8")
VALUES: dict[str, Any] = yaml.safe_load(VALUES_TEXT)
# Their own keys are the user's.
FREE = {
    "config",
    "env",
    "existingSecretKeys",
    "resources",
    "commonLabels",
    "limits",
    "podSecurityContext",
    "securityContext",
    "labels",
    "annotations",
    "podLabels",
    "podAnnotations",
    "nodeSelector",
    "affinity",
    "dnsConfig",
}


def test_the_schema_is_made_of_that_of_the_configuration_file() -> None:
    made = json.dumps(values_schema(configuration_schema()), indent=2, ensure_ascii=False) + "\n"
    if os.environ.get(UPDATE) == "1":
        SCHEMA_FILE.write_text(made, encoding="utf-8")
        pytest.fail(f"{SCHEMA_FILE.name} was rewritten: read what `git diff charts` shows, then run without {UPDATE}")
    kept = SCHEMA_FILE.read_text(encoding="utf-8")
    assert kept == made, f"it differs from what is made now; run with {UPDATE}=1"


def test_the_page_is_made_of_the_comments() -> None:
    file, made = CHART / "README.md", chart_page(VALUES_TEXT)
    if os.environ.get(UPDATE) == "1":
        file.write_text(made, encoding="utf-8")
        pytest.fail(f"{file.name} was rewritten: read what `git diff charts` shows, then run without {UPDATE}")
    assert file.read_text(encoding="utf-8") == made, f"it differs from what is made now; run with {UPDATE}=1"


def test_the_page_names_every_value() -> None:
    named = [value.path for value in values_with_comments(VALUES_TEXT)]
    assert set(named) == set(keys(VALUES)) | {"config.kafkaBootstrapServers", "config.expectations"}
    assert len(named) == len(set(named))


def keys(values: Values, before: str = "") -> Iterator[str]:
    """Every key of the values, with those that it stands under."""
    for key, value in values.items():
        yield before + key
        if isinstance(value, Mapping) and key not in FREE:
            yield from keys(value, f"{before}{key}.")


def schema_keys(schema: Mapping[str, Any], before: str = "") -> Iterator[str]:
    """The same of the schema."""
    for key, inner in schema["properties"].items():
        yield before + key
        yield from schema_keys(inner, f"{before}{key}.") if "properties" in inner and key not in FREE else ()


def test_values_and_schema_have_the_same_keys() -> None:
    schema = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))
    assert set(keys(VALUES)) == set(schema_keys(schema)) - {"global", "enabled"}


def test_every_paragraph_of_the_values_begins_with_what_it_is_for() -> None:
    assert [paragraph for paragraph in VALUES_TEXT.split("\n\n") if not paragraph.startswith("# ")] == []


def test_every_value_is_tried_otherwise_than_by_default() -> None:
    tried = {key for values in SETS.values() for key in differing(values, VALUES | {"enabled": True})}
    leaves = {key for key in keys(VALUES) if not any(other.startswith(f"{key}.") for other in keys(VALUES))}
    always = {"serviceAccount.create", "podDisruptionBudget.enabled"}  # both switched off elsewhere
    assert leaves - tried == always


def differing(values: Values, defaults: Values, before: str = "") -> Iterator[str]:
    """The keys whose values are not the default ones."""
    for key, value in values.items():
        if key == "global":  # of all charts, and none of this one's
            continue
        if isinstance(value, Mapping) and key not in FREE:
            yield from differing(value, defaults[key], f"{before}{key}.")
        elif value != defaults[key]:
            yield before + key


# --- what is refused --------------------------------------------------------------------------------------------------

WITHOUT: Mapping[str, tuple[Values, str]] = {
    "brokers": (
        {"config": {"kafkaBootstrapServers": ""}},
        "set config.kafkaBootstrapServers to host:port of your brokers",
    ),
    "test cases": (
        {"config": {"expectations": ""}},
        "set config.expectations to /cases, an https:// address or topic:NAME",
    ),
    "an image": (
        {"image": {"repository": ""}},
        "set image.repository to where your image of SAFE is, such as registry.example.org/safe",
    ),
    "anything at /cases": (
        {"config": {"expectations": "/cases"}},
        "config.expectations is /cases: name what is mounted there in cases.existingConfigMap or cases.existingClaim",
    ),
    "one source of cases": (
        {"config": {"expectations": "/cases"}, "cases": {"existingConfigMap": "a", "existingClaim": "b"}},
        "name cases.existingConfigMap or cases.existingClaim, not both",
    ),
    "secrecy": (
        {"config": {"kafkaSaslPassword": "xyzzy"}},
        "it there: put it as SAFE_V0_KAFKA_SASL_PASSWORD into a Secret, and name that in existingSecret",
    ),
    "secrecy of the token": (
        {"config": {"expectationsToken": "xyzzy"}},
        "put it as SAFE_V0_EXPECTATIONS_TOKEN into a Secret, and name that in existingSecret",
    ),
    "an address for the probes": (
        {"config": {"httpAddress": "0.0.0.0:80"}},
        "config.httpAddress does not belong here; the chart sets it to what the probes ask",
    ),
    "the folder of secrets": (
        {"config": {"secretsDir": "/run/secrets"}},
        "config.secretsDir does not belong here; name a Secret in existingSecret, and it is mounted",
    ),
    "an owner each": (
        {"prometheusRule": {"enabled": True, "quality": [{"owner": "a", "batches": "x"}] * 2}},
        "prometheusRule.quality names the owner a twice; give each its own",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WITHOUT)
def test_what_cannot_work_without_is_said_in_one_sentence(name: str) -> None:
    values, sentence = WITHOUT[name]
    said = refused(with_values(SETS["defaults"], values))
    assert sentence in said
    assert "xyzzy" not in said


def test_an_aggregator_needs_no_test_cases() -> None:
    assert "expectations" not in json.loads(rendered(SETS["aggregator"]).configuration)


# What is written, and the words of Helm that name it.
SLIPS: list[tuple[Values, str]] = [
    ({"replicaCount": 3}, "'replicaCount'"),  # a key that there is not, at every depth
    ({"image": {"repo": "x"}}, "'repo'"),
    ({"config": {"kafkaBootstrapServer": "a:9092"}}, "'kafkaBootstrapServer'"),
    ({"config": {"kafka_group_id": "x"}}, "'kafka_group_id'"),
    ({"config": {"thresholds": {"CR": {"fail": 0.1}}}}, "'fail'"),
    ({"podMonitor": {"enable": True}}, "'enable'"),
    ({"prometheusRule": {"quality": [{"owner": "a", "batches": "x", "passRate": 0.8}]}}, "'passRate'"),
    ({"role": "scorers"}, "/role"),  # a value that none may have
    ({"replicas": "two"}, "/replicas"),
    ({"replicas": -1}, "/replicas"),
    ({"image": {"digest": "sha256:abc"}}, "/image/digest"),
    ({"image": {"pullPolicy": "always"}}, "/image/pullPolicy"),
    ({"config": {"kafkaBootstrapServers": "broker"}}, "/config/kafkaBootstrapServers"),
    ({"config": {"inputTopic": "safe:v0:result"}}, "/config/inputTopic"),
    ({"config": {"delivery": "exactly-once"}}, "/config/delivery"),
    ({"config": {"shutdownSeconds": "20"}}, "/config/shutdownSeconds"),
    ({"config": {"thresholds": {"CR": {"pass": 1.2}}}}, "/config/thresholds/CR/pass"),
    ({"config": {"overrides": {"archetype": {" ": {}}}}}, "invalid propertyName ' '"),
    ({"env": {"SAFE_V0_LOG_LEVEL": "debug"}}, "SAFE_V0_LOG_LEVEL"),  # which config has
    ({"env": {"PORT": 80}}, "/env/PORT"),
    ({"existingSecretKeys": {"password": {"name": "a", "key": "b"}}}, "'password'"),
    ({"existingSecretKeys": {"SAFE_V0_EXPECTATIONS_TOKEN": {"name": "a"}}}, "'key'"),
    ({"restoreSeconds": 0}, "/restoreSeconds"),
    ({"podDisruptionBudget": {"maxUnavailable": "one"}}, "/podDisruptionBudget/maxUnavailable"),
    ({"podMonitor": {"interval": "15"}}, "/podMonitor/interval"),
    ({"prometheusRule": {"quality": [{"batches": "x"}]}}, "'owner'"),
    ({"prometheusRule": {"quality": [{"owner": "a", "batches": ""}]}}, "/prometheusRule/quality/0/batches"),
    ({"prometheusRule": {"quality": [{"owner": "a", "batches": "x", "meanCR": 70}]}}, "/quality/0/meanCR"),
    ({"prometheusRule": {"runbooks": "git.example.org"}}, "/prometheusRule/runbooks"),
    ({"dashboard": {"labels": {"grafana_dashboard": 1}}}, "/dashboard/labels/grafana_dashboard"),
]


@pytest.mark.parametrize(("slip", "words"), SLIPS, ids=lambda each: json.dumps(each)[:60])
def test_a_slip_in_a_value_is_refused_and_named(slip: Values, words: str) -> None:
    said = refused(with_values(SETS["defaults"], slip))
    assert "don't meet the specifications of the schema" in said
    assert words in said


def test_what_the_schema_takes_more_than_that_of_the_configuration_is_no_more_than_go_cannot_read() -> None:
    def patterns(schema: Any) -> Iterator[str]:
        for key, inner in schema.items() if isinstance(schema, dict) else ():
            yield from [inner] if key == "pattern" and isinstance(inner, str) else patterns(inner)

    kept = set(patterns(json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))))
    lost = set(patterns(configuration_schema())) - kept
    assert all("(?!" in pattern or "\\u" in pattern for pattern in lost)
    assert not [pattern for pattern in kept if "(?!" in pattern or "\\u" in pattern]


def test_without_any_value_it_says_what_to_set() -> None:
    assert re.search("set (image|config)[.]", refused({}))
