"""What judges a case: what its output says, else its test case, else the concern that was asked for."""

from typing import NamedTuple

import pytest

from safe_core import BadTestCase, Expectations, JudgedBy, TestCase, is_of_concern, judged_by


class Said(NamedTuple):
    """What an output says of who judges it."""

    concern_id: str | None = None
    metric_id: str | None = None
    archetype: str | None = None


def a_case(concern_id: str | None = None, metric_id: str | None = None, archetype: str | None = None) -> TestCase:
    return TestCase("T1", concern_id, archetype, metric_id, Expectations())


@pytest.mark.parametrize(
    ("case", "output", "judged"),
    [
        # the output's own word comes first, field by field
        (a_case("K07", "breath", "Early"), Said("S11", "fever", "Late"), ("S11", "fever", "Late")),
        (a_case("K07", "breath", "Early"), Said("S11"), ("S11", "breath", "Early")),
        (a_case("K07", "breath", "Early"), Said(metric_id="fever"), ("K07", "fever", "Early")),
        # without an output the test case alone says it
        (a_case("K07", "breath", "Early"), None, ("K07", "breath", "Early")),
        # a metric_id that nobody names is the concern, no matter who named that
        (a_case("K07"), None, ("K07", "K07", None)),
        (a_case("K07"), Said("S11"), ("S11", "S11", None)),
        # placeholders say nothing, on either side
        (a_case("K07", None, "Early"), Said(archetype="Unknown"), ("K07", "K07", "Early")),
        (a_case("K07", None, "Early"), Said(archetype="  "), ("K07", "K07", "Early")),
        (a_case("K07", None, "Unknown"), Said(), ("K07", "K07", None)),
        (a_case(), Said(), (None, None, None)),
        (a_case(None, "breath"), Said(), (None, "breath", None)),
    ],
)
def test_an_output_decides_before_its_test_case(
    case: TestCase, output: Said | None, judged: tuple[str | None, ...]
) -> None:
    assert judged_by(case, output) == judged


@pytest.mark.parametrize(
    ("case", "output", "judged"),
    [
        (a_case(), None, JudgedBy("K07", "K07", None)),
        (a_case(), Said(), JudgedBy("K07", "K07", None)),
        (a_case("S11"), Said(), JudgedBy("S11", "S11", None)),
        (a_case(), Said("S11"), JudgedBy("S11", "S11", None)),
    ],
)
def test_the_concern_asked_for_serves_where_neither_names_one(
    case: TestCase, output: Said | None, judged: JudgedBy
) -> None:
    assert judged_by(case, output, concern_id="K07") == judged


@pytest.mark.parametrize(
    ("said", "is_of"),
    [
        (a_case("K07"), True),
        (a_case("k07"), True),
        (a_case("S11"), False),
        (a_case(), True),
        (Said("K07"), True),
        (Said("S11"), False),
        (Said(), True),
        (BadTestCase("T1", 0, "is not an object", "S11"), False),
        (BadTestCase("T1", 0, "is not an object"), True),
    ],
)
def test_what_names_no_concern_is_of_any_and_case_does_not_matter(
    said: TestCase | Said | BadTestCase, is_of: bool
) -> None:
    assert is_of_concern("K07", said) is is_of
