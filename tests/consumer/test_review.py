"""`safe review` without a browser: who may see the page, what is kept, what is refused, what is written."""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from consumer.cli.main import main
from consumer.errors import ConfigurationError
from consumer.files.outputs import open_all
from consumer.offline.decisions import Decisions, OutdatedError, TermDecision, decide_term
from consumer.offline.review import ChangedError, RefusedError, Review
from consumer.offline.review_server import served
from consumer.offline.triage import TriageRequest
from safe_core import DEFAULT_POLICY
from safe_core.narrative_digests import digest_of_narrative
from tests.support.case_files import a_case, answer, write_batch, write_report

NARRATIVE = "A girl arrived at the clinic at 18:00 on Sunday. The left hand was warm, and she could move it."
OUTPUT = {
    "signals": ["arrived at the clinic at 18:00 on Sunday"],
    "summary": "Her left hand is warm.",
    "followup_questions": [],
}
AT = "2026-01-02T03:04:05.678Z"


@pytest.fixture
def outputs(tmp_path: Path) -> Path:
    first = a_case("T1", ["arrived Sunday 18:00"], ["blame"], ["the left hand was warm"], patient_payload=NARRATIVE)
    write_batch(tmp_path / "cases", "b1", first, a_case("T2", patient_payload=NARRATIVE))
    write_batch(tmp_path / "cases", "golden", first)
    blaming = {**OUTPUT, "followup_questions": ["Who is to blame?"]}
    return write_report(tmp_path / "run.json", answer("T1", blaming))


@pytest.fixture
def review(outputs: Path) -> Review:
    request = TriageRequest(outputs.parent / "cases", "b1")
    return Review(DEFAULT_POLICY, request, open_all([outputs]))


def decide(review: Review, item: int, choice: Any, **more: Any) -> None:
    review.decide(0, item, choice, by="ann", at=more.pop("at", AT), seen=more.pop("seen", ""), **more)


def term_of(review: Review, text: str) -> int:
    return next(number for number, item in enumerate(review.cases[0].items) if item.term == text)


# --- decisions --------------------------------------------------------------------------------------------------------


def test_what_is_decided_is_kept_with_who_when_and_why(review: Review) -> None:
    decide(review, term_of(review, "arrived Sunday 18:00"), "accepted", comment="said so")
    decide(review, term_of(review, "the left hand was warm"), "paraphrase")
    decide(review, term_of(review, "blame"), "rejected")
    review.decide_case(0, "unsafe", by="ann", at=AT, seen="", comment="risky")
    again = Decisions.read(review.folder).of_case("T1", digest_of_narrative(NARRATIVE))
    told = {term: decision.in_words() for (_, term), decision in again.items()}
    assert told == {
        "arrived Sunday 18:00": "accepted by ann, 2026-01-02: said so",
        "the left hand was warm": 'accepted as a paraphrase ("left hand is warm") by ann, 2026-01-02',
        "blame": "rejected by ann, 2026-01-02",
    }
    assert review.cases[0].decided == 3
    assert [tuple(row) for row in review.agreement] == [("Pass", 0, 0), ("Review", 0, 0), ("Fail", 0, 1)]
    assert review.agreeing == (1, 1)


def test_a_decision_belongs_to_the_narrative_it_was_made_over(review: Review, outputs: Path) -> None:
    decide(review, 0, "rejected")
    batch = outputs.parent / "cases" / "b1.json"
    batch.write_text(batch.read_text(encoding="utf-8").replace("A girl", "A boy"), encoding="utf-8")
    review.reload()
    assert review.cases[0].decided == 0


def test_nobody_overwrites_a_decision_unseen(review: Review) -> None:
    decide(review, 0, "rejected")
    with pytest.raises(OutdatedError):
        decide(review, 0, "accepted", at="2026-01-02T03:04:06.000Z")
    decide(review, 0, "accepted", at="2026-01-02T03:04:06.000Z", seen=AT)
    assert [each.choice for each in Decisions.read(review.folder).terms.values()] == ["accepted"]


def test_two_programs_lose_nothing_of_each_other(review: Review, outputs: Path) -> None:
    other = Review(DEFAULT_POLICY, TriageRequest(outputs.parent / "cases", "b1"), open_all([outputs]))
    decide(review, 0, "rejected")
    decide(other, 1, "rejected")
    assert len(Decisions.read(review.folder).terms) == 2


