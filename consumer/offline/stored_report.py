"""JSON reports as files hold them, written by SAFE and perhaps rewritten since: read once, decoded part by part.

Each command asks for the parts that it needs, so that a report which lacks the others can still be used.
"""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeVar, get_args

import msgspec
from msgspec import Meta, Struct, field

from consumer.dead_letter_reasons import Poison
from consumer.errors import ConfigurationError
from consumer.files.json_text import parse_json_of_file
from consumer.files.outputs import OnDuplicate, called, holds_outputs, is_standard_input, read_standard_input
from consumer.text import printable
from consumer.wire.scored_record import DetailsShape, Score, ScoresShape, ViolationsShape
from safe_core import CRITERIA, REPORT_TYPE, Criterion, Generation, Label, id_problem

_WRITES_ONE: Final = "safe score --output report.json writes a report"

# Another tool's report may count what no machine can hold.
_Count = Annotated[int, Meta(ge=0, le=10**12)]
_Part = TypeVar("_Part")


def read_report(path: Path) -> dict[str, Any]:
    """Read a JSON report; `-` is standard input. Raises ConfigurationError where it cannot be read or is none."""
    name = printable(str(called(path)))
    try:
        written = read_standard_input() if is_standard_input(path) else path.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"{name}: cannot be read ({error.strerror})") from error
    if not written.strip():
        # What `safe score > report.json` leaves behind when it fails.
        raise ConfigurationError(f"{name}: is empty; check that the step that writes it has succeeded")
    try:
        parse_json_of_file(written)  # refuses a key twice, NaN, and what is nested too deeply
        document = json.loads(written.decode("utf-8-sig"))  # and this keeps every digit of a whole number
    except Poison as error:
        raise ConfigurationError(f"{name}: cannot be read: {error.detail}") from error
    except ValueError as error:
        raise ConfigurationError(f"{name}: cannot be read: a number has too many digits") from error
    if holds_outputs(document):
        raise ConfigurationError(
            f"{name}: holds outputs, not a SAFE report; score them first: safe score --outputs {printable(str(path))}"
        )
    if not isinstance(document, dict) or document.get("report_type", REPORT_TYPE) != REPORT_TYPE:
        raise ConfigurationError(f"{name}: is not a SAFE report; {_WRITES_ONE}")
    if "summary" not in document:
        raise ConfigurationError(f"{name}: is not a SAFE report, because it has no summary; {_WRITES_ONE}")
    return document


def distinct_names(paths: Sequence[Path]) -> list[str]:
    """Name reports after their files; where two have one name, their folders tell them apart."""
    names = [path.name for path in paths]
    return [str(path) if names.count(path.name) > 1 else path.name for path in paths]


# --- parts of a report ------------------------------------------------------------------------------------------------


def _check_ids(**named: str | None) -> None:
    for name, text in named.items():
        if text is not None and (problem := id_problem(text)):
            raise ValueError(f".{name} {problem}")


class _Summary(Struct):
    pass_: _Count = field(name="pass")
    review: _Count
    fail: _Count
    total_cases: _Count
    overall_pass_rate: int | float  # as it was written, also where it cannot be true

    def __post_init__(self) -> None:
        passes, reviews, fails, total = self.pass_, self.review, self.fail, self.total_cases
        if total == 0:
            raise ValueError(".total_cases is 0: nothing was scored, so there is nothing to decide on")
        if passes + reviews + fails != total:
            counted = f"{passes} pass, {reviews} review and {fails} fail"
            raise ValueError(f" contradicts itself: {counted} are not {total} cases")
        rate = self.overall_pass_rate
        if rate != passes / total:
            said = f"overall_pass_rate is {rate}, but {passes} of {total} cases pass, which is {passes / total}"
            raise ValueError(f" contradicts itself: {said}")


class _Summarised(Struct):
    summary: _Summary


class _Forbidden(Struct, frozen=True):
    """Of the lengths of the three lists the one that `details` do not tell."""

    AH: _Count | None = None


class _Doubtful(Struct, frozen=True):
    criterion: Criterion
    term: str


class _Near(Struct, frozen=True):
    term: str


class _Unsupported(Struct, frozen=True):
    kind: str
    text: str


Listed = Literal["near_violations", "unsupported"]
"""What reports list beside the scores, of which fewer are better."""
LISTED: Final[tuple[Listed, ...]] = get_args(Listed)


class _Marks(Struct, frozen=True):
    CR: Score
    AC: Score


class StoredResult(Struct, frozen=True):
    """A case as a report judged it; None is what the report does not say, or does not know."""

    test_id: str
    label: Label
    scores: ScoresShape
    details: DetailsShape
    terms: _Forbidden | None = None
    batch_id: str | None = None
    input_matches: bool | None = None
    generation: Generation | None = None
    doubtful: tuple[_Doubtful, ...] = ()
    near_violations: tuple[_Near, ...] | None = None
    unsupported: tuple[_Unsupported, ...] | None = None
    lenient: _Marks | None = None
    coverage: _Marks | None = None

    def __post_init__(self) -> None:
        _check_ids(test_id=self.test_id, batch_id=self.batch_id)

    def doubts(self, criterion: Criterion, terms: Sequence[str]) -> tuple[str, ...]:
        """Give those of some terms that were found in doubt."""
        doubted = {each.term for each in self.doubtful if each.criterion == criterion}
        return tuple(term for term in terms if term in doubted)

    def listed(self, what: Listed) -> tuple[str, ...] | None:
        """Give the terms or values that it lists, of values those that are nowhere in the narrative; None: not told."""
        if what == "near_violations":
            return None if self.near_violations is None else tuple(near.term for near in self.near_violations)
        values = self.unsupported
        return None if values is None else tuple(value.text for value in values if value.kind == "nowhere")

    @property
    def required(self) -> tuple[int, int]:
        """How many terms of CR and of AC the case has."""
        details = self.details
        return len(details.CR.found) + len(details.CR.missing), len(details.AC.found) + len(details.AC.missing)

    @property
    def found(self) -> int:
        """How many of these were found."""
        return len(self.details.CR.found) + len(self.details.AC.found)

    @property
    def recalled(self) -> int | None:
        """How many of these were found, said in other words or accepted; None where the report does not say."""
        if self.lenient is None:
            return None
        of_cr, of_ac = self.required
        return round(self.lenient.CR * of_cr) + round(self.lenient.AC * of_ac)

    @property
    def forbidden(self) -> int | None:
        """How many forbidden terms the case has, None where the report does not say."""
        return None if self.terms is None else self.terms.AH


