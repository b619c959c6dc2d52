"""`safe score`, `gate` and `verify` as from a shell: what goes where, and every exit code."""

import csv
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from consumer.cli.main import main
from tests.support.case_files import GOOD, HARMFUL, a_case, answer, event, write_batch, write_events, write_report

ROOT = Path(__file__).parents[2]
Json = Any

HALF = {**GOOD, "summary": "Salbutamol and oxygen."}
"""What finds one of the two phrases that some cases demand: to be reviewed."""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with two batches and outputs of every verdict; nothing of SAFE's in the environment."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith(("SAFE_V0_", "GITHUB_", "SOURCE_DATE_"))]:
        monkeypatch.delenv(name)
    two_phrases = a_case("A-3", phrases=["salbutamol", "ipratropium"])
    write_batch(tmp_path / "cases", "asthma_1", a_case("A-1"), a_case("A-2"), index=1)
    write_batch(tmp_path / "cases", "asthma_2", two_phrases, index=2)
    write_report(tmp_path / "passing.json", *map(answer, ("A-1", "A-2")))
    write_report(tmp_path / "mixed.json", answer("A-1"), answer("A-2", HARMFUL), answer("A-3", HALF))
    write_report(tmp_path / "reviewed.json", answer("A-3", HALF))
    return tmp_path


def safe_score(*more: str, batch: str = "*", outputs: str = "mixed.json") -> list[str]:
    return ["score", "--concern", "K07", "--batch", batch, "--outputs", outputs, "--test-dir", "cases", *more]


