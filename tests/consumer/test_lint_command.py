"""`safe lint` over folders: what it reads, counts, prints, and exits with."""

import io
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from consumer.cli.main import main
from consumer.errors import ConfigurationError
from consumer.offline.lint_command import lint_command
from consumer.offline.lint_files import Lint, LintRequest, lint_batches
from consumer.offline.pages.findings import annotations, print_table
from safe_core import DEFAULT_POLICY, Policy
from tests.support.case_files import GOOD, HARMFUL, a_case, answer, event, write_batch, write_events, write_report
from tests.support.golden import matches_golden
from tests.support.real_cases import REAL, real_cases_only

NARRATIVE = "Wheeze on arrival at 18:30; salbutamol was given, and theatre was called for."


def narrated(test_id: str, *lists: Sequence[str], **more: Any) -> Any:
    return a_case(test_id, *lists, patient_payload=NARRATIVE, **more)


def lint(folder: Path, **more: Any) -> Lint:
    return lint_batches(DEFAULT_POLICY, LintRequest([folder], **more))


def codes(found: Lint) -> list[str]:
    return [each.finding.code for each in found.findings]


def table(found: Lint, **console: Any) -> str:
    file = io.StringIO()
    print_table(found, Console(file=file, color_system=None, highlight=False, **console))
    return file.getvalue()


