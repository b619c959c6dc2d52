"""Which test cases `safe score` takes, and which of them an output answers."""

from pathlib import Path

import pytest

from consumer.errors import ConfigurationError
from consumer.files.join import Places
from consumer.files.outputs import Entry
from consumer.files.selection import Selection, select, select_batches
from safe_core import EMPTY_OUTPUT
from tests.support.case_files import a_case, write_batch


def entry(test_id: str, *, batch_id: str | None = None, batch_index: int | None = None) -> Entry:
    """An entry that says no more than whose case it answers."""
    return Entry("line 1", test_id, batch_index, batch_id, None, None, None, None, None, None, EMPTY_OUTPUT)


def refusal(folder: Path, concern: str = "K07", pattern: str = "*") -> str:
    with pytest.raises(ConfigurationError) as caught:
        select(folder, concern, pattern)
    return str(caught.value)


# --- what is selected -------------------------------------------------------------------------------------------------


def test_the_cases_of_a_concern_are_selected_whatever_its_case_in_the_order_of_the_files(tmp_path: Path) -> None:
    write_batch(tmp_path, "asthma_2", a_case("A-3"), a_case("A-2"))
    write_batch(tmp_path, "asthma_10", a_case("A-9"), a_case("X-1", concern_id="X"))
    write_batch(tmp_path, "other", a_case("A-4"))

    selection = select(tmp_path, "k07", "asthma_*")

    assert list(selection.cases) == ["A-9", "A-3", "A-2"]
    assert (selection.concern_id, selection.batch_id) == ("K07", "K07_combined"), "as the test cases spell it"
    assert [case.batch_id for case in selection.cases.values()] == ["asthma_10", "asthma_2", "asthma_2"]
    assert selection.remarks == ()


def test_one_batch_with_cases_of_the_concern_gives_the_report_its_name(tmp_path: Path) -> None:
    write_batch(tmp_path, "asthma_1", a_case("A-1"))
    write_batch(tmp_path, "sepsis_1", a_case("S-1", concern_id="S11"))

    assert select(tmp_path, "K07", "*").batch_id == "asthma_1"
    assert [batch.name for batch in select(tmp_path, "K07", "*").batches] == ["asthma_1"]
    assert select(tmp_path, "K07", "asthma_1.json").batch_id == "asthma_1"


COMPOSED, DECOMPOSED = "caf\u00e9_1", "cafe\u0301_1"


@pytest.mark.parametrize("pattern", [COMPOSED, DECOMPOSED, COMPOSED + ".json", "caf\u00e9*", "cafe\u0301_?"])
@pytest.mark.parametrize("name", [COMPOSED, DECOMPOSED])
def test_a_batch_is_found_in_either_unicode_form_of_its_name(tmp_path: Path, name: str, pattern: str) -> None:
    write_batch(tmp_path, name, a_case("A-1"))

    assert [batch.name for batch in select(tmp_path, "K07", pattern).batches] == [name]


def test_of_two_forms_of_a_name_the_one_that_is_given_is_meant(tmp_path: Path) -> None:
    for name in (COMPOSED, DECOMPOSED):
        write_batch(tmp_path, name, a_case(f"A-{len(name)}"))

    assert [batch.name for batch in select(tmp_path, "K07", COMPOSED).batches] == [COMPOSED]
    assert [batch.name for batch in select(tmp_path, "K07", DECOMPOSED).batches] == [DECOMPOSED]
    assert len(select(tmp_path, "K07", "caf\u00e9*").batches) == 2


@pytest.mark.parametrize(("name", "other"), [(COMPOSED, DECOMPOSED), (DECOMPOSED, COMPOSED)])
def test_of_two_forms_of_a_name_an_output_means_the_one_that_it_gives(tmp_path: Path, name: str, other: str) -> None:
    for each in (name, other):
        write_batch(tmp_path, each, a_case("A-1", [each]))

    places = Places(select(tmp_path, "K07", name))

    assert places.of(entry("A-1", batch_id=name)) is not None
    assert places.of(entry("A-1", batch_id=other)) is None


@pytest.mark.parametrize(("name", "other"), [(COMPOSED, DECOMPOSED), (DECOMPOSED, COMPOSED)])
def test_an_output_names_a_batch_in_either_form(tmp_path: Path, name: str, other: str) -> None:
    write_batch(tmp_path, "asthma_1", a_case("A-1"))
    write_batch(tmp_path, name, a_case("A-1", ["other"]))

    of_it = Places(select(tmp_path, "K07", name))
    of_another = Places(select(tmp_path, "K07", "asthma_1"))

    assert of_it.of(entry("A-1", batch_id=other)) is not None
    assert of_another.of(entry("A-1", batch_id=other)) is None
    assert [batch.name for batch in of_another.decisive] == [name]


