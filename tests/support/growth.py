"""Does the time that work takes grow as its text does? Whatever else runs on the machine may disturb a try, not all."""

from collections.abc import Callable
from time import process_time

from safe_core.diagnosis.reading import remembered

_FEW, _MANY = 600, 2_400
_LINEAR = _MANY / _FEW
_SLACK = 2.2  # times the growth that is linear; what is quadratic takes another _LINEAR times
_UNMEASURABLE_SECONDS = 0.02
_TRIES = 4


def grows_as_the_length_does(work: Callable[[str], object], unit: str) -> bool:
    """Tell whether a text that is longer takes longer by its length alone."""
    for _ in range(_TRIES):
        few = _seconds(work, unit * _FEW)
        if _seconds(work, unit * _MANY) <= max(_SLACK * _LINEAR * few, _UNMEASURABLE_SECONDS):
            return True
    return False


def _seconds(work: Callable[[str], object], text: str) -> float:
    """Give the processor time of some work that remembers nothing."""
    remembered.cache_clear()
    started = process_time()
    work(text)
    return process_time() - started
