"""What the peers run in, made once in the project's cache: jars and classes of Kafka Streams, a Python with Quix."""

import shutil
import subprocess
import sys
from pathlib import Path

from tests.support.kafka_broker import PROJECT, fetched_jars

HERE = Path(__file__).resolve().parent
CACHE = PROJECT / ".cache"
STREAMS = HERE / "kafka_streams"


def kafka_streams() -> str:
    """Return the class path of the compiled job; needs Maven and a JDK, raises BrokerUnavailableError without Maven."""
    jars = fetched_jars(STREAMS / "pom.xml", CACHE / "kafka-streams-4.1.1")
    classes = CACHE / "kafka-streams-job"
    source = STREAMS / "ScoringJob.java"
    compiled = classes / "ScoringJob.class"
    if not compiled.is_file() or compiled.stat().st_mtime < source.stat().st_mtime:
        subprocess.run(
            [shutil.which("javac") or "javac", "-d", str(classes), "-cp", f"{jars}/*", str(source)], check=True
        )
    return f"{classes}:{jars}/*"


def quix() -> Path:
    """Return the interpreter that has Quix Streams, of the pinned versions in quix.lock."""
    folder, lock = CACHE / "quix", HERE / "quix.lock"
    python, done = folder / "bin" / "python", folder / ".installed"
    if not done.is_file() or done.stat().st_mtime < lock.stat().st_mtime:
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        install = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        subprocess.run([*install, "--require-hashes", "-r", str(lock)], check=True)
        done.touch()
    return python
