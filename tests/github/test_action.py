"""The GitHub Action: its page's workflow under act, and its two steps with what GitHub may answer."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import yaml
from typing_extensions import override

from tests.conftest import missing
from tests.support.kafka_broker import PROJECT

ACT = PROJECT / ".cache" / "act" / "bin" / "act"
PAGE = (PROJECT / "docs" / "how-to" / "github.md").read_text(encoding="utf-8")
ACTION = yaml.safe_load((PROJECT / "action.yml").read_text(encoding="utf-8"))
STORY = PROJECT / "consumer" / "examples" / "story"
SHIPPED = ("action.yml", "clients/github", "pyproject.toml", "requirements-offline.txt", "README.md", "LICENSE",
           "safe_core", "consumer", "safe_scorer")  # fmt: skip
GIT = shutil.which("git") or "git"
AUTHOR = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
INSTALLED = f"{sys.executable} -m safe_scorer"
MARK = "<!-- SAFE v0 action STROKE%2F%2A -->"
Json = Any


# --- a stub of GitHub's API -------------------------------------------------------------------------------------------


@dataclass
class GitHub:
    """Comments of a pull request; `refuses` is the status of every answer, if it is not 0."""

    comments: list[Json] = field(default_factory=list)
    refuses: int = 0
    calls: list[str] = field(default_factory=list)
    address: str = ""

    def answer(self, method: str, path: str, body: Json) -> tuple[int, Json]:
        self.calls.append(f"{method} {path}")
        if self.refuses:
            return self.refuses, {"message": "Resource not accessible by integration"}
        if method == "GET":
            page = int(path.rpartition("=")[2])
            return 200, self.comments[100 * (page - 1) : 100 * page]
        if method == "PATCH":
            comment = next(each for each in self.comments if path.endswith(f"/comments/{each['id']}"))
        else:
            comment = {"id": len(self.comments) + 1}
            self.comments.append(comment)
        comment |= body | {"html_url": f"https://github.example/comments/{comment['id']}"}
        return 200, comment


@pytest.fixture
def github() -> Iterator[GitHub]:
    stub = GitHub()

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            given = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            assert self.headers["Authorization"] == "Bearer the-token"
            status, document = stub.answer(self.command, self.path, json.loads(given or b"null"))
            body = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PATCH = answer  # noqa: N815 - the names that the server looks for

        @override
        def log_message(self, *_arguments: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        stub.address = f"http://127.0.0.1:{server.server_port}"
        Thread(target=server.serve_forever, daemon=True).start()
        yield stub
        server.shutdown()


# --- the whole action, under act --------------------------------------------------------------------------------------


def repository(folder: Path, steps: Sequence[Json]) -> Path:
    """Make a repository with SAFE in `safe/`, a run's outputs and its test cases."""
    for name in SHIPPED:
        source, target = PROJECT / name, folder / "safe" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if source.is_dir() else shutil.copy
        copy(source, target)
    shutil.copytree(STORY / "cases", folder / "cases")
    shutil.copy(STORY / "run_1.json", folder / "run.json")
    workflow = workflow_of_page() | {"jobs": {"score": {"runs-on": "ubuntu-latest", "steps": list(steps)}}}
    (folder / ".github" / "workflows").mkdir(parents=True)
    (folder / ".github" / "workflows" / "safe.yml").write_text(json.dumps(workflow), encoding="utf-8")
    (folder / "event.json").write_text('{"pull_request": {"number": 7}}', encoding="utf-8")
    for command in (["init"], ["add", "."], [*AUTHOR, "commit", "--message=all"]):
        subprocess.run([GIT, "-C", folder, *command], capture_output=True, check=True)
    return folder


def workflow_of_page() -> Json:
    workflow = yaml.safe_load(PAGE.partition("```yaml\n")[2].partition("```")[0])
    return {("on" if key is True else key): value for key, value in workflow.items()}  # YAML 1.1 reads "on" as true


