"""Strategies for the inputs of the fuzz: each part of a record, and of the expectations, as wild as it may come."""

import json
from typing import Any

from hypothesis import strategies as st

from tests.support.fuzzing import Case
from tests.support.mutation import HEADERS, TIMESTAMPS, TOKENS, seeds

Json = Any
SEEDS = tuple(case for case in seeds(1) if case.size < 20_000)

TEXTS = st.one_of(
    st.text(max_size=40),
    st.text(st.characters(categories=("Lu", "Ll", "Lt", "Mn", "Zs", "Cs", "Cc", "Cf")), max_size=40),
    st.sampled_from(["İ", "ß", "ς", "Σ", "ﬀ", "i\u0307", " ", "", "\ud800", "a\u0300\u0327" * 200, "\ufdfa" * 200]),
)
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), TEXTS)


def _mostly(usual: st.SearchStrategy[Any], else_: st.SearchStrategy[Any] | None = None) -> st.SearchStrategy[Any]:
    """Draw the usual eleven times of twelve; to one_of() an alternative named twice is one."""
    return st.integers(0, 11).flatmap(lambda die: usual if die < 11 else NODES if else_ is None else else_)


IDS = st.one_of(st.just("T"), st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1), TEXTS)
NODES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4), max_leaves=12
)
TERMS = st.lists(_mostly(st.text(min_size=1, max_size=20), TEXTS | NODES), max_size=12)


OUTPUTS = st.fixed_dictionaries(
    {}, optional={"signals": _mostly(TERMS), "summary": _mostly(TEXTS), "followup_questions": _mostly(TERMS)}
)
EVENTS = st.fixed_dictionaries(
    {"test_id": _mostly(st.just("T")), "batch_id": _mostly(IDS), "output": _mostly(OUTPUTS)},
    optional={name: _mostly(IDS) for name in ("concern_id", "archetype", "metric_id", "run_id")}
    | {
        "generated_at": st.sampled_from(["2026-11-21T20:00:00.5+01:00", "2016-12-31T23:59:60Z", None, "", "9999-12-31"])
    },
)
ENVELOPES = st.fixed_dictionaries(
    {"specversion": _mostly(st.just("1.0")), "data": _mostly(EVENTS)},
    optional={"type": st.sampled_from(["generation.output", "other", "", None])},
)
EXPECTATIONS = st.fixed_dictionaries(
    {},
    optional={
        "signal_generation": _mostly(st.fixed_dictionaries({}, optional={"must_find_signals": _mostly(TERMS)})),
        "followup_questions": _mostly(st.fixed_dictionaries({}, optional={"forbidden_terms": _mostly(TERMS)})),
        "event_summary": _mostly(st.fixed_dictionaries({}, optional={"must_contain_phrases": _mostly(TERMS)})),
    },
)
TEST_CASES = st.fixed_dictionaries(
    {"test_id": _mostly(st.just("T")), "expectations": _mostly(EXPECTATIONS)},
    optional={name: _mostly(IDS) for name in ("concern_id", "archetype", "metric_id")},
)
BATCHES = st.fixed_dictionaries(
    {"test_cases": _mostly(st.lists(TEST_CASES, max_size=3))}, optional={"batch_plan": NODES, "batch_strategy": NODES}
)


def _dumped(document: Json) -> bytes:
    return json.dumps(document, ensure_ascii=False).encode("utf-8", "surrogatepass")


@st.composite
def _edited(draw: st.DrawFn, octets: st.SearchStrategy[bytes]) -> bytes:
    """Some bytes of it replaced by a token."""
    raw = draw(octets)
    for _ in range(draw(st.integers(0, 3))):
        start, length = draw(st.integers(0, len(raw))), draw(st.integers(0, 8))
        raw = raw[:start] + draw(st.sampled_from(TOKENS)) + raw[start + length :]
    return raw


def cases() -> st.SearchStrategy[Case]:
    """Draw whole cases."""
    documents = _mostly(EVENTS, ENVELOPES).map(_dumped)
    known = st.sampled_from([case.value or b"" for case in SEEDS])
    values = st.one_of(documents, _edited(documents), _edited(known), _mostly(documents, st.binary() | st.none()))
    batches = _mostly(BATCHES.map(_dumped), _edited(BATCHES.map(_dumped)))
    return st.builds(
        Case,
        value=values,
        expectations=st.one_of(batches, st.sampled_from([case.expectations for case in SEEDS])),
        headers=st.just(())
        | st.lists(st.sampled_from(HEADERS) | st.tuples(st.text(), st.binary()), max_size=3).map(tuple),
        key=st.none() | st.binary(max_size=40),
        timestamp=st.sampled_from(TIMESTAMPS),
    )
