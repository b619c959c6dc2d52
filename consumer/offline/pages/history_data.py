"""What the page of `safe history` is made from: an index of all runs and cases, and what is told of each run.

The index has ids, labels, numbers and terms, in as few characters as it can: a case has a letter for each run, and so
has each of its terms. Texts of outputs are only in the scripts of runs, and only if they are asked for.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from consumer.offline.history import CaseHistory, History
from consumer.offline.pages.html_parts import data_block
from consumer.offline.stored_report import LISTED, StoredResult
from consumer.text import printable, without_tricks
from safe_core import CRITERIA, Output

KINDS: Final[Mapping[str, str]] = {
    "differs": "Differ between the two runs",
    "never": "Never passed",
    "flips": "Changed between Pass and another label",
    "lost": "Stopped passing",
    "near_violations": "New near violations",
    "unsupported": "New unsupported values",
}
"""By what cases can be chosen: in the address, and in words. The page itself finds those that differ."""

_NO_LABEL: Final = "."


def index(history: History) -> dict[str, Any]:
    """Give what the page needs before anything is opened."""
    return {
        "runs": [{"name": printable(run.name), "when": run.when} for run in history.runs],
        "cases": [_case(case) for case in history.cases],
    }


def _case(case: CaseHistory) -> dict[str, Any]:
    return {
        "id": printable(case.test_id),
        "batch": printable(case.batch_id or ""),
        "labels": "".join(_letter(case, number) for number in range(len(case.labels))),
        "found": case.found,
        "scores": [
            None if label is None or result is None else round(result.scores.composite * 100)
            for label, result in zip(case.labels, case.results, strict=True)
        ],
        "terms": [*_required(case), *_used(case)],
        "kinds": [*_kinds(case)],
    }


def _letter(case: CaseHistory, number: int) -> str:
    """Give the first letter of a label, small where the output was made from another narrative."""
    label = case.labels[number]
    if label is None:
        return _NO_LABEL
    return label[0].lower() if case.mismatched[number] else label[0]


def _required(case: CaseHistory) -> Iterator[tuple[str, str, str]]:
    for (criterion, term), found in case.required.items():
        marks = "".join(_NO_LABEL if each is None else "-+"[each] for each in found)
        yield criterion, printable(term), marks


def _used(case: CaseHistory) -> Iterator[tuple[str, str, str]]:
    """Give the forbidden terms that any run used: reports do not name the others."""
    runs = zip(case.labels, case.results, strict=True)
    used = [() if label is None or result is None else result.details.AH.violations for label, result in runs]
    for term in dict.fromkeys(term for terms in used for term in terms):
        marks = (
            _NO_LABEL if label is None else "+-"[term in terms] for label, terms in zip(case.labels, used, strict=True)
        )
        yield "AH", printable(term), "".join(marks)


def _kinds(case: CaseHistory) -> Iterator[str]:
    found = {"never": case.never_passed, "flips": case.flips, "lost": case.losses}
    found |= {what: case.newly_listed(what) for what in LISTED}
    yield from (kind for kind, is_so in found.items() if is_so)


def run_script(history: History, number: int, outputs: Mapping[str, Sequence[Output]] | None) -> str:
    """Give the script with the cases of a run, and with their outputs by test_id if these are to be shown."""
    cases = {
        at: _told(result, None if outputs is None else outputs.get(case.test_id, ()))
        for at, case in enumerate(history.cases)
        if (result := case.results[number]) is not None
    }
    return f"{SCRIPT_MARK}\nsafeRun({number}, {data_block(cases)});\n"


SCRIPT_MARK: Final = "// SAFE v0 history"
"""How a script begins that SAFE has written, and may therefore replace or remove."""


def _told(result: StoredResult, outputs: Sequence[Output] | None) -> dict[str, Any]:
    told: dict[str, Any] = {"scores": {name: getattr(result.scores, name) for name in (*CRITERIA, "composite")}}
    doubtful = [(each.criterion, printable(each.term)) for each in result.doubtful]
    beside: dict[str, Any] = {"doubtful": doubtful}
    for what in LISTED:
        beside[what] = [*map(printable, result.listed(what) or ())]
    told |= {name: each for name, each in beside.items() if each}
    if outputs is not None:
        told["outputs"] = [_texts(output) for output in outputs]
    return told


def _texts(output: Output) -> dict[str, Any]:
    """Give the texts of an output; what could fool a reader is escaped, line feeds are kept."""
    lists = {"signals": output.signals, "followup_questions": output.followup_questions}
    texts = {"summary": output.summary, "error_message": output.error_message}
    return {
        **{name: [*map(without_tricks, each)] for name, each in lists.items() if each},
        **{name: without_tricks(text) for name, text in texts.items() if text},
    }
