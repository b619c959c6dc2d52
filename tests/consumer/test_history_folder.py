"""`safe history -o FOLDER`: what it writes and replaces, what it refuses, whose texts it quotes."""

import json
from pathlib import Path

import pytest

from consumer.cli.main import main
from tests.support.many_runs import write_runs

CANARY = "Kanarienvogel"


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    write_runs(tmp_path / "reports", runs=3, cases=4)
    return tmp_path / "reports"


def quoting(reports: Path) -> list[str]:
    return ["--include-text", "--outputs", str(reports / "outputs")]


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_page_and_a_script_for_each_run_are_written(
    reports: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "page"
    assert main(["history", str(reports), "-o", str(folder)]) == 0
    assert names(folder) == ["index.html", "runs/run-1.js", "runs/run-2.js", "runs/run-3.js"]
    printed = capsys.readouterr()
    assert printed.out.startswith("SAFE v0 history: 3 runs, 4 cases\n")
    assert f"safe: wrote {folder / 'index.html'}, and a script for each run\n" in printed.err


def test_what_is_left_of_a_page_with_more_runs_and_with_texts_is_removed(reports: Path, tmp_path: Path) -> None:
    folder = tmp_path / "page"
    assert main(["history", str(reports), "-o", str(folder), *quoting(reports)]) == 0
    assert all(CANARY in path.read_text(encoding="utf-8") for path in (folder / "runs").iterdir())
    (folder / "runs" / "run-9.js").write_text("// somebody else's\n", encoding="utf-8")
    (reports / "run_03.json").unlink()
    assert main(["history", str(reports), "-o", str(folder)]) == 0
    assert names(folder) == ["index.html", "runs/run-1.js", "runs/run-2.js", "runs/run-9.js"]
    assert not any(CANARY in path.read_text(encoding="utf-8") for path in folder.rglob("*") if path.is_file())


def test_a_folder_of_something_else_is_left_alone(
    reports: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    assert main(["history", str(reports), "-o", str(other)]) == 0  # an empty one may be used
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine", encoding="utf-8")
    assert main(["history", str(reports), "-o", str(tmp_path / "mine")]) == 3
    assert "holds something else; name a new folder, or use this one with --force" in capsys.readouterr().err
    assert names(tmp_path / "mine") == ["notes.txt"]
    (other / "index.html").write_text("<p>mine</p>", encoding="utf-8")
    assert main(["history", str(reports), "-o", str(other)]) == 3
    assert "index.html already exists, and SAFE did not write it" in capsys.readouterr().err
    assert main(["history", str(reports), "-o", str(other), "--force"]) == 0


def test_what_a_run_that_failed_or_was_killed_leaves_is_no_hindrance_and_goes(
    reports: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "page"
    (reports / "run_04.json").write_text('{"report_type": "SAFE_v0"}', encoding="utf-8")
    assert main(["history", str(reports), "-o", str(folder)]) == 3
    assert "run_04.json: is not a SAFE report" in capsys.readouterr().err
    (reports / "run_04.json").unlink()
    assert main(["history", str(reports), "-o", str(folder), *quoting(reports)]) == 0
    (folder / "index.html").unlink()  # which comes last
    (folder / "runs" / "run-3.js").rename(folder / "runs" / ".run-3.js.0a1b2c3d")  # while it was being written
    assert main(["history", str(reports), "-o", str(folder)]) == 0
    assert names(folder) == ["index.html", "runs/run-1.js", "runs/run-2.js", "runs/run-3.js"]
    (folder / "index.html").unlink()
    (folder / "runs" / "mine.js").write_text("// mine", encoding="utf-8")
    assert main(["history", str(reports), "-o", str(folder)]) == 3
    assert "holds something else" in capsys.readouterr().err


def test_the_reports_folder_itself_is_no_place_for_the_page(reports: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", str(reports), "-o", str(reports)]) == 3
    assert "holds something else" in capsys.readouterr().err


REFUSED = [
    (["-o", "page", "--include-text"], "to quote outputs, give both --include-text and their files with --outputs"),
    (["-o", "page", "--outputs", "."], "to quote outputs, give both --include-text and their files with --outputs"),
    (["-o", "page.html", "--outputs", ".", "--include-text"], "only a folder quotes outputs: name one with --output"),
    (["-o", "page.pdf"], "--output page.pdf: unknown suffix"),
]


@pytest.mark.parametrize(("options", "sentence"), REFUSED)
def test_options_that_do_not_fit_together_are_refused(
    reports: Path, options: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["history", str(reports), *options]) == 3
    assert sentence in capsys.readouterr().err


def test_runs_whose_outputs_are_not_there_are_named(
    reports: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (reports / "outputs" / "run_02.json").unlink()
    changed = reports / "outputs" / "run_03.json"
    changed.write_text(changed.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    folder = tmp_path / "page"
    assert main(["history", str(reports), "-o", str(folder), *quoting(reports)]) == 0
    assert "so they have no texts: run_02.json, run_03.json" in capsys.readouterr().err
    quoted = [CANARY in (folder / "runs" / f"run-{number}.js").read_text("utf-8") for number in (1, 2, 3)]
    assert quoted == [True, False, False]


def test_a_report_whose_inputs_are_no_list_is_named(reports: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = reports / "run_01.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**document, "inputs": 7}), encoding="utf-8")
    assert main(["history", str(reports)]) == 3
    assert "run_01.json: inputs is not a list" in capsys.readouterr().err