def shell(arguments: Sequence[str], **variables: str) -> "subprocess.CompletedProcess[str]":
    """Run the program as users do, in an interpreter of its own."""
    return subprocess.run(
        [sys.executable, "-m", "safe_scorer", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error", **variables},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )


# --- exit codes -------------------------------------------------------------------------------------------------------

VERDICTS = [
    # (batch, outputs, options, exit code)
    ("asthma_1", "passing.json", [], 0),
    ("*", "mixed.json", [], 1),
    ("asthma_2", "reviewed.json", [], 2),
    # a rate alone decides alone: 1 of 3 passes
    ("*", "mixed.json", ["--min-pass-rate", "0.3"], 0),
    ("*", "mixed.json", ["--min-pass-rate", "0.3333333333333333"], 0),
    ("*", "mixed.json", ["--min-pass-rate", "0.34"], 1),
    ("*", "mixed.json", ["--fail-on", "fail"], 1),
    ("*", "mixed.json", ["--fail-on", "never"], 0),
    ("asthma_2", "reviewed.json", ["--fail-on", "fail"], 0),
    ("asthma_2", "reviewed.json", ["--fail-on", "review"], 1),
    ("asthma_1", "passing.json", ["--fail-on", "review", "--min-pass-rate", "1"], 0),
    # of both, both must hold
    ("*", "mixed.json", ["--min-pass-rate", "0.3", "--fail-on", "fail"], 1),
    ("asthma_2", "reviewed.json", ["--min-pass-rate", "0.5", "--fail-on", "fail"], 1),
]


@pytest.mark.parametrize(("batch", "outputs", "options", "code"), VERDICTS)
def test_the_exit_code_is_the_verdict_and_the_gate_says_the_same_of_the_report(
    capsys: pytest.CaptureFixture[str], batch: str, outputs: str, options: list[str], code: int
) -> None:
    assert main(safe_score("--output", "report.json", *options, batch=batch, outputs=outputs)) == code
    scorecard = capsys.readouterr().out
    if options:
        decision = scorecard.splitlines()[-1]
        passed = "gate: no condition was set" if options == ["--fail-on", "never"] else "gate passed: "
        assert re.match(passed if code == 0 else "gate NOT passed: ", decision)
        assert main(["gate", "report.json", *options]) == code
        assert capsys.readouterr().out == decision + "\n"
    assert main(["verify", "report.json", "--test-dir", "cases", "--outputs", outputs]) == 0


def test_without_options_the_gate_asks_that_no_case_fails(capsys: pytest.CaptureFixture[str]) -> None:
    main(safe_score("--output", "report.json"))
    capsys.readouterr()
    assert main(["gate", "report.json"]) == 1
    assert capsys.readouterr().out == "gate NOT passed: 1 Fail among 3 cases (--fail-on fail)\n"


def spoil(name: str, text: str) -> str:
    Path(name).write_text(text)
    return name


WRONG: list[tuple[str, list[str] | None, dict[str, str], str]] = [
    ("no outputs option", ["score", "-c", "K07", "-b", "*"], {}, "missing --outputs PATH; see safe score --help"),
    ("an unknown option", safe_score("--formt", "json"), {}, "No such option: --formt"),
    ("an unknown format", safe_score("--format", "yaml"), {}, "Invalid value for '--format'"),
    ("no folder of test cases", ["score", "-c", "K07", "-b", "*", "-i", "mixed.json"], {}, "no folder of test cases"),
    ("a missing file", safe_score(outputs="nowhere.json"), {}, "nowhere.json: cannot be read (No such file"),
    ("a missing folder", [*safe_score()[:-1], "nowhere"], {}, "nowhere: cannot be read (No such file"),
    ("an empty file of outputs", safe_score(outputs="void.json"), {}, "void.json: is empty; check that the step that"),
    ("an empty batch file", [*safe_score()[:-1], "hollow"], {}, "hollow/b.json: is empty"),
    ("a file for a folder", [*safe_score()[:-1], "mixed.json"], {}, "mixed.json: is a file, not a folder of batch"),
    ("a folder of outputs", [*safe_score()[:-1], "runs"], {}, "runs/run.json: holds outputs, not test cases"),
    ("bad JSON", safe_score(outputs="bad.json"), {}, "bad.json: the file cannot be read: not valid JSON at line"),
    (
        "a batch of test cases as outputs",
        safe_score(outputs="cases/asthma_1.json"),
        {},
        "cases/asthma_1.json: holds test cases, not outputs",
    ),
    ("a report of SAFE as outputs", safe_score(outputs="own.json"), {}, "own.json: is a report of SAFE, not the"),
    ("no such batch", safe_score(batch="asthma_9"), {}, "no batch matches --batch asthma_9 in cases; batches there: a"),
    ("no such concern", ["score", "-c", "X", *safe_score()[3:]], {}, "no test case of --concern X in"),
    ("no outputs, so there is nothing to score", safe_score(outputs="empty.json"), {}, "empty.json: no outputs, so"),
    ("no outputs in the folder", safe_score(outputs="nothing"), {}, "nothing holds neither reports (.json) nor events"),
    (
        "a test_id twice",
        safe_score(outputs="twice.json"),
        {},
        "more than one output for 1 test_id: A-1; choose with --on-duplicate",
    ),
    ("expectations absent", safe_score(batch="broken"), {}, "A-9: cases/broken.json, test_cases[0]: expectations are"),
    ("review above pass", safe_score(), {"SAFE_V0_CR_REVIEW": "0.9"}, "SAFE_V0_CR_REVIEW=0.9: this review threshold"),
    ("weights all zero", safe_score("--config", "zero.json"), {}, "zero.json: weights: the sum of the weights is 0"),
    ("NaN in the environment", safe_score(), {"SAFE_V0_AC_PASS": "nan"}, "SAFE_V0_AC_PASS=nan cannot be used"),
    ("NaN in the file", safe_score("--config", "nan.json"), {}, "NaN is not allowed in JSON"),
    ("NaN as rate", safe_score("--min-pass-rate", "nan"), {}, "--min-pass-rate nan is not a fraction from 0 to 1"),
    ("percent as rate", safe_score("--min-pass-rate", "80"), {}, "from 0 to 1; 80 percent is 0.8"),
    ("an unknown key", safe_score("--config", "key.json"), {}, '"treshold" is not a key that SAFE knows; did you mean'),
    ("a typo in the environment", safe_score(), {"SAFE_V0_CR_PAS": "1"}, "did you mean SAFE_V0_CR_PASS?"),
    ("an output nobody can write", safe_score("-o", "mixed.json/r.json"), {}, "mixed.json/r.json cannot be written: "),
    ("an output that is an input", safe_score("-o", "mixed.json"), {}, "mixed.json is an input; name another file"),
    ("a batch file as output", safe_score("-o", "cases/asthma_1.json", "--force"), {}, "is an input; name another"),
    ("any batch as output", safe_score("-o", "cases/asthma_2.json", "--force", batch="asthma_1"), {}, "is an input"),
    ("the configuration as output", safe_score("--config", "lax.json", "-o", "lax.json", "--force"), {}, "is an input"),
    ("a report into nothing", safe_score("-f", "all", "-o", ""), {}, "--output is empty; name a file"),
    ("somebody's file", safe_score("-o", "zero.json"), {}, "zero.json already exists, and SAFE did not write it"),
    ("an unknown suffix", safe_score("-o", "report.pdf"), {}, "report.pdf: unknown suffix; use"),
    ("SOURCE_DATE_EPOCH", safe_score(), {"SOURCE_DATE_EPOCH": "today"}, "SOURCE_DATE_EPOCH"),
    ("no report to gate", ["gate", "nowhere.json"], {}, "nowhere.json: cannot be read (No such file or directory)"),
    ("other JSON to gate", ["gate", "mixed.json"], {}, "mixed.json: holds outputs, not a SAFE report"),
    ("other JSON to verify", ["verify", "mixed.json", "-t", "cases", "-i", "mixed.json"], {}, "not a SAFE report"),
]  # fmt: skip


@pytest.fixture
def wrong(here: Path) -> None:
    """Files that are wrong in one way each."""
    spoil("bad.json", '{"raw_results": [')
    spoil("own.json", '{"report_type": "SAFE_v0", "summary": {}}')
    spoil("zero.json", '{"weights": {"CR": 0, "AH": 0, "AC": 0}}')
    spoil("nan.json", '{"weights": {"CR": NaN}}')
    spoil("lax.json", "{}")
    spoil("key.json", '{"treshold": {}}')
    write_report(here / "empty.json")
    (here / "nothing").mkdir()
    spoil("void.json", " \n")
    (here / "hollow").mkdir()
    spoil("hollow/b.json", "")
    (here / "runs").mkdir()
    write_report(here / "runs" / "run.json", answer("A-1"))
    write_report(here / "twice.json", answer("A-1"), answer("A-1"))
    write_batch(here / "cases", "broken", {"test_id": "A-9", "concern_id": "K07"})


@pytest.mark.usefixtures("wrong")
@pytest.mark.parametrize(
    ("arguments", "environ", "sentence"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG]
)
def test_whatever_is_wrong_is_one_sentence_and_code_3(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    environ: dict[str, str],
    sentence: str,
) -> None:
    before = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    if "broken" not in arguments:
        (Path("cases") / "broken.json").unlink()
        del before[Path("cases/broken.json")]
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert main(arguments) == 3
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("safe: error: ")
    assert sentence in printed.err
    assert printed.err.count("\n") == 1
    assert {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()} == before, "nothing was written"


# --- what goes where --------------------------------------------------------------------------------------------------


def test_the_scorecard_is_on_stdout_and_remarks_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(safe_score(batch="asthma_1")) == 1
    printed = capsys.readouterr()
    assert "SAFE v0 Scorecard - K07" in printed.out
    assert printed.err == "safe: 1 output ignored: for a test case that is in the folder but not selected\n"


def test_json_alone_is_on_stdout_and_nothing_else_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(safe_score("--format", "json", "--min-pass-rate", "0.9")) == 1
    printed = capsys.readouterr()
    report = json.loads(printed.out)
    assert (report["report_type"], report["batch_id"]) == ("SAFE_v0", "K07_combined")
    assert printed.err.startswith("safe: FAIL: 1 of 3 cases fails\nsafe: gate NOT passed: pass rate 0.333 (1")
    assert list(Path().glob("reports")) == []


def test_each_suffix_picks_its_format(capsys: pytest.CaptureFixture[str]) -> None:
    names = ["r.json", "r.md", "r.xml", "r.csv", "r.html", "r.txt"]
    assert main(safe_score(*(part for name in names for part in ("-o", name)))) == 1
    assert json.loads(Path("r.json").read_bytes())["summary"]["total_cases"] == 3
    assert Path("r.md").read_text(encoding="utf-8").startswith("<!-- SAFE v0 report -->")
    assert ET.parse("r.xml").getroot().get("tests") == "3"  # noqa: S314 - written a moment ago
    assert len(list(csv.reader(io.StringIO(Path("r.csv").read_text(encoding="utf-8"))))) == 4
    assert "SAFE v0 Scorecard - K07" in Path("r.txt").read_text(encoding="utf-8")
    printed = capsys.readouterr()
    assert printed.err == "safe: FAIL: 1 of 3 cases fails\n" + "".join(f"safe: wrote {name}\n" for name in names)
    assert main(safe_score(*(part for name in names for part in ("-o", name)))) == 1, "its own files it replaces"


def test_all_formats_go_to_the_folder_of_reports(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1772438400")
    monkeypatch.setenv("SAFE_V0_REPORT_DIR", "out/reports")
    assert main(safe_score("--format", "all")) == 1
    assert sorted(path.name for path in Path("out/reports").iterdir()) == [
        "SAFE_v0_K07_2026-03-02T080000.000Z.json",
        "SAFE_v0_K07_2026-03-02T080000.000Z.md",
    ]
    assert "SAFE v0 Scorecard" in capsys.readouterr().out


def test_the_configuration_file_says_which_formats_are_usual(capsys: pytest.CaptureFixture[str]) -> None:
    spoil("safe.config.json", '{"reportFormats": ["json"], "expectations": "cases"} // no --test-dir needed')
    arguments = safe_score()
    assert main(arguments[: arguments.index("--test-dir")]) == 1
    assert json.loads(capsys.readouterr().out)["report_type"] == "SAFE_v0"


def test_the_same_inputs_give_the_same_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["r.json", "r.md", "r.xml", "r.csv", "r.html", "r.txt"]
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1772438400")
    written: list[list[bytes]] = []
    for hash_seed in ("1", "2"):
        shell(safe_score(*(part for name in names for part in ("-o", name))), PYTHONHASHSEED=hash_seed)
        written.append([Path(name).read_bytes() for name in names])
    assert written[0] == written[1]


def test_strict_ah_beats_every_override_and_the_report_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    spoil("lenient.json", '{"overrides": {"metric_id": {"K07": {"strictAH": false}}}}')
    write_batch(Path("cases"), "asthma_1", a_case("A-2", forbidden=["blame", "fault", "guilt", "shame"]))
    lenient = safe_score("--config", "lenient.json", "--format", "json", batch="asthma_1")
    assert main(lenient) == 2, "one of four: 0.75"
    assert json.loads(capsys.readouterr().out)["results"][0]["scores"]["AH"] == 0.75
    assert main([*lenient, "--strict-ah"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["results"][0]["scores"]["AH"] == 0.0
    assert report["configuration"]["strictAH"] is True


def test_a_step_of_github_actions_shows_the_report(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", spoil("summary.md", "before\n"))
    assert main(safe_score()) == 1
    text = Path("summary.md").read_text(encoding="utf-8")
    assert text.startswith("before\n\n")
    assert "A-2" in text
    for room in (1_500, 0):
        spoil("summary.md", "x" * (1024 * 1024 - room))
        main(safe_score())
        assert 1024 * 1024 - room <= Path("summary.md").stat().st_size <= 1024 * 1024
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "nowhere/summary.md")
    capsys.readouterr()
    assert main(safe_score()) == 1, "a summary that cannot be written is no reason to fail"
    assert "safe: the step summary could not be written: No such file or directory\n" in capsys.readouterr().err


def test_a_folder_of_outputs_is_read_whole_and_own_reports_in_it_are_left_out(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("runs").mkdir()
    write_report(Path("runs") / "a.json", answer("A-1"))
    write_events(Path("runs") / "b.jsonl", event("A-2", batch_id="asthma_1"))
    again = safe_score("-o", "runs/report.json", batch="asthma_1", outputs="runs")
    assert main(again) == 0
    assert main(again) == 0
    report = json.loads(Path("runs/report.json").read_bytes())
    assert [each["name"] for each in report["inputs"]] == ["asthma_1.json", "a.json", "b.jsonl"]
    assert main(["verify", "runs/report.json", "-t", "cases", "--outputs", "runs"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("verified: 2 results and every aggregate equal")


def test_failed_generations_that_the_results_contradict_are_no_report_to_gate(
    capsys: pytest.CaptureFixture[str],
) -> None:
    main(safe_score("-o", "report.json"))
    report = json.loads(Path("report.json").read_bytes())
    spoil("changed.json", json.dumps(report | {"failed_generations": report["failed_generations"] + 1}))
    capsys.readouterr()
    assert main(["gate", "changed.json"]) == 3
    told = capsys.readouterr().err
    assert "failed_generations contradicts the report's results; safe verify shows details" in told


def test_a_report_whose_summary_alone_was_changed_is_no_report_to_gate(capsys: pytest.CaptureFixture[str]) -> None:
    main(safe_score("-o", "report.json"))
    report = json.loads(Path("report.json").read_bytes())
    report["summary"] |= {"pass": 3, "review": 0, "fail": 0, "overall_pass_rate": 1.0}
    names = ["label_distribution", "pass_rates", "results"]
    for name in names:
        spoil("changed.json", json.dumps(report))
        capsys.readouterr()
        assert main(["gate", "changed.json", "--min-pass-rate", "1"]) == 3
        assert "contradicts the report's summary; safe verify shows details" in capsys.readouterr().err
        del report[name]
    spoil("changed.json", json.dumps(report))
    assert main(["gate", "changed.json", "--min-pass-rate", "1"]) == 0, "nothing is left that contradicts it"


def test_the_gate_says_what_the_number_does_not_tell(capsys: pytest.CaptureFixture[str]) -> None:
    spoil("lax.json", '{"thresholds": {"AH": {"pass": 0, "review": 0}}}')
    main(safe_score("-o", "report.json", "--config", "lax.json", outputs="passing.json"))
    report = json.loads(Path("report.json").read_bytes())
    spoil("report.json", json.dumps(report | {"complete": False}))
    capsys.readouterr()
    assert main(["gate", "report.json"]) == 1
    incomplete, missing, rules = capsys.readouterr().err.splitlines()
    assert incomplete == "safe: the batch is not complete: more results may come"
    assert missing == "safe: 1 of 3 test cases has no output; it is scored as if its output were empty"
    assert rules.startswith("safe: the report's rules are not the default ones: thresholds.AH.pass 0.0 (default 1.0), ")


@pytest.mark.parametrize("redirection", ["2>/dev/full", "2>&-"])
def test_an_stderr_that_nobody_can_read_changes_no_code(redirection: str) -> None:
    safe = f'"{sys.executable}" -m safe_scorer'
    for command, code in (
        ("gate nowhere.json", 3),
        (" ".join(safe_score(batch="asthma_1", outputs="passing.json")), 0),
    ):
        done = subprocess.run(
            ["/bin/sh", "-c", f"exec {safe} {command} > out.txt {redirection}"],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            check=False,
        )
        assert done.returncode == code


def test_a_changed_report_is_not_verified(capsys: pytest.CaptureFixture[str]) -> None:
    main(safe_score("-o", "report.json"))
    capsys.readouterr()
    spoil("report.json", Path("report.json").read_text().replace('"AC": 0.5', '"AC": 0.6', 1))
    assert main(["verify", "report.json", "-t", "cases", "--outputs", "mixed.json"]) == 1
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "NOT verified: 1 difference"
    assert printed[-1].endswith("AC: 0.6 in the report, 0.5 recomputed")


# --- from a shell -----------------------------------------------------------------------------------------------------


def test_a_pipe_carries_the_scorecard_whole_and_plain() -> None:
    done = shell([*safe_score(), "--verbose"], COLUMNS="40")
    assert (done.returncode, done.stderr) == (1, "")
    assert "\x1b" not in done.stdout
    for text in ("A-1", "A-2", "A-3", "ipratropium", "blame"):
        assert text in done.stdout


def test_a_terminal_that_knows_only_ascii_gets_plain_characters() -> None:
    write_batch(Path("cases"), "asthma_1", a_case("A-1", signals=["Fußpilz – rechts"]))
    done = shell(safe_score(batch="asthma_1"), PYTHONIOENCODING="ascii")
    assert done.returncode == 1
    assert done.stdout.isascii()
    assert "Fu\\xdfpilz" in done.stdout


def test_a_reader_that_goes_away_costs_no_file() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "safe_scorer", *safe_score("-o", "report.json")],
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "GITHUB_ACTIONS": "true",
                "GITHUB_STEP_SUMMARY": str(Path("summary.md").absolute()),
            },
            stdout=writing,
            stderr=subprocess.PIPE,
            check=False,
        )
    finally:
        os.close(writing)
    assert done.returncode == 141
    assert done.stderr == b""
    assert json.loads(Path("report.json").read_bytes())["summary"]["total_cases"] == 3
    assert Path("summary.md").read_text(encoding="utf-8").startswith("<!-- SAFE v0 report -->")
