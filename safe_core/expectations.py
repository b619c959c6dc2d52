"""What a test case demands of an output: three lists of terms (contract.md, "Criteria", "Nothing to check")."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Self

from safe_core.matching_rule import normalise
from safe_core.policy import Criterion

MAX_TERMS = 10_000
"""The most terms of one test case, over its three lists."""

_SURROGATE = re.compile("[\ud800-\udfff]")

PLACES: Mapping[Criterion, tuple[str, str]] = {
    "CR": ("signal_generation", "must_find_signals"),
    "AH": ("followup_questions", "forbidden_terms"),
    "AC": ("event_summary", "must_contain_phrases"),
}
"""Criterion → where factory-cli writes its terms (contract.md, "Criteria"); in the order of Expectations.lists."""


class InvalidExpectations(ValueError):
    """Expectations that nothing can be scored against; the message names the place, never the text."""


@dataclass(frozen=True, slots=True)
class Expectations:
    """The three lists of one test case, in the order and spelling of their author.

    Raises InvalidExpectations for a blank term, which would match everything, for a term that is
    no text or holds a lone surrogate, and for more than MAX_TERMS terms.
    """

    must_find_signals: tuple[str, ...] = ()
    forbidden_terms: tuple[str, ...] = ()
    must_contain_phrases: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if sum(map(len, self.lists)) > MAX_TERMS:
            raise InvalidExpectations(f"expectations hold more than {MAX_TERMS} terms")
        for terms, (section, name) in zip(self.lists, PLACES.values(), strict=True):
            for position, term in enumerate(terms):
                if problem := term_problem(term):
                    raise InvalidExpectations(f"{section}.{name}[{position}] {problem}")

    @classmethod
    def parse(cls, document: object) -> Self:
        """Read the `expectations` of a test case; an absent or null section or list is empty.

        Raises InvalidExpectations, also where `document` itself is null or no object.
        """
        if not isinstance(document, Mapping):
            raise InvalidExpectations(f"expectations are {'absent or null' if document is None else 'not an object'}")
        return cls(*(_terms(document, section, name) for section, name in PLACES.values()))

    @property
    def digest(self) -> str:
        """`sha256:` and the hash of the RFC 8785 JSON of the three lists, in the order CR, AH, AC."""
        # For lists of text, RFC 8785 is what json writes without spaces and without ASCII escapes.
        canonical = json.dumps(self.lists, ensure_ascii=False, separators=(",", ":"))
        return "sha256:" + hashlib.sha256(canonical.encode()).hexdigest()

    @property
    def lists(self) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
        """The three lists in the order CR, AH, AC."""
        return self.must_find_signals, self.forbidden_terms, self.must_contain_phrases

    def of(self, criterion: Criterion) -> tuple[str, ...]:
        """The list of one criterion."""
        terms: tuple[str, ...] = getattr(self, PLACES[criterion][1])
        return terms

    def document(self) -> dict[str, dict[str, list[str]]]:
        """Give the `expectations` of a test case, as parse() reads them."""
        places = zip(PLACES.values(), self.lists, strict=True)
        return {section: {name: list(terms)} for (section, name), terms in places}


class Terms(NamedTuple):
    """The lengths of the three lists of terms."""

    CR: int
    AH: int
    AC: int


class Needles(NamedTuple):
    """The terms of one list as written, and as they are looked for."""

    terms: tuple[str, ...]
    normalised: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PreparedExpectations:
    """Expectations with all that does not depend on an output worked out once; made by prepare()."""

    expectations: Expectations
    digest: str
    terms: Terms
    CR: Needles
    AH: Needles
    AC: Needles


def prepare(expectations: Expectations) -> PreparedExpectations:
    """Normalise the terms and compute the digest, once for any number of outputs."""
    terms = Terms(*map(len, expectations.lists))
    return PreparedExpectations(expectations, expectations.digest, terms, *map(_needles, expectations.lists))


def _needles(terms: tuple[str, ...]) -> Needles:
    return Needles(terms, tuple(map(normalise, terms)))


def _terms(document: Mapping[object, object], section: str, name: str) -> tuple[str, ...]:
    within = document.get(section)
    if within is None:
        return ()
    if not isinstance(within, Mapping):
        raise InvalidExpectations(f"{section} is not an object")
    terms = within.get(name)
    if terms is None:
        return ()
    if not isinstance(terms, list | tuple):
        raise InvalidExpectations(f"{section}.{name} is not a list")
    return tuple(terms)


def term_problem(term: object) -> str | None:
    """Say why something can be no term, None if it can be one."""
    if not isinstance(term, str):
        return "is not a string"
    if not normalise(term):
        return "is blank"
    if not term.isascii() and _SURROGATE.search(term):
        return "holds a lone surrogate"
    return None
