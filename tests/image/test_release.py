"""`make release` builds the same files twice, and says truly what they are and what the image contains."""

import hashlib
import json
import re
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

from consumer import __version__
from tests.support.chart import need
from tests.support.image import pins
from tests.support.kafka_broker import PROJECT

EPOCH = "1795000000"


def release(folder: Path) -> dict[str, bytes]:
    """Build a release into a folder; returns its files."""
    command = ["make", "--silent", "release", f"DIST={folder}"]
    done = subprocess.run(
        [*command, f"SOURCE_DATE_EPOCH={EPOCH}"], cwd=PROJECT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return {file.name: file.read_bytes() for file in folder.iterdir()}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a release."""
    need("helm")
    folder = tmp_path_factory.mktemp("release") / "dist"
    release(folder)
    return folder


def test_what_is_built_twice_is_the_same(built: Path, tmp_path: Path) -> None:
    again = release(tmp_path / "dist")
    assert {file.name: file.read_bytes() for file in built.iterdir()} == again


def test_there_is_a_wheel_a_chart_a_list_and_their_checksums(built: Path) -> None:
    wheel, chart = f"safe_scorer-{__version__}-py3-none-any.whl", f"safe-{__version__}.tgz"
    sums = dict(re.findall(r"^(\w{64})  (.+)$", (built / "SHA256SUMS").read_text("utf-8"), re.MULTILINE))
    assert set(sums.values()) == {wheel, chart, "safe.cdx.json"}
    for digest, name in sums.items():
        assert hashlib.sha256((built / name).read_bytes()).hexdigest() == digest


def test_the_wheel_holds_the_packages_and_the_chart_its_files(built: Path) -> None:
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        tops = {name.split("/")[0] for name in wheel.namelist()}
    assert tops == {"consumer", "safe_core", "safe_scorer", f"safe_scorer-{__version__}.dist-info"}
    with tarfile.open(next(built.glob("*.tgz"))) as chart:
        assert {"safe/Chart.yaml", "safe/values.yaml", "safe/README.md"} <= set(chart.getnames())


def test_the_list_names_each_package_of_the_image_with_its_hashes(built: Path) -> None:
    listed = json.loads((built / "safe.cdx.json").read_text("utf-8"))
    assert listed["metadata"]["component"]["version"] == __version__
    lock = pins("requirements-image.lock")
    assert {component["name"] for component in listed["components"]} == lock.keys()
    for component in listed["components"]:
        hashes = {each["content"] for found in component["externalReferences"] for each in found["hashes"]}
        assert hashes == set(re.findall(r"sha256:(\w+)", lock[component["name"]]))
