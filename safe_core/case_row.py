"""What a batch keeps of one case, compact, and the `result` that is written from it."""

import marshal
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, Self, TypeVar

from safe_core.expectations import Terms
from safe_core.lenient_scores import Marks
from safe_core.remembered import Remembered
from safe_core.result_version import Version, is_older, packed_version, unpacked_version
from safe_core.scoring import CaseScore, Details, Label, Passed, Scores, Vacuous

T = TypeVar("T")

_MARSHAL_FORMAT = 2  # later formats may write equal values as different bytes, and equal details would be kept twice


class SharedFields(NamedTuple):
    """What many rows of a batch have in common, kept once for all of them."""

    archetype: str | None
    run_id: str | None
    fingerprint: str
    expected: bool
    label: Label
    passed: Passed
    vacuous: Vacuous
    empty_output: bool
    input_matches: bool | None
    failed: bool


class _Pool(Remembered[T, T]):
    """Values met lately, so that equal ones are kept once."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(16_384)

    def share(self, value: T) -> T:
        known = self.get(value)
        return self.keep(value, value) if known is None else known


# One pool for each type: a Terms of (1, 1, 1) equals a Passed of (True, True, True).
_SHARED: _Pool[SharedFields] = _Pool()
_SCORES: _Pool[Scores] = _Pool()
_TERMS: _Pool[Terms] = _Pool()
_DETAILS: _Pool[bytes] = _Pool()
_MARKS: _Pool[Marks] = _Pool()


@dataclass(slots=True)  # not frozen: that would double the time to make one
class CaseRow:
    """What the fold keeps of one case, compact, and never changed; made by CaseRow.of()."""

    shared: SharedFields
    scores: Scores
    terms: Terms
    _version: bytes
    _details: bytes
    marks: Marks | None = None  # where the scorer was asked for them (contract.md, "Lenient recall")

    @classmethod
    def of(
        cls,
        *,
        version: Version,
        archetype: str | None,
        run_id: str | None,
        fingerprint: str,
        expected: bool,
        case: CaseScore,
        input_matches: bool | None = None,
        marks: Marks | None = None,
    ) -> Self:
        """Pack a case; `expected` tells that the batch of that name holds the test case.

        `input_matches` tells whether its output was made from the case's own narrative; None: not known, or no output.

        Raises ValueError for a version whose numbers do not fit 64 bits.
        """
        shared = SharedFields(
            archetype, run_id, fingerprint, expected,
            case.label, case.passed, case.vacuous, case.empty_output, input_matches, not version[0],
        )  # fmt: skip
        packed = packed_version(version)
        details = marshal.dumps(tuple(case.details), _MARSHAL_FORMAT)
        return cls(
            _SHARED.share(shared), _SCORES.share(case.scores), _TERMS.share(case.terms), packed,
            _DETAILS.share(details), marks and _MARKS.share(marks),
        )  # fmt: skip

    def of_version(self, version: Version) -> Self:
        """Give the same row of another version, which answers or fails as this one does; raises ValueError as of()."""
        return type(self)(self.shared, self.scores, self.terms, packed_version(version), self._details, self.marks)

    @property
    def version(self) -> Version:
        return unpacked_version(self._version)

    def is_older_than(self, other: Self) -> bool:
        """Tell whether the other one is the later result (contract.md, "Latest result")."""
        return is_older(self._version, other._version)

    @property
    def details(self) -> Details:
        return _unpacked(self._details)

    def has_details_of(self, other: Self) -> bool:
        """Tell whether both have the same details."""
        return self._details == other._details

    @property
    def archetype(self) -> str | None:
        return self.shared.archetype

    @property
    def run_id(self) -> str | None:
        return self.shared.run_id

    @property
    def label(self) -> Label:
        return self.shared.label

    @property
    def passed(self) -> Passed:
        return self.shared.passed

    @property
    def vacuous(self) -> Vacuous:
        return self.shared.vacuous

    @property
    def empty_output(self) -> bool:
        return self.shared.empty_output

    @property
    def input_matches(self) -> bool | None:
        return self.shared.input_matches

    @property
    def failed(self) -> bool:
        """Whether no model wrote the output (contract.md, "Failed generations")."""
        return self.shared.failed


@lru_cache(maxsize=4096)  # so that the terms that many batches count are kept once
def _unpacked(details: bytes) -> Details:
    return Details._make(marshal.loads(details))  # noqa: S302  our own bytes, written by of()


def result_document(test_id: str, archetype: str | None, case: CaseScore | CaseRow) -> dict[str, Any]:
    """Give the `result` of a case in the field order of contract.md, "Result"."""
    details = case.details
    return {
        "test_id": test_id,
        "archetype": archetype,
        "scores": case.scores._asdict(),
        "details": {
            "CR": {"found": list(details.cr_found), "missing": list(details.cr_missing)},
            "AH": {"violations": list(details.ah_violations)},
            "AC": {"found": list(details.ac_found), "missing": list(details.ac_missing)},
        },
        "terms": case.terms._asdict(),
        "label": case.label,
    }