def test_a_case_without_a_concern_is_of_the_one_that_is_asked_for(tmp_path: Path) -> None:
    write_batch(tmp_path, "asthma_1", a_case("A-1", concern_id=None))

    selection = select(tmp_path, "k07", "*")

    assert (list(selection.cases), selection.concern_id) == (["A-1"], "k07")


def test_a_case_in_several_batches_counts_once_in_the_first_by_file_name(tmp_path: Path) -> None:
    write_batch(tmp_path, "golden", a_case("A-2", archetype="Later"), a_case("A-1", archetype="Later"))
    # "asthma-b.json" comes before "asthma.json": it is the files' names that are in order
    write_batch(tmp_path, "asthma", a_case("A-1", archetype="Second"))
    write_batch(tmp_path, "asthma-b", a_case("A-1", archetype="First"), a_case("A-2", archetype="First"))

    selection = select(tmp_path, "K07", "*")

    assert {test_id: case.test_case.archetype for test_id, case in selection.cases.items()} == {
        "A-1": "First",
        "A-2": "First",
    }
    assert [batch.name for batch in selection.cases["A-1"].batches] == ["asthma-b", "asthma", "golden"]
    assert len(selection.remarks) == 1
    assert selection.remarks[0].startswith(
        "2 test_ids are in several batches with equal expectations and count only once, in"
    )
    assert selection.remarks[0].endswith(": A-1, A-2")


def test_a_report_that_safe_wrote_into_the_folder_is_no_batch(tmp_path: Path) -> None:
    write_batch(tmp_path, "asthma_1", a_case("A-1"))
    (tmp_path / "report.json").write_text('{\n  "report_type": "SAFE_v0",\n  "summary": {}\n}')

    assert list(select(tmp_path, "K07", "*").cases) == ["A-1"]


# --- what is refused --------------------------------------------------------------------------------------------------


def test_no_batch_is_refused_naming_what_there_is(tmp_path: Path) -> None:
    assert "has no batch files (<batch_id>.json)" in refusal(tmp_path)
    write_batch(tmp_path, "asthma_1", a_case("A-1"))
    assert refusal(tmp_path, pattern="astma_1").startswith("no batch matches --batch astma_1 in ")
    assert refusal(tmp_path, pattern="astma_*").endswith("batches there: asthma_1")
    assert "cannot be read (No such file or directory)" in refusal(tmp_path / "nowhere")
    assert refusal(tmp_path / ("x" * 300)).endswith(": cannot be read (File name too long)")
    assert refusal(tmp_path / "asthma_1.json").endswith("asthma_1.json: is a file, not a folder of batch files")


def test_no_case_of_the_concern_is_refused_naming_the_concerns_there_are(tmp_path: Path) -> None:
    write_batch(tmp_path, "asthma_1", a_case("A-1"))

    assert refusal(tmp_path, "I25") == "no test case of --concern I25 in asthma_1.json: the concerns there are K07"
    assert refusal(tmp_path, "\x1b[2J") == "--concern holds the control character U+001B"
    write_batch(tmp_path, "asthma_1")
    assert refusal(tmp_path) == "no test case of --concern K07 in asthma_1.json: there are none at all"


UNUSABLE = [
    ({"test_id": "A-1", "concern_id": "K07"}, "A-1: ", "test_cases[0]: expectations are absent or null"),
    ({**a_case("A-1"), "expectations": None}, "A-1: ", "test_cases[0]: expectations are absent or null"),
    (a_case("A-1", signals=[" "]), "A-1: ", "signal_generation.must_find_signals[0] is blank"),
    ({"concern_id": "K07", "expectations": {}}, "", "test_cases[0]: test_id is missing"),
    ("text", "", "test_cases[0]: is not an object"),
]


@pytest.mark.parametrize(("case", "named", "why"), UNUSABLE)
def test_a_case_that_cannot_be_used_is_named(tmp_path: Path, case: object, named: str, why: str) -> None:
    path = write_batch(tmp_path, "asthma_1", case)

    told = refusal(tmp_path)

    assert told.startswith(f"test cases that cannot be used: {named}{path}, ")
    assert why in told


