"""The folder of batch files: the look-up rule, links and odd files, freshness, and files caught half written."""

import asyncio
import contextlib
import gzip
import json
import os
import random
import tempfile
import threading
import time
import tracemalloc
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from consumer.case_sources.folder import (
    LARGEST_FILE_BYTES,
    NAMED_AT_ONCE,
    FolderIndex,
    FolderSource,
    Listing,
    list_folder,
    read_whole,
)
from consumer.case_sources.source import ExpectationsKey, FoundExpectations
from consumer.dead_letter_reasons import Poison
from consumer.errors import ConfigurationError, Transient
from safe_core import Expectations, digest_of_narrative

LONG_AGO = 1_700_000_000.0


class Clock:
    """A clock that stands still but for `step` at each reading, and for what is slept on it."""

    def __init__(self, now: float = 0.0, step: float = 0.0) -> None:
        self.now = now
        self.step = step
        self.slept: list[float] = []

    def __call__(self) -> float:
        self.now += self.step
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def case(test_id: str | None, *signals: str, **more: object) -> dict[str, object]:
    """A test case that asks for some signals, and always against blame in the questions."""
    return {
        "test_id": test_id,
        "concern_id": "K07",
        "expectations": {
            "signal_generation": {"must_find_signals": list(signals)},
            "followup_questions": {"forbidden_terms": ["negligent"]},
        },
        **more,
    }


def written(folder: Path, name: str, content: object, at: float = LONG_AGO) -> Path:
    """Write a batch file, as bytes or as JSON of its test cases, last changed at `at`."""
    path = folder / name
    raw = content if isinstance(content, bytes) else json.dumps({"test_cases": content}).encode()
    path.write_bytes(raw)
    os.utime(path, (at, at))
    return path


def source_of(folder: Path, clock: Clock | None = None, wall: Clock | None = None) -> FolderSource:
    """A source whose clocks stand still, long after every file was written."""
    clock = clock or Clock()
    return FolderSource(folder, clock=clock, wall=wall or Clock(LONG_AGO + 1_000), sleep=clock.sleep)


async def started(folder: Path, clock: Clock | None = None, wall: Clock | None = None) -> FolderSource:
    """A source that has read its folder."""
    source = source_of(folder, clock, wall)
    await source.start()
    return source


async def asked(source: FolderSource, batch_id: str, test_id: str) -> FoundExpectations | Poison:
    """The answer to one key."""
    key = ExpectationsKey(batch_id, test_id)
    return (await source.find([key]))[key]


async def found(source: FolderSource, batch_id: str, test_id: str) -> FoundExpectations:
    """The test case of one key, which is there."""
    answer = await asked(source, batch_id, test_id)
    assert isinstance(answer, FoundExpectations), answer
    return answer


async def refused(source: FolderSource, batch_id: str, test_id: str) -> Poison:
    """Why one key can never be answered."""
    answer = await asked(source, batch_id, test_id)
    assert isinstance(answer, Poison), answer
    return answer


def signals(answer: FoundExpectations) -> tuple[str, ...]:
    """The signals that an answer demands."""
    return answer.prepared.expectations.must_find_signals


# --- the look-up rule -------------------------------------------------------------------------------------------------


async def test_a_test_case_is_found_by_batch_and_test_id_before_all_others(tmp_path: Path) -> None:
    written(tmp_path, "asthma_1.json", [case("A-1", "wheeze"), case("A-2", "silent chest")])
    written(tmp_path, "asthma_2.json", [case("A-1", "stridor", archetype="Safety_Signal", metric_id="asthma")])
    source = await started(tmp_path)

    first, second = await found(source, "asthma_1", "A-1"), await found(source, "asthma_2", "A-1")

    assert (signals(first), first.archetype, first.metric_id, first.expected_cases) == (("wheeze",), None, None, 2)
    assert signals(second) == ("stridor",)
    assert (second.concern_id, second.archetype, second.metric_id) == ("K07", "Safety_Signal", "asthma")
    assert (second.expected_cases, second.in_batch) == (1, True)


async def test_another_batch_answers_where_all_holders_agree_and_the_first_file_gives_the_archetype(
    tmp_path: Path,
) -> None:
    written(tmp_path, "golden.json", [case("A-1", "wheeze", archetype="Second", concern_id="K08")])
    written(tmp_path, "asthma_1.json", [case("A-1", "wheeze", archetype="First")])
    written(tmp_path, "asthma_9.json", [case("A-9", "cyanosis")])
    source = await started(tmp_path)

    unknown_batch = await found(source, "nightly", "A-1")
    known_batch = await found(source, "asthma_9", "A-1")

    assert (unknown_batch.archetype, unknown_batch.concern_id) == ("First", "K07")
    assert (unknown_batch.expected_cases, unknown_batch.in_batch) == (None, False)
    assert (known_batch.expected_cases, known_batch.in_batch) == (1, False)


BROKEN: dict[str, object] = {
    "test_id": "A-1",
    "expectations": {"event_summary": {"must_contain_phrases": ["tripod position", " "]}},
}

