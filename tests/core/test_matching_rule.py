"""The search for very many terms says what `in` says."""

import random

from hypothesis import given
from hypothesis import strategies as st

from safe_core.matching_rule import _search_by_grams, which_occur

few_letters = st.text(alphabet="ab", min_size=1, max_size=30)


@given(text=st.text(alphabet="ab", max_size=200), needles=st.lists(few_letters, max_size=30))
def test_searching_by_grams_finds_what_in_finds(text: str, needles: list[str]) -> None:
    assert _search_by_grams(text, needles) == [needle in text for needle in needles]


@given(text=st.text(max_size=60), data=st.data())
def test_needles_cut_from_the_text_are_found(text: str, data: st.DataObject) -> None:
    ends = st.tuples(st.integers(0, len(text)), st.integers(0, len(text)))
    spans = data.draw(st.lists(ends, max_size=8))
    needles = [cut for start, end in spans if (cut := text[min(start, end) : max(start, end)])]
    assert _search_by_grams(text, needles) == [True] * len(needles)


def test_ten_thousand_terms_in_a_megabyte_take_the_short_way() -> None:
    rng = random.Random(1)
    text = "".join(rng.choices("abcdefgh ", k=1 << 20))
    cut = [text[i : i + 20] for i in range(0, 1 << 20, 1 << 11)]
    absent = [f"{i}b{'a' * 50}" for i in range(2000)]
    assert which_occur(text, [*cut, *absent]) == [True] * len(cut) + [False] * len(absent)