@pytest.fixture
def flawed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with something of each severity, named as a person in its parent folder would name it."""
    monkeypatch.chdir(tmp_path)
    folder = Path("cases")
    write_batch(folder, "K07_batch_1", narrated("K07-1"), narrated("K07-2", ["wheeze", "rash"], remark="mine"))
    spoilt = narrated("K07-4", ["wheeze\n", "Wheeze"], forbidden=["OR", "ICU"], concern_id=None)
    spoilt["expectations"]["event_sumary"] = spoilt["expectations"].pop("event_summary")
    write_batch(folder, "K07_batch_2", narrated("K07-3", [" "]), spoilt, a_case("K07-1", ["stridor"]))
    (folder / "K07_batch_3.json").write_text('{"test_cases": [', encoding="utf-8")
    for path in sorted(folder.glob("*_[12].json")):  # one line for each thing, as people keep such files
        path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")), indent=1), encoding="utf-8")
    return folder


def test_a_sound_folder_is_clean(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_batch(tmp_path, "b1", narrated("T1"), narrated("T2", remark="nobody minds"))
    assert lint_command(DEFAULT_POLICY, LintRequest([tmp_path]), github_actions=True) == 0
    out, err = capsys.readouterr()
    assert out.startswith("Ceiling: at most 2 of 2 cases would pass even if each output were a copy of its narrative\n")
    assert out.endswith("Clean: nothing to fix in 2 test cases of 1 batch, 1 info\n")
    assert err == ""


def test_one_required_term_is_one(tmp_path: Path) -> None:
    for signal, count in (("wheeze", 0), ("rash", 1)):
        write_batch(tmp_path, "b1", narrated("T1", [signal], ["blame"], []))
        assert f"  {count} of 1 required term is not in the narrative of its case\n" in table(lint(tmp_path))


def test_the_table_says_everything_and_cuts_nothing(flawed: Path) -> None:
    matches_golden("lint.txt", table(lint(flawed)))


def test_a_terminal_has_its_sentences_wrapped(flawed: Path) -> None:
    text = table(lint(flawed), force_terminal=True, width=60)
    matches_golden("lint_60_columns.txt", text)


def test_the_json_says_everything(flawed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert lint_command(DEFAULT_POLICY, LintRequest([flawed]), format_="json", github_actions=True) == 1
    matches_golden("lint_json.txt", capsys.readouterr().out)


def test_the_annotations_name_file_and_line_the_most_important_first(
    flawed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert lint_command(DEFAULT_POLICY, LintRequest([flawed]), github_actions=True) == 1
    matches_golden("lint_annotations.txt", capsys.readouterr().err)


def test_what_annotations_would_read_as_their_own_is_escaped(tmp_path: Path) -> None:
    write_batch(tmp_path, "a,b:c%", narrated("T\u20281", ["100 % \n::error::, "]))
    (line,) = annotations(lint(tmp_path))
    file, message = f"{tmp_path}/a%2Cb%3Ac%25.json", '"100 %25 \\u000a::error::, " is not in the narrative'
    place = "test_cases[0] (T\\u20281).expectations.signal_generation.must_find_signals[0]"
    assert line == f"::warning file={file},line=1,title=safe lint%3A not_in_narrative::{place}: {message}"


def test_no_more_annotations_are_made_than_are_shown(tmp_path: Path) -> None:
    terms = [f"rash {number}" for number in range(100, 150)]
    bad = [a_case(f"T{number}", [""]) for number in range(20)]
    write_batch(tmp_path, "b1", narrated("T", terms), *bad)
    severities = [line.split()[0] for line in annotations(lint(tmp_path))]
    assert severities == ["::error"] * 10 + ["::warning"] * 10


def test_text_from_outside_cannot_steer_a_terminal(tmp_path: Path) -> None:
    write_batch(tmp_path, "b\x1b1", narrated("T1", ["\x1b[2J\u202e\ud800"], **{"met\x07ric_id": "x"}))
    text = table(lint(tmp_path))
    assert not {"\x1b", "\u202e", "\ud800", "\x07"} & set(text)
    assert all(escaped in text for escaped in ("b\\u001b1.json", "\\u001b[2J\\u202e", "met\\u0007ric_id"))


def test_json_carries_what_is_no_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_batch(tmp_path, "b1", {**a_case("T1"), "metric_\ud800": 1})
    assert lint_command(DEFAULT_POLICY, LintRequest([tmp_path]), format_="json") == 1
    assert json.loads(capsys.readouterr().out)["by_code"] == {"misspelt_key": 1}


# --- which cases ------------------------------------------------------------------------------------------------------


def test_concern_and_batch_choose(tmp_path: Path) -> None:
    other = narrated("T3", concern_id="K08")
    write_batch(tmp_path, "b1", narrated("T1", ["rash"]), other)
    write_batch(tmp_path, "b2", narrated("T2"), narrated("T4", concern_id=None))
    assert [lint(tmp_path, batch=batch).cases for batch in ("*", "b1", "b2.json", "b?")] == [4, 2, 2, 4]
    # a case without a concern is of whichever is asked for, and a matter for whoever asks
    assert codes(lint(tmp_path, concern="k08")) == ["no_concern"]
    assert lint(tmp_path, concern="k08").ceiling.cases == 2


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"batch": "b9"}, "no batch matches --batch b9"),
        ({"concern": "K09"}, "no test case of --concern K09"),
        ({"outputs": [Path("nowhere.json")]}, "nowhere.json: cannot be read"),
    ],
)
def test_where_nothing_can_be_looked_at_nothing_is_said(tmp_path: Path, more: Any, why: str) -> None:
    write_batch(tmp_path, "b1", narrated("T1"))
    with pytest.raises(ConfigurationError, match=why):
        lint(tmp_path, **more)


def test_a_folder_that_is_not_there_is_unusable(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read"):
        lint(tmp_path / "nowhere")
    with pytest.raises(ConfigurationError, match="has no batch files"):
        lint(tmp_path)


def test_a_file_that_cannot_be_read_is_a_finding_beside_the_others(tmp_path: Path) -> None:
    write_batch(tmp_path, "b1", narrated("T1"))
    (tmp_path / "b2.json").write_bytes(b'{"test_cases": "\xff"}')
    (tmp_path / "b3.json").write_text('{"test_cases": 7}', encoding="utf-8")
    (tmp_path / "b4.json").symlink_to(tmp_path / "gone.json")
    os.mkfifo(tmp_path / "b5.json")
    (tmp_path / "report.json").write_text('{"report_type": "SAFE_v0"}', encoding="utf-8")  # ours, no batch file
    found = lint(tmp_path)
    assert [(each.file.name, each.finding.sentence) for each in found.findings] == [
        ("b2.json", "not UTF-8"),
        ("b3.json", "test_cases is not a list"),
        ("b4.json", "is a link to nothing"),
        ("b5.json", "is not a regular file"),
    ]
    assert (found.batches, found.by_severity["error"]) == (1, 4)


def test_the_same_test_id_in_two_batches_matters_only_where_the_expectations_differ(tmp_path: Path) -> None:
    write_batch(tmp_path, "b1", narrated("T1"), narrated("T2"))
    write_batch(tmp_path, "b2", narrated("T1"), narrated("T2", ["on arrival"]))
    found = lint(tmp_path)
    assert [(each.file.name, each.finding.code) for each in found.findings] == [
        ("b2.json", "test_id_differs_elsewhere")
    ]
    assert (found.cases, found.ceiling.cases) == (4, 3)  # an equal case counts once, as in a report


def test_the_ceiling_goes_by_the_policy_in_force(tmp_path: Path) -> None:
    write_batch(tmp_path, "b1", narrated("T1", ["wheeze", "rash"], archetype="Lenient"))
    lenient = Policy.from_document({"overrides": {"archetype": {"Lenient": {"thresholds": {"CR": {"pass": 0.5}}}}}})
    assert lint(tmp_path).ceiling.passes == 0
    assert lint_batches(lenient, LintRequest([tmp_path])).ceiling.passes == 1


def test_lines_are_found_whatever_the_spelling(tmp_path: Path) -> None:
    cases = [narrated("T1", ["rash"]), narrated("T\u00e9", ["wheeze", "r\u00e1sh", "rash"]), narrated("T1", ["rash"])]
    for ascii_only in (True, False):
        text = json.dumps({"test_cases": cases}, indent=1, ensure_ascii=ascii_only)
        (tmp_path / "b1.json").write_text(text, encoding="utf-8")
        lines = text.splitlines()
        for each in lint(tmp_path).findings:
            written = {json.dumps(each.finding.term, ensure_ascii=way) for way in (True, False)}
            sought = written if each.finding.term else {'"test_id"'}
            assert any(spelt in lines[each.line - 1] for spelt in sought)
        assert [each.line for each in lint(tmp_path).findings] == [9, 32, 33, 50, 55]


# --- outputs ----------------------------------------------------------------------------------------------------------


def test_outputs_tell_which_terms_nobody_finds_and_nobody_uses(tmp_path: Path) -> None:
    first = narrated("T1", ["wheeze", "at 18:30"], ["blame", "policy"], ["theatre"])
    write_batch(tmp_path / "cases", "b1", first, narrated("T2", forbidden=["Policy"]), narrated("T3", ["arrival at"]))
    report = write_report(tmp_path / "run.json", answer("T1"), answer("T2", HARMFUL), answer("T9"))
    events = write_events(tmp_path / "runs.jsonl", event("T1", HARMFUL))
    found = lint(tmp_path / "cases", outputs=[report, events])
    assert [(each.finding.code, each.finding.test_id, each.finding.sentence) for each in found.findings] == [
        ("never_found", "T1", 'none of the 2 outputs contains "at 18:30"'),
        ("never_found", "T1", 'none of the 2 outputs contains "theatre"'),
        ("never_used", "T1", '"policy" is forbidden in 2 test cases, and no output used it'),
    ]
    assert (found.answers, found.is_clean) == (3, True)  # mere information


def test_a_short_term_that_outputs_hold_inside_a_word_is_found_without_showing_their_text(tmp_path: Path) -> None:
    write_batch(tmp_path / "cases", "b1", narrated("T1", forbidden=["ICU"]), narrated("T2", forbidden=["OR"]))
    asks = {**GOOD, "followup_questions": ["What was difficult before it?"]}
    report = write_report(tmp_path / "run.json", answer("T1", asks), answer("T2", asks))
    found = lint(tmp_path / "cases", outputs=[report])
    said = [(each.finding.test_id, each.finding.code, each.finding.sentence) for each in found.findings]
    assert said == [
        ("T1", "hits_inside_word", '"ICU" also matches inside a longer word in a follow-up question of an output'),
        ("T2", "hits_inside_word", '"OR" also matches inside "for", which is in the narrative'),
    ]


def test_outputs_of_other_cases_are_said_aloud(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_batch(tmp_path / "cases", "b1", narrated("T1"))
    report = write_report(tmp_path / "run.json", answer("T9"))
    assert lint_command(DEFAULT_POLICY, LintRequest([tmp_path / "cases"], outputs=[report])) == 0
    assert "no output answers any of the test cases" in capsys.readouterr().err


# --- size -------------------------------------------------------------------------------------------------------------


def test_findings_are_counted_by_severity_however_many_there_are(tmp_path: Path) -> None:
    narrative = NARRATIVE * 12
    cases = [
        a_case(f"T{number}", ["wheeze", f"rash {number}"], ["OR"], patient_payload=narrative, note=number)
        for number in range(1_000)
    ]
    write_batch(tmp_path, "b1", *cases)
    found = lint(tmp_path)
    table(found)
    assert found.by_severity == {"error": 0, "warning": 2_000, "info": 1_000}


class TestTheRealCases:
    """What the users' own cases come to."""

    pytestmark = real_cases_only

    def test_a_copy_of_the_narrative_passes_not_half_of_them(self) -> None:
        found = lint(REAL / "testcases", concern="i25", batch="I25_batch_*")
        assert found.ceiling.document() == {
            "cases": 50,
            "pass": 24,
            "review": 16,
            "fail": 10,
            "terms": 255,
            "not_in_narrative": 45,
            "without_narrative": 0,
        }
        assert (
            found.ceiling.sentence
            == "at most 24 of 50 cases would pass even if each output were a copy of its narrative"
        )
        assert codes(found) == ["not_in_narrative"] * 45  # and no false alarm

    def test_a_golden_set_that_repeats_cases_is_no_reason_for_complaint(self) -> None:
        found = lint(REAL / "testcases", outputs=[REAL / "outputs_loop1_report.json"])
        assert (found.cases, found.ceiling.cases, found.answers) == (62, 50, 50)
        assert {each.finding.code for each in found.findings} == {"not_in_narrative", "never_found", "never_used"}


