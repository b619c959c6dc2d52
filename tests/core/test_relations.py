"""The words of the lexicon: what nobody can read is refused by its place; a word has one entry in a relation."""

import re
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from safe_core.diagnosis import relations
from safe_core.diagnosis.lexicon import rows
from safe_core.diagnosis.relations import InvalidLexicon, Once
from safe_core.diagnosis.units import units_of

FILES = sorted(
    path.name.removesuffix(".tsv")
    for path in files("safe_core.diagnosis.lexicon").iterdir()
    if path.name.endswith(".tsv")
)

CODE = Path(__file__).parents[2] / "safe_core"

READERS: dict[str, Callable[[], Any]] = {
    "same": relations.same.__wrapped__,
    "status": relations.triggers.__wrapped__,
    "ends": relations.ends.__wrapped__,
    "weak": relations.weak.__wrapped__,
    "perhaps": relations._groups.__wrapped__,
    "opposite": relations.opposites.__wrapped__,
    "rival": relations.rivals.__wrapped__,
    "measure": relations.measures.__wrapped__,
}
"""What reads each relation, without its memory."""
NO_RELATIONS = ("forms", "units", "turned", "usage")
"""What stems, the edges of words and the mutants read by themselves."""


def lexicon_of(monkeypatch: pytest.MonkeyPatch, relation: str, *lines: str, **others: tuple[str, ...]) -> None:
    """Let some relations have these lines and no others; what says the same is without drugs, unless they are given."""
    relations.known(), relations.drugs()  # what a reader of these lines asks for on its way is remembered for all tests
    told = {"rival": (), **others, relation: lines} if relation == "same" else {**others, relation: lines}
    cells = {
        name: [(f"{name}.tsv:{number}", tuple(line.split("\t"))) for number, line in enumerate(own, 1)]
        for name, own in told.items()
    }
    monkeypatch.setattr(relations, "rows", lambda name: iter(cells[name]) if name in cells else rows(name))


# ─── the files ───


def test_there_is_a_file_for_each_relation() -> None:
    assert sorted([*READERS, *NO_RELATIONS]) == FILES


def test_each_file_is_read_by_the_code() -> None:
    code = "".join(path.read_text(encoding="utf-8") for path in CODE.rglob("*.py"))
    assert set(re.findall(r'\brows\("(\w+)"\)', code)) == set(FILES)


@pytest.mark.parametrize("name", FILES)
def test_each_line_is_short_and_has_its_cells(name: str) -> None:
    text = files("safe_core.diagnosis.lexicon").joinpath(f"{name}.tsv").read_text("utf-8")
    assert text.endswith("\n")
    assert text.startswith("# ")
    for number, line in enumerate(text.splitlines(), 1):
        assert len(line) <= 120, (name, number)
        assert line == line.rstrip(), (name, number)
        assert line.startswith("#") or line.isprintable() or "\t" in line, (name, number)
        assert line.startswith("#") or "\t\t" not in line, (name, number)
    assert all(len(cells) >= (1 if name == "ends" else 2) for _, cells in rows(name))


@pytest.mark.parametrize("relation", READERS)
def test_each_relation_is_read(relation: str) -> None:
    assert READERS[relation]()


# ─── what is refused ───

TWICE = [
    ("same", "pain\tache\thurt", "injury\ttrauma\thurt"),
    ("same", "pain\taching", "no pain\tpainless\taches"),  # another form of the same word
    ("same", "fever\tpyrexia", "temperature\tfever"),  # what a word is read as, and is read otherwise
    ("status", "denies\tdenied\tafter", "denied\tundone\tafter"),
    ("ends", "because\taside", "because"),
    ("weak", "grammar\tthe\ta", "weak\tgiven\tthe"),
    ("perhaps", "tear\trupture", "strain\trupture"),
    ("opposite", "open\tclosed", "complete\tincomplete, open"),
    ("rival", "side\tleft\tright", "outlet\tstayed, left\twent"),
    ("rival", "side\tleft\tright", "side\tleft\tbilateral"),
    ("measure", "glucose\tsugar", "sucrose\tsugar"),
]


