"""Where `safe` starts. `python -m safe_scorer` does the same.

The code is in the packages `consumer` and `safe_core`. These are common names: another package of the same name that
comes first on Python's path would be loaded instead, and its error would name neither the culprit nor the remedy.
"""
# ruff: noqa: PLC0415 - ours is imported once it is known to be ours; without it, there is nothing else to print with

import sys
from importlib.util import find_spec
from pathlib import Path

_OURS = Path(__file__).resolve().parents[1]
_EXIT_ERROR = 3


def main() -> int:
    """Run the program; returns its exit code."""
    for name in ("consumer", "safe_core"):
        found = _folder_of(name)
        if found != _OURS / name:
            print(
                f"safe: {found or 'nothing'} is imported as {name} instead of {_OURS / name}, which belongs to SAFE. "
                f"Take {found.parent if found else 'what hides it'} off Python's path (PYTHONPATH), or install SAFE "
                "into a virtual environment of its own",
                file=sys.stderr,
            )
            return _EXIT_ERROR
    from consumer.cli.main import main as run

    return run()


def _folder_of(package: str) -> Path | None:
    """Give the folder from which Python would load a package, or the file of a module of that name."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        return None
    origin = Path(spec.origin).resolve()
    return origin.parent if origin.name == "__init__.py" else origin


if __name__ == "__main__":
    sys.exit(main())
