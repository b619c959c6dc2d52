"""Where each format goes, and what may be replaced by it."""

import os
import stat
from pathlib import Path

import pytest

from consumer.errors import ConfigurationError
from consumer.offline.destinations import (
    Destination,
    automatic_stem,
    check_writable,
    destinations,
)
from consumer.offline.pages.console import scorecard_text
from consumer.offline.pages.csv_tables import render_csv
from consumer.offline.pages.html import render_html
from consumer.offline.pages.junit import render_junit
from consumer.offline.pages.report_page import render_markdown
from consumer.offline.whole_files import write_whole
from tests.support.scored_runs import SMALL, scored_run

AUTOMATIC = Path("reports/SAFE_v0_K07_2026-03-02T080000.000Z")
CONSOLE = ("console",)

PLACES = [
    # (--format, --output…, reportFormats, what goes where; None is stdout)
    (None, [], CONSOLE, {"console": None}),
    ("console", [], CONSOLE, {"console": None}),
    # alone, json goes to stdout too; so do the other formats that programs read
    ("json", [], CONSOLE, {"json": None}),
    ("junit", [], CONSOLE, {"junit": None}),
    ("csv", [], CONSOLE, {"csv": None}),
    ("terms", [], CONSOLE, {"terms": None}),
    ("json", ["-"], CONSOLE, {"json": None}),
    # Markdown goes to the folder of reports
    ("markdown", [], CONSOLE, {"markdown": f"{AUTOMATIC}.md"}),
    ("markdown", ["-"], CONSOLE, {"markdown": None}),
    ("html", [], CONSOLE, {"html": f"{AUTOMATIC}.html"}),
    ("all", [], CONSOLE, {"console": None, "json": f"{AUTOMATIC}.json", "markdown": f"{AUTOMATIC}.md"}),
    ("all", ["out/nightly"], CONSOLE, {"console": None, "json": "out/nightly.json", "markdown": "out/nightly.md"}),
    ("all", ["out/nightly.json"], CONSOLE, {"console": None, "json": "out/nightly.json", "markdown": "out/nightly.md"}),
    ("all", ["v1.2"], CONSOLE, {"console": None, "json": "v1.2.json", "markdown": "v1.2.md"}),
    # the suffix picks the format
    (None, ["r.json"], CONSOLE, {"console": None, "json": "r.json"}),
    (None, ["r.JSON", "j.xml", "t.csv", "m.md", "p.html"], CONSOLE,
        {"console": None, "json": "r.JSON", "junit": "j.xml", "csv": "t.csv", "markdown": "m.md", "html": "p.html"}),
    (None, ["s.txt"], CONSOLE, {"console": "s.txt"}),
    (None, ["t.csv", "t.Terms.CSV"], CONSOLE, {"console": None, "csv": "t.csv", "terms": "t.Terms.CSV"}),
    ("json", ["golden.json"], CONSOLE, {"json": "golden.json"}),
    ("json", ["golden.json", "junit.xml"], CONSOLE, {"json": "golden.json", "junit": "junit.xml"}),
    ("console", ["r.json"], CONSOLE, {"console": None, "json": "r.json"}),
    # a format that was asked for names what no suffix does
    ("json", ["report"], CONSOLE, {"json": "report"}),
    ("json", ["report.txt"], CONSOLE, {"json": "report.txt"}),
    # what the configuration file says, where no --format does
    (None, [], ("json",), {"json": None}),
    (None, [], ("json", "console"), {"json": f"{AUTOMATIC}.json", "console": None}),
    (None, ["r.json"], ("json", "markdown"), {"json": "r.json", "markdown": f"{AUTOMATIC}.md"}),
]  # fmt: skip


@pytest.mark.parametrize(("asked", "outputs", "usual", "places"), PLACES)
def test_where_each_format_goes(
    asked: object, outputs: list[str], usual: object, places: dict[str, str | None]
) -> None:
    found = destinations(asked, outputs, usual, AUTOMATIC)  # type: ignore[arg-type]  # literals, of a table

    assert {each.format: None if each.path is None else str(each.path) for each in found} == places


