"""Everything of SAFE that waits, fails or talks; what a score is stands in safe_core."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("safe-scorer")
except PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0.0.0+unknown"