REFUSALS: list[tuple[str, dict[str, list[dict[str, object]]], tuple[str, str], str, str]] = [
    # nobody holds it
    (
        "unknown",
        {"a.json": [case("A-1", "x")]},
        ("a", "A-2"),
        "expectations_not_found",
        "no batch file contains it (1 file read)",
    ),
    # two others hold it and disagree
    (
        "disagreement",
        {"a.json": [case("A-1", "x")], "b.json": [case("A-1", "y")]},
        ("c", "A-1"),
        "expectations_ambiguous",
        "2 batch files contain it, with different expectations: a.json, b.json",
    ),
    # the same terms in another order are other expectations
    (
        "another order",
        {"a.json": [case("A-1", "x", "y")], "b.json": [case("A-1", "y", "x")]},
        ("c", "A-1"),
        "expectations_ambiguous",
        "a.json, b.json",
    ),
    # the batch's own test case is bad, though another batch has a good one
    (
        "bad in its own batch",
        {"a.json": [case("A-0"), BROKEN], "b.json": [case("A-1", "y")]},
        ("a", "A-1"),
        "expectations_invalid",
        "the batch's own file, test_cases[1]: event_summary.must_contain_phrases[1] is blank",
    ),
    # one of the other holders is bad: nobody knows whether it would agree
    (
        "bad elsewhere",
        {"a.json": [case("A-1", "y")], "b.json": [BROKEN]},
        ("c", "A-1"),
        "expectations_invalid",
        "b.json, test_cases[0]",
    ),
    # twice in one file, differently
    (
        "twice differently",
        {"a.json": [case("A-1", "y"), case("A-2"), case("A-1", "z")]},
        ("a", "A-1"),
        "expectations_ambiguous",
        "the batch's own file contains it twice, with different expectations: test_cases[0] and [2]",
    ),
    # twice in one file, once bad
    ("twice, once bad", {"a.json": [case("A-1", "y"), BROKEN]}, ("a", "A-1"), "expectations_invalid", "[1]"),
    # twice in another file, differently
    (
        "twice elsewhere",
        {"a.json": [case("A-1", "y"), case("A-1", "z")]},
        ("c", "A-1"),
        "expectations_ambiguous",
        "a.json contains it twice",
    ),
]


@pytest.mark.parametrize(
    ("files", "key", "reason", "detail"), [row[1:] for row in REFUSALS], ids=[r[0] for r in REFUSALS]
)
async def test_what_cannot_be_answered_says_why(
    tmp_path: Path, files: dict[str, list[dict[str, object]]], key: tuple[str, str], reason: str, detail: str
) -> None:
    for name, cases in files.items():
        written(tmp_path, name, cases)

    poison = await refused(await started(tmp_path), *key)

    assert poison.reason == reason
    assert detail in poison.detail


async def test_twice_in_one_file_with_equal_expectations_is_one_case_the_first(tmp_path: Path) -> None:
    written(tmp_path, "a.json", [case("A-1", "y", archetype="First"), case("A-1", "y", archetype="Second")])
    source = await started(tmp_path)

    answer = await found(source, "a", "A-1")

    assert (answer.archetype, answer.expected_cases) == ("First", 1)


async def test_bad_cases_and_cases_without_a_test_id_are_expected_too(tmp_path: Path) -> None:
    written(tmp_path, "a.json", [case("A-1"), case("A-1"), BROKEN, case("A-2"), case(None), case("\x00"), "rubbish"])
    source = await started(tmp_path)

    assert (await found(source, "a", "A-2")).expected_cases == 5


async def test_no_detail_repeats_the_key_or_a_term_and_each_fits_into_a_header(tmp_path: Path) -> None:
    batch_id, test_id, term = "sk-live-4242", "ghp-secret", "Frau Huber, 42"
    blank = {"event_summary": {"must_contain_phrases": [term, ""]}}
    written(tmp_path, f"{batch_id}.json", [{"test_id": test_id, "expectations": blank}, case("A-1", term), case("A-1")])
    for number in range(30):
        written(tmp_path, f"{'é' * 100}_{number}.json", [case("A-2", term, str(number))])
    source = await started(tmp_path)

    poisons = [await refused(source, batch_id, asked_for) for asked_for in (test_id, "A-1", "A-2", "A-3")]

    for poison in poisons:
        assert len(poison.detail.encode()) <= 512
        assert not any(secret in poison.detail for secret in (batch_id, test_id, term, "A-1", "A-2", "A-3"))


@pytest.mark.parametrize(
    "hostile", ["../outside", "/etc/passwd", "..", "~root", "%2e%2e%2foutside", "..%5coutside", "a.json", "a/../a", "*"]
)
async def test_an_id_that_looks_like_a_path_is_an_unknown_name(tmp_path: Path, hostile: str) -> None:
    folder = tmp_path / "cases"
    folder.mkdir()
    written(tmp_path, "outside.json", [case("A-1", "x"), case(hostile, "x")])
    written(folder, "a.json", [case("A-0", "x")])
    source = await started(folder)

    assert (await refused(source, hostile, "A-1")).reason == "expectations_not_found"
    assert (await refused(source, "a", hostile)).reason == "expectations_not_found"