def acted(folder: Path, github: GitHub) -> "subprocess.CompletedProcess[str]":
    """Run the repository's workflow on this machine, as if its pull request had been pushed to."""
    if not ACT.is_file():
        missing("the GitHub Action: act is not installed; run tests/github/tools.sh")
    kept = {name: text for name, text in os.environ.items() if not name.startswith(("GITHUB_", "SAFE_V0_"))}
    kept.pop("CI", None)
    return subprocess.run(
        [ACT, "pull_request", "--platform", "ubuntu-latest=-self-hosted", "--eventpath", "event.json",
         "--env", f"GITHUB_API_URL={github.address}"],
        cwd=folder,
        env=kept | {"XDG_CACHE_HOME": f"{folder}-act", "PYTHONPATH": ""},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )  # fmt: skip


def test_the_workflow_of_the_page_installs_safe_comments_and_fails_where_a_condition_does_not_hold(
    tmp_path: Path, github: GitHub
) -> None:
    checkout, score, keep = workflow_of_page()["jobs"]["score"]["steps"]
    assert (checkout["uses"], score["uses"], keep["with"]["path"]) == ("actions/checkout@v4", "./safe", "safe-report")
    score["with"] |= {"token": "the-token", "python": sys.executable, "batch": "*"}
    done = acted(repository(tmp_path / "here", [checkout, score]), github)
    (comment,) = github.comments
    assert comment["body"].startswith(f"{MARK}\n<!-- SAFE v0 report -->\n# SAFE v0: concern `STROKE`")
    assert "gate NOT passed" in comment["body"]
    assert done.returncode == 1, done.stdout
    assert "::set-output:: exit-code=1" in done.stdout
    assert "The report is in the comment https://github.example/comments/1" in done.stdout


def test_without_the_right_to_write_it_says_so_and_decides_as_usual(tmp_path: Path, github: GitHub) -> None:
    checkout, score, _ = workflow_of_page()["jobs"]["score"]["steps"]
    changes = {"token": "the-token", "python": sys.executable, "command": INSTALLED, "batch": "*"}
    score["with"] |= changes | {"conditions": "--min-pass-rate 0"}
    github.refuses = 403
    done = acted(repository(tmp_path / "here", [checkout, score]), github)
    assert done.returncode == 0, done.stdout
    assert "::set-output:: exit-code=0" in done.stdout
    assert "No comment: the token may not write one (HTTP 403)." in done.stdout
    assert github.calls == ["GET /repos/nektos/act/issues/7/comments?per_page=100&page=1"]


def test_the_action_uses_no_other_and_puts_no_input_into_a_script() -> None:
    steps = ACTION["runs"]["steps"]
    assert ACTION["runs"]["using"] == "composite"
    assert not [step for step in steps if "uses" in step or "${{" in step["run"]]


def test_the_page_lists_every_input_with_its_default() -> None:
    rows = [line.split(" | ") for line in PAGE.splitlines() if line.startswith("| `")]
    told = {name.strip("| `"): default.strip("| `") for name, _, default in rows}
    assert told.keys() == ACTION["inputs"].keys()
    for name, given in ACTION["inputs"].items():
        default = "required" if given.get("required") else given["default"]
        assert told[name] == default or (default in {"", "${{ github.token }}"} and told[name]), name


# --- its steps --------------------------------------------------------------------------------------------------------


