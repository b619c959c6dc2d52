"""The image, built and run without an engine: buildah for the one, a mount namespace and chroot for the other."""

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.guardian import MARK
from tests.support.kafka_broker import PROJECT

PROGRAMS = ("buildah", "mmdebstrap", "unshare", "chroot")
BASE = "localhost/base"
NAME = "localhost/safe"
# A Debian with Python, and without what nobody reads there; kept, since it takes half a minute.
_BASE_FILE = PROJECT / ".cache" / "image" / "base.tar"
_BOOTSTRAP = [
    "mmdebstrap", "--quiet", "--variant=essential", "--include=python3,python3-venv,ca-certificates",
    "--dpkgopt=force-unsafe-io",
    *(f"--dpkgopt=path-exclude=/usr/share/{folder}/*" for folder in ("doc", "man", "locale")),
    "bookworm",
]  # fmt: skip
_BUILD_SECONDS = 600.0
_RUN_SECONDS = 60.0
_CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")

# What a container has of its machine: nothing to write to but /dev, and its own processes' names.
_READ_ONLY = """
set -e
mount --bind "$1" "$1"
for mounted in $3; do mount --bind "${mounted%%:*}" "$1${mounted##*:}"; done
mount -o remount,bind,ro "$1"
mount --rbind /dev "$1/dev"
mount -t proc proc "$1/proc"
root=$1 user=$2
shift 3
exec chroot --userspec="$user" --groups= "$root" /usr/bin/env --ignore-environment "$@"
"""

# Of the lock: what only builds the package, and what is only for Windows.
OF_THE_BUILD = {"hatchling", "pathspec", "pluggy", "tomlkit", "trove-classifiers"}
OF_OTHER_SYSTEMS = {"colorama"}


def pins(lock: str) -> dict[str, str]:
    """Return each requirement of a lock, its version and hashes by its name."""
    text = (PROJECT / lock).read_text(encoding="utf-8")
    found = re.findall(r"^([a-z0-9-]+)==(.*(?:\n    --hash.*)+)", text, re.MULTILINE)
    return {name: re.sub(r"[\s\\]+", " ", rest) for name, rest in found}


class ImageUnavailableError(Exception):
    """No image can be built here; the message says what is missing."""


@dataclass(frozen=True, slots=True)
class Image:
    """A built image: what it says of itself, its size and that of its base, and its files."""

    settings: Mapping[str, Any]
    size_bytes: int
    base_bytes: int
    files: Path

    @property
    def environment(self) -> dict[str, str]:
        """The variables that it sets."""
        return dict(each.split("=", 1) for each in self.settings["Env"])

    def command(
        self, *command: str, environment: Mapping[str, str] | None = None, folders: Mapping[Path, str] | None = None
    ) -> list[str]:
        """Return the command line that runs a command in it, its root read-only, as its user.

        `folders` of this machine stand under their names inside. What it becomes has the process id of what is started.
        """
        mounts = {str(source): target for source, target in (folders or {}).items()}
        for target in mounts.values():
            (self.files / target.lstrip("/")).mkdir(exist_ok=True)
        of_this_run = {MARK: os.environ[MARK]} if MARK in os.environ else {}
        everything = self.environment | dict(environment or {}) | of_this_run
        variables = [f"{name}={value}" for name, value in everything.items()]
        script = ["unshare", "--mount", "--propagation", "private", "sh", "-c", _READ_ONLY, "sh"]
        listed = " ".join(f"{source}:{target}" for source, target in mounts.items())
        at_home = [f"--chdir={self.settings['WorkingDir']}", *variables]
        return [*script, str(self.files), self.settings["User"], listed, *at_home, *command]

    def run(self, *command: str, environment: Mapping[str, str] | None = None) -> "subprocess.CompletedProcess[str]":
        """Run a command in it to its end."""
        return _run(self.command(*command, environment=environment), timeout_seconds=_RUN_SECONDS)


