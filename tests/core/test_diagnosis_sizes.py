"""However long or odd a text is, the time that it takes grows as its length does."""

import pytest

from safe_core import Expectations, Output
from safe_core.diagnosis import diagnose
from safe_core.diagnosis.answers import answer
from safe_core.diagnosis.reading import read
from tests.support.growth import grows_as_the_length_does

REPEATED = [
    "a. ", "fever. ", "no ", "no fever ", "no fever, ", "fever or ", "fever, ", "fever and ", "and ", "because ",
    "fever: ", "(", "fever (", "[", ",", "•", "\n", " ", "½", "1", "1.", "1/", "1,", "1-", "1 ", "100 ", "5 mg ",
    "5% ", "08:30 ", "12/03/2024 ", "Monday ", "twenty ", "one hundred ", "six . seven ", "[doctor] ",
    "[doctor] any fever ? ", "any fever? ", "any fever? no. ", "do you have fever ", "fever was cancelled ",
    "shortness of ", "no evidence of ", "did n't ", "n't ", "x", "e\u0301", "a\u200d", "a'", "臂", "😀", '"fever" ',
    "- ",
]  # fmt: skip


@pytest.mark.parametrize("unit", REPEATED)
def test_reading_takes_as_long_as_the_text_is(unit: str) -> None:
    assert grows_as_the_length_does(read, unit)


@pytest.mark.parametrize("end", ["was denied", "was cancelled", "no", ""])
@pytest.mark.parametrize("begin", ["denies ", "if ", ""])
def test_a_list_without_end_takes_as_long_as_it_is(begin: str, end: str) -> None:
    assert grows_as_the_length_does(lambda text: read(f"{begin}{text}{end}"), "fever, ")


@pytest.mark.parametrize(
    "unit", ["no fever ", "fever. ", "5 mg ", "dry cough, ", "[doctor] any fever ? ", "left knee. "]
)
def test_an_answer_takes_as_long_as_the_text_is(unit: str) -> None:
    assert grows_as_the_length_does(lambda text: answer("no dry fever of 5 mg in the left knee", [text]), unit)


@pytest.mark.parametrize(
    ("terms", "output", "narrative"),
    [
        (("hand of x",), "hand " * 10_000, "hand of x. " + "hand " * 10_000),
        (("x" * 10_000,), "x " * 10_000, None),  # a term of ten thousand characters
        (("not palpable",), "not " * 10_000, "no palpable " * 5_000),
        (("a" * 90 + "b",) * 100, "a" * 200_000, None),  # found but for the last letter
        (tuple(f"hand and pain {number}" for number in range(50)), "hand pain " * 2_000, "hand pain. " * 2_000),
        ((" and ".join(f"{n} mg x{n}" for n in range(12)),), "5 mg x5 and " * 200, None),
        (("a  b c",), " " * 200_000 + "a b c", " " * 200_000),
    ],
)
def test_hostile_sizes_are_answered(terms: tuple[str, ...], output: str, narrative: str | None) -> None:
    assert len(diagnose(Expectations(terms), Output((output,)), narrative).misses) == len(terms)
