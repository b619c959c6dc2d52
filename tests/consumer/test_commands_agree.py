"""All commands have the same words for the same things, help for each, JSON where they print results, and one error."""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, get_args

import pytest
import typer

from consumer.cli.main import app, main
from consumer.exit_codes import EXIT_ERROR
from consumer.offline.example import copy_example

ROOT = Path(__file__).parents[2]

WORDS: Final[Mapping[str, str]] = {
    "--format": "-f",
    "--output": "-o",
    "--test-dir": "-t",
    "--batch": "-b",
    "--concern": "-c",
}
"""What an option is called everywhere, and its letter."""

FORMATS: Final = {"console", "json", "markdown", "html", "csv", "junit", "terms", "all"}

WITH_RESULTS: Final = {
    "score", "gate", "verify", "explain", "triage", "judge", "lint", "mutate", "compare", "history", "config show",
    "offsets show", "dead-letters list", "dead-letters show", "results",
}  # fmt: skip
"""Commands that print what programs want to read."""

ON_TEST_CASES: Final = {"score", "verify", "explain", "triage", "judge", "review", "lint", "mutate", "watch"}
BY_LABEL: Final = {"score", "explain", "triage", "review", "mutate", "watch"}
"""Commands whose answer depends on labels, so on the rules."""


def commands() -> Iterator[tuple[str, Any]]:
    def walk(command: Any, path: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
        if not hasattr(command, "commands"):
            yield " ".join(path), command
        else:
            for name, each in command.commands.items():
                yield from walk(each, (*path, name))

    yield from walk(typer.main.get_command(app), ())


# Other tests add commands of their own.
EVERY: Final = {name: each for name, each in commands() if each.callback.__module__.startswith("consumer.")}


def options_of(command: Any) -> Mapping[str, Any]:
    return {name: each for each in command.params for name in each.opts if name.startswith("-")}


@pytest.mark.parametrize("name", EVERY)
def test_an_option_is_called_the_same_everywhere_and_has_help(name: str) -> None:
    options = options_of(EVERY[name])
    for word, letter in WORDS.items():
        assert (word in options) == (letter in options), f"{letter} is not {word}"
        assert word not in options or options[word] is options[letter]
    helpless = [option for option, each in options.items() if not each.help]
    assert not helpless
    assert EVERY[name].help


@pytest.mark.parametrize("name", EVERY)
def test_formats_have_the_same_names_and_people_come_first(name: str) -> None:
    asked = options_of(EVERY[name]).get("--format")
    assert (asked is not None) >= (name in WITH_RESULTS)
    if asked is not None:
        choices = get_args(asked.type_descriptor.annotation)
        assert {"console", "json"} <= set(choices) <= FORMATS
        assert asked.default in (None, "console")


@pytest.mark.parametrize("name", EVERY)
def test_what_has_a_format_for_a_file_has_an_option_for_the_file(name: str) -> None:
    options = options_of(EVERY[name])
    asked = options.get("--format")
    choices = set() if asked is None else set(get_args(asked.type_descriptor.annotation))
    assert (not choices - {"console", "json", type(None)}) or "--output" in options


@pytest.mark.parametrize("name", sorted(ON_TEST_CASES))
def test_test_cases_are_named_by_the_same_options_and_none_is_required(name: str) -> None:
    options = options_of(EVERY[name])
    chosen = set() if name == "verify" else {"--batch", "--concern"}  # the report says of which it is
    assert {"--test-dir", *chosen} <= options.keys()
    assert not [word for word in ("--test-dir", *chosen) if options[word].required]
    assert ("--strict-ah" in options) == (name in BY_LABEL)


REQUIRING: Final = {name: [each for each in command.params if each.required] for name, command in EVERY.items()}


@pytest.mark.parametrize("name", [name for name, required in REQUIRING.items() if required])
def test_all_that_is_missing_is_told_at_once(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    required = REQUIRING[name]
    assert main(name.split()) == EXIT_ERROR
    printed = capsys.readouterr()
    assert (printed.out, printed.err.count("\n")) == ("", 1)
    assert printed.err.startswith("safe: error: missing ")
    for each in required:
        assert (each.opts[0] if each.opts[0].startswith("-") else each.metavar or each.name.upper()) in printed.err
    assert printed.err.endswith(f"; see safe {name} --help\n")


TYPOS: Final[Sequence[tuple[Sequence[str], str]]] = [
    (["scoer"], "Did you mean 'score'?"),
    (["score", "--output-dir", "x"], "No such option: --output-dir"),
    (["triage", "--testdir", "x"], "Did you mean --test-dir?"),
    (
        ["gate", "report.json", "--max-violation", "0"],
        "Did you mean --max-failed-generations, --max-near-violations, --max-violations?",
    ),
    (["explain", "--format", "table"], "'table' is not one of 'console', 'json', 'csv', 'markdown', 'html'"),
    (["dead-letters", "lst"], "Did you mean 'list'?"),
]


@pytest.mark.parametrize(("words", "advice"), TYPOS)
def test_a_typo_is_told_what_was_meant(words: Sequence[str], advice: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == EXIT_ERROR
    assert advice in capsys.readouterr().err


@pytest.fixture
def _story(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy_example("story", tmp_path)
    monkeypatch.chdir(tmp_path / "story")
    monkeypatch.delenv("SAFE_V0_EXPECTATIONS", raising=False)
    assert main(["score", "-i", "run_1.json", "-t", "cases", "-o", "one.json", "-o", "one.txt"]) == 1
    assert main(["score", "-i", "run_2.json", "-t", "cases", "-o", "two.json", "-o", "two.txt"]) == 1


ON_FILES: Final[Mapping[str, Sequence[str]]] = {
    "score": ["-i", "run_1.json", "-t", "cases"],
    "gate": ["one.json"],
    "verify": ["one.json", "-i", "run_1.json", "-t", "cases"],
    "explain": ["-i", "run_1.json", "-t", "cases"],
    "triage": ["-i", "run_1.json", "-t", "cases"],
    "lint": ["-t", "cases"],
    "mutate": ["-t", "cases"],
    "compare": ["one.json", "two.json"],
    "history": ["one.json", "two.json"],
    "config show": [],
}


@pytest.mark.usefixtures("_story")
@pytest.mark.parametrize("name", ON_FILES)
def test_json_is_one_document_and_the_code_is_that_of_the_console(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [*name.split(), *ON_FILES[name]]
    capsys.readouterr()
    code = main([*words, "--format", "console"])
    printed = capsys.readouterr().out
    assert code in {0, 1}
    assert printed.strip()
    assert main([*words, "--format", "json"]) == code
    document = json.loads(capsys.readouterr().out)
    assert isinstance(document, dict)


@pytest.mark.usefixtures("_story")
@pytest.mark.parametrize("name", [name for name in ON_FILES if "--output" in options_of(EVERY[name])])
def test_what_is_printed_is_written_too_and_may_be_replaced(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = [*name.split(), *ON_FILES[name]]
    pages = [Path(f"page{suffix}") for suffix in (".json", ".md", ".html", ".txt")]
    code = main([*words, "--format", "json"])
    capsys.readouterr()
    for _ in range(2):
        assert main([*words, *(part for page in pages for part in ("-o", str(page)))]) == code
        assert capsys.readouterr().err.count("wrote page.") == len(pages)
    json_, markdown, html, text = (page.read_text(encoding="utf-8") for page in pages)
    assert isinstance(json.loads(json_), dict)
    assert markdown.startswith("<!-- SAFE v0 ")
    assert html.startswith("<!doctype html>")
    assert len(text.strip().splitlines()[0]) > len("verified: ")


@pytest.mark.usefixtures("_story")
def test_the_only_concern_there_is_need_not_be_named(capsys: pytest.CaptureFixture[str]) -> None:
    named = Path("named.json")
    assert main(["score", "-c", "stroke", "-b", "*", "-i", "run_1.json", "-t", "cases", "-o", str(named)]) == 1
    one, other = (json.loads(each.read_text(encoding="utf-8")) for each in (named, Path("one.json")))
    assert {**one, "generated_at": ""} == {**other, "generated_at": ""}
    more = json.loads(Path("cases/stroke_story.json").read_text(encoding="utf-8"))
    more["test_cases"][0]["concern_id"] = "Z9"
    Path("cases/more.json").write_text(json.dumps(more), encoding="utf-8")
    capsys.readouterr()
    assert main(["score", "-i", "run_1.json", "-t", "cases"]) == EXIT_ERROR
    assert "the test cases are of several concerns" in capsys.readouterr().err


@pytest.mark.usefixtures("_story")
def test_a_case_to_explain_may_be_named_without_an_option(capsys: pytest.CaptureFixture[str]) -> None:
    test_id = json.loads(Path("one.json").read_text(encoding="utf-8"))["results"][0]["test_id"]
    capsys.readouterr()
    assert main(["explain", "--test", test_id, "-i", "run_1.json", "-t", "cases"]) == 0
    told = capsys.readouterr().out
    assert main(["explain", test_id, "-i", "run_1.json", "-t", "cases"]) == 0
    assert capsys.readouterr().out == told


WORDS_AND_MORE: Final[Sequence[tuple[Sequence[str], Sequence[str]]]] = [
    (["sc"], ["score", "schema"]),
    (["dead-letters", "l"], ["list"]),
    (["triage", "-i", "run.json", "--test"], ["--test-dir"]),
    (["score", "--format", "ju"], ["junit"]),
]


@pytest.mark.parametrize(("words", "more"), WORDS_AND_MORE)
def test_bash_completes_commands_options_and_their_values(
    words: Sequence[str], more: Sequence[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    program = Path(sys.executable).parent / "safe"
    typed = f"COMP_WORDS=(safe {' '.join(words)}); COMP_CWORD={len(words)}"
    asked = f"{script}\n{typed}; _safe_completion {program}; echo ${{COMPREPLY[@]}}"
    ran = subprocess.run(["bash", "-c", asked], capture_output=True, text=True, check=True)  # noqa: S607
    assert ran.stdout.split() == more


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_scripts_of_other_shells_ask_this_program(
    shell: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert f"_SAFE_COMPLETE=complete_{shell}" in script
    assert "_TYPER_COMPLETE_ARGS" in script
    monkeypatch.setenv("_SAFE_COMPLETE", f"complete_{shell}")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", "safe tri")
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
    with pytest.raises(SystemExit):
        main([])
    assert "triage" in capsys.readouterr().out