@pytest.mark.parametrize(
    ("flaw", "codes"),
    [
        ({}, {"error": 0, "warning": 0, "info": 0, "never": 0}),
        ({"archetype": " "}, {"error": 0, "warning": 1, "info": 1, "never": 0}),
        ({"expectations": None}, {"error": 1, "warning": 1, "info": 1, "never": 0}),
    ],
)
def test_the_severity_that_fails_can_be_chosen(
    tmp_path: Path, flaw: dict[str, Any], codes: dict[str, int], capsys: pytest.CaptureFixture[str]
) -> None:
    write_batch(tmp_path, "b", a_case("A-1", **flaw))
    assert {severity: main(["lint", str(tmp_path), "--fail-on", severity]) for severity in codes} == codes
    assert main(["lint", str(tmp_path)]) == codes["warning"]
    capsys.readouterr()


# --- files, the narrative's own words, and what is known --------------------------------------------------------------


def test_files_and_folders_can_be_named_together_and_each_is_read_once(tmp_path: Path) -> None:
    for folder, name in (("one", "b1"), ("one", "b2"), ("two", "b3")):
        write_batch(tmp_path / folder, name, narrated(name.upper()))
    one, two = tmp_path / "one", tmp_path / "two"
    found = lint_batches(DEFAULT_POLICY, LintRequest([one / "b1.json", two, one / "b1.json"]))
    assert (found.batches, found.cases) == (2, 2)
    both = lint_batches(DEFAULT_POLICY, LintRequest([one / "b1.json", one]))
    assert (both.batches, both.cases) == (2, 2)
    assert main(["lint", str(one / "b2.json"), str(two)]) == 0


