"""Explaining in several processes gives what one process gives, whatever becomes of the processes."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures.process import BrokenProcessPool
from functools import cache
from typing import Any

import pytest

from consumer.offline import many_diagnoses
from consumer.offline.many_diagnoses import Question, diagnoses
from safe_core import Expectations, Output
from safe_core.diagnosis import Diagnosis, diagnose

QUESTIONS = [
    Question(
        Expectations(must_find_signals=(f"CT after {number} minutes", "wake-up stroke")),
        Output((f"CT after {number + number % 3} minutes",), f"Stroke, case {number}."),
        f"CT after {number} minutes." if number % 2 else None,
    )
    for number in range(250)
]


@cache
def expected() -> list[Diagnosis]:
    return [diagnose(*question) for question in QUESTIONS]


@pytest.fixture(autouse=True)
def _two_processes_for_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(many_diagnoses, "MANY", 200)
    monkeypatch.setattr("os.cpu_count", lambda: 2)


def test_processes_give_the_same_in_the_same_order() -> None:
    assert list(many_diagnoses._in_processes(QUESTIONS)) == expected()
    assert list(diagnoses(QUESTIONS)) == expected()


class Killed:
    """A pool whose processes are killed after ten answers."""

    def __init__(self, *_: object) -> None:
        self.is_shut = False

    def map(self, ask: Callable[[Any], Any], questions: Iterable[Any], chunksize: int) -> Iterator[Any]:
        assert chunksize > 1
        for number, question in enumerate(questions):
            if number == 10:
                raise BrokenProcessPool
            yield ask(question)

    def shutdown(self, *, cancel_futures: bool) -> None:
        assert cancel_futures


def not_allowed(*_: object) -> None:
    raise PermissionError("no semaphores")


@pytest.mark.parametrize("pool", [Killed, not_allowed], ids=["killed", "not allowed"])
def test_what_processes_leave_is_done_without_them(monkeypatch: pytest.MonkeyPatch, pool: object) -> None:
    monkeypatch.setattr(many_diagnoses, "ProcessPoolExecutor", pool)
    assert list(diagnoses(QUESTIONS)) == expected()


def test_few_cases_start_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> None:
        pytest.fail("a process was started")

    monkeypatch.setattr(many_diagnoses, "ProcessPoolExecutor", never)
    assert list(diagnoses(QUESTIONS[:199])) == expected()[:199]
