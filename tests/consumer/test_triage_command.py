"""`safe triage`: what it proposes, what each change is worth, and what it writes."""

import json
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from consumer.cli.main import main
from tests.support.case_files import a_case, answer, write_batch, write_report
from tests.support.real_cases import REAL, real_cases_only

NARRATIVE = (
    "A girl arrived at the clinic at 18:00 on Sunday. Surgery was delayed until 02:00, resulting in an 8-hour wait. "
    "The left hand was warm."
)
OTHER = "Somebody else altogether."
OUTPUT: Mapping[str, Any] = {
    "signals": ["She arrived at the clinic at 18:00 on Sunday", "The left hand was warm"],
    "summary": "Surgery was delayed until 02:00, a 9-hour wait.",
    "followup_questions": ["Who is to blame?"],
}


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert main([*arguments]) in {0, 1, 2}
    return json.loads(capsys.readouterr().out)


def triaged(capsys: pytest.CaptureFixture[str], outputs: Path, cases: Path, *more: str) -> Any:
    return run(capsys, "triage", "-i", str(outputs), "-t", str(cases), "--format", "json", *more)


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Of each verdict one: a term in other words, one in another field, a forbidden one used, one contradicted."""
    case = a_case(
        "T1", ["arrived Sunday 18:00", "left hand"], ["blame"], ["an 8-hour wait", "left hand was warm"],
        patient_payload=NARRATIVE,
    )  # fmt: skip
    foreign = a_case("T2", ["arrived Sunday 18:00"], patient_payload=NARRATIVE)
    write_batch(tmp_path / "cases", "b1", case, foreign, a_case("T3", patient_payload=NARRATIVE))
    entries = (answer("T1", {**OUTPUT, "raw_input": NARRATIVE}), answer("T2", {**OUTPUT, "raw_input": OTHER}))
    return write_report(tmp_path / "run.json", *entries), tmp_path / "cases"


def test_each_verdict_has_its_step_and_what_it_is_worth(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    document = triaged(capsys, *files)
    assert document["cases"] == 3
    assert document["now"] == {"pass": 0, "review": 0, "fail": 3}
    told = [
        (each["criterion"], each["term"], each["verdict"], each["replacement"], tuple(each["cases_gained"].values()))
        for each in document["proposals"]
    ]
    assert told == [
        ("CR", "arrived Sunday 18:00", "term", ["arrived at the clinic at 18:00 on Sunday"], (0, 0)),
        ("AC", "left hand was warm", "prompt", [], (0, 0)),
        ("AH", "blame", "prompt", [], (0, 1)),
        ("AC", "an 8-hour wait", "output", [], (0, 1)),
    ]
    assert {each["test_id"] for each in document["proposals"]} == {"T1"}, "none for a mismatch or without an output"
    steps = [(each["verdict"], each["proposals"], each["pass"], each["review"]) for each in document["steps"]]
    assert steps == [("term", 1, 0, 0), ("prompt", 2, 0, 1), ("output", 1, 1, 0)]
    assert [each["proposals"] for each in document["causes"]] == [1, 1]
    place = document["proposals"][0]["evidence"]["narrative"][0]
    assert NARRATIVE[place["start"] : place["end"]] == "arrived at the clinic at 18:00 on Sunday"
    assert "9-hour" not in json.dumps(document), "nothing of the output is quoted"


def test_a_term_that_the_output_leaves_out_is_replaced_too_where_the_narrative_words_it_otherwise(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case = a_case(
        "T1", ["arrived Sunday 18:00", "severe delay of surgery until 02:00"], (), ["girl"], patient_payload=NARRATIVE
    )
    write_batch(tmp_path / "cases", "b1", case)
    outputs = write_report(tmp_path / "run.json", answer("T1", {"signals": [], "summary": "A girl was severely ill."}))
    document = triaged(capsys, outputs, tmp_path / "cases", "--write-cases", str(tmp_path / "new"))
    arrived, *others = document["proposals"]
    assert (arrived["verdict"], arrived["remedy"], arrived["replacement"]) == (
        "term",
        "ask",
        ["arrived at the clinic at 18:00 on Sunday"],
    )
    assert {each["term"]: (each["verdict"], each["not_replaced"] is None) for each in others} == {
        "arrived Sunday 18:00": ("prompt", True),
        "severe delay of surgery until 02:00": ("prompt", False),
    }
    assert [(each["proposals"], each["pass"]) for each in document["steps"]] == [(1, 0), (2, 1), (0, 1)]
    assert 'do not have "severe"' in next(each["not_replaced"] for each in others if each["not_replaced"])
    assert main(["triage", "-i", str(outputs), "-t", str(tmp_path / "cases")]) == 0
    assert (
        "1 term for which the narrative or the output has other words: SAFE proposes no replacement"
        in capsys.readouterr().out
    )


def test_a_term_is_left_alone_where_its_list_has_it_twice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    twice = a_case("T1", ["arrived Sunday 18:00"] * 2, patient_payload=NARRATIVE)
    write_batch(tmp_path / "cases", "b1", twice)
    document = triaged(capsys, write_report(tmp_path / "run.json", answer("T1", OUTPUT)), tmp_path / "cases")
    told = [(each["verdict"], each["replacement"]) for each in document["proposals"] if each["criterion"] == "CR"]
    assert told == [("term", []), ("term", [])]


def test_no_list_forgives_a_miss_that_it_did_not_forgive(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A term of four that is split makes five, which pass with four found (0.8)."""
    told = "He came with severe chest pain, asthma and morbid obesity. Tophaceous gout was seen. A wet cough was heard."
    three = ["a wet cough", "severe chest pain", "tophaceous gout; morbid obesity"]
    summary = "Severe chest pain. Tophaceous gout, and morbid obesity. "
    cases = (
        a_case("T3", ["severe chest pain"], (), three, patient_payload=told),
        a_case("T4", ["severe chest pain"], (), ["asthma", *three], patient_payload=told),
    )
    write_batch(tmp_path / "cases", "b1", *cases)
    output = {"signals": [], "summary": summary}
    outputs = write_report(tmp_path / "run.json", answer("T3", output), answer("T4", output))
    document = triaged(capsys, outputs, tmp_path / "cases")
    replaced = {each["test_id"]: each["replacement"] for each in document["proposals"] if "gout" in each["term"]}
    assert replaced == {"T3": ["morbid obesity", "Tophaceous gout"], "T4": []}