async def test_every_key_of_a_slice_is_answered_and_counted(tmp_path: Path) -> None:
    written(tmp_path, "a.json", [case("A-1", "x"), BROKEN | {"test_id": "A-2"}, case("A-3", "p"), case("A-3", "q")])
    source = await started(tmp_path)
    keys = [ExpectationsKey("a", f"A-{number}") for number in (1, 2, 3, 4, 1)]

    answers = await source.find(keys)

    assert answers.keys() == set(keys)
    assert source.requests == {"found": 2, "invalid": 1, "ambiguous": 1, "not_found": 1, "transient": 0}


async def test_equal_expectations_are_prepared_once(tmp_path: Path) -> None:
    written(tmp_path, "a.json", [case("A-1", "x"), case("A-2", "x"), case("A-3", "y")])
    source = await started(tmp_path)

    one, same, other = [await found(source, "a", test_id) for test_id in ("A-1", "A-2", "A-3")]

    assert one.prepared is same.prepared
    assert one.prepared is not other.prepared


# --- odd names, links, things that are no files -----------------------------------------------------------------------


async def test_only_the_json_files_of_the_top_level_count_and_hidden_ones_do_not(tmp_path: Path) -> None:
    (tmp_path / "deeper").mkdir()
    for name in ("deeper/a.json", ".hidden.json", "a.json.swp", "notes.txt"):
        written(tmp_path, name, [case("A-1", "x")])
    source = await started(tmp_path)

    assert (await refused(source, "a", "A-1")).detail == "no batch file contains it (0 files read)"


def config_map(folder: Path, revision: str, content: list[dict[str, object]]) -> None:
    """Mount a revision as the kubelet does: a folder of its own, then `..data` replaced by a link to it."""
    (folder / revision).mkdir()
    written(folder / revision, "a.json", content)
    (folder / "..data_tmp").symlink_to(revision)
    (folder / "..data_tmp").replace(folder / "..data")
    if not (folder / "a.json").is_symlink():
        (folder / "a.json").symlink_to("..data/a.json")


async def test_the_links_of_a_config_map_are_followed_and_so_is_its_next_revision(tmp_path: Path) -> None:
    clock = Clock()
    config_map(tmp_path, "..2026_01", [case("A-1", "wheeze")])
    source = await started(tmp_path, clock)
    before = await found(source, "a", "A-1")

    config_map(tmp_path, "..2026_02", [case("A-1", "stridor")])
    clock.now += 1

    assert (signals(before), signals(await found(source, "a", "A-1"))) == (("wheeze",), ("stridor",))


async def test_a_link_that_leaves_the_folder_and_what_is_no_file_are_ignored_with_a_warning(tmp_path: Path) -> None:
    folder = tmp_path / "cases"
    folder.mkdir()
    beside = tmp_path / "cases-of-others"
    beside.mkdir()
    written(beside, "a.json", [case("A-1", "x")])
    (folder / "link.json").symlink_to(beside / "a.json")
    (folder / "relative.json").symlink_to("../cases-of-others/a.json")
    (folder / "device.json").symlink_to("/dev/zero")
    (folder / "loop.json").symlink_to("loop.json")
    (folder / "nothing.json").symlink_to("nowhere.json")
    (folder / "folder.json").mkdir()
    os.mkfifo(folder / "fifo.json")

    with capture_logs() as logs:
        source = await started(folder)
        poison = await refused(source, "link", "A-1")

    assert poison.reason == "expectations_not_found"
    assert {entry["file"]: entry["why"] for entry in logs if entry["log_level"] == "warning" and "file" in entry} == {
        "link.json": "is a link that leaves the folder",
        "relative.json": "is a link that leaves the folder",
        "device.json": "is a link that leaves the folder",
        "loop.json": "is not a regular file",
        "nothing.json": "is a link to nothing",
        "folder.json": "is not a regular file",
        "fifo.json": "is not a regular file",
    }
    assert source.unusable == tuple(sorted(entry["file"] for entry in logs if "file" in entry))


def test_what_was_swapped_for_a_link_or_a_fifo_after_the_listing_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("{}")
    (tmp_path / "link.json").symlink_to(tmp_path / "secret")
    os.mkfifo(tmp_path / "fifo.json")

    assert read_whole(str(tmp_path / "link.json")) is None
    assert read_whole(str(tmp_path / "fifo.json")) is None
    assert read_whole(str(tmp_path / "gone.json")) is None


async def test_a_file_name_that_is_no_text_harms_nobody(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"\xff\x1b[2J.json")).write_bytes(b"{")
    os.utime(tmp_path / os.fsdecode(b"\xff\x1b[2J.json"), (LONG_AGO, LONG_AGO))

    with capture_logs() as logs:
        poison = await refused(await started(tmp_path), "a", "A-1")

    poison.detail.encode()
    assert [entry["file"] for entry in logs if "file" in entry] == ["\\udcff\\u001b[2J.json"]
    assert "\x1b" not in poison.detail


