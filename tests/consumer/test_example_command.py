"""`safe example`: copies of what the package ships, which may be changed, and an original that never is."""

import zipfile
from pathlib import Path
from typing import get_args

import pytest

import consumer
from consumer.cli.main import main
from consumer.cli.options import ExampleName
from consumer.offline.example import NEXT_STEPS

SHIPPED = Path(consumer.__file__).parent / "examples"
NAMES = get_args(ExampleName)


def files_in(folder: Path) -> dict[str, bytes]:
    made = {"__pycache__", "node_modules", "dist"}
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not made & set(path.parts)
    }


def test_every_example_that_is_shipped_can_be_copied() -> None:
    assert sorted(path.name for path in SHIPPED.iterdir() if path.is_dir()) == sorted(NAMES) == sorted(NEXT_STEPS)


@pytest.mark.parametrize("name", NAMES)
def test_an_example_is_copied_whole_and_said(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    into = tmp_path / "not yet there"
    assert main(["example", name, str(into)]) == 0
    assert files_in(into / name) == files_in(SHIPPED / name) != {}
    listed, _, following = capsys.readouterr().out.partition("\n\nNext:\n")
    assert listed.splitlines() == sorted(str(into / name / path) for path in files_in(into / name))
    assert f"'{into / name}" in following, "a path with a blank is quoted"


def test_an_example_is_copied_here_if_no_folder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["example", "story"]) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["story"]


def test_nothing_that_is_there_is_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine = tmp_path / "story" / "run_1.json"
    mine.parent.mkdir()
    mine.write_text("mine")
    assert main(["example", "story", str(tmp_path)]) == 3
    assert files_in(tmp_path) == {"story/run_1.json": b"mine"}
    said = f"safe: error: {tmp_path / 'story'} exists already, and nothing was copied: "
    assert capsys.readouterr().err == f"{said}delete it, or name another folder\n"


def test_a_folder_that_is_a_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert main(["example", "story", str(tmp_path / "file" / "below")]) == 3
    assert f"{tmp_path / 'file' / 'below'} cannot be written: Not a directory" in capsys.readouterr().err


def test_a_wheel_has_the_examples(tmp_path: Path) -> None:
    """What `pip install` puts on a disk is what the wheel has."""
    builder = pytest.importorskip("hatchling.builders.wheel", reason="hatchling is not installed")
    root = Path(consumer.__file__).parents[1]
    [wheel] = builder.WheelBuilder(str(root)).build(directory=str(tmp_path), versions=["standard"])
    with zipfile.ZipFile(wheel) as archive:
        shipped = {name for name in archive.namelist() if name.startswith("consumer/examples/")}
    assert shipped == {f"consumer/examples/{path}" for path in files_in(SHIPPED)}