COMPOUND = "tophaceous gout; morbid obesity"
GUARDED = [
    # (the other terms of AC, what the output says, whether the term is split into two)
    (["asthma", "eczema"], "Asthma, eczema. Tophaceous gout, and morbid obesity.", True),
    # four terms forgive no miss, five do; no mutant of this narrative touches a term
    (["asthma", "eczema", "psoriasis"], "Asthma, eczema. Tophaceous gout, and morbid obesity.", False),
    # two of three are 0.67, two of four 0.5
    (["asthma", "eczema"], "Asthma, eczema.", False),
    # lint would find one of the phrases twice in the list
    (["asthma", "tophaceous gout"], "Asthma. Tophaceous gout, and morbid obesity.", False),
]


@pytest.mark.parametrize(("others", "said", "is_split"), GUARDED)
def test_each_guard_alone_keeps_a_term(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], others: list[str], said: str, is_split: bool
) -> None:
    told = "Asthma. Eczema. Psoriasis. Morbid obesity. Tophaceous gout."
    write_batch(tmp_path / "cases", "b1", a_case("T1", ["asthma"], (), [*others, COMPOUND], patient_payload=told))
    outputs = write_report(tmp_path / "run.json", answer("T1", {"signals": [], "summary": said}))
    proposals = triaged(capsys, outputs, tmp_path / "cases")["proposals"]
    [replacement] = [each["replacement"] for each in proposals if each["term"] == COMPOUND]
    assert replacement == (["Morbid obesity", "Tophaceous gout"] if is_split else [])


