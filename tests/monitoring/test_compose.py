"""compose.yaml as a file: the engines' own parser takes it, and it fits the rest. No engine runs it here."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from consumer.settings import Settings
from tests.support.kafka_broker import KAFKA_VERSION, PROJECT
from tests.support.prometheus import CONFIG, run

COMPOSE = PROJECT / "compose.yaml"
MOUNTED = "/etc/safe"
SERVICES: dict[str, Any] = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))["services"]


@pytest.mark.usefixtures("compose_go")
def test_the_parser_of_the_engines_takes_it() -> None:
    said = run("compose-go", "-no-interpolation", "-format", "json", COMPOSE)
    assert said.returncode == 0, said.stdout
    assert json.loads(said.stdout)["services"].keys() == SERVICES.keys()


@pytest.mark.usefixtures("compose_go")
# A key that there is not, and a value that none may have.
@pytest.mark.parametrize(("old", "new"), [("stop_grace_period", "stop_grace"), ("service_healthy", "service_health")])
def test_a_slip_is_found(old: str, new: str, tmp_path: Path) -> None:
    slip = tmp_path / "compose.yaml"
    slip.write_text(COMPOSE.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    assert run("compose-go", "-no-interpolation", slip).returncode != 0


def test_it_brings_up_all_that_is_needed_and_nothing_of_an_unknown_version() -> None:
    assert SERVICES.keys() == {"kafka", "topics", "worker", "prometheus", "alertmanager", "grafana"}
    assert SERVICES["kafka"]["image"] == f"apache/kafka:{KAFKA_VERSION}"
    for name, service in SERVICES.items():
        assert service.get("build") == "." or re.search(r":v?\d+\.\d+\.\d+$", service["image"]), name


def test_whatever_is_mounted_or_awaited_is_there() -> None:
    volumes = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))["volumes"]
    for service in SERVICES.values():
        for mount in service.get("volumes", []):
            source = mount.split(":")[0]
            assert source.startswith("${SAFE_CASES") or source in volumes or (PROJECT / source).exists(), mount
        assert set(service.get("depends_on", {})) <= SERVICES.keys()


def paths_in(service: Any) -> list[str]:
    """Every path below the mounted configuration that a service is told."""
    told = [*service.get("command", []), *service.get("environment", {}).values()]
    return [found for each in told for found in re.findall(rf"{MOUNTED}/[\w./-]+", each)]


@pytest.mark.parametrize("name", ["prometheus", "alertmanager", "grafana"])
def test_each_finds_its_configuration_where_it_is_mounted(name: str) -> None:
    service = SERVICES[name]
    assert f"./config:{MOUNTED}:ro" in service["volumes"]
    paths = paths_in(service)
    assert paths
    assert [path for path in paths if not (CONFIG / path.removeprefix(f"{MOUNTED}/")).exists()] == []


def test_each_looks_for_the_others_where_they_are() -> None:
    prometheus = yaml.safe_load((CONFIG / "prometheus.yml").read_text(encoding="utf-8"))
    [scrape] = prometheus["scrape_configs"]
    [workers] = scrape["dns_sd_configs"]
    [port] = re.findall(r":(\d+)$", SERVICES["worker"]["environment"]["SAFE_V0_HTTP_ADDRESS"])
    assert scrape["job_name"] == "safe"
    assert (workers["names"], str(workers["port"])) == (["worker"], port)
    [manager] = prometheus["alerting"]["alertmanagers"][0]["static_configs"][0]["targets"]
    source = yaml.safe_load((CONFIG / "grafana/provisioning/datasources/prometheus.yml").read_text(encoding="utf-8"))
    for address in (manager, source["datasources"][0]["url"].removeprefix("http://")):
        host, _, port = address.partition(":")
        assert f"127.0.0.1:{port}:{port}" in SERVICES[host]["ports"]
    kafka = SERVICES["kafka"]["environment"]["KAFKA_ADVERTISED_LISTENERS"]
    for name in ("topics", "worker"):
        assert f"//{SERVICES[name]['environment']['SAFE_V0_KAFKA_BOOTSTRAP_SERVERS']}" in kafka


def test_the_worker_is_told_only_what_it_knows_and_is_given_time_to_drain() -> None:
    known = {f"SAFE_V0_{name.upper()}" for name in Settings.model_fields}
    worker = SERVICES["worker"]
    assert worker["environment"].keys() <= known
    assert worker["environment"]["SAFE_V0_EXPECTATIONS"] == worker["volumes"][0].rsplit(":", 2)[1]
    assert int(worker["stop_grace_period"].removesuffix("s")) > Settings.model_fields["shutdown_seconds"].default


def test_nothing_listens_beyond_this_machine() -> None:
    ports = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)