CONTRADICTIONS = [
    ("json", ["r.md"], "--format json, but --output r.md is markdown; give it the suffix .json, or leave --format out"),
    (
        "markdown",
        ["r.json"],
        "--format markdown, but --output r.json is json; give it the suffix .md, or leave --format out",
    ),
    (
        None,
        ["report"],
        "--output report: unknown suffix; use one of .json, .md, .xml, .csv, .terms.csv, .html,",
    ),
    (None, ["-"], None),
    (None, ["r.json", "./r.json"], "--output names r.json twice; leave one of them out"),
    ("json", ["-", "-"], "--output names standard output twice; leave one of them out"),
    (
        "all",
        ["a", "b"],
        "--format all takes one --output: the path of its files without a suffix, such as reports/nightly",
    ),
    ("all", ["-"], "--format all takes one --output"),
    ("console", ["-", "-"], "--output names standard output twice"),
]


@pytest.mark.parametrize(("asked", "outputs", "why"), CONTRADICTIONS)
def test_what_contradicts_itself_is_refused(asked: object, outputs: list[str], why: str | None) -> None:
    if why is None:  # standard output is where the console's format goes anyhow
        assert destinations(None, outputs, ["console"], AUTOMATIC) == (Destination("console", None),)
        return
    with pytest.raises(ConfigurationError) as caught:
        destinations(asked, outputs, ["console"], AUTOMATIC)  # type: ignore[arg-type]  # literals, of a table
    assert str(caught.value).startswith(why)


STEMS = [
    ("K07", "SAFE_v0_K07_2026-03-02T080000.000Z"),
    ("a/b:c d", "SAFE_v0_a_b_c_d_2026-03-02T080000.000Z"),
    ("Hüfte", "SAFE_v0_Hüfte_2026-03-02T080000.000Z"),
    ("x" * 256, f"SAFE_v0_{'x' * 100}_2026-03-02T080000.000Z"),
]


@pytest.mark.parametrize(("concern", "name"), STEMS)
def test_a_file_that_nobody_named_has_the_concern_and_the_time_in_utc_without_colons(concern: str, name: str) -> None:
    assert automatic_stem(Path("reports"), concern, "2026-03-02T08:00:00.000Z") == Path("reports") / name


# --- what may be written ----------------------------------------------------------------------------------------------


def check(path: Path, *inputs: Path, force: bool = False) -> None:
    check_writable([Destination("json", path)], inputs, force=force)


def test_a_new_file_is_written_into_a_folder_that_is_made(tmp_path: Path) -> None:
    path = tmp_path / "new" / "deeper" / "r.json"
    check(path)
    write_whole(path, "text")
    assert path.read_text() == "text"


def test_an_input_is_never_replaced(tmp_path: Path) -> None:
    source = tmp_path / "run.json"
    source.write_text("{}")
    link = tmp_path / "link.json"
    link.symlink_to(source)
    for force in (False, True):
        for path in (source, link, tmp_path / "." / "run.json"):
            with pytest.raises(ConfigurationError, match=r"run\.json is an input; name another file|link\.json"):
                check(path, source, force=force)


def test_what_somebody_else_wrote_is_replaced_only_by_force(tmp_path: Path) -> None:
    path = tmp_path / "notes.json"
    path.write_text('{"mine": true}')
    with pytest.raises(ConfigurationError, match=r"notes\.json already exists, and SAFE did not write it; did you"):
        check(path)
    check(path, force=True)


FOREIGN = {
    # what SAFE writes, but not at the beginning, or not alone on the line
    "README.md": "# How we use the SAFE v0 Scorecard - K07\n",
    "notes.txt": "SAFE v0 Scorecard - seen on Monday\n",
    "data.json": '{"note": "<!-- SAFE v0 report -->", "patients": [1]}',
    "page.md": "\n<!-- SAFE v0 report -->\n",
    "other.xml": '<?xml version="1.0"?>\n<suites><!-- <testsuites name="SAFE v0 --></suites>',
    "report.json": '{"patients": [], "report_type": "SAFE_v0"}',
    "empty.json": "",
}


