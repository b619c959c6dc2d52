"""Other wordings of required terms that people accept: they move no score (contract.md, "Accepted wordings")."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, TypeGuard

from safe_core.expectations import term_problem
from safe_core.matching_rule import normalise
from safe_core.outputs import Output
from safe_core.policy import Criterion
from safe_core.scoring import READ
from safe_core.scripts import is_within_word

KEY: Final = "accepted_wordings"
"""Where a test case has them, beside its expectations."""

Accepted = tuple[tuple[str, tuple[str, ...]], ...]
"""Terms as they are written, each with its wordings."""


def accepted_in(case: Mapping[object, object]) -> Accepted:
    """Read the accepted wordings of a test case; what is not a list of texts for a term is left out."""
    written = case.get(KEY)
    if not isinstance(written, Mapping):
        return ()
    read = (
        (term, tuple(filter(is_wording, texts if isinstance(texts, list) else ())))
        for term, texts in written.items()
        if is_wording(term)
    )
    return tuple((term, texts) for term, texts in read if texts)


def is_wording(wording: object) -> TypeGuard[str]:
    """Tell whether something may be a wording: what may be a term."""
    return isinstance(wording, str) and term_problem(wording) is None


def wordings_of(accepted: Accepted, term: str) -> Iterator[str]:
    """Give the accepted wordings of a term; white space around it, and upper and lower case, make no difference."""
    return (each for own, texts in accepted if normalise(own) == normalise(term) for each in texts)


def is_accepted(
    accepted: Accepted, criterion: Criterion, term: str, output: Output, is_denied: Callable[[str], bool]
) -> bool:
    """Tell whether what a criterion reads of an output has an accepted wording of a term, by the matching rule.

    A wording that is there counts only between edges of words ("MI" is in "mild", too), and if it is not denied: "SOB"
    is also in "Denies SOB.".
    """
    if not accepted or criterion == "AH":
        return False
    wordings = list(wordings_of(accepted, term))
    text = READ[criterion](output) if wordings else ""
    return any(_has_words(text, normalise(wording)) and not is_denied(wording) for wording in wordings)


def _has_words(text: str, wording: str) -> bool:
    at = text.find(wording)
    while at >= 0 and (is_within_word(text, at) or is_within_word(text, at + len(wording))):
        at = text.find(wording, at + 1)
    return at >= 0


def merged(several: Iterable[Accepted]) -> Accepted:
    """Give the accepted wordings of several test cases that expect the same."""
    found: dict[str, dict[str, None]] = {}
    for accepted in several:
        for term, texts in accepted:
            found.setdefault(term, {}).update(dict.fromkeys(texts))
    return tuple((term, tuple(texts)) for term, texts in found.items())