def test_a_case_of_another_concern_may_be_unusable(tmp_path: Path) -> None:
    write_batch(tmp_path, "asthma_1", a_case("A-1"), {"test_id": "X-1", "concern_id": "X"})

    assert list(select(tmp_path, "K07", "*").cases) == ["A-1"]


def test_different_expectations_in_several_batches_are_refused(tmp_path: Path) -> None:
    write_batch(tmp_path, "a", a_case("A-1"), a_case("A-2"))
    write_batch(tmp_path, "b", a_case("A-1", signals=["stridor"]), a_case("A-2"))

    assert refusal(tmp_path) == (
        "1 test_id in several batches with different expectations (choose with --batch): A-1; A-1 is in a.json, b.json"
    )
    assert list(select(tmp_path, "K07", "a").cases) == ["A-1", "A-2"]


def test_different_expectations_in_one_file_are_refused(tmp_path: Path) -> None:
    write_batch(tmp_path, "a", a_case("A-1"), a_case("A-1", signals=["stridor"]))

    assert "contains it twice, with different expectations: test_cases[0] and [1]" in refusal(tmp_path)


# --- whose case an output answers -------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A-1 stands in three batches, in `other` with other expectations; A-2 in one."""
    write_batch(tmp_path, "asthma_1", a_case("A-1"), a_case("A-2"), index=1)
    write_batch(tmp_path, "golden", a_case("A-1"), index=6)
    write_batch(tmp_path, "other", a_case("A-1", signals=["stridor"]), index=9)
    return tmp_path


def rank(selection: Selection, asked: Entry) -> int | None:
    place = Places(selection).of(asked)
    return None if place is None else place.rank


WHOSE = [
    # pattern, entry, the first of the batches of the case
    ("asthma_1", entry("A-2"), 0),
    ("asthma_1", entry("A-9"), None),
    ("asthma_1", entry("A-1", batch_index=1), 0),
    # an index of no batch that holds it says nothing
    ("asthma_1", entry("A-1", batch_index=4), 0),
    ("asthma_1", entry("A-2", batch_index=6), 0),
    # the index of a batch that was not selected, and expects something else
    ("asthma_1", entry("A-1", batch_index=9), None),
    # the index of one that expects the same: a golden set is scored by the outputs of what it repeats, if need be
    ("golden", entry("A-1", batch_index=1), 1),
    # two selected batches that hold it: the first, or the one that is meant
    ("[ag]", entry("A-1"), 0),
    ("[ag]", entry("A-1", batch_index=6), 1),
    ("[ag]", entry("A-1", batch_id="golden"), 1),
    ("[ag]", entry("A-1", batch_id="nightly"), 0),
    # an event's batch_id decides
    ("asthma_1", entry("A-1", batch_id="asthma_1", batch_index=9), 0),
    ("asthma_1", entry("A-1", batch_id="golden"), None),
    ("golden", entry("A-1", batch_id="asthma_1"), None),
    # unless there is no such batch, or it does not hold the case
    ("asthma_1", entry("A-1", batch_id="nightly"), 0),
    ("asthma_1", entry("A-2", batch_id="golden"), 0),
]


@pytest.mark.parametrize(("pattern", "asked", "place"), WHOSE)
def test_whose_case_an_output_answers(folder: Path, pattern: str, asked: Entry, place: int | None) -> None:
    if pattern == "[ag]":  # both that expect the same
        selection = select_batches(folder, "K07", ["asthma_1", "golden"])
    else:
        selection = select(folder, "K07", pattern)

    assert rank(selection, asked) == place


def test_a_batch_that_was_not_selected_may_be_unusable(folder: Path) -> None:
    (folder / "broken.json").write_text("{")

    assert rank(select(folder, "K07", "golden"), entry("A-1", batch_index=1)) == 1
    assert rank(select(folder, "K07", "golden"), entry("A-1", batch_id="broken")) == 0


@pytest.mark.parametrize(("first", "second"), [(["cough"], ["stridor"]), (["stridor"], ["cough"])])
def test_one_batch_of_its_index_with_other_expectations_is_enough(
    tmp_path: Path, first: list[str], second: list[str]
) -> None:
    write_batch(tmp_path, "asthma_1", a_case("A-1", signals=["cough"]), index=1)
    write_batch(tmp_path, "first", a_case("A-1", signals=first), index=6)
    write_batch(tmp_path, "second", a_case("A-1", signals=second), index=6)

    assert rank(select(tmp_path, "K07", "asthma_1"), entry("A-1", batch_index=6)) is None
