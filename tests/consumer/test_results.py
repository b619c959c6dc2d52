"""What `safe results` shows, without a broker: which options fit together, what is kept of a million results."""

import asyncio
import io
import json
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rich.console import Console

from consumer.cli.main import main
from consumer.results.chosen import Batches, Chosen
from consumer.results.scorecard import Scorecard, most_frequent_terms
from consumer.results.screen import Screen, closing
from consumer.settings import Settings
from consumer.terminal import result_console
from consumer.wire.event_schemas import event_schema
from consumer.wire.record import Record

# The options, and what is wrong with them.
REFUSED = [
    (["--outputs"], "--outputs prints texts, which may be patient data: name the batches with --batch"),
    (["--outputs", "-b", "b", "--follow"], "leave --follow, --format and --reports out"),
    (["--outputs", "-b", "b", "-f", "json"], "leave --follow, --format and --reports out"),
    (["--reports"], "--reports says what --format json prints: give that, too"),
    (["--since", "1d"], "the table shows batches as they are now: give --since with --follow or --format json"),
    (["--follow", "--since", "soon"], "--since soon is neither a time with a zone"),
    ([], "SAFE_V0_KAFKA_BOOTSTRAP_SERVERS is not set"),
]


@pytest.mark.parametrize(("options", "sentence"), REFUSED)
def test_options_that_do_not_fit_together_are_refused(
    options: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["results", *options]) == 3
    printed = capsys.readouterr()
    assert sentence in printed.err
    assert (printed.out, len(printed.err.splitlines())) == ("", 1)


def test_help_says_which_option_prints_texts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["results", "--help"]) == 0
    assert "MAY CONTAIN PATIENT DATA" in " ".join(capsys.readouterr().out.split())


def example(kind: str) -> dict[str, Any]:
    [document, *_] = event_schema(kind)["examples"]
    return cast("dict[str, Any]", document)


def record(topic: str, document: dict[str, Any]) -> Record:
    key = f"{document['concern_id']}/{document['batch_id']}".encode()
    value = json.dumps(document).encode()
    of_type = [("ce_type", b"safe:v0:report" if "report" in topic else b"safe:v0:result")]
    made = SimpleNamespace(topic=topic, partition=0, offset=0, timestamp=0, key=key, value=value, headers=of_type)
    return cast("Record", made)


def result(offset: int, **changes: Any) -> Record:
    document = example("result")
    document["source"]["offset"] = offset
    document["result"]["test_id"] = f"case {offset}"
    return record(Settings().result_topic, document | changes)