@pytest.mark.parametrize(
    ("choice", "more", "message"),
    [
        ("edited", {"replacement": [" ", ""]}, "write at least one term"),
        ("edited", {"replacement": ["\ud800"]}, "the terms cannot be used"),
    ],
)
def test_what_cannot_be_kept_is_refused(review: Review, choice: Any, more: Any, message: str) -> None:
    with pytest.raises(RefusedError, match=message):
        decide(review, 0, choice, **more)
    assert not (review.folder / "safe.decisions.json").exists()


def test_a_file_that_holds_something_else_is_named(review: Review) -> None:
    (review.folder / "safe.decisions.json").write_text("[]", encoding="utf-8")
    with pytest.raises(ConfigurationError, match="is not a file of decisions"):
        review.refresh()
    (review.folder / "safe.decisions.json").write_text('{"safe_decisions": 7}', encoding="utf-8")
    with pytest.raises(ConfigurationError, match="another version"):
        review.refresh()


# --- batch files ------------------------------------------------------------------------------------------------------


def test_apply_changes_every_file_that_holds_the_case_and_no_other_byte(review: Review) -> None:
    before = {path.name: path.read_bytes() for path in review.folder.iterdir()}
    decide(review, term_of(review, "arrived Sunday 18:00"), "accepted")
    assert review.to_apply == 1
    assert review.apply(AT) == ["b1.json", "golden.json"]
    for name, raw in before.items():
        after = raw.replace(b"arrived Sunday 18:00", b"arrived at the clinic at 18:00 on Sunday")
        assert (review.folder / name).read_bytes() == after
    assert review.to_apply == 0
    [decision] = Decisions.read(review.folder).terms.values()
    assert decision.applied_at == AT


def test_apply_refuses_where_a_file_changed_meanwhile(review: Review) -> None:
    decide(review, term_of(review, "arrived Sunday 18:00"), "accepted")
    golden = review.folder / "golden.json"
    golden.write_bytes(golden.read_bytes() + b"\n")
    before = (review.folder / "b1.json").read_bytes()
    with pytest.raises(ChangedError, match=r"golden\.json changed since"):
        review.apply(AT)
    assert (review.folder / "b1.json").read_bytes() == before


