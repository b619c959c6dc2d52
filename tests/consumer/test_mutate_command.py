"""`safe mutate`: which cases it takes, what it prints, and that each outcome can be recomputed by other code."""

import json
from pathlib import Path
from typing import Any

import pytest

from consumer.cli.main import main
from tests.support.case_files import a_case, write_batch
from tests.support.real_cases import REAL, real_cases_only

NARRATIVE = "A 6-year-old fell on Saturday at 20:00. There were no signs of infection. The left arm was warm."


def mutated(capsys: pytest.CaptureFixture[str], folder: Path, *options: str) -> Any:
    assert main(["mutate", "--test-dir", str(folder), "--format", "json", *options]) == 0
    return json.loads(capsys.readouterr().out)


def passes(narrative: str, signals: list[str], phrases: list[str], mutant: Any) -> bool:
    """The rule in words of its own: build the output from the offsets, look for each term, compare with 0.8."""
    lacking = [term for term in dict.fromkeys([*signals, *phrases]) if term.lower() not in narrative.lower()]
    assert narrative[mutant["start"] : mutant["end"]] == mutant["before"]
    altered = narrative[: mutant["start"]] + mutant["after"] + narrative[mutant["end"] :]
    summary = "\n".join([altered, *lacking]).lower()
    shares = [sum(term.lower() in summary for term in terms) / len(terms) for terms in (signals, phrases) if terms]
    return all(share >= 0.8 for share in shares)


def check(document: Any, cases: dict[tuple[str, str], Any]) -> None:
    """Recompute each survivor, each mutant that was caught, and each suggestion."""
    for mutant in [*document["survivors"], *document["caught"]]:
        case = cases[mutant["batch_id"], mutant["test_id"]]
        signals = case["expectations"]["signal_generation"]["must_find_signals"]
        phrases = case["expectations"]["event_summary"]["must_contain_phrases"]
        told = case["patient_payload"]
        survived = mutant in document["survivors"]
        assert passes(told, signals, phrases, mutant) is survived
        if phrase := mutant["suggestion"]:
            assert survived
            assert phrase in told
            with_it = (
                passes(told, [*signals, phrase], phrases, mutant),
                passes(told, signals, [*phrases, phrase], mutant),
            )
            assert not all(with_it)


def test_counts_add_up_and_each_outcome_can_be_recomputed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = a_case("T1", ["on saturday at 20:00", "a rash", "the left arm"], (), ["signs of infection"])
    case["patient_payload"] = NARRATIVE
    write_batch(tmp_path, "b1", case)
    document = mutated(capsys, tmp_path, "--all")
    check(document, {("b1", "T1"): case})
    assert document["cases"] == 1
    assert document["mutants"] == len(document["survivors"]) + len(document["caught"])
    assert document["survived"] == len(document["survivors"])
    for count, listed in (
        ("mutants", [*document["survivors"], *document["caught"]]),
        ("survived", document["survivors"]),
    ):
        for kind, counts in document["by_kind"].items():
            assert counts[count] == sum(mutant["kind"] == kind for mutant in listed)
    altered = {(mutant["before"], mutant["after"]) for mutant in document["survivors"]}
    assert ("were no", "were") in altered
    assert ("Saturday", "Tuesday") in {(mutant["before"], mutant["after"]) for mutant in document["caught"]}


def test_a_case_in_several_batches_counts_once_and_one_without_a_narrative_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shared = a_case("T1", patient_payload=NARRATIVE)
    write_batch(tmp_path, "b1", a_case("T1"), a_case("T2"))
    write_batch(tmp_path, "b2", shared, a_case("T3", patient_payload=NARRATIVE))
    write_batch(tmp_path, "b3", shared, a_case("T3", ["other"], patient_payload=NARRATIVE))
    document = mutated(capsys, tmp_path)
    assert (document["cases"], document["without_narrative"]) == (3, 1)
    assert {(each["batch_id"], each["test_id"]) for each in document["survivors"]} == {
        ("b2", "T1"), ("b2", "T3"), ("b3", "T3"),
    }  # fmt: skip


def test_batches_and_concerns_are_chosen_by_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_batch(tmp_path, "b1", a_case("T1", patient_payload=NARRATIVE), a_case("T2", concern_id="X"))
    write_batch(tmp_path, "b2", a_case("T3", patient_payload=NARRATIVE))
    assert mutated(capsys, tmp_path, "--batch", "b2")["cases"] == 1
    assert mutated(capsys, tmp_path, "--concern", "k07")["without_narrative"] == 0