@contextmanager
def built() -> Iterator[Image]:
    """Build the image for as long as the block lasts; raises ImageUnavailableError, or AssertionError if it fails."""
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing:
        raise ImageUnavailableError(f"{' and '.join(missing)} not found; tests/image/tools.sh installs them")
    if _run(["unshare", "--mount", "true"], timeout_seconds=_RUN_SECONDS).returncode != 0:
        raise ImageUnavailableError("nothing may be mounted here: it needs root, outside of a container")
    with tempfile.TemporaryDirectory(prefix="safe-image-") as folder:
        store = _Store(Path(folder))
        try:
            yield store.build()
        finally:
            store.discard()


class _Store:
    """Images in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._containers: list[str] = []
        # Layers that stand over each other, where the kernel can do that here; else each is a copy of all below it.
        self._driver = "overlay"
        if _run(self._command("info"), timeout_seconds=_BUILD_SECONDS).returncode != 0:
            self._driver = "vfs"

    def build(self) -> Image:
        self._make_base()
        mounts = [f"--volume={source}:{target}:ro" for source, target in self._of_this_machine().items()]
        self._buildah(
            "build", "--isolation=chroot", "--format=docker", "--pull-never", f"--build-arg=BASE={BASE}",
            *mounts, f"--tag={NAME}", str(PROJECT),
        )  # fmt: skip
        settings = json.loads(self._buildah("inspect", "--type=image", NAME))["Docker"]["config"]
        files = Path(self._buildah("mount", self._container(NAME)).strip())
        return Image(settings, self._size_bytes(NAME), self._size_bytes(BASE), files)

    def discard(self) -> None:
        for container in self._containers:
            self._buildah("umount", container)
        self._buildah("rm", "--all")

    def _make_base(self) -> None:
        if not _BASE_FILE.exists():
            _bootstrap(_BASE_FILE)
        container = self._container("scratch")
        self._buildah("add", "--quiet", container, str(_BASE_FILE), "/")
        self._buildah("commit", "--quiet", container, BASE)

    def _of_this_machine(self) -> Mapping[Path, str]:
        """How this machine reaches the package index: where it is, and by whose certificates."""
        pip, uv = self._folder / "pip.conf", self._folder / "uv.toml"
        pip.write_text("[global]\n" + "".join(f"{key} = {value}\n" for key, value in _pip_settings().items()))
        index = _pip_settings().get("index-url")
        uv.write_text("system-certs = true\n" + (f'index-url = "{index}"\n' if index else ""))
        return {pip: "/etc/pip.conf", uv: "/etc/uv/uv.toml", _CERTIFICATES: str(_CERTIFICATES)}

    def _container(self, image: str) -> str:
        self._containers.append(self._buildah("from", "--pull-never", image).strip())
        return self._containers[-1]

    def _size_bytes(self, image: str) -> int:
        [listed] = json.loads(self._buildah("images", "--json", image))
        number, unit = listed["size"].split()
        return int(float(number) * {"KB": 1e3, "MB": 1e6, "GB": 1e9}[unit])

    def _command(self, *arguments: str) -> list[str]:
        places = [f"--{name}={self._folder / self._driver / name}" for name in ("root", "runroot")]
        return ["buildah", *places, f"--storage-driver={self._driver}", *arguments]

    def _buildah(self, *arguments: str) -> str:
        said = _run(self._command(*arguments), timeout_seconds=_BUILD_SECONDS)
        assert said.returncode == 0, f"buildah {arguments[0]}: {(said.stdout + said.stderr)[-4000:]}"
        return said.stdout


def _bootstrap(file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    # Renamed when complete, so that an interrupted one is never taken for a base.
    unfinished = file.with_name("unfinished.tar")
    said = _run([*_BOOTSTRAP, str(unfinished)], timeout_seconds=_BUILD_SECONDS)
    if said.returncode != 0:
        raise ImageUnavailableError(f"mmdebstrap could not make a base: {said.stderr[-2000:]}")
    unfinished.rename(file)


def _pip_settings() -> dict[str, str]:
    """What pip is told on this machine, of what matters to a build."""
    found = {"cert": str(_CERTIFICATES)} if _CERTIFICATES.exists() else {}
    index = os.environ.get("PIP_INDEX_URL")
    return found | ({"index-url": index} if index else {})


def _run(command: Sequence[str], *, timeout_seconds: float) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=timeout_seconds, check=False)
