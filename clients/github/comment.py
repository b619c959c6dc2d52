"""Writes a page into a comment on the pull request: into the one that it wrote before, if there is one.

A step of action.yml. It never fails: a comment that could not be written is no reason to fail the run, so it says why.
"""

import json
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_COMMENT_BYTES = 65_536
_REFUSED = (401, 403, 404)
_PER_PAGE = 100
_SECONDS = 30.0


def main() -> int:
    """Run the step."""
    event = json.loads(Path(os.environ["GITHUB_EVENT_PATH"]).read_text(encoding="utf-8"))
    number = event.get("pull_request", {}).get("number")
    page = Path(os.environ["PAGE"]).read_text(encoding="utf-8")
    if number is None:
        _say("notice", "No comment: this run does not belong to a pull request.")
        return 0
    try:
        print(f"The report is in the comment {_write(number, page)}")
    except urllib.error.HTTPError as error:
        if error.code in _REFUSED:
            _say(
                "notice",
                f"No comment: the token may not write one (HTTP {error.code}). Give the job the permission "
                "`pull-requests: write`. A pull request from a fork cannot have it; the report is on this run's page.",
            )
        else:
            _say("warning", f"No comment: GitHub answered with HTTP {error.code}.")
    except OSError as error:
        _say("warning", f"No comment: GitHub could not be reached ({error}).")
    return 0


def _write(number: int, page: str) -> str:
    """Write the comment; gives its address."""
    comments = f"issues/{number}/comments"
    mark = page.partition("\n")[0]
    body = {"body": _fitted(page)}
    earlier = _earlier(comments, mark)
    done = _call("POST", comments, body) if earlier is None else _call("PATCH", f"issues/comments/{earlier}", body)
    return str(done["html_url"])


def _earlier(comments: str, mark: str) -> int | None:
    """Find the comment of an earlier run by the first line that it has in common with this one."""
    number, found = 1, _call("GET", f"{comments}?per_page={_PER_PAGE}&page=1")
    while found:
        for comment in found:
            if (comment.get("body") or "").startswith(mark):
                return int(comment["id"])
        number += 1
        found = _call("GET", f"{comments}?per_page={_PER_PAGE}&page={number}") if len(found) == _PER_PAGE else []
    return None


def _fitted(page: str) -> str:
    """Leave out the last sections of a page that is larger than a comment may be."""
    rest = "\nThe rest is on the page of the run.\n"
    shown = page
    while len(shown.encode()) + len(rest) > _COMMENT_BYTES and "\n## " in shown:
        shown = shown.rpartition("\n## ")[0]
    return page if shown is page else shown + rest


def _call(method: str, path: str, body: Mapping[str, str] | None = None) -> Any:
    """Call GitHub's API for this repository; raises HTTPError or OSError."""
    request = urllib.request.Request(  # noqa: S310 - the runner gives the address
        f"{os.environ['GITHUB_API_URL']}/repos/{os.environ['GITHUB_REPOSITORY']}/{path}",
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={
            "Authorization": f"Bearer {os.environ['GITHUB_TOKEN']}",
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": "2022-11-28",
            "Content-Type": "application/json",
        },
    )
    with urllib.request.urlopen(request, timeout=_SECONDS) as answer:  # noqa: S310 - as above
        return json.load(answer)


def _say(kind: str, what: str) -> None:
    """Show an annotation on the page of the run."""
    print(f"::{kind} title=SAFE::{what}")


if __name__ == "__main__":
    sys.exit(main())