def test_what_is_kept_does_not_grow_with_the_number_of_results(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("consumer.results.scorecard._REMEMBERED", 100)
    card = Scorecard(Settings(), newest=7)
    for offset in range(250):
        card.note(result(offset))
    kept = [card.newest, card._labels, card._sources]
    assert [len(each) <= 100 for each in kept] == [True, True, True]
    assert (card.arrived, len(card.newest), len(card.batches)) == (250, 7, 1)


def test_a_result_that_is_delivered_again_is_shown_once_and_a_new_label_names_the_old_one() -> None:
    card = Scorecard(Settings())
    first = card.note(result(1))
    assert card.note(result(1)) is None
    document = example("result")
    document["source"]["offset"] = 2
    document["result"] |= {"test_id": "case 1", "label": "Pass"}
    second = card.note(record(Settings().result_topic, document))
    assert first is not None
    assert second is not None
    assert (first.was, second.was) == (None, first.label)


def test_a_batch_is_as_its_last_result_says_or_as_its_report_if_no_result_is_known() -> None:
    card, report, document = Scorecard(Settings()), example("report"), example("result")
    named = {"batch_id": "b", "concern_id": document["concern_id"]}
    fewer = report["summary"] | {"total_cases": 1}
    told = record(Settings().report_topic, report | named | {"summary": fewer})
    card.note(told)
    [batch] = card.batches.values()
    assert (batch.summary, batch.is_final) == (fewer, True)
    scored = result(1, batch_id="b", timestamp="2020-01-01T00:00:00.000Z")
    card.note(scored)
    card.note(told)  # it was written later, but may cover less: a result is stamped when it is scored
    assert (batch.summary, batch.is_final) == (document["summary"], False)
    card.note(record(Settings().report_topic, report | named | {"summary": document["summary"]}))
    assert batch.is_final


def test_terms_of_all_batches_are_ranked_together() -> None:
    card, report = Scorecard(Settings()), example("report")
    for name in ("one", "two"):
        card.note(record(Settings().report_topic, report | {"batch_id": name}))
    [(term, times), *_] = most_frequent_terms(card.batches.values(), "missing")
    listed = report["failure_analysis"]["common_CR_misses"] + report["failure_analysis"]["common_AC_misses"]
    assert times == 2 * max(each["miss_count"] for each in listed)
    assert term in {each.get("signal", each.get("phrase")) for each in listed}


def test_a_screen_with_many_batches_shows_those_that_changed_last_and_counts_the_others() -> None:
    card = Scorecard(Settings())
    for number in range(1, 41):
        card.note(result(number, batch_id=f"batch_{number}"))
    console = Console(file=io.StringIO(), width=80, height=24, force_terminal=True, color_system=None)
    screen = Screen(console, card, "SAFE results", None)
    with console.capture() as captured:
        console.print(_drawn(screen))
    shown = captured.get()
    assert [f"batch_{number} " in shown for number in (36, 37, 40)] == [False, True, True]
    assert "all 40 " in shown
    assert len(shown.splitlines()) <= 24


def _drawn(screen: Screen) -> Any:
    from consumer.results import screen as module  # noqa: PLC0415 - what a live screen would draw

    return module._live_screen(screen)


@pytest.mark.parametrize("name", ["stroke[left]", "stroke[/left]", "stroke :skull:"])
def test_a_name_is_shown_as_it_is_whatever_a_table_could_read_in_it(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    card, document = Scorecard(Settings()), example("result")
    document["result"] |= {"test_id": name[6:], "archetype": name}
    card.note(record(Settings().result_topic, document | {"batch_id": name}))
    [miss, *_] = (report := example("report"))["failure_analysis"]["common_CR_misses"]
    miss |= {"signal": name, "miss_count": 99}
    card.note(record(Settings().report_topic, report | {"batch_id": name}))
    console = result_console()
    closing(console, card)
    assert capsys.readouterr().out.count(name) == 2  # the batch, and the term
    console.print(_drawn(Screen(console, card, "SAFE results", None)))
    assert capsys.readouterr().out.count(name) == 3


# What is asked for, the batch that is there, and whether that is it: as every command on files reads --batch.
GLOBS = [
    ("stroke[1]", "stroke[1]", True),
    ("stroke[1]", "stroke1", False),
    ("stroke_*", "stroke_[a]", True),
    ("Schl\u00e4fe_*", "Schla\u0308fe_1", True),
    ("stroke", "Stroke", False),
]


@pytest.mark.parametrize(("glob", "batch_id", "is_asked_for"), GLOBS)
def test_a_batch_is_named_as_in_every_other_command(glob: str, batch_id: str, is_asked_for: bool) -> None:
    assert Batches([glob]).take(batch_id) is is_asked_for


def test_two_concerns_may_have_a_batch_of_one_name() -> None:
    card = Scorecard(Settings())
    card.note(result(1, concern_id="A", batch_id="b"))
    card.note(result(2, concern_id="B", batch_id="b"))
    card.note(result(3, concern_id="B", batch_id="c"))
    assert list(card.newest_batches(9)) == ["A/b", "B/b", "c"]


def test_a_terminal_is_not_fooled_by_names() -> None:
    card = Scorecard(Settings())
    card.note(result(1, batch_id="\x1b[2J"))
    console = Console(file=io.StringIO(), width=80, color_system=None)
    closing(console, card)
    assert "\x1b" not in cast("io.StringIO", console.file).getvalue()


FOREIGN = [
    (b"a/b", b"other", b"{}"),
    (b"a/b", b"safe:v0:result", b"{"),
    (b"a/b", b"safe:v0:result", b"[]"),
    (b"a/b", b"safe:v0:result", b"{}"),
    (b"\xff", b"safe:v0:result", b"{}"),
    (b"a", b"safe:v0:result", b"{}"),
    (None, b"safe:v0:result", None),
]


@pytest.mark.parametrize(("key", "type_", "value"), FOREIGN)
def test_what_safe_did_not_write_is_ignored_and_counted(key: bytes | None, type_: bytes, value: bytes | None) -> None:
    chosen, card = Chosen(Batches(())), Scorecard(Settings())
    made = SimpleNamespace(topic=Settings().result_topic, key=key, value=value, headers=[("ce_type", type_)])
    assert chosen.read(cast("Record", made), card.note) is None
    assert chosen.remarks("results") == ["ignored 1 record that SAFE did not write to results"]


ODD = (None, "x", -1, 0.5, 10**400, [None], {"x": None})


def with_one_odd_value(document: Any, odd: object) -> Iterator[Any]:
    """Documents in each of which one value, at whatever depth, is another one, or is not there."""
    if not isinstance(document, (dict, list)):
        return
    for key, value in document.items() if isinstance(document, dict) else enumerate(document):
        for other in (odd, *with_one_odd_value(value, odd)):
            changed = document.copy()
            changed[key] = other
            yield changed


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: str(odd)[:9])
@pytest.mark.parametrize("kind", ["result", "report"])
def test_an_event_with_one_odd_value_is_shown_or_counted_as_foreign(kind: str, odd: object) -> None:
    console = Console(file=io.StringIO(), width=80, height=24, force_terminal=True, color_system=None)
    topic = Settings().result_topic if kind == "result" else Settings().report_topic
    foreign = 0
    for document in with_one_odd_value(example(kind), odd):
        made = record(topic, example(kind))
        made.value = json.dumps(document).encode()
        chosen, card = Chosen(Batches(())), Scorecard(Settings())
        chosen.read(made, card.note)
        if chosen.foreign:
            assert not card.batches
            foreign += 1
        else:
            console.print(_drawn(Screen(console, card, "SAFE results", None)))
            closing(console, card)
    assert foreign > 10


class FakeTopics:
    """Topics that hold a result, and a record of somebody else that comes later; then Ctrl-C is pressed."""

    servers = "broker:9092"

    def __init__(self, *names: str) -> None:
        self.names = list(names)

    async def read(self, topic: str, take: Callable[[Record], object], *_: object, **__: object) -> dict[str, int]:
        if topic == Settings().result_topic:
            take(result(1))
        return {topic: 1}

    async def follow(self, first: Mapping[str, int], take: Callable[[Record], object], *_: object) -> None:
        assert first
        foreign: Any = result(2)
        foreign.headers[:] = []
        take(foreign)
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.Event().wait()


@pytest.mark.parametrize("options", [[], ["--format", "json"], ["--since", "1d"]])
def test_what_safe_did_not_write_is_counted_when_following_ends(
    options: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def existing(_: object, *names: str) -> FakeTopics:
        return FakeTopics(*(f"safe.v0.{name}" for name in names))

    monkeypatch.setattr("consumer.results.show._existing", existing)
    assert main(["results", "--follow", "--bootstrap-servers", "broker:9092", *options]) == 0
    assert "safe: ignored 1 record that SAFE did not write to safe.v0.result" in capsys.readouterr().err