# --- freshness --------------------------------------------------------------------------------------------------------


async def test_a_changed_file_is_seen_a_second_later_at_the_latest(tmp_path: Path) -> None:
    clock = Clock()
    written(tmp_path, "a.json", [case("A-1", "wheeze")])
    source = await started(tmp_path, clock)
    await found(source, "a", "A-1")

    written(tmp_path, "a.json", [case("A-1", "stridor")])
    clock.now += 0.9
    assert signals(await found(source, "a", "A-1")) == ("wheeze",)
    clock.now += 0.1
    assert signals(await found(source, "a", "A-1")) == ("stridor",)


async def test_a_change_that_leaves_size_and_time_stamp_alone_is_seen_too(tmp_path: Path) -> None:
    clock = Clock()
    written(tmp_path, "a.json", [case("A-1", "wheeze")])
    source = await started(tmp_path, clock)

    written(tmp_path, "a.json", [case("A-1", "WHEEZE")])
    clock.now += 1

    assert signals(await found(source, "a", "A-1")) == ("WHEEZE",)


async def test_a_young_file_is_read_again_though_it_looks_the_same(tmp_path: Path) -> None:
    wall = Clock(LONG_AGO + 1)
    path = written(tmp_path, "a.json", [case("A-1", "wheeze")])
    young = FolderIndex().followed_by(list_folder(tmp_path), wall)
    again = young.followed_by(list_folder(tmp_path), wall)
    wall.now += 10
    settled = again.followed_by(list_folder(tmp_path), wall)

    assert young.files["a.json"].signature is None
    assert again.holders is young.holders, "unchanged bytes are not parsed again"
    assert settled.files["a.json"].signature == list_folder(path.parent).files["a.json"].signature


async def test_nothing_is_called_unknown_before_the_folder_was_looked_at_once_more(tmp_path: Path) -> None:
    written(tmp_path, "a.json", [case("A-1", "x")])
    source = await started(tmp_path)
    await refused(source, "a", "A-2")

    written(tmp_path, "b.json", [case("A-2", "x")])

    assert signals(await found(source, "a", "A-2")) == ("x",)


async def test_what_a_file_holds_twice_differently_is_decided_by_the_narrative(tmp_path: Path) -> None:
    told = {"patient_payload": "He wheezes."}
    written(tmp_path, "a.json", [case("A-1", "x"), case("A-1", "y") | told, case("A-1", "z"), case("A-1", "y")])
    written(tmp_path, "b.json", [case("A-1", "w")])
    source = await started(tmp_path)
    for batch in ("a", "nightly"):
        keys = [ExpectationsKey(batch, "A-1", digest_of_narrative(text)) for text in ("He wheezes.", "She wheezes.")]
        his, hers = (await source.find(keys)).values()
        assert isinstance(his, FoundExpectations)
        assert signals(his) == ("y",)
        assert isinstance(hers, Poison)
        assert hers.reason == "expectations_ambiguous"


async def test_an_invalid_or_ambiguous_case_is_mended_without_waiting(tmp_path: Path) -> None:
    written(tmp_path, "a.json", [BROKEN, case("A-2", "x"), case("A-2", "y")])
    source = await started(tmp_path)
    assert (await refused(source, "a", "A-1")).reason == "expectations_invalid"

    written(tmp_path, "a.json", [case("A-1", "x"), case("A-2", "x")])

    assert signals(await found(source, "a", "A-1")) == signals(await found(source, "a", "A-2")) == ("x",)


async def test_a_removed_file_takes_its_cases_with_it_and_leaves_those_of_others(tmp_path: Path) -> None:
    clock = Clock()
    for name in ("a.json", "b.json", "c.json"):
        written(tmp_path, name, [case("A-1", "x" if name == "a.json" else "y"), case(f"only {name}")])
    source = await started(tmp_path, clock)
    assert (await refused(source, "nightly", "A-1")).reason == "expectations_ambiguous"

    (tmp_path / "a.json").unlink()
    clock.now += 1

    assert signals(await found(source, "nightly", "A-1")) == ("y",)
    assert (await refused(source, "a", "only a.json")).reason == "expectations_not_found"
    assert (await found(source, "a", "A-1")).expected_cases is None


async def test_simultaneous_calls_share_a_scan(tmp_path: Path) -> None:
    written(tmp_path, "a.json", [case("A-1", "x")])
    source = await started(tmp_path)

    await asyncio.gather(*(refused(source, "a", f"unknown {number}") for number in range(50)))

    assert source._finished == 2


async def test_scans_of_a_slow_folder_take_a_tenth_of_the_time_and_a_miss_waits_for_the_next(tmp_path: Path) -> None:
    clock = Clock()
    written(tmp_path, "a.json", [case("A-1", "x")])
    source = source_of(tmp_path, clock)
    clock.step = 0.5  # a listing reads the clock before and after
    await source.start()
    clock.step = 0.0
    clock.now += 4.0

    await found(source, "a", "A-1")
    assert source._finished == 1, "the folder rests for five seconds"
    written(tmp_path, "b.json", [case("A-2", "x")])
    await found(source, "a", "A-2")

    assert source._finished == 2
    assert clock.slept == [pytest.approx(1.0)]


