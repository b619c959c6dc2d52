"""Scores, compares if there is a base, and writes one Markdown page: for the page of the run, and for the comment.

A step of action.yml, in whose `env` is what it reads. It succeeds whatever the labels are: the exit code is an output,
so that the comment comes first.
"""

import os
import shlex
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

_STEP_SUMMARY_BYTES = 1024 * 1024
"""What GitHub shows of a step's summary at most; a larger one is not shown at all."""
_ERROR = 3


def main() -> int:
    """Run the step."""
    folder = Path(os.environ["REPORT_DIR"])
    folder.mkdir(parents=True, exist_ok=True)
    code, pages = _score(folder)
    if code != _ERROR and os.environ["BASE"]:
        compared, page = _compare(folder)
        code, pages = max(code, compared), [page, *pages]
    page = "\n".join([_mark(), *pages])
    (folder / "summary.md").write_text(page, encoding="utf-8")
    _append("GITHUB_STEP_SUMMARY", page if len(page.encode()) <= _STEP_SUMMARY_BYTES else pages[0])
    _append("GITHUB_OUTPUT", f"exit-code={code}\nreport={folder / 'report.json'}\n")
    return 0


def _score(folder: Path) -> tuple[int, list[str]]:
    given = os.environ
    outputs = [word for path in given["OUTPUTS"].splitlines() if path.strip() for word in ("--outputs", path.strip())]
    selected = ["--concern", given["CONCERN"], "--batch", given["BATCH"], "--test-dir", given["TEST_DIR"]]
    files = [word for suffix in ("json", "md", "xml") for word in ("--output", str(folder / f"report.{suffix}"))]
    more = [*shlex.split(given["OPTIONS"]), *shlex.split(given["CONDITIONS"])]
    code, error = _safe("score", *selected, *outputs, *files, *more)
    return code, [_failed(error) if code == _ERROR else (folder / "report.md").read_text(encoding="utf-8")]


def _compare(folder: Path) -> tuple[int, str]:
    report, page = str(folder / "report.json"), folder / "comparison.md"
    more = shlex.split(os.environ["COMPARE_OPTIONS"])
    code, error = _safe("compare", os.environ["BASE"], report, "--output", str(page), *more)
    return code, _failed(error) if code == _ERROR else page.read_text(encoding="utf-8")


def _safe(*arguments: str) -> tuple[int, str]:
    """Run a command of SAFE; what it prints goes to the log of the step, and its errors are given too."""
    command = shlex.split(os.environ["SAFE_COMMAND"]) or [f"{os.environ['RUNNER_TEMP']}/safe/bin/safe"]
    # The page of the run gets one page from this step, not one from each command.
    environment = {name: text for name, text in os.environ.items() if name != "GITHUB_STEP_SUMMARY"}
    done = subprocess.run([*command, *arguments], env=environment, stderr=subprocess.PIPE, text=True, check=False)
    print(done.stderr, end="", file=sys.stderr, flush=True)
    return (done.returncode if 0 <= done.returncode < _ERROR else _ERROR), done.stderr


def _failed(error: str) -> str:
    said = error.strip().splitlines() or ["SAFE ended without a word; the log of the step may say more"]
    return f"# SAFE v0: nothing scored\n\n```text\n{said[-1]}\n```\n"


def _mark() -> str:
    """By this invisible line the comment is found again; each selection of test cases has its own."""
    selected = quote(f"{os.environ['CONCERN']}/{os.environ['BATCH']}", safe="").replace("-", "%2D")
    return f"<!-- SAFE v0 action {selected} -->"


def _append(name: str, text: str) -> None:
    with Path(os.environ[name]).open("a", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    sys.exit(main())
