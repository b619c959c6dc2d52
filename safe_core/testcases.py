"""A batch file as factory-cli writes it: its test cases and what scoring reads of them (contract.md, "Batch files")."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from safe_core.accepted_wordings import Accepted, accepted_in
from safe_core.expectations import Expectations, InvalidExpectations
from safe_core.ids import id_problem
from safe_core.misspelt_keys import resembling
from safe_core.narrative_digests import InvalidDigest, digest_of_narrative, stated_digest
from safe_core.outputs import not_an_object
from safe_core.policy import UNKNOWN_ARCHETYPE

PLANS = ("batch_plan", "batch_strategy")
"""Where the plan of a batch may stand, in the order in which its scenarios are asked."""

CONTRACT_CASE = "no expectations, but expected_signals: a contract case of factory-cli, which SAFE v0 does not score"
"""The problem of a test case of factory-cli's other kind."""

_BRACKETED = re.compile(r"\[\s*([^\[\]]*[^\[\]\s])\s*\]")
_FIRST_WORD = re.compile(r"\s*(\S+?)[,.:;]*(?:\s|$)")


class InvalidBatch(ValueError):
    """A document that is no batch file at all."""


class NoBatch(InvalidBatch):
    """A JSON object that holds no test cases at all: it is about something else."""


class _InvalidTestCase(ValueError):
    """One test case that cannot be used; the message names the place, never the text."""


@dataclass(frozen=True, slots=True)
class TestCase:
    """A test case that outputs can be scored against; what the file does not say is None.

    `narratives` are the digests of the narratives that its holders tell: mostly one; none where it is not known.
    """

    __test__ = False  # pytest would take the name for a class of tests

    test_id: str
    concern_id: str | None
    archetype: str | None
    metric_id: str | None
    expectations: Expectations
    narratives: tuple[str, ...] = ()
    accepted_wordings: Accepted = ()


@dataclass(frozen=True, slots=True)
class BadTestCase:
    """A test case that is `expectations_invalid`: its place in the list, from 0, and the problem in words of ours."""

    test_id: str | None
    position: int
    problem: str
    concern_id: str | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """The test cases of one batch file, in its order."""

    cases: tuple[TestCase | BadTestCase, ...]


def parse_batch(document: object) -> Batch:
    """Read a batch file; one bad test case does not spoil the others. Raises InvalidBatch."""
    if not isinstance(document, Mapping):
        raise InvalidBatch(not_an_object(document))
    cases = document.get("test_cases")
    if not isinstance(cases, list):
        raise InvalidBatch("test_cases is not a list") if "test_cases" in document else _without_test_cases(document)
    plans = [plan for name in PLANS if (plan := _scenarios(document.get(name)))]
    shared: dict[Expectations, Expectations] = {}  # equal ones are held once, for they may be very many
    return Batch(tuple(_read(case, position, plans, shared) for position, case in enumerate(cases)))


def _without_test_cases(document: Mapping[str, object]) -> InvalidBatch:
    """Tell a file about something else from one whose test cases would be lost if it were taken for such a file."""
    if "expectations" in document:
        return InvalidBatch("is a single test case; a batch file has a list named test_cases")
    near = any(isinstance(document[key], (list, Mapping)) for key in resembling(document, "test_cases"))
    if near or _holds_a_test_case(document):
        return InvalidBatch(
            "test_cases is missing, and another key holds test cases: they belong in a list named test_cases"
        )
    return NoBatch("test_cases is missing")


def _holds_a_test_case(document: object) -> bool:
    """Whether some object, at any depth, has expectations."""
    left = [document]
    while left:
        value = left.pop()
        if isinstance(value, Mapping):
            if "expectations" in value:
                return True
            left.extend(value.values())
        elif isinstance(value, list):
            left.extend(value)
    return False


