"""How Kafka's programs are run: in a JVM that is quick to start, since the tests start more than a hundred.

Most of a start goes into loading classes. An archive of them, which a first broker leaves when it ends, halves it. And
what formatting a node's storage writes is the same each time, but for three ids: it is copied instead.
"""

import shutil
import subprocess
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent / "kafka"
QUICK = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:+ExitOnOutOfMemoryError")
"""Without the compiler that makes code fast in the long run: it takes most of a short one."""
LASTING = ("-XX:+UseSerialGC", "-XX:+ExitOnOutOfMemoryError")
"""With it: for measurements."""

_CLASSES, _CHECKPOINT = "classes.jsa", "bootstrap.checkpoint"
_FORMAT_SECONDS = 60.0


def beside(libs: Path) -> Path:
    """Return the folder of what a first broker has left; it may not be there yet."""
    return libs.with_name(f"{libs.name}-first-start")


def java(libs: Path, *program: str, options: Sequence[str] = QUICK, log: Path | None = None) -> list[str]:
    """Return the command line of one of Kafka's programs, with its arguments."""
    classes = beside(libs) / _CLASSES
    archive = [f"-XX:SharedArchiveFile={classes}"] if classes.is_file() else []
    return ["java", *options, *archive, *_logging(log), "-cp", f"{libs}/*", *program]


def leaving_classes(libs: Path, folder: Path, *program: str, log: Path) -> list[str]:
    """Return the same for a program that leaves the archive of its classes in a folder when it ends."""
    archive = f"-XX:ArchiveClassesAtExit={folder / _CLASSES}"
    return ["java", *QUICK, archive, *_logging(log), "-cp", f"{libs}/*", *program]


def _logging(log: Path | None) -> list[str]:
    if log is None:
        return []
    configurations = [f"-Dlog4j2.configurationFile={HERE / 'log4j2.properties'}"]
    configurations += [f"-Dlog4j.configuration={(HERE / 'log4j.properties').as_uri()}"]  # before Kafka 4
    return [*configurations, f"-Dsafe.tests.log={log}"]


def new_id() -> str:
    """Make an id as Kafka writes them; one that begins with a dash would be taken for an option."""
    return urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=").replace("-", "x")


def format_storage(libs: Path, configuration: Path, data: Path, *, node: int, cluster_id: str) -> None:
    """Prepare the empty data folder of a node, as Kafka's own tool does; raises CalledProcessError."""
    checkpoint = beside(libs) / _CHECKPOINT
    if not checkpoint.is_file():
        tool = java(libs, "kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(configuration))
        subprocess.run(tool, capture_output=True, text=True, timeout=_FORMAT_SECONDS, check=True)
        return
    data.mkdir(parents=True, exist_ok=True)
    write_identity(data, node=node, cluster_id=cluster_id)
    shutil.copy(checkpoint, data / _CHECKPOINT)


def write_identity(data: Path, *, node: int, cluster_id: str) -> None:
    """Say in a data folder whose it is: all that a node needs which is no controller."""
    ids = {"version": 1, "node.id": node, "cluster.id": cluster_id, "directory.id": new_id()}
    written = "".join(f"{name}={value}\n" for name, value in ids.items())
    (data / "meta.properties").write_text(written, encoding="ascii")


def keep(libs: Path, folder: Path, data: Path) -> None:
    """Keep what a first broker has left: the archive in a folder, which is moved, and what was formatted."""
    if (data / _CHECKPOINT).is_file():  # Kafka 4.4 writes another one
        shutil.copy(data / _CHECKPOINT, folder / _CHECKPOINT)
    folder.rename(beside(libs))
