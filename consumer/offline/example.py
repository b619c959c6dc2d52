"""`safe example`: copies out what the package ships to try it on, so that no trial changes what is installed."""

import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import consumer
from consumer.errors import ConfigurationError

_SHIPPED: Final = Path(consumer.__file__).parent / "examples"
# What an installation or a developer's tools leave beside the files.
_MADE: Final = shutil.ignore_patterns("__pycache__", "node_modules", "dist")
NEXT_STEPS: Final[Mapping[str, tuple[str, ...]]] = {
    "story": (
        "safe score -c STROKE -b '*' -i {0}/run_1.json -t {0}/cases",
        "safe triage -i {0}/run_1.json -t {0}/cases",
    ),
    "subscriber": (
        "safe demo --keep",
        "pip install confluent-kafka",
        "KAFKA_BROKERS=HOST:PORT python {0}/receive_results.py",
    ),
}


def copy_example(name: str, into: Path) -> list[str]:
    """Copy an example into a folder of its name in `into`; gives the lines that say what is there, and what comes next.

    Raises ConfigurationError, with nothing written, if that folder exists.
    """
    target = into / name
    try:
        into.mkdir(parents=True, exist_ok=True)
        # Contents only: where a package is installed read-only, its copies can be written to all the same.
        shutil.copytree(_SHIPPED / name, target, ignore=_MADE, copy_function=shutil.copyfile)
    except FileExistsError as error:
        raise ConfigurationError(
            f"{error.filename} exists already, and nothing was copied: delete it, or name another folder"
        ) from error
    except OSError as error:
        raise ConfigurationError(f"{error.filename} cannot be written: {error.strerror}") from error
    files = sorted(path for path in target.rglob("*") if path.is_file())
    steps = [f"  {step.format(shlex.quote(str(target)))}" for step in NEXT_STEPS[name]]
    return [*map(str, files), "", "Next:", *steps]