@pytest.mark.parametrize("name", FOREIGN)
def test_a_file_that_only_speaks_of_safe_is_somebody_elses(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(FOREIGN[name])
    with pytest.raises(ConfigurationError, match="already exists, and SAFE did not write it"):
        check(tmp_path / name)


OWN = {
    "report.json": '{\n  "report_type": "SAFE_v0",\n  "generated_at": ""}',
    "report.md": render_markdown(scored_run(SMALL)),
    "junit.xml": render_junit(scored_run(SMALL)),
    "cases.csv": render_csv(scored_run(SMALL)),
    "page.html": render_html(scored_run(SMALL)),
    "card.txt": scorecard_text(scored_run(SMALL), verbose=False),
    "ascii.txt": "+=====+\n|  SAFE v0 Scorecard - K07  |\n",
}


@pytest.mark.parametrize("name", OWN)
def test_what_safe_wrote_may_be_replaced(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(OWN[name])
    check(tmp_path / name)


def test_one_file_under_two_names_is_one_file(tmp_path: Path) -> None:
    (tmp_path / "deeper").mkdir()
    (tmp_path / "y.csv").symlink_to("y.json")
    for outputs, why in (
        (["x.json", "deeper/../x.json"], r"--output names .*/deeper/\.\./x\.json twice"),
        (["y.json", "y.csv"], "two formats would go to"),
    ):
        named = [str(tmp_path / name) for name in outputs]
        with pytest.raises(ConfigurationError, match=why):
            destinations(None, named, ["console"], AUTOMATIC)


def test_all_formats_into_a_folder_get_names_of_their_own(tmp_path: Path) -> None:
    for folder in (str(tmp_path), f"{tmp_path}/"):
        found = destinations("all", [folder], ["console"], AUTOMATIC)
        assert [each.path for each in found] == [
            None, tmp_path / f"{AUTOMATIC.name}.json", tmp_path / f"{AUTOMATIC.name}.md",
        ]  # fmt: skip


def test_a_device_is_written_into_whoever_owns_its_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda _path, _mode: False)
    check(Path(os.devnull))
    write_whole(Path(os.devnull), "text")


def test_a_long_name_is_cut_where_a_file_system_would_refuse_it(tmp_path: Path) -> None:
    path = tmp_path / ("é" * 120 + ".json")
    write_whole(path, "text")
    assert path.read_text() == "text"
    assert len(automatic_stem(tmp_path, "病" * 100, "2026-03-02T08:00:00.000Z").name.encode()) < 150


def test_a_folder_is_no_file_to_write(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be written: it is a folder"):
        check(tmp_path)


def test_a_file_where_the_folder_should_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "reports").write_text("")
    with pytest.raises(ConfigurationError, match=r"reports/r\.json cannot be written: (File exists|Not a directory)"):
        check(tmp_path / "reports" / "r.json")


def test_a_pipe_is_written_into(tmp_path: Path) -> None:
    path = tmp_path / "pipe.json"
    os.mkfifo(path)
    reading = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    check(path)
    write_whole(path, "text")
    assert os.read(reading, 100) == b"text"
    os.close(reading)
    assert stat.S_ISFIFO(path.stat().st_mode)


def test_a_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text("before")
    with pytest.raises(UnicodeEncodeError):
        write_whole(path, "after \ud800")
    with pytest.raises(ConfigurationError, match=r"nowhere/r\.json cannot be written: No such file or directory"):
        write_whole(tmp_path / "nowhere" / "r.json", "after")
    assert path.read_text() == "before"
    assert [each.name for each in tmp_path.iterdir()] == ["r.json"], "nothing unfinished is left"


def test_a_replaced_file_keeps_its_mode_and_a_link_keeps_leading_to_it(tmp_path: Path) -> None:
    path, link = tmp_path / "r.json", tmp_path / "latest.json"
    path.write_text("before")
    path.chmod(0o640)
    link.symlink_to("r.json")

    write_whole(link, "after")

    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode), link.is_symlink()) == ("after", 0o640, True)