def test_a_phrase_must_be_in_the_narratives_of_all_batches_that_hold_the_case(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = tmp_path / "cases"
    other = NARRATIVE.replace("at 18:00 on Sunday", "late on Sunday")
    write_batch(cases, "b1", a_case("T1", ["arrived Sunday 18:00"], patient_payload=NARRATIVE))
    write_batch(cases, "b2", a_case("T1", ["arrived Sunday 18:00"], patient_payload=other))
    outputs = write_report(tmp_path / "run.json", answer("T1", OUTPUT))
    for pattern in ("b1", "*"):
        document = triaged(capsys, outputs, cases, "--batch", pattern)
        assert [each["replacement"] for each in document["proposals"] if each["criterion"] == "CR"] == [[]]
    (cases / "b2.json").unlink()
    proposals = triaged(capsys, outputs, cases)["proposals"]
    assert all(each["replacement"] for each in proposals if each["criterion"] == "CR")


@pytest.mark.parametrize(
    ("signals", "payload", "why"),
    [
        (["arrived Sunday 18:00"] * 2, NARRATIVE, "The list has the term more than once."),
        (["arrived Sunday 18:00"], None, "The test case has no narrative"),
        (
            ["The left hand was warm"],
            NARRATIVE,
            "The narrative has the term word for word",
        ),
        (["severely dehydrated girl"], NARRATIVE, "No phrase of the narrative can replace the term: "),
        (["the left hand was cold"], NARRATIVE, "SAFE does not find this in the narrative"),
    ],
)
def test_a_term_that_is_not_replaced_is_still_one_to_change_and_says_why(
    signals: list[str], payload: str | None, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_batch(tmp_path / "cases", "b1", a_case("T1", signals, (), ["girl"], patient_payload=payload))
    output = {"signals": [NARRATIVE, "8-hour wait"], "summary": "surgery was delayed, until 02:00: a girl."}
    output["signals"] = [
        "She arrived at the clinic at 18:00 on Sunday",
        "a girl with severe dehydration",
        "her left hand felt warm",
    ]
    document = triaged(capsys, write_report(tmp_path / "run.json", answer("T1", output)), tmp_path / "cases")
    [(change, verdict)] = {(each["change"], each["verdict"]) for each in document["proposals"]}
    assert why in change
    assert verdict == "term"


def test_the_written_cases_give_the_promised_numbers(
    files: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outputs, cases = files
    (cases / "golden.json").write_bytes((cases / "b1.json").read_bytes().replace(b"T3", b"T4"))  # equal expectations
    write_batch(cases, "unrelated", a_case("T9"))
    write_batch(cases, "differs", a_case("T1", ["other"]))
    better = tmp_path / "better"
    document = triaged(capsys, outputs, cases, "--batch", "b1", "--write-cases", str(better))
    assert sorted(path.name for path in better.iterdir()) == ["b1.json", "golden.json"]
    for path in better.iterdir():
        before = (cases / path.name).read_bytes()
        assert path.read_bytes() == before.replace(
            b'"arrived Sunday 18:00", "left', b'"arrived at the clinic at 18:00 on Sunday", "left'
        )
    scored = run(capsys, "score", "-c", "K07", "-b", "b1", "-i", str(outputs), "-t", str(better), "-f", "json")
    step = document["steps"][0]
    assert [scored["summary"][label] for label in ("pass", "review", "fail")] == [
        step[label] for label in ("pass", "review", "fail")
    ]


def test_a_file_that_decides_which_case_is_answered_is_written_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cases, better = tmp_path / "cases", tmp_path / "better"
    write_batch(cases, "b1", a_case("T1", ["arrived Sunday 18:00"], patient_payload=NARRATIVE), index=1)
    write_batch(cases, "b2", a_case("T1", ["other"], patient_payload=NARRATIVE), index=2)
    outputs = write_report(tmp_path / "run.json", answer("T1", OUTPUT, batch_index=1), answer("T1", batch_index=2))
    document = triaged(capsys, outputs, cases, "--batch", "b1", "--write-cases", str(better))
    assert (better / "b2.json").read_bytes() == (cases / "b2.json").read_bytes()
    again = triaged(capsys, outputs, better, "--batch", "b1")
    assert again["now"] == {name: document["steps"][0][name] for name in ("pass", "review", "fail")}


def test_what_is_there_is_not_replaced(files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    outputs, cases = files
    options = ["triage", "-i", str(outputs), "-t", str(cases), "--write-cases"]
    assert main([*options, str(cases / ".." / "cases")]) == 3
    assert "is the folder of the test cases; name another" in capsys.readouterr().err
    better = cases.parent / "better"
    assert main([*options, str(better)]) == 0
    assert "wrote 1 file to" in capsys.readouterr().err
    assert main([*options, str(better)]) == 0, "the same content again"
    (better / "b1.json").write_text("{}", encoding="utf-8")
    assert main([*options, str(better)]) == 3
    assert "already exists, with different content" in capsys.readouterr().err
    assert main([*options, str(better), "--force"]) == 0
    assert main([*options, str(outputs)]) == 3
    assert "is not a folder" in capsys.readouterr().err


def test_cases_are_written_where_nothing_else_would_be_scored_with_them(
    files: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    outputs, cases = files
    options = ["triage", "-i", str(outputs), "-t", str(cases)]
    other = write_batch(tmp_path / "better", "other", a_case("T9"))
    assert main([*options, "--write-cases", str(other.parent)]) == 3
    assert "holds other batch files (other), which would be scored" in capsys.readouterr().err
    assert [*other.parent.iterdir()] == [other]
    monkeypatch.chdir(tmp_path)
    assert main([*options, "--write-cases", ""]) == 3
    assert "the name is empty; name a folder" in capsys.readouterr().err
    assert not (tmp_path / "b1.json").exists()


def test_no_output_goes_where_it_would_be_read_as_a_batch_file(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    outputs, cases = files
    options = ["triage", "-i", str(outputs), "-t", str(cases), "-o"]
    assert main([*options, str(cases / ".." / "cases" / "triage.json")]) == 3
    assert "would be read as a batch file; name a file in another folder" in capsys.readouterr().err
    assert not (cases / "triage.json").exists()
    assert main([*options, str(cases / "triage.md")]) == 0


def test_an_unknown_batch_is_named(files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    outputs, cases = files
    for command in ("triage", "review"):
        assert main([command, "-i", str(outputs), "-t", str(cases), "-b", "nope"]) == 3
        assert f"no batch matches --batch nope in {cases}; batches there: b1" in capsys.readouterr().err


def test_every_format_says_the_same(
    files: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outputs, cases = files
    pages = [tmp_path / f"page{suffix}" for suffix in (".txt", ".md", ".html", ".json")]
    written = [part for page in pages for part in ("-o", str(page))]
    for _ in range(2):  # its own pages may be replaced
        assert main(["triage", "-i", str(outputs), "-t", str(cases), *written]) == 0
    assert "0 of 3 cases pass now; 0 with better terms; 1 with a better prompt and" in capsys.readouterr().err
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert "arrived at the clinic at 18:00 on Sunday" in text
        assert "Ask the follow-up questions without the forbidden terms." in text
        if page.suffix != ".json":
            said = re.sub("&#34;", '"', text)
            assert (
                "1 of 3 test cases has no output; it is scored as if its output were empty, "
                "and nothing is proposed there."
            ) in said
            assert "1 output was made from another narrative: nothing is proposed there." in said
            assert "each proposal is assumed to work: its term counts as found" in said
            assert text.index("Prompt: what the outputs lack") < text.index("left hand was warm")
            assert "blame" in text[text.index("Prompt: forbidden terms that the outputs use") :]
    console = pages[0].read_text(encoding="utf-8").splitlines()
    assert console[2:7] == [
        "  Step    Proposals  Pass  Review  Fail",
        "  now                   0       0     3",
        "  term            1     0       0     3",
        "  prompt          2     0       1     2",
        "  output          1     1       0     2",
    ]


def test_markup_of_terms_is_shown_as_it_is(tmp_path: Path) -> None:
    case = a_case("T1", ["<b>bold</b> *and* [more]"], patient_payload=NARRATIVE)
    write_batch(tmp_path / "cases", "b1", case)
    outputs = write_report(tmp_path / "run.json", answer("T1", OUTPUT))
    page = tmp_path / "page.html"
    assert main(["triage", "-i", str(outputs), "-t", str(tmp_path / "cases"), "-o", str(page)]) == 0
    assert "<b>bold" not in page.read_text(encoding="utf-8")


# --- real runs --------------------------------------------------------------------------------------------------------

RUNS = ("outputs_loop1_report.json", "outputs_refinery_v9.json", "outputs_I25_report.json")


def lists_of(folder: Path) -> dict[tuple[str, str], tuple[list[str], list[str], str]]:
    return {
        (path.stem, case["test_id"]): (
            case["expectations"]["signal_generation"]["must_find_signals"],
            case["expectations"]["event_summary"]["must_contain_phrases"],
            case["patient_payload"],
        )
        for path in sorted(folder.glob("*.json"))
        for case in json.loads(path.read_text(encoding="utf-8"))["test_cases"]
    }


@pytest.mark.real_cases
@real_cases_only[1]
@pytest.mark.parametrize("name", RUNS)
def test_real_runs_keep_every_promise(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outputs, cases = REAL / name, REAL / "testcases"
    document = triaged(capsys, outputs, cases, "--write-cases", str(tmp_path), "--on-duplicate", "first")
    common = ("-c", "I25", "-b", "*", "-i", str(outputs), "-f", "json", "--on-duplicate", "first")
    before, after = (run(capsys, "score", "-t", str(folder), *common) for folder in (cases, tmp_path))
    step = document["steps"][0]
    assert {label: after["summary"][label] for label in ("pass", "review", "fail")} == {
        label: step[label] for label in ("pass", "review", "fail")
    }
    for one, two in zip(before["results"], after["results"], strict=True):
        assert all(two["scores"][key] >= one["scores"][key] for key in one["scores"]), one["test_id"]
    old, new = lists_of(cases), lists_of(tmp_path)
    for each in document["proposals"]:
        if each["replacement"]:
            check_replacement(
                each, *old[each["batch_id"], each["test_id"]][:2], old[each["batch_id"], each["test_id"]][2]
            )
    assert all(all(terms[:2]) for terms in new.values()), "no list became empty"
    found = [run(capsys, "lint", str(folder), "--format", "json")["findings"] for folder in (cases, tmp_path)]
    flaws = [Counter((flaw["code"], flaw["test_id"], flaw["term"]) for flaw in each) for each in found]
    assert not flaws[1] - flaws[0]
    mutants = [run(capsys, "mutate", "-t", str(folder), "--format", "json")["survived"] for folder in (cases, tmp_path)]
    assert mutants[1] <= mutants[0]


def check_replacement(proposal: Any, signals: list[str], phrases: list[str], narrative: str) -> None:
    """Hold a replacement against the narrative by words alone, apart from the code that made it."""
    assert proposal["term"] in (signals if proposal["criterion"] == "CR" else phrases)
    assert all(phrase in narrative for phrase in proposal["replacement"])
    words = re.findall(r"[\w:.]*\w", proposal["term"].lower())
    told, kept = (re.findall(r"[\w:.]*\w", text.lower()) for text in (narrative, " ".join(proposal["replacement"])))
    for word in words:
        if word in told and (word[0].isdigit() or word in {"no", "not", "without", "left", "right", "iii", "ii"}):
            assert word in kept, proposal


@pytest.mark.parametrize("suffix", [".txt", ".md", ".html", ".json"])
def test_the_words_to_compare_with_a_term_are_quoted_only_if_asked_for(
    tmp_path: Path, suffix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    narrative, words = "Potassium was 5.6 on Monday and 3.6 on Friday.", "Potassium was 3.6 mmol/l"
    case = a_case("T1", ["potassium of 5.6"], patient_payload=narrative)
    write_batch(tmp_path / "cases", "b1", case)
    outputs = write_report(tmp_path / "run.json", answer("T1", {**OUTPUT, "signals": [words], "raw_input": narrative}))
    page = tmp_path / f"page{suffix}"
    arguments = ["triage", "-i", str(outputs), "-t", str(tmp_path / "cases"), "-o", str(page)]
    pages = []
    for more in ([], ["--include-text"]):
        assert main([*arguments, *more]) == 0
        pages.append(page.read_text(encoding="utf-8"))
    told, quoting = pages
    assert "Only a person can tell what must change." in told
    assert (words in told, words in quoting) == (False, True)
    if suffix == ".json":
        assert all("text" not in each for each in json.loads(told)["proposals"])
        assert words in [each["text"] for each in json.loads(quoting)["proposals"]]
    else:
        assert ("signal 1, characters 1 to 24" in told, "signal 1, characters" in quoting) == (True, False)
    assert words not in capsys.readouterr().err


def test_for_an_output_that_is_wrong_the_words_that_contradict_the_term_are_shown(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    outputs, cases = files
    assert main(["triage", "-i", str(outputs), "-t", str(cases), "--include-text"]) == 0
    printed = capsys.readouterr().out
    pile = printed[printed.index("Outputs that contradict the narrative (1)") :].splitlines()
    assert pile[1].startswith("  Change neither the prompt nor the test case")
    assert pile[2].startswith('    Fail  T1 AC "an 8-hour wait"')
    assert re.fullmatch('      output  ".*9-hour wait"', pile[3])
