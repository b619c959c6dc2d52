"""The page of all settings: what is committed, and that it leaves nothing out."""

import json
import re
from pathlib import Path

import pytest

from consumer.cli.main import main
from consumer.settings import FILE_KEYS, VARIABLES, load
from consumer.settings.file import FILE_NAME
from consumer.settings.page import settings_page
from safe_core import DEFAULT_POLICY

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "configure.md"
ROWS = [re.findall(r"[^|]+", line) for line in settings_page().splitlines() if line.startswith("| ") and "`" in line]


def test_the_committed_page_is_what_the_command_prints(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "page"]) == 0
    committed = PAGE.read_text(encoding="utf-8")
    assert committed == capsys.readouterr().out, (
        "the settings have changed: safe config page > docs/reference/configure.md"
    )


def test_every_setting_stands_in_one_row() -> None:
    variables = [name for row in ROWS if (name := row[0].strip().strip("`"))]
    assert sorted(variables) == sorted(VARIABLES.values())
    keys = [row[1].strip().strip("`") for row in ROWS]
    assert sorted(keys) == sorted({*FILE_KEYS.values(), *DEFAULT_POLICY.default.settings()})


def test_a_row_says_what_is_taken_and_what_holds_without_it() -> None:
    [row] = [row for row in ROWS if row[0].strip() == "`SAFE_V0_SHUTDOWN_SECONDS`"]
    assert [cell.strip() for cell in row[2:]] == [
        "a whole number, at least 1",
        "`20`",
        "How long a worker may take to stop.",
    ]


def test_the_example_of_overrides_is_one_that_safe_takes(tmp_path: Path) -> None:
    [example] = re.findall(r"```json\n(.*?)```", settings_page(), re.DOTALL)
    (tmp_path / FILE_NAME).write_text(example, encoding="utf-8")
    policy = load({}, {}, tmp_path).policy
    assert policy.rules_for("I25", None).thresholds.CR.pass_ == 0.9
    assert policy.rules_for("I25", "Escalation_Tracker").strict_ah
    assert policy.rules_for("other", "Escalation_Tracker") != policy.rules_for("other", None)
    assert json.loads(example)["overrides"].keys() == {"metric_id", "archetype"}