@pytest.mark.parametrize(("relation", "one", "other"), TWICE)
def test_a_second_entry_for_a_word_is_refused_with_both_places(
    monkeypatch: pytest.MonkeyPatch, relation: str, one: str, other: str
) -> None:
    lexicon_of(monkeypatch, relation, one, other)
    with pytest.raises(InvalidLexicon) as refused:
        READERS[relation]()
    assert f"{relation}.tsv:1" in str(refused.value)
    assert f"{relation}.tsv:2" in str(refused.value)


UNKNOWN = [
    ("status", "deny\tdenyed\tafter", "no status 'denyed'; there are denied, undone, "),
    ("status", "deny\tdenied\tbehind", "no reach 'behind'; there are after, before, "),
    ("status", "deny", "no status ''; there are denied, "),
    ("ends", "because\tasside", "no beginning 'asside'; there are clause, aside, question"),
    ("weak", "wek\tgiven", "no class 'wek'; there are grammar, lead-in, weak, "),
    ("opposite", "open", "not two sides, parted by one tab"),
    ("opposite", "open\tclosed\tshut", "not two sides, parted by one tab"),
]


@pytest.mark.parametrize(("relation", "line", "told"), UNKNOWN)
def test_a_line_that_nobody_can_read_is_refused_with_its_place(
    monkeypatch: pytest.MonkeyPatch, relation: str, line: str, told: str
) -> None:
    lexicon_of(monkeypatch, relation, line)
    with pytest.raises(InvalidLexicon) as refused:
        READERS[relation]()
    assert str(refused.value).startswith(f"{relation}.tsv:1: {told}")


def test_lines_that_are_read_as_the_same_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    lexicon_of(monkeypatch, "same", "pain\tache", "pain\thurt", "no pain\tpainless")
    found = READERS["same"]()
    assert {reading.keys for reading in found.values()} == {("pain",)}
    denied = {phrase for phrase, reading in found.items() if reading.is_denied}
    assert denied == {relations.stems("painless")}
    assert set(found) == {relations.stems(word) for word in ("pain", "ache", "hurt", "painless")}


def test_further_names_of_a_drug_are_read_as_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    lexicon_of(monkeypatch, "same", "pain\tache", rival=("drug x\tplainol, brandex", "color\tred, crimson"))
    found = READERS["same"]()
    assert found[relations.stems("brandex")] == found[relations.stems("Brandex")] == (relations.stems("plainol"), False)
    assert relations.stems("crimson") not in found  # no drug: it only does not exclude red


def test_a_brand_that_already_means_something_is_refused_with_both_places(monkeypatch: pytest.MonkeyPatch) -> None:
    lexicon_of(monkeypatch, "same", "pain\tbrandex", rival=("drug x\tplainol, brandex",))
    with pytest.raises(InvalidLexicon, match=r"^rival\.tsv:1: .* has an entry already, in same\.tsv:1$"):
        READERS["same"]()


def test_lines_of_one_kind_are_rivals_but_not_two_names_of_one_thing(monkeypatch: pytest.MonkeyPatch) -> None:
    lexicon_of(monkeypatch, "rival", "color\tgreen\tred, crimson", "color\tpink")
    found = READERS["rival"]()
    assert found["green"] == {"red", "crimson", "pink"}
    assert found["crimson"] == found["red"] == {"green", "pink"}


def test_each_of_one_side_excludes_each_of_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    lexicon_of(monkeypatch, "opposite", "warm, hot\tcold, cool")
    found = READERS["opposite"]()
    assert found["hot"] == found["warm"] == {"cold", "cool"}
    assert found["cold"] == found["cool"] == {"hot", "warm"}


def test_of_the_phrases_that_begin_with_a_word_the_longest_counts() -> None:
    assert [unit.folded for unit in units_of("no worsening of pain, no fever", 9)] == [
        *("no worsening of", "pain"),
        *("no", "fever"),
    ]


def test_an_entry_may_come_twice_from_one_line() -> None:
    table: Once[str, int] = Once()
    table.add("a", 1, "x.tsv:1")
    table.add("a", 2, "x.tsv:1")
    with pytest.raises(InvalidLexicon, match=r"^x\.tsv:9: 'a' has an entry already, in x\.tsv:1$"):
        table.add("a", 1, "x.tsv:9")
    assert table.table == {"a": 2}