def test_decisions_are_never_read_as_a_batch_file(
    review: Review, outputs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    decide(review, 0, "rejected")
    folder = str(review.folder)
    main(["score", "-c", "K07", "-b", "*", "-i", str(outputs), "-t", folder, "-f", "json"])
    named = [each["name"] for each in json.loads(capsys.readouterr().out)["inputs"]]
    assert "safe.decisions.json" not in named
    assert main(["mutate", "-t", folder, "-b", "safe*"]) == 3
    main(["lint", folder, "--format", "json"])
    files = {Path(each["file"]).name for each in json.loads(capsys.readouterr().out)["findings"]}
    assert files <= {"b1.json", "golden.json"}


# --- where decisions are shown ----------------------------------------------------------------------------------------


def test_explain_triage_lint_and_the_page_show_decisions_and_no_score_moves(
    review: Review, outputs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    common = ["-i", str(outputs), "-t", str(review.folder)]
    score = ["score", "-c", "K07", "-b", "b1", *common, "-f", "json"]
    main(score)
    before = json.loads(capsys.readouterr().out)["results"]
    decide(review, term_of(review, "arrived Sunday 18:00"), "rejected", comment="keep it")
    main(score)
    assert json.loads(capsys.readouterr().out)["results"] == before
    main(["explain", "--all", *common])
    assert "decided: rejected by ann, 2026-01-02: keep it" in capsys.readouterr().out
    main(["triage", *common, "-b", "b1", "-f", "json"])
    told = {each["term"]: each["decided"] for each in json.loads(capsys.readouterr().out)["proposals"]}
    assert told["arrived Sunday 18:00"] == "rejected by ann, 2026-01-02"
    main(["lint", str(review.folder)])
    assert "decided: rejected by ann, 2026-01-02" in capsys.readouterr().out
    main(["score", "-c", "K07", "-b", "b1", *common, "--explain", "-o", str(tmp_path / "page.html")])
    assert "rejected by ann, 2026-01-02" in (tmp_path / "page.html").read_text(encoding="utf-8")


# --- the server -------------------------------------------------------------------------------------------------------


@pytest.fixture
async def client() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


async def status(answer: Any) -> int:
    async with answer as response:
        return int(response.status)


async def test_other_hosts_origins_sites_and_tokens_are_refused(review: Review, client: aiohttp.ClientSession) -> None:
    async with served(review, by="ann") as address:
        assert await status(client.get(address)) == 200
        port = address.split(":")[2].split("/")[0]
        for headers in (
            {"Host": "evil.example"},
            {"Host": f"evil.example:{port}"},
            {"Origin": "http://evil.example"},
            {"Origin": "null"},
            {"Sec-Fetch-Site": "cross-site"},
            {"Sec-Fetch-Site": "same-site"},
        ):
            assert await status(client.get(address, headers=headers)) == 403
        for path in ("/", "/wrong/", "/wrong/case/0", "//"):
            assert await status(client.get(f"http://127.0.0.1:{port}{path}")) == 403
        assert await status(client.get(f"{address}case/99")) == 404
        async with client.get(address) as response:
            policy = response.headers["Content-Security-Policy"]
            assert "default-src 'none'" in policy
            assert "frame-ancestors 'none'" in policy
            assert response.headers["Cache-Control"] == "no-store"
            assert response.headers["Referrer-Policy"] == "no-referrer"


async def test_only_whole_decisions_as_json_are_taken(review: Review, client: aiohttp.ClientSession) -> None:
    good = {"item": 0, "choice": "rejected", "seen": "", "test_id": "T1", "term": review.cases[0].items[0].term}
    async with served(review, by="ann") as address:
        place = f"{address}case/0/term"
        assert await status(client.post(place, data=good)) == 400
        for bad in (
            {**good, "choice": "loved"},
            {**good, "item": 99},
            {**good, "term": "another"},
            {**good, "test_id": "T2"},
            {**good, "comment": "x" * 10_001},
            {**good, "by": "somebody else"},
        ):
            assert await status(client.post(place, json=bad)) == 400, bad
        assert await status(client.post(place, json=good)) == 200
        assert await status(client.post(place, json=good)) == 409
        verdict = {"verdict": "safe", "seen": "", "test_id": "T1"}
        assert await status(client.post(f"{address}case/0/verdict", json=verdict)) == 200
        assert await status(client.post(f"{address}case/0/verdict", json=verdict)) == 409
    assert len(Decisions.read(review.folder).terms) == 1


async def test_texts_are_shown_as_they_are_and_never_run(tmp_path: Path, client: aiohttp.ClientSession) -> None:
    hostile = "<script>alert(1)</script> \"quoted\" & 'more'"
    write_batch(tmp_path / "cases", "b1", a_case("T1", [hostile], patient_payload=hostile))
    outputs = write_report(tmp_path / "run.json", answer("T1", {**OUTPUT, "summary": hostile[:20]}))
    review = Review(DEFAULT_POLICY, TriageRequest(tmp_path / "cases", "*"), open_all([outputs]))
    async with served(review, by="<b>ann</b>") as address:
        for path in ("", "case/0"):
            async with client.get(address + path) as response:
                assert "<script>alert" not in await response.text()


def test_the_command_serves_until_it_is_stopped(outputs: Path) -> None:
    command = [sys.executable, "-m", "consumer", "review", "-i", str(outputs), "-t", str(outputs.parent / "cases")]
    environ = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environ) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(address) as page:  # noqa: S310 - the address was just looked at
            assert b"SAFE review" in page.read()
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0


def test_a_port_that_is_taken_is_named(outputs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import socket  # noqa: PLC0415

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        options = ["-i", str(outputs), "-t", str(outputs.parent / "cases"), "--port", port]
        assert main(["review", *options]) == 3
    assert f"--port {port} cannot be listened on" in capsys.readouterr().err


def test_a_crash_while_writing_leaves_the_last_decisions(review: Review, monkeypatch: pytest.MonkeyPatch) -> None:
    decide(review, 0, "rejected")
    before = (review.folder / "safe.decisions.json").read_bytes()

    def crash(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", crash)
    decision = TermDecision("T1", "CR", "x", None, "rejected", "ann", AT)
    with pytest.raises(KeyboardInterrupt):
        decide_term(review.folder, decision, "")
    assert (review.folder / "safe.decisions.json").read_bytes() == before
