"""The image, built and run as Kubernetes would: by number, its root read-only, against a real broker."""

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from consumer import __version__
from tests.support.cases import event_stream, make_batches, write_batches
from tests.support.image import OF_OTHER_SYSTEMS, OF_THE_BUILD, Image, ImageUnavailableError, built, pins
from tests.support.kafka_broker import free_port
from tests.support.outside import Outside
from tests.support.prometheus import asked
from tests.support.site import Site
from tests.support.waiting import wait_until

LARGEST_BYTES = 90_000_000
START_SECONDS = 60.0
EXIT_SECONDS = 30.0
CASES = "/cases"


@pytest.fixture(scope="session")
def image() -> Iterator[Image]:
    """The image as the Dockerfile makes it, over a small Debian."""
    try:
        with built() as image:
            yield image
    except ImageUnavailableError as error:
        pytest.skip(f"the image: {error}")


# --- what it is -------------------------------------------------------------------------------------------------------


def test_it_adds_little_to_its_base(image: Image) -> None:
    assert 0 < image.size_bytes - image.base_bytes < LARGEST_BYTES


def test_it_runs_by_number_as_nobody_and_says_what_it_is(image: Image) -> None:
    assert re.fullmatch(r"[1-9]\d{4,}:[1-9]\d{4,}", image.settings["User"])
    assert (image.settings["Entrypoint"], image.settings["Cmd"]) == (["safe"], ["worker"])
    assert image.settings["ExposedPorts"].keys() == {"9464/tcp"}
    labels = image.settings["Labels"]
    assert labels["org.opencontainers.image.version"] == __version__
    assert labels["org.opencontainers.image.licenses"] == "Apache-2.0"
    told = {name.rpartition("image.")[2] for name in labels if name.startswith("org.opencontainers.image.")}
    assert told >= {"title", "description", "revision", "created", "source", "url", "documentation", "base.name"}
    assert labels["org.opencontainers.image.base.name"]


def test_it_holds_no_program_that_a_worker_never_runs(image: Image) -> None:
    programs = {path.name for path in (image.files / "opt/safe/bin").iterdir()}
    assert {name for name in programs if not name.startswith("python")} == {"safe"}


def test_it_holds_what_the_lock_names_without_what_built_the_package(image: Image) -> None:
    [packages] = image.files.glob("opt/safe/lib/python3.*/site-packages")
    installed = {path.name.split("-")[0].replace("_", "-") for path in packages.glob("*.dist-info")}
    assert installed == pins("requirements-image.lock").keys() - OF_THE_BUILD - OF_OTHER_SYSTEMS | {"safe-scorer"}


def test_it_holds_neither_tests_nor_sources_nor_tools(image: Image) -> None:
    [packages] = image.files.glob("opt/safe/lib/python3.*/site-packages")
    assert {path.name for path in packages.iterdir()} > {"consumer", "safe_core", "safe_scorer"}
    assert [name for name in ("src", "opt/uv", "work") if (image.files / name).exists()] == []
    assert not (packages / "tests").exists()


def test_it_can_write_nowhere(image: Image) -> None:
    for folder in ("/tmp", "/opt/safe", "/"):  # noqa: S108 (that it cannot be written to is the point)
        assert "Read-only file system" in image.run("touch", f"{folder}/x").stderr


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("safe", "--version"), f"safe {__version__}\n"),
        (("safe", "config", "show", "--format", "json"), '"0.0.0.0:9464"'),
        (("safe", "config", "schema"), '"title": "safe.config.json"'),
        (("safe", "config", "alerts", "--settings"), "record: safe:quality_watch"),
    ],
)
def test_its_commands_work(image: Image, command: tuple[str, ...], said: str) -> None:
    done = image.run(*command)
    assert (done.returncode, done.stderr) == (0, "")
    assert said in done.stdout


def test_without_settings_it_says_what_is_missing(image: Image) -> None:
    done = image.run(*image.settings["Entrypoint"], *image.settings["Cmd"])
    assert done.returncode == 3
    assert "SAFE_V0_KAFKA_BOOTSTRAP_SERVERS is not set" in done.stderr


# --- what it does -----------------------------------------------------------------------------------------------------


@contextmanager
def container(image: Image, site: Site, folder: Path, port: int) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a worker in the image for as long as the block lasts; its log goes to a file in the folder."""
    told = {name: value for name, value in site.installation.environment().items() if name.startswith("SAFE_V0_")} | {
        "SAFE_V0_HTTP_ADDRESS": f"0.0.0.0:{port}",
        "SAFE_V0_EXPECTATIONS": CASES,
    }
    command = [*image.settings["Entrypoint"], *image.settings["Cmd"]]
    with (folder / "worker.log").open("wb") as log:
        process = subprocess.Popen(
            image.command(*command, environment=told, folders={Path(site.installation.expectations): CASES}),
            stdout=log,
            stderr=log,
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.mark.broker
def test_a_worker_in_it_gets_ready_scores_is_healthy_and_stops_in_order(
    image: Image, outside: Outside, tmp_path: Path
) -> None:
    batches = make_batches(7, batches=2, cases_a_batch=4)
    site = Site.build(outside, tmp_path, write_batches(tmp_path / "cases", batches))
    port = free_port()
    healthy = {"SAFE_V0_HTTP_ADDRESS": f"0.0.0.0:{port}"}
    _, *health_check = image.settings["Healthcheck"]["Test"]
    assert image.run(*health_check, environment=healthy).returncode != 0
    with container(image, site, tmp_path, port) as worker:
        wait_until(lambda: is_ready(worker, port, tmp_path), within_seconds=START_SECONDS, what="it is ready")
        assert image.run(*health_check, environment=healthy).returncode == 0
        assert uid_of(worker) == image.settings["User"].split(":")[0]
        site.send(list(event_stream(7, batches, 20, partitions=4)))
        site.await_rest()
        _, wrong = site.seen()
        assert wrong == []
        worker.terminate()
        assert worker.wait(timeout=EXIT_SECONDS) == 0, (tmp_path / "worker.log").read_text()


def is_ready(worker: "subprocess.Popen[bytes]", port: int, folder: Path) -> bool:
    """Whether /readyz says yes; a worker that has ended fails the test with its words."""
    assert worker.poll() is None, (folder / "worker.log").read_text()
    try:
        asked(f"http://127.0.0.1:{port}/readyz")
    except OSError:
        return False
    return True


def uid_of(worker: "subprocess.Popen[bytes]") -> str:
    """Whom the process runs as."""
    status = Path(f"/proc/{worker.pid}/status").read_text(encoding="ascii")
    [uid] = re.findall(r"^Uid:\t(\d+)\t\1\t\1\t", status, re.MULTILINE)
    found: str = uid
    return found