async def test_a_cancelled_caller_does_not_take_the_scan_from_the_others(tmp_path: Path) -> None:
    source = await started(tmp_path)
    impatient = asyncio.create_task(asked(source, "a", "A-1"))
    patient = asyncio.create_task(asked(source, "a", "A-1"))
    await asyncio.sleep(0)

    impatient.cancel()

    assert isinstance(await patient, Poison)
    with pytest.raises(asyncio.CancelledError):
        await impatient
    await source.stop()
    await source.stop()


def described(index: FolderIndex) -> dict[str, Any]:
    """All that an index can answer."""
    return {
        "holders": index.holders,
        "rows": {name: file.rows for name, file in index.files.items()},
        "cases": {name: file.cases for name, file in index.files.items()},
        "bad": index.bad_files,
    }


@pytest.mark.parametrize("seed", range(20))
def test_an_index_that_followed_every_change_equals_one_made_afresh(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    wall = Clock(LONG_AGO + 1_000)
    index = FolderIndex()
    for _ in range(15):
        for name in chance.sample(["a.json", "a-b.json", "b.json", "b10.json", "c.json"], k=2):
            if chance.random() < 0.25:
                (tmp_path / name).unlink(missing_ok=True)
                continue
            test_ids = chance.choices(["A-1", "A-2", "A-3", "A-4"], k=3)
            written(tmp_path, name, [case(test_id, chance.choice("xy")) for test_id in test_ids])
        index = index.followed_by(list_folder(tmp_path), wall)

        assert described(index) == described(FolderIndex().followed_by(list_folder(tmp_path), wall))


def expected_answer(files: dict[str, dict[str, Expectations]], key: ExpectationsKey) -> Expectations | str:
    """The contract's rule once more, in its own words."""
    own = files.get(key.batch_id + ".json", {})
    if key.test_id in own:
        return own[key.test_id]
    holders = [files[name][key.test_id] for name in sorted(files) if key.test_id in files[name]]
    if not holders:
        return "expectations_not_found"
    return holders[0] if all(each == holders[0] for each in holders) else "expectations_ambiguous"


@pytest.mark.parametrize("seed", range(20))
async def test_every_answer_follows_the_rule_of_the_contract(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    files: dict[str, dict[str, Expectations]] = {}
    for name in ("a.json", "b.json", "b10.json"):
        held = {test_id: chance.choice("xxy") for test_id in chance.sample(["A-1", "A-2", "A-3", "A-4"], k=2)}
        written(tmp_path, name, [case(test_id, signal) for test_id, signal in held.items()])
        files[name] = {test_id: Expectations((signal,), ("negligent",)) for test_id, signal in held.items()}
    source = await started(tmp_path)
    keys = [ExpectationsKey(batch, f"A-{number}") for batch in ("a", "b", "b10", "nightly") for number in range(1, 6)]

    answers = await source.find(keys)

    for key in keys:
        answer = answers[key]
        told = answer.reason if isinstance(answer, Poison) else answer.prepared.expectations
        assert told == expected_answer(files, key), key


COMPOSED, DECOMPOSED = "caf\u00e9", "cafe\u0301"


@pytest.mark.parametrize(("name", "asked_for"), [(COMPOSED, DECOMPOSED), (DECOMPOSED, COMPOSED)])
async def test_a_batch_is_found_in_either_unicode_form_of_its_name(tmp_path: Path, name: str, asked_for: str) -> None:
    written(tmp_path, f"{name}.json", [case("A-1", "x"), case("A-2", "x")])
    written(tmp_path, "other.json", [case("A-1", "y")])
    source = await started(tmp_path)

    for batch_id in (name, asked_for):
        answer = await found(source, batch_id, "A-1")
        assert (signals(answer), answer.expected_cases) == (("x",), 2)
    assert (await refused(source, COMPOSED + "s", "A-1")).reason == "expectations_ambiguous", "that is another name"


async def test_of_two_forms_of_a_name_each_is_a_batch_of_its_own(tmp_path: Path) -> None:
    written(tmp_path, f"{COMPOSED}s.json", [case("A-1", "x")])
    written(tmp_path, f"{DECOMPOSED}s.json", [case("A-1", "y")])
    source = await started(tmp_path)

    assert signals(await found(source, f"{COMPOSED}s", "A-1")) == ("x",)
    assert signals(await found(source, f"{DECOMPOSED}s", "A-1")) == ("y",)


# --- files caught half written, or unreadable -------------------------------------------------------------------------

UNPARSABLE = [
    (b"", "not valid JSON (line 1, column 1)"),
    (b'{"test_cases": [\n{"test_id": "A-', "not valid JSON (line 2, column 13)"),
    (b'\xef\xbb\xbf{"test_cases": 7}', "test_cases is not a list"),
    (b'{"test_cases": "\xff"}', "not UTF-8"),
    ('{"test_cases": []}'.encode("utf-16"), "is UTF-16: write it as UTF-8"),
    ('{"test_cases": []}'.encode("utf-16-be"), "is UTF-16: write it as UTF-8"),
    (gzip.compress(b'{"test_cases": []}'), "is compressed with gzip: write it uncompressed"),
    (b'"{}"', "not an object, but a string that looks like one: it was encoded as JSON twice"),
    (b"[" * 100_000, "not JSON that can be read"),
    (b"[]", "not an object"),
    (
        b'{"testCases": [{"expectations": {}}]}',
        "test_cases is missing, and another key holds test cases: they belong in a list named test_cases",
    ),
    (b'{"test_id": "A-1", "expectations": {}}', "is a single test case; a batch file has a list named test_cases"),
]


@pytest.mark.parametrize(("raw", "problem"), UNPARSABLE, ids=[problem for _, problem in UNPARSABLE])
async def test_a_file_that_does_not_parse_harms_only_its_own_batch(tmp_path: Path, raw: bytes, problem: str) -> None:
    written(tmp_path, "bad.json", raw)
    written(tmp_path, "good.json", [case("A-1", "x")])
    source = await started(tmp_path)

    own = await refused(source, "bad", "A-1")
    unknown = await refused(source, "good", "A-2")

    for batch_id in ("good", "nightly"):
        assert signals(await found(source, batch_id, "A-1")) == ("x",)
    assert (own.reason, own.detail) == ("expectations_invalid", f"the batch's own file: {problem}")
    assert unknown.detail == "no batch file contains it (1 file read), and 1 more cannot be read: bad.json"
    assert source.unusable == ("bad.json",)


async def test_a_lone_surrogate_or_a_nan_harms_only_its_own_case(tmp_path: Path) -> None:
    bad = '{"test_id": "A-1", "expectations": {"event_summary": {"must_contain_phrases": ["\\ud800"]}}}'
    good = '{"test_id": "A-2", "weight": NaN, "expectations": {}}'
    written(tmp_path, "a.json", f'{{"test_cases": [{bad}, {good}]}}'.encode())
    source = await started(tmp_path)

    assert (await refused(source, "a", "A-1")).reason == "expectations_invalid"
    assert not signals(await found(source, "a", "A-2"))


async def test_a_half_written_file_keeps_its_last_good_version_and_is_named_once_per_change(tmp_path: Path) -> None:
    clock = Clock()
    written(tmp_path, "a.json", [case("A-1", "wheeze")])
    source = await started(tmp_path, clock)

    with capture_logs() as logs:
        for half in (b'{"test_', b'{"test_cases'):
            written(tmp_path, "a.json", half)
            for _ in range(3):
                clock.now += 1
                assert signals(await found(source, "a", "A-1")) == ("wheeze",)

    kept = {"until_it_is_repaired": "its last good version stays in use"}
    warning = {
        "event": "a batch file cannot be used",
        "file": "a.json",
        "why": "not valid JSON (line 1, column 2)",
    } | kept
    assert [entry for entry in logs if "file" in entry] == [warning | {"log_level": "warning"}] * 2
    assert source.unusable == ("a.json",)
    written(tmp_path, "a.json", [case("A-1", "stridor")])
    clock.now += 1
    assert signals(await found(source, "a", "A-1")) == ("stridor",)
    assert not source.unusable


async def test_a_file_with_unusable_test_cases_is_named_whenever_it_has_changed_and_many_at_once_are_counted(
    tmp_path: Path,
) -> None:
    clock = Clock()
    good, bad = case("A-1", "wheeze"), case("A-2") | {"expectations": 7}
    twice = [case("A-3", "wheeze"), case("A-3", "stridor")]
    told = "test cases cannot be used: safe lint says why"
    with capture_logs() as logs:
        written(tmp_path, "a.json", [good, bad, case(None), *twice])
        written(tmp_path, "b.json", [good])
        source = await started(tmp_path, clock)
        for cases in ([good, bad], [good], [good]):
            written(tmp_path, "a.json", cases)
            clock.now += 1
            await source.find([ExpectationsKey("nobody", "nothing")])
        first = [entry for entry in logs if entry["event"] == told]
        for at in range(NAMED_AT_ONCE + 2):
            written(tmp_path, f"c{at:02}.json", [bad])
        clock.now += 1
        await source.find([ExpectationsKey("nobody", "nothing")])
    assert [(entry["file"], entry["test_cases"]) for entry in first] == [("a.json", 3), ("a.json", 1)]
    assert len([entry for entry in logs if entry["event"] == told]) == 2 + NAMED_AT_ONCE
    assert [entry["files"] for entry in logs if "more files" in entry["event"]] == [2]


async def test_an_enormous_file_is_not_read_and_its_last_good_version_stays(tmp_path: Path) -> None:
    clock = Clock()
    written(tmp_path, "a.json", [case("A-1", "wheeze")])
    source = await started(tmp_path, clock)

    with (tmp_path / "a.json").open("wb") as sparse:
        sparse.truncate(LARGEST_FILE_BYTES + 1)
    clock.now += 1
    with capture_logs() as logs:
        assert signals(await found(source, "a", "A-1")) == ("wheeze",)

    assert source.unusable == ("a.json",)
    assert [entry["why"] for entry in logs if "file" in entry] == ["is larger than 256 MiB"]


async def test_what_may_stand_in_a_file_being_written_is_waited_for(tmp_path: Path) -> None:
    wall = Clock(LONG_AGO)
    written(tmp_path, "good.json", [case("A-1", "x")])
    source = await started(tmp_path, wall=wall)
    await found(source, "new", "A-1")

    written(tmp_path, "new.json", b'{"test_cases": [', at=LONG_AGO)
    wall.now += 4.9
    with pytest.raises(Transient, match=r"^new\.json is being written$"):
        await asked(source, "good", "A-2")
    with pytest.raises(Transient, match="the batch's own file is being written"):
        await asked(source, "new", "A-1")  # another batch holds the same test_id, but perhaps not the same case
    assert signals(await found(source, "good", "A-1")) == ("x",)
    assert source.requests["transient"] == 2

    wall.now += 0.1
    assert (await refused(source, "good", "A-2")).reason == "expectations_not_found"
    assert (await refused(source, "new", "A-1")).reason == "expectations_invalid"


async def test_a_new_case_in_a_known_file_being_rewritten_is_waited_for_too(tmp_path: Path) -> None:
    wall = Clock(LONG_AGO + 1_000)
    written(tmp_path, "a.json", [case("A-1", "x")])
    source = await started(tmp_path, wall=wall)

    written(tmp_path, "a.json", b'{"test_cases": [', at=wall.now)

    with pytest.raises(Transient):
        await asked(source, "a", "A-2")
    with pytest.raises(Transient):
        await asked(source, "b", "A-2")
    written(tmp_path, "a.json", [case("A-1", "x"), case("A-2", "y")], at=wall.now)
    assert signals(await found(source, "b", "A-2")) == ("y",)


@contextlib.contextmanager
def as_somebody() -> Iterator[Path]:
    """A folder, and no privileges: root may read everything, so it steps down for a while."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        if os.geteuid() != 0:
            yield folder
            return
        os.seteuid(65_534)
        try:
            yield folder
        finally:
            os.seteuid(0)


@contextlib.contextmanager
def as_owner() -> Iterator[None]:
    """What the folder's owner does meanwhile."""
    effective = os.geteuid()
    os.seteuid(os.getuid())
    yield
    os.seteuid(effective)


async def test_an_unreadable_file_is_bad_until_it_can_be_read(tmp_path: Path) -> None:
    del tmp_path  # below a folder that only its owner may enter
    with as_somebody() as folder:
        with as_owner():
            written(folder, "a.json", [case("A-1", "x")]).chmod(0)
            written(folder, "b.json", [case("A-2", "x")])
        source = await started(folder)
        poison = await refused(source, "a", "A-1")
        assert (poison.reason, poison.detail) == ("expectations_invalid", "the batch's own file: may not be read")
        await found(source, "b", "A-2")

        with as_owner():
            (folder / "a.json").chmod(0o644)
        assert signals(await found(source, "a", "A-1")) == ("x",)
        assert not source.unusable


async def test_a_folder_that_may_not_be_entered_is_trouble_not_poison(tmp_path: Path) -> None:
    del tmp_path
    with as_somebody() as folder:
        with as_owner():
            written(folder, "a.json", [case("A-1", "x")])
        source = await started(folder)
        for mode in (0o000, 0o444, 0o111):
            with as_owner():
                folder.chmod(mode)
            with pytest.raises(Transient, match="Permission denied"):
                await asked(source, "a", "A-2")
        with as_owner():
            folder.chmod(0o755)
        assert (await refused(source, "a", "A-2")).reason == "expectations_not_found"


async def test_two_hundred_swaps_under_load_never_make_poison(tmp_path: Path) -> None:
    versions = [json.dumps({"test_cases": [case(f"A-{n}", v * 2_000) for n in range(20)]}).encode() for v in "xyz"]
    path, spare, over = tmp_path / "a.json", tmp_path / ".a.json.new", threading.Event()
    path.write_bytes(versions[0])

    def swap() -> None:
        for turn in range(200):
            raw = versions[turn % 3]
            if turn % 2:
                spare.write_bytes(raw)
                spare.replace(path)
                continue
            with path.open("wb", buffering=0) as file:
                for start in range(0, len(raw), 20_000):
                    file.write(raw[start : start + 20_000])
        over.set()

    clock = Clock(step=1.0)  # so that every call looks at the folder
    source = FolderSource(tmp_path, clock=clock, wall=time.time, sleep=clock.sleep)
    await source.start()
    writer = threading.Thread(target=swap)
    writer.start()
    keys = [ExpectationsKey("a", f"A-{number}") for number in range(20)]
    answers: list[FoundExpectations | Poison] = []
    while not (over.is_set() and answers):  # on a busy machine, the swaps may be over before the first answer
        with contextlib.suppress(Transient):
            answers += (await source.find(keys)).values()
    writer.join()

    assert answers
    assert not [answer for answer in answers if isinstance(answer, Poison)]
    assert {signals(answer)[0][0] for answer in answers if isinstance(answer, FoundExpectations)} <= set("xyz")


def test_a_file_that_gives_more_than_its_size_is_not_taken_for_whole() -> None:
    # As of a file that grows while it is read; those of /proc always claim to be empty.
    growing = Path("/proc/self/status")
    if not growing.exists():
        pytest.skip("there is no /proc here, and no other file that surely grows at the right moment")

    assert read_whole(str(growing)) is None


def test_a_file_that_a_listing_missed_is_not_taken_for_removed(tmp_path: Path) -> None:
    wall = Clock(LONG_AGO + 1_000)
    written(tmp_path, "a.json", [case("A-1", "x")])
    index = FolderIndex().followed_by(list_folder(tmp_path), wall)

    # A folder that changes while it is being listed may leave out a file that was replaced meanwhile.
    incomplete = Listing(str(tmp_path.resolve()), {}, {})

    assert "A-1" in index.followed_by(incomplete, wall).holders
    (tmp_path / "a.json").unlink()
    assert "A-1" not in index.followed_by(incomplete, wall).holders


# --- the folder itself ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["nothing", "file"])
async def test_a_missing_folder_stops_the_start_with_its_name_and_the_remedy(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "test-cases"
    if kind == "file":
        place.write_text("{}")

    with pytest.raises(ConfigurationError, match=r"test-cases cannot be read .*SAFE_V0_EXPECTATIONS"):
        await started(place)


async def test_a_vanished_folder_is_trouble_for_every_key_until_it_is_back(tmp_path: Path) -> None:
    clock = Clock()
    folder, away = tmp_path / "cases", tmp_path / "away"
    folder.mkdir()
    written(folder, "a.json", [case("A-1", "x")])
    source = await started(folder, clock)
    await found(source, "a", "A-1")
    assert source.trouble() is None

    folder.rename(away)
    clock.now += 1
    with pytest.raises(Transient, match="No such file or directory"):
        await asked(source, "a", "A-1")
    assert "cannot be read" in (source.trouble() or "")

    away.rename(folder)
    await found(source, "a", "A-1")
    assert source.trouble() is None


async def test_readiness_alone_notices_a_vanished_folder(tmp_path: Path) -> None:
    clock = Clock()
    folder = tmp_path / "cases"
    folder.mkdir()
    source = await started(folder, clock)
    folder.rmdir()
    clock.now += 6

    source.trouble()
    assert source._looking is not None
    await source._looking

    assert "cannot be read" in (source.trouble() or "")


async def test_a_folder_that_does_not_answer_is_trouble(tmp_path: Path) -> None:
    clock = Clock()
    source = await started(tmp_path, clock)
    waiting = asyncio.create_task(asked(source, "a", "A-1"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)  # the caller has begun a scan, which has not been heard of since

    clock.now += 31
    assert source.trouble() == "the expectations folder has not answered for 31 s"
    await waiting
    assert source.trouble() is None


# --- size -------------------------------------------------------------------------------------------------------------


def test_a_case_costs_less_than_five_hundred_bytes_beyond_shared_terms(tmp_path: Path) -> None:
    for number in range(200):
        cases = [case(f"K07-BATCH{number:04}-{n:03}", "wheeze", archetype="Safety_Signal") for n in range(10)]
        written(tmp_path, f"K07_batch_{number}.json", cases)
    wall = Clock(LONG_AGO + 1_000)

    tracemalloc.start()
    try:
        index = FolderIndex().followed_by(list_folder(tmp_path), wall)
        bytes_held, _peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert len(index.holders) == 2_000
    assert len(index.shared) == 1
    assert bytes_held / 2_000 < 500


def test_expectations_that_nobody_holds_any_more_are_let_go(tmp_path: Path) -> None:
    wall = Clock(LONG_AGO + 1_000)
    index = FolderIndex()
    for version in range(3):
        cases: Sequence[object] = [case(f"A-{number}", f"finding {version} {number}") for number in range(1_500)]
        written(tmp_path, "a.json", cases)
        index = index.followed_by(list_folder(tmp_path), wall)

    assert len(index.shared) == 1_500


async def test_a_folder_that_loses_all_its_test_cases_at_once_is_an_outage_not_a_reason_for_dead_letters(
    tmp_path: Path,
) -> None:
    written(tmp_path, "a.json", [case("A-1", "wheeze")])
    clock = Clock()
    source = await started(tmp_path, clock)
    assert signals(await found(source, "a", "A-1")) == ("wheeze",)
    (tmp_path / "a.json").unlink()
    clock.now += 2
    with pytest.raises(Transient, match="has lost all of its test cases"):
        await source.find([ExpectationsKey("a", "A-1")])
    assert source.trouble() is not None
    written(tmp_path, "a.json", [case("A-1", "stridor")])
    clock.now += 2
    assert signals(await found(source, "a", "A-1")) == ("stridor",)
    assert source.trouble() is None
    await source.stop()
