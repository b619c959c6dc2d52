"""How scores are compared with people's: the rule that cuts terms, and the count of pairs in order."""

import pytest

from bench.against_people import Row, clauses, in_order, interval, judged, pairs, rouge_1, spearman


def test_terms_are_the_clauses_of_a_reference() -> None:
    assert clauses("No cough, but fever of 38.5 and chills.  She rests; her son helps.") == [
        "No cough", "fever of 38.5", "chills", "She rests", "her son helps",
    ]  # fmt: skip


def row(dialogue: str, people: float, number: float) -> Row:
    return Row(dialogue, people, {"x": number})


ROWS = [row("a", 0.2, 0.1), row("a", 0.9, 0.3), row("a", 0.9, 0.2), row("b", 0.5, 0.4), row("b", 0.1, 0.4)]


def test_pairs_are_of_one_dialogue_and_scored_apart_and_ties_count_half() -> None:
    found = list(pairs(ROWS))
    assert [(better.people, worse.people) for better, worse in found] == [(0.9, 0.2), (0.9, 0.2), (0.5, 0.1)]
    assert in_order(found, "x") == pytest.approx(2.5 / 3)
    low, high = interval(ROWS, lambda rows: in_order(list(pairs(rows)), "x"))
    assert (low, high) == (0.5, 1.0)


def test_ranks_of_equal_numbers_are_shared() -> None:
    assert spearman([row("a", 1, 5), row("b", 2, 6), row("c", 2, 6), row("d", 3, 9)], "x") == pytest.approx(1)


def test_a_summary_has_every_number() -> None:
    told = {"dialogue": "d", "reference": "Her ankle was swollen.", "summary": "Ankle edema.", "FactualRecall": "1"}
    numbers = judged(told).numbers
    assert (numbers["lenient AC"], numbers["coverage"], numbers["strict AC"]) == (1.0, 1.0, 0.0)
    assert numbers["ROUGE-1 recall"] == rouge_1("a b b c", "b c") / 2