def known_archetype(name: str | None) -> str | None:
    """Give an archetype, or None for one that is missing, blank or the placeholder (contract.md, "Archetype")."""
    if name is None or name == UNKNOWN_ARCHETYPE or not name.strip():
        return None
    return name


def scenario_archetype(scenario: object) -> str | None:
    """Give the archetype that a scenario of a plan names, None if it names none (contract.md, "Batch files")."""
    if isinstance(scenario, Mapping):
        named = scenario.get("archetype")
    elif isinstance(scenario, str):
        named = _named_in(scenario)
    else:
        named = None
    if not isinstance(named, str) or id_problem(named):
        return None
    return known_archetype(named)


def _named_in(scenario: str) -> str | None:
    if bracketed := _BRACKETED.search(scenario):
        return bracketed[1]
    word = _FIRST_WORD.match(scenario)
    return word[1] if word and "_" in word[1] else None


def _scenarios(plan: object) -> list[object]:
    scenarios = plan.get("scenarios") if isinstance(plan, Mapping) else None
    return scenarios if isinstance(scenarios, list) else []


def _read(
    case: object, position: int, plans: list[list[object]], shared: dict[Expectations, Expectations]
) -> TestCase | BadTestCase:
    if not isinstance(case, Mapping):
        return BadTestCase(None, position, f"is {not_an_object(case)}")
    if _is_contract_case(case):
        return BadTestCase(_good_id(case, "test_id"), position, CONTRACT_CASE, _good_id(case, "concern_id"))
    try:
        return _test_case(case, [scenarios[position] for scenarios in plans if position < len(scenarios)], shared)
    except (_InvalidTestCase, InvalidExpectations) as error:
        return BadTestCase(_good_id(case, "test_id"), position, str(error), _good_id(case, "concern_id"))


def _is_contract_case(case: Mapping[object, object]) -> bool:
    signals = case.get("expected_signals") if case.get("expectations") is None else None
    return isinstance(signals, list) and any(isinstance(each, Mapping) and "signal_id" in each for each in signals)


def _test_case(
    case: Mapping[object, object], scenarios: list[object], shared: dict[Expectations, Expectations]
) -> TestCase:
    test_id = _id(case, "test_id")
    if test_id is None:
        raise _InvalidTestCase("test_id is missing")
    archetypes = (_archetype(case), *map(scenario_archetype, scenarios))
    return TestCase(
        test_id=test_id,
        concern_id=_id(case, "concern_id"),
        archetype=next((name for name in archetypes if name is not None), None),
        metric_id=_id(case, "metric_id"),
        expectations=_held_once(Expectations.parse(case.get("expectations")), shared),
        narratives=_narratives(case),
        accepted_wordings=accepted_in(case),
    )


def _held_once(expectations: Expectations, shared: dict[Expectations, Expectations]) -> Expectations:
    return shared.setdefault(expectations, expectations)


def _narratives(case: Mapping[object, object]) -> tuple[str, ...]:
    digest = digest_of_narrative(case.get("patient_payload"))
    if digest is None:
        try:
            digest = stated_digest(case.get("patient_payload_digest"))
        except InvalidDigest:  # `safe lint` tells; what decides a score is sound
            digest = None
    return () if digest is None else (digest,)


def _good_id(case: Mapping[object, object], field: str) -> str | None:
    value = case.get(field)
    return value if isinstance(value, str) and not id_problem(value) else None


def _id(case: Mapping[object, object], field: str) -> str | None:
    value = case.get(field)
    if value is None:
        return None
    if not isinstance(value, str):
        raise _InvalidTestCase(f"{field} is not a string")
    if problem := id_problem(value):
        raise _InvalidTestCase(f"{field} {problem}")
    return value


def _archetype(case: Mapping[object, object]) -> str | None:
    value = case.get("archetype")
    if isinstance(value, str) and known_archetype(value) is None:
        return None  # a blank archetype is a missing one, not a bad id
    return _id(case, "archetype")
