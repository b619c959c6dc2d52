"""Explain many cases in several processes; the answers and their order are those of one process."""

import multiprocessing
import os
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Final, NamedTuple

from safe_core import Expectations, Output, OutputField
from safe_core.accepted_wordings import Accepted
from safe_core.diagnosis import Diagnosis, diagnose

MANY: Final = 1_000
"""Fewer cases take less time than it takes to start processes."""

_AT_ONCE: Final = 100  # cases that are sent to a process together
_MOST_PROCESSES: Final = 8


class Question(NamedTuple):
    """A case to explain."""

    expectations: Expectations
    output: Output
    narrative: str | None
    not_asked_for: frozenset[OutputField] = frozenset()
    accepted: Accepted = ()


def diagnoses(questions: Sequence[Question]) -> Iterator[Diagnosis]:
    """Diagnose each case, in order."""
    done = 0
    if len(questions) >= MANY:
        for diagnosis in _in_processes(questions):
            yield diagnosis
            done += 1
    # What is left: all cases, or those after a process that was killed or could not be started.
    yield from map(_diagnosed, questions[done:])


def _diagnosed(question: Question) -> Diagnosis:
    return diagnose(*question)


def new_processes(niceness: int = 0) -> tuple[ProcessPoolExecutor, int] | None:
    """Start processes from nothing, as many as there are processors; None if there is one, or they are not allowed.

    The higher their niceness, the more they leave to others.
    """
    processes = min(_MOST_PROCESSES, os.cpu_count() or 1)
    if processes < 2:
        return None
    try:
        pool = ProcessPoolExecutor(
            processes,
            # A fork would copy the thread of the progress bar with its locks.
            multiprocessing.get_context("spawn"),
            _begin,
            (niceness,),
        )
    except (OSError, ImportError):  # no semaphores in this sandbox
        return None
    return pool, processes


def _begin(niceness: int) -> None:
    os.nice(niceness)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent alone, which then ends the others


def _in_processes(questions: Sequence[Question]) -> Iterator[Diagnosis]:
    """Diagnose in processes; ends early if the system does not let them run."""
    started = new_processes()
    if started is None:
        return
    pool, _ = started
    try:
        yield from pool.map(_diagnosed, questions, chunksize=_AT_ONCE)
    except (BrokenProcessPool, OSError):
        return
    finally:
        pool.shutdown(cancel_futures=True)