class _HarmDetails(Struct):
    AH: ViolationsShape


class _HarmOfCase(Struct):
    details: _HarmDetails


class _HarmOfCases(Struct):
    results: tuple[_HarmOfCase, ...]


class _StoredScorer(Struct):
    fingerprint: str | None = None
    rule: str | None = None

    def __post_init__(self) -> None:
        _check_ids(fingerprint=self.fingerprint, rule=self.rule)


class _StoredConfiguration(Struct):
    strictAH: bool | None = None  # noqa: N815 - the name in the contract


class StoredResults(Struct):
    """What a comparison reads of a report; None is what an older one, or another tool's, does not say."""

    concern_id: str
    results: tuple[StoredResult, ...]
    complete: bool | None = None
    missing_outputs: _Count | None = None
    missing_test_ids: tuple[str, ...] | None = None
    scorer: _StoredScorer | None = None
    configuration: _StoredConfiguration | None = None

    def __post_init__(self) -> None:
        _check_ids(concern_id=self.concern_id)


class _Version(Struct):
    version: str


class StoredSelection(Struct):
    """Which test cases a report is about."""

    concern_id: str
    batches: tuple[str, ...]
    on_duplicate: OnDuplicate | None = None

    def __post_init__(self) -> None:
        # A batch's name must not lead out of its folder: what a report says is not to be trusted.
        if not self.batches or any("/" in name or id_problem(name) for name in self.batches):
            raise ValueError(".batches is not a list of batch names")


class StoredRun(Struct):
    """What a recomputation takes on trust."""

    scorer: _Version
    selection: StoredSelection
    configuration: dict[str, Any]


def part_of(report: Mapping[str, Any], part: type[_Part], name: str) -> _Part:
    """Decode a part of a report; raises ConfigurationError naming file and place."""
    try:
        return msgspec.convert(report, part)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"{printable(name)}: {in_words(error, _CHOICES)}") from error


def checked_summary(report: Mapping[str, Any], path: Path) -> Mapping[str, Any]:
    """Give a report's `summary`, sound in itself; raises ConfigurationError naming what is not."""
    part_of(report, _Summarised, str(path))
    summary: Mapping[str, Any] = report["summary"]
    return summary


def violations_of(results: object, name: str) -> int:
    """Count the AH violations in the `results` of a report; raises ConfigurationError naming file and place."""
    cases = part_of({"results": results}, _HarmOfCases, name).results
    return sum(len(case.details.AH.violations) for case in cases)


# --- what is wrong with a part, in words ------------------------------------------------------------------------------

_LOCATED: Final = re.compile(r"(.*) - at `\$([^`]*)`", re.DOTALL)  # the last one: a wrong label may quote another
_MISSING: Final = re.compile(r"Object missing required field `(\w+)`")
_EXPECTED: Final = re.compile(r"Expected `(\w+)")
_KINDS: Final = {"object": "an object", "array": "a list", "str": "a string", "bool": "a boolean (true or false)"}

_CHOICES: Final = {
    "label": get_args(Label),
    "criterion": CRITERIA,
    "generation": get_args(Generation),
    "on_duplicate": get_args(OnDuplicate),
}
"""What a member may be that is one of a few words."""


def in_words(error: msgspec.ValidationError, choices: Mapping[str, Sequence[str]]) -> str:
    """Say msgspec's "Expected `str`, got `int` - at `$.results[0].test_id`" as people do.

    `choices` has what members may be that are one of a few words.
    """
    located = _LOCATED.fullmatch(str(error))
    what, place = located.groups() if located else (str(error), "")
    if missing := _MISSING.match(what):
        said = f"{place}.{missing[1]} is missing"
    elif expected := _EXPECTED.match(what):
        said = f"{place or 'the file'} is not {_KINDS.get(expected[1]) or _number_at(place)}"
    elif what.startswith("Invalid enum value"):
        words = ", ".join(choices.get(place.rpartition(".")[2], ("the words that it may be",)))
        said = f"{place} is not one of {words}"
    elif what == "Number out of range":
        said = f"{place} is not {_number_at(place)}"
    else:
        said = place + what
    return said.removeprefix(".")


def _number_at(place: str) -> str:
    if place == ".safe_decisions":
        return "a whole number"
    if place.endswith(".overall_pass_rate"):
        return "a number"
    if any(f".{name}." in place for name in ("scores", "lenient", "coverage")):
        return "a score from 0 to 1"
    return "a count of terms" if ".terms." in place else "a count of cases"
