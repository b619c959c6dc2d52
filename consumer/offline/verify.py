"""`safe verify`: recompute a report from its inputs and show what differs."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from consumer import __version__
from consumer.dead_letter_reasons import Poison
from consumer.files.outputs import open_all, unusable
from consumer.files.selection import select_batches
from consumer.offline.explanations import ANSWER_FIELDS, FIELDS
from consumer.offline.pages.report_content import own_rules
from consumer.offline.scoring import Explain, score_files
from consumer.offline.stored_report import StoredRun, part_of
from consumer.offline.verify_differences import Difference, differences
from consumer.wire.times import milliseconds_of
from safe_core import InvalidPolicy, Policy

_NEEDED: Final = ("concern_id", "configuration", "generated_at", "inputs", "results", "scorer", "selection")


@dataclass(frozen=True, slots=True)
class Verification:
    """What the recomputation of a report found; `remarks` are on what is no difference, but worth knowing."""

    report: Path
    differences: Sequence[Difference]
    recomputed: Mapping[str, Any]
    remarks: Sequence[str]

    def document(self) -> dict[str, Any]:
        """As JSON (contract.md, "Verification"): a side that has no value has no such field."""
        differences = [each.document() for each in self.differences]
        return {"same": not differences, "differences": differences, "remarks": [*self.remarks]}


def verify(report: Mapping[str, Any], path: Path, test_dir: Path, outputs: Sequence[Path]) -> Verification:
    """Score the inputs again by the configuration that the report names; raises ConfigurationError if that cannot be.

    When the report was written and by which version are the only things that nothing else bears out.
    """
    missing = [name for name in _NEEDED if name not in report]
    if missing:
        raise unusable(path, f"{', '.join(missing)} missing: this is not a report of safe score")
    said = part_of(report, StoredRun, str(path))
    try:
        milliseconds_of(report["generated_at"])
        policy = Policy.from_document(said.configuration)
    except (Poison, InvalidPolicy) as error:
        why = error.detail if isinstance(error, Poison) else f"configuration: {error}"
        raise unusable(path, why) from error
    selection = select_batches(test_dir, said.selection.concern_id, said.selection.batches)
    files = open_all(outputs)
    run, _ = score_files(
        selection,
        files,
        policy,
        generated_at=report["generated_at"],
        on_duplicate=said.selection.on_duplicate,
        explain=_explained(report),
    )
    version = said.scorer.version
    inputs, renamed = _as_named(run.report["inputs"], report["inputs"], len(files))
    recomputed = {**run.report, "inputs": inputs, "scorer": {**run.report["scorer"], "version": version}}
    recomputed, remarks = _as_fields_of(report, recomputed, version)
    remarks = [*renamed, *remarks]
    if version != __version__:
        remarks.append(f"the report was written by SAFE {version}; this is SAFE {__version__}")
    rules = own_rules(policy.configuration())
    if rules is not None:
        remarks.append(f"the report's rules are not the default ones: {rules}")
    return Verification(path, list(differences(report, recomputed)), recomputed, remarks)


def _as_fields_of(
    report: Mapping[str, Any], recomputed: dict[str, Any], version: str
) -> tuple[dict[str, Any], Sequence[str]]:
    """Leave out of a recomputation what SAFE did not write yet when it wrote a report, and say so."""
    if "input_mismatches" not in report and _is_older(version):
        return _as_older(recomputed), [
            "an older SAFE wrote the report: fields that it did not write yet, such as mismatches, are not compared"
        ]
    if "failed_generations" not in report:
        remark = (
            "failed_generations and other fields of this version are missing: an older SAFE with the same version "
            "number wrote the report, or they were taken out; score the outputs again"
        )
        return recomputed, [remark]
    remarks = []
    if not any(name in report for name in ANSWER_FIELDS) and "miss_verdicts" in report:
        recomputed = _reasons_without(recomputed, _ANSWERS)
        remarks.append(
            "the report was written before SAFE gave two answers for each missed term: they are not compared"
        )
    if lacking := frozenset(name for name in _LISTED if name not in report):
        recomputed = _reasons_without(recomputed, lacking)
        remarks.append(f"the report was written before SAFE listed {', '.join(sorted(lacking))}: not compared")
    if not any(name in report for name in _LENIENT):
        recomputed = _reasons_without(recomputed, _LENIENT)
        remarks.append("the report was written before SAFE had lenient recall and coverage: they are not compared")
    return recomputed, remarks


_COMPLETE_SINCE: Final = (0, 1, 0)
"""The version from which on reports have all the fields of _NEWER: of these, none may be missing."""


def _is_older(version: str) -> bool:
    """Tell whether a report says that a SAFE wrote it which did not know the newer fields."""
    numbers = re.match(r"(\d+)\.(\d+)\.(\d+)", version)
    is_before = numbers is not None and tuple(map(int, numbers.groups())) < _COMPLETE_SINCE
    return is_before and version != __version__


_ANSWERS: Final = frozenset({
    *ANSWER_FIELDS, "output_says", "narrative_says", "verbatim", "narrative_has_it_too", "share", "remedy", "row",
    "evidence",
})  # fmt: skip
"""What reports do not have that were written before there were two answers: in the report itself, or in a miss."""
_LISTED: Final = frozenset({"near_violations", "unsupported"})
_LENIENT: Final = frozenset({"mean_lenient", "mean_coverage", "lenient_cases", "lenient_terms", "lenient", "coverage"})
"""What reports do not have that were written before lenient recall: in the report itself, or in a result."""
_NEWER: Final = _ANSWERS | _LISTED | _LENIENT | frozenset({
    "input_mismatches", "doubtful_hits", "miss_verdicts", "batch_id", "input_matches", "doubtful", "verdict", "also_in",
    "missing_words", "in_other_words", "failed_generations", "generation", "errorTexts", "placeholderTexts",
})  # fmt: skip
"""What reports of earlier versions do not have: in the report itself, its configuration, a result or a miss."""


def _as_older(report: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out what earlier versions did not write."""
    kept = {"batch_id": report["batch_id"], "configuration": _without(report["configuration"], _NEWER)}
    return _reasons_without(report, _NEWER) | kept


