"""The labelled sets: the old ones on both axes, the pairs, and the encounters that nobody here wrote."""

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Final

from bench.diagnosis import real_cases
from bench.yardstick.cases import Case, verdict_of
from safe_core import Output, prepare, score
from safe_core.policy import DEFAULT_POLICY
from tests.support.real_cases import REAL

ROOT: Final = Path(__file__).parents[2]
LABELS: Final = ROOT / "tests" / "core" / "labels"
EXTERNAL: Final = ROOT.parent / "shared" / "external"
"""Texts with a licence of their own, which are not part of the repository."""
OLD: Final = ("made", "developed", "blind")
_DISCUSSED: Final = Output((), "The case was discussed.")


def load(path: Path) -> Any:  # noqa: ANN401 – JSON
    return json.loads(path.read_text(encoding="utf-8"))


@cache
def axes() -> dict[tuple[str, str], tuple[frozenset[str], frozenset[str], frozenset[str], str]]:
    """Read what the old labels say on both axes, by set and miss."""
    lines = (LABELS / "axes.tsv").read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines if line and not line.startswith("#")]
    return {
        (row[0], row[1]): (
            frozenset(row[2].split("|")),
            frozenset(row[3].split("|")),
            frozenset(row[4].split("|")),
            row[5],
        )
        for row in rows
    }


def _with_label(case: Case, file: str, name: str) -> Iterator[Case]:
    """Give the case with its label, or nothing where no one has given it one."""
    if (label := axes().get((file, name))) is not None:
        output_says, narrative_says, verdicts, how = label
        yield replace(case, output_says=output_says, narrative_says=narrative_says, verdicts=verdicts, how=how)


def old(file: str) -> Iterator[Case]:
    """Give the labelled misses of one old set: `made`, `developed` or `blind`."""
    for case in load(LABELS / f"{file}_verdicts.json"):
        output = Output.parse(case["output"])
        for miss in case["misses"]:
            made = Case(f"{file}/{miss['id']}", miss["term"], output, case["narrative"], miss["criterion"])
            yield from _with_label(made, file, miss["id"])


def real() -> Iterator[Case]:
    """Give the labelled misses of real reports; their texts must be at hand."""
    cases = {(case.outputs, case.test_id): case for case in real_cases(REAL)}
    for label in load(LABELS / "real_verdicts.json"):
        case = cases[label["outputs"], label["test_id"]]
        details = score(prepare(case.expectations), case.output, DEFAULT_POLICY.default).details
        missing = details.cr_missing if label["criterion"] == "CR" else details.ac_missing
        name = f"{label['outputs']}/{label['test_id']}/{label['criterion']}/{label['place']}"
        term = missing[label["place"]]
        found = Case(f"real/{name}", term, case.output, case.narrative, label["criterion"])
        yield from _with_label(found, "real", name)


def pairs() -> Iterator[Case]:
    """Give the sentences of our own, each with both answers: nearly all are mapped from an older verdict by a rule."""
    for number, row in enumerate(load(LABELS / "pairs.json")):
        output = Output(
            tuple(row["signals"]), row.get("summary", "The case was discussed."), tuple(row.get("asks", ()))
        )
        yield Case(
            f"pairs/{number}",
            row["term"],
            output,
            row["narrative"],
            row.get("criterion", "CR"),
            frozenset(row["output_says"]),
            frozenset(row["narrative_says"]),
            frozenset(row["verdicts"]),
            "rule",
        )


# ─── encounters ───


@cache
def encounters() -> dict[str, dict[str, str]]:
    return {each["id"]: each for each in load(EXTERNAL / "aci_encounters.json")}


@cache
def outputs() -> dict[str, dict[str, str]]:
    read: dict[str, dict[str, str]] = load(EXTERNAL / "aci_outputs.json")
    return read


def answers(file: Path) -> Iterator[Case]:
    """Give the misses of models' notes of the encounters, with the label on which two readers settled."""
    for number, row in enumerate(load(file)):
        label = _settled(row)
        says, story = label["output_says"], label["narrative_says"]
        has_it_too = bool(label.get("narrative_has_it_too"))
        yield Case(
            f"encounters/{number}/{row['id']}/{row['system']}",
            row["term"],
            Output(summary=outputs()[row["system"]][row["id"]]),
            encounters()[row["id"]][row["narrative"]],
            row["criterion"],
            frozenset({says}),
            frozenset({story}),
            frozenset({verdict_of(says, story, narrative_has_it_too=has_it_too)}),
            row["narrative"],
        )


def narratives(file: Path, says: str) -> Iterator[Case]:
    """Give terms against a narrative alone, which all say the same of it unless their row says otherwise.

    Without a `narrative`, a term is compared with the dialogue and with the note.
    """
    for number, row in enumerate(load(file)):
        accepted = _settled(row).get("narrative_says", says)
        for kind in [row["narrative"]] if "narrative" in row else ["dialogue", "note"]:
            text = encounters()[row["id"]][kind]
            name = f"{file.stem}/{number}/{row['id']}/{kind}"
            yield Case(name, row["term"], _DISCUSSED, text, narrative_says=frozenset({accepted}), how=kind)


def _settled(row: dict[str, Any]) -> dict[str, Any]:
    """Give the label that counts: the settled one, or that of the first reader, or the row's own."""
    for key in ("final", "r1"):
        if isinstance(row.get(key), dict):
            return dict(row[key])
    return row