def scored(folder: Path, **changes: str) -> tuple[int, str, str]:
    """Run the step that scores; gives the exit code that it puts out, the page of the run, and the log."""
    given = {
        "CONCERN": "STROKE", "BATCH": "*", "OUTPUTS": f"\n  {STORY / 'run_1.json'}\n", "TEST_DIR": str(STORY / "cases"),
        "CONDITIONS": "--fail-on fail", "OPTIONS": "", "BASE": "", "COMPARE_OPTIONS": "",
        "REPORT_DIR": str(folder / "r"), "SAFE_COMMAND": INSTALLED, "PYTHONPATH": str(PROJECT),
        "GITHUB_STEP_SUMMARY": str(folder / "summary"), "GITHUB_OUTPUT": str(folder / "output"),
        "RUNNER_TEMP": str(folder), "GITHUB_ACTIONS": "true",
    }  # fmt: skip
    for name in ("summary", "output"):
        (folder / name).unlink(missing_ok=True)
    script = [sys.executable, str(PROJECT / "clients/github/score.py")]
    done = subprocess.run(script, env=os.environ | given | changes, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    put_out = dict(line.split("=", 1) for line in (folder / "output").read_text(encoding="utf-8").splitlines())
    assert put_out.keys() == ACTION["outputs"].keys()
    code = int(put_out["exit-code"])
    page = (folder / "r" / "summary.md").read_text(encoding="utf-8")
    assert (folder / "summary").read_text(encoding="utf-8") == page
    return code, page, done.stdout + done.stderr


def test_the_page_has_the_comparison_before_the_report(tmp_path: Path) -> None:
    code, page, log = scored(tmp_path, CONDITIONS="--fail-on never")
    assert code == 0
    assert page.splitlines()[:2] == [MARK, "<!-- SAFE v0 report -->"]
    assert "6 cases: 0 Pass" in log
    base = tmp_path / "base.json"
    shutil.copy(tmp_path / "r" / "report.json", base)
    changes = {"OUTPUTS": str(STORY / "run_2.json"), "CONDITIONS": "--fail-on never", "BASE": str(base)}
    code, page, _ = scored(tmp_path, **changes, COMPARE_OPTIONS="--fail-on-regression")
    assert code == 1, "a case got worse"
    first, second = [line for line in page.splitlines() if line.startswith("# ")]
    assert (page.splitlines()[0], second) == (MARK, "# SAFE v0: concern `STROKE`, batch `stroke_story`")
    assert first != second


def test_what_cannot_be_scored_is_on_the_page(tmp_path: Path) -> None:
    code, page, log = scored(tmp_path, CONCERN="STR--OKE", OUTPUTS="nowhere.json")
    assert code == 3
    assert page.startswith("<!-- SAFE v0 action STR%2D%2DOKE%2F%2A -->\n# SAFE v0: nothing scored\n")
    assert page.splitlines()[4] in log


def commented(folder: Path, github: GitHub, page: str, event: Json = None, **changes: str) -> str:
    """Run the step that comments; gives what it prints."""
    (folder / "page.md").write_text(page, encoding="utf-8")
    (folder / "event").write_text(json.dumps(event or {"pull_request": {"number": 7}}), encoding="utf-8")
    given = {
        "GITHUB_API_URL": github.address, "GITHUB_REPOSITORY": "o/r", "GITHUB_TOKEN": "the-token",
        "GITHUB_EVENT_PATH": str(folder / "event"), "PAGE": str(folder / "page.md"),
    }  # fmt: skip
    script = [sys.executable, str(PROJECT / "clients/github/comment.py")]
    done = subprocess.run(script, env=os.environ | given | changes, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_a_later_run_updates_the_comment_of_its_selection_alone(tmp_path: Path, github: GitHub) -> None:
    github.comments = [{"id": number, "body": None} for number in range(1, 102)]
    commented(tmp_path, github, f"{MARK}\nfirst")
    commented(tmp_path, github, "<!-- SAFE v0 action I25%2F%2A -->\nanother")
    said = commented(tmp_path, github, f"{MARK}\nsecond")
    assert said == "The report is in the comment https://github.example/comments/102\n"
    assert [comment["body"].splitlines()[-1] for comment in github.comments[101:]] == ["second", "another"]


def test_a_page_that_is_too_large_for_a_comment_loses_its_last_sections(tmp_path: Path, github: GitHub) -> None:
    sections = [f"\n## {name}\n" + f"{name} é\n" * 4_000 for name in ("one", "two", "three")]
    commented(tmp_path, github, f"{MARK}\n# SAFE\n{''.join(sections)}")
    (comment,) = github.comments
    assert len(comment["body"].encode()) <= 65_536
    assert [line for line in comment["body"].splitlines() if line.startswith("## ")] == ["## one", "## two"]
    assert comment["body"].endswith("\nThe rest is on the page of the run.\n")


def test_no_answer_of_github_fails_the_run(tmp_path: Path, github: GitHub) -> None:
    assert "does not belong to a pull request" in commented(tmp_path, github, "page", event={"ref": "main"})
    assert github.calls == []
    github.refuses = 502
    assert commented(tmp_path, github, "page") == "::warning title=SAFE::No comment: GitHub answered with HTTP 502.\n"
    unreachable = commented(tmp_path, github, "page", GITHUB_API_URL="http://127.0.0.1:1")
    assert unreachable.startswith("::warning title=SAFE::No comment: GitHub could not be reached (")