def _reasons_without(report: Mapping[str, Any], names: frozenset[str]) -> dict[str, Any]:
    """Leave some fields out of a report, its results and their misses."""
    results = [
        {
            name: [_without(miss, names) for miss in value] if name == "misses" else value
            for name, value in _without(result, names).items()
        }
        for result in report["results"]
    ]
    return _without(report, names) | {"results": results}


def _without(document: Mapping[str, Any], names: frozenset[str]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name not in names}


def _explained(report: Mapping[str, Any]) -> Explain | None:
    """Tell whether a report explains, and whether it quotes outputs doing so, by its first miss."""
    if not any(name in report for name in FIELDS):
        return None
    results = report["results"] if isinstance(report["results"], list) else []
    listed = [result.get("misses") for result in results if isinstance(result, dict)]
    misses = [miss for each in listed if isinstance(each, list) for miss in each]
    return "with text" if misses and isinstance(misses[0], dict) and "text" in misses[0] else "without text"


def _as_named(
    inputs: Sequence[Mapping[str, str]], reported: object, outputs: int
) -> tuple[list[Mapping[str, str]], list[str]]:
    """Name files of outputs as the report does, where they hold the same bytes; a copy may have another name.

    They are the last ones of both lists, which may have different batches before them.
    """
    named = list(inputs)
    renamed: list[str] = []
    theirs = reported if isinstance(reported, list) else []
    for back in range(min(outputs, len(theirs)), 0, -1):
        ours, other = inputs[-back], theirs[-back]
        same = isinstance(other, dict) and other.get("sha256") == ours["sha256"]
        if same and isinstance(other.get("name"), str) and other["name"] != ours["name"]:
            named[-back] = {**ours, "name": other["name"]}
            renamed.append(f"{ours['name']} was called {other['name']} when the report was made")
    return named, renamed
