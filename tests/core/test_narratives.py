"""Digests of narratives, and whether an output was made from its own case's."""

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safe_core import InvalidDigest, TestCase, digest_of_narrative, do_inputs_match, parse_batch, stated_digest

TEXT = "A girl of eight arrived at noon."
DIGEST = "sha256:" + sha256(TEXT.encode()).hexdigest()


@given(st.text(), st.lists(st.sampled_from([" ", "\n", "\t ", "\u2003", "\x1f"]), min_size=1))
def test_white_space_makes_no_difference(text: str, spaces: list[str]) -> None:
    laid_out = "".join(spaces) + "".join(spaces).join(text.split())
    assert digest_of_narrative(laid_out) == digest_of_narrative(text)


def test_the_digest_can_be_computed_by_anyone() -> None:
    assert digest_of_narrative("  A girl\n of eight\tarrived at noon. ") == DIGEST
    assert digest_of_narrative(TEXT.lower()) != DIGEST


@pytest.mark.parametrize("absent", [None, "", " \n", 5, ["text"], True])
def test_what_is_no_text_is_not_known(absent: object) -> None:
    assert digest_of_narrative(absent) is None
    assert stated_digest(absent) is None


@pytest.mark.parametrize(
    "malformed", [DIGEST.upper(), DIGEST[:-1], DIGEST + "0", " " + DIGEST, DIGEST + "\n", "sha256:"]
)
def test_a_malformed_digest_is_refused(malformed: str) -> None:
    with pytest.raises(InvalidDigest):
        stated_digest(malformed)


@pytest.mark.parametrize(
    ("read", "told", "matches"),
    [("a", ["a"], True), ("a", ["b"], False), ("a", ["b", "a"], True), ("a", [], None), (None, ["a"], None)],
)
def test_any_holders_narrative_will_do(read: str | None, told: list[str], matches: bool | None) -> None:
    assert do_inputs_match(read, told) is matches


@pytest.mark.parametrize(
    ("members", "narratives"),
    [
        ({"patient_payload": TEXT}, (DIGEST,)),
        ({"patient_payload_digest": DIGEST}, (DIGEST,)),
        ({"patient_payload": TEXT, "patient_payload_digest": "sha256:" + "0" * 64}, (DIGEST,)),
        ({"patient_payload": " ", "patient_payload_digest": DIGEST}, (DIGEST,)),
        ({"patient_payload_digest": "0"}, ()),
        ({}, ()),
    ],
)
def test_a_test_case_tells_its_narrative_or_its_digest(members: dict[str, str], narratives: tuple[str, ...]) -> None:
    (case,) = parse_batch({"test_cases": [{"test_id": "T", "expectations": {}, **members}]}).cases
    assert isinstance(case, TestCase)
    assert case.narratives == narratives