def test_the_table_shows_each_survivor_and_what_would_catch_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_batch(tmp_path, "b1", a_case("T1", patient_payload="The left arm hurt."), a_case("T2"))
    assert main(["mutate", "--test-dir", str(tmp_path)]) == 0
    captured = capsys.readouterr()
    assert captured.out.splitlines() == [
        "kind  mutants  survived",
        "side        1         1",
        "1 of 1 mutant (100%) of 1 test case would pass",
        "",
        "T1  1 survived",
        "    side",
        "        The [-left-]{+right+} arm hurt.",
        '        this phrase would catch it: "The left arm hurt"',
    ]
    assert "1 test case skipped: no narrative to alter" in captured.err


def test_ten_of_a_case_are_shown_one_of_each_kind_in_turn_the_worst_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = (
        "He took 5 mg, 6 mg and 7 mg of aspirin. No fever. The left arm hurt. The right leg was warm. Mild pain. " * 2
    )
    write_batch(tmp_path, "b1", a_case("T1", patient_payload=told))
    assert main(["mutate", "--test-dir", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    shown = [line.strip() for line in lines if line.startswith("    ") and not line.startswith("     ")]
    assert shown[:6] == ["number", "negation_removed", "negation_added", "side", "drug", "grade"]
    assert len(shown) == 11
    assert shown[-1].endswith("more: --all shows them")
    main(["mutate", "--test-dir", str(tmp_path), "--all"])
    assert len(capsys.readouterr().out.splitlines()) > 2 * len(lines)


def test_a_long_work_says_what_it_does_where_no_bar_is_seen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_batch(tmp_path, "b1", a_case("T1", patient_payload="Nothing was said. " * 12_000))
    assert main(["mutate", "--test-dir", str(tmp_path)]) == 0
    assert capsys.readouterr().err.startswith("safe: altering 1 case\n")


@pytest.mark.parametrize(
    ("signals", "narrative", "said"),
    [
        (["arm", "hurt", "the", "l"], "The left arm hurt. L.", "would catch it in must_contain_phrases: "),
        (["boy"], "9-year-old boy.", "no phrase of its sentence would catch it: each is still in the altered text"),
    ],
)
def test_the_table_says_which_list_wants_the_phrase_and_why_there_is_none(
    signals: list[str], narrative: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_batch(tmp_path, "b1", a_case("T1", signals, patient_payload=narrative))
    assert main(["mutate", "--test-dir", str(tmp_path)]) == 0
    assert said in capsys.readouterr().out


def test_lint_shows_the_same_counts_case_by_case(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_batch(tmp_path, "b1", a_case("T1", patient_payload=NARRATIVE), a_case("T2"))
    document = mutated(capsys, tmp_path)
    assert main(["lint", str(tmp_path), "--mutate", "--format", "json", "--fail-on", "never"]) == 0
    [counted] = json.loads(capsys.readouterr().out)["mutation"]
    assert (counted["test_id"], counted["mutants"], counted["survived"]) == (
        "T1",
        document["mutants"],
        document["survived"],
    )
    main(["lint", str(tmp_path), "--mutate"])
    assert f"  T1  {document['survived']} of {document['mutants']}\n" in capsys.readouterr().out
    main(["lint", str(tmp_path)])
    assert "Dangerous errors" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("case", "options", "message"),
    [
        (a_case("T1"), [], "has a narrative to alter"),
        (a_case("T1"), ["--batch", "c*"], "no batch matches --batch c* in"),
        (a_case("T1"), ["--concern", "X"], "no test case of --concern X in the batches of "),
        (a_case("T1"), ["--concern", "X", "--batch", "b*"], " that match --batch b*\n"),
        (a_case("T1", [" "]), [], "T1: "),
    ],
)
def test_what_cannot_be_used_is_named(
    case: Any, options: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_batch(tmp_path, "b1", case)
    assert main(["mutate", "--test-dir", str(tmp_path), *options]) == 3
    assert message in capsys.readouterr().err


@pytest.mark.real_cases
@real_cases_only[1]
def test_the_mutants_of_the_real_cases_can_be_recomputed(capsys: pytest.CaptureFixture[str]) -> None:
    folder = REAL / "testcases"
    cases = {
        (path.stem, case["test_id"]): case
        for path in folder.glob("*.json")
        for case in json.loads(path.read_text(encoding="utf-8"))["test_cases"]
    }
    document = mutated(capsys, folder, "--all")
    assert document["cases"] == 50
    check(document, cases)