@pytest.mark.parametrize(
    ("name", "words"),
    [("nothing.json", "cannot be read (No such file"), ("notes.txt", "is not a batch file (<batch_id>.json)")],
)
def test_what_is_no_batch_file_is_named(
    name: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_batch(tmp_path, "b1", narrated("T1"))
    (tmp_path / "notes.txt").write_text("{}")
    assert main(["lint", str(tmp_path / name)]) == 3
    assert f"{tmp_path / name}: {words}" in capsys.readouterr().err


def test_outputs_are_held_against_files_of_several_folders(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        write_batch(tmp_path / folder, folder, narrated(folder, ["at 18:30"]))
    report = write_report(tmp_path / "run.json", answer("one", GOOD), answer("two", GOOD))
    found = lint_batches(DEFAULT_POLICY, LintRequest([tmp_path / "one", tmp_path / "two"], outputs=[report]))
    assert found.answers == 2
    assert [each.finding.test_id for each in found.findings if each.finding.code == "never_found"] == ["one", "two"]


def test_the_narratives_own_words_stand_beside_a_term_that_it_lacks(tmp_path: Path) -> None:
    write_batch(tmp_path, "b1", narrated("T1", ["salbutamol given", "theatre was called", "a purple rash"]))
    found = lint(tmp_path)
    nearest = {each.finding.term: each.document()["nearest"] for each in found.findings}
    start, end = nearest["salbutamol given"]["start"], nearest["salbutamol given"]["end"]
    assert NARRATIVE[start:end] == "salbutamol was given"
    assert nearest["a purple rash"] is None
    assert "the narrative says: Wheeze on arrival at 18:30; [salbutamol was given], and theatre" in table(found)
    assert "Wheeze on arrival" not in "".join(annotations(found))  # a log that others may read


class TestBaseline:
    @pytest.fixture
    def baseline(self, flawed: Path, capsys: pytest.CaptureFixture[str]) -> Path:
        assert main(["lint", str(flawed), "--format", "json"]) == 1
        Path("baseline.json").write_text(capsys.readouterr().out)
        return Path("baseline.json")

    def test_known_findings_do_not_fail_and_are_not_shown(
        self, flawed: Path, baseline: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["lint", str(flawed), "--baseline", str(baseline)]) == 0
        out, err = capsys.readouterr()
        assert out.endswith("Clean: nothing to fix in 5 test cases of 2 batches, 10 known\n")
        assert "duplicate_term" not in out
        assert err == ""

    def test_a_reason_is_kept_and_a_new_finding_fails(
        self, flawed: Path, baseline: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        document = json.loads(baseline.read_text())
        document["findings"][0]["reason"] = "the guideline words it so"
        baseline.write_text(json.dumps(document))
        write_batch(flawed, "K07_batch_0", narrated("K07-9", ["wheeze", "wheeze"]))  # lines of others do not move
        assert main(["lint", str(flawed), "--baseline", str(baseline), "--format", "json"]) == 1
        found = json.loads(capsys.readouterr().out)
        assert [each["test_id"] for each in found["findings"] if not each["known"]] == ["K07-9"]
        assert found["findings"][1]["reason"] == "the guideline words it so"
        assert (found["known"], found["by_severity"]["warning"]) == (10, 1)

    def test_what_is_no_longer_found_is_said(
        self, flawed: Path, baseline: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (flawed / "K07_batch_3.json").unlink()
        assert main(["lint", str(flawed), "--baseline", str(baseline)]) == 0
        assert "1 finding of baseline.json no longer found: remove it from the file" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("{}", "is not a baseline; safe lint --format json > baseline.json writes one"),
            ('{"findings": [{"code": 1}]}', "findings[0].code is not a string"),
            ("{oops", "not valid JSON at line 1, column 2"),
            (None, "cannot be read (No such file or directory)"),
        ],
    )
    def test_a_baseline_that_cannot_be_used_is_named(
        self, text: str | None, words: str, flawed: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        if text is not None:
            Path("baseline.json").write_text(text)
        assert main(["lint", str(flawed), "--baseline", "baseline.json"]) == 3
        assert f"baseline.json: {words}" in capsys.readouterr().err.replace("cannot be read: not", "not")
