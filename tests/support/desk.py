"""A folder with test cases of one concern and their outputs, and the commands on them, for tests of what pages show."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from consumer.cli.main import main

CONCERN = "K"


def lay_out(cases: Sequence[Mapping[str, Any]], outputs: Mapping[str, Any], *, run: str = "run.json") -> None:
    """Write the batch file and a file of outputs, by test_id, into the working directory."""
    Path("cases").mkdir(exist_ok=True)
    Path("cases/b.json").write_text(json.dumps({"test_cases": cases}))
    results = [{"test_id": name, "engine_output": output} for name, output in outputs.items()]
    Path(run).write_text(json.dumps({"raw_results": results}))


def score(*options: str, run: str = "run.json") -> int:
    return main(["score", "-c", CONCERN, "-b", "*", "-i", run, "-t", "cases", *options])


def explain(*options: str) -> int:
    return main(["explain", "-i", "run.json", "-t", "cases", "--all", *options])


def verify(report: str = "report.json") -> int:
    return main(["verify", report, "-i", "run.json", "-t", "cases"])


def table(text: str) -> list[dict[str, str]]:
    """Give the rows of a CSV table by the names of its columns."""
    return [*csv.DictReader(io.StringIO(text))]
