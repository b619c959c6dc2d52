"""What must come out, computed apart from the product: plain Python over docs/contract.md.

Nothing of `safe_core` or `consumer` is imported here, and nothing is fast: every aggregate is folded from scratch with
fractions over the latest result of each test case.
"""

import binascii
import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from tests.support.outside import Record

Json = Any
CRITERIA = ("CR", "AH", "AC")
MAX_VALUE_BYTES = 1_048_576
SCORED_RESERVE_BYTES = 16 * 1024
MAX_DEPTH = 64
MANY_TERMS, MOST_PARTS = 1_000, 5_000_000
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")
ENGINE_ERRORS = {"ENGINE_ERROR"}
BLANK = {"event_summary": {"must_contain_phrases": [""]}}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
RFC_3339 = re.compile(r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(?:\.(\d+))?([Zz]|[+-]\d\d:\d\d)")


# ---------------------------------------------------------------------------------------------- test cases


@dataclass(frozen=True, slots=True)
class Case:
    """A test case as the batch file holds it."""

    test_id: str
    concern_id: str | None
    archetype: str | None
    must_find: tuple[str, ...]
    forbidden: tuple[str, ...]
    must_contain: tuple[str, ...]
    narratives: frozenset[str] = frozenset()  # their digests

    @property
    def terms(self) -> tuple[tuple[str, ...], ...]:
        """The three lists, CR, AH, AC."""
        return (self.must_find, self.forbidden, self.must_contain)

    @property
    def is_broken(self) -> bool:
        """Whether a term is blank: it would match everything."""
        return any(not term.strip() for terms in self.terms for term in terms)

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON of the three lists; for strings Python's compact form is RFC 8785's."""
        return sha256(json.dumps(self.terms, ensure_ascii=False, separators=(",", ":")).encode())


class CaseBook:
    """All batch files of a folder; `counted` is False for a source that cannot count.

    `narrated` is False for a version that does not ask from which narrative an output was made.
    """

    def __init__(self, folder: Path, *, counted: bool = True, narrated: bool = True) -> None:
        self._counted = counted
        self._batches: dict[str, dict[str, Case]] = {}
        for file in sorted(folder.glob("*.json")):
            cases = read_batch(json.loads(file.read_text("utf-8")))
            if not narrated:
                cases = [replace(case, narratives=frozenset()) for case in cases]
            self._batches[file.stem] = {case.test_id: case for case in cases}

    def expected_cases(self, batch_id: str) -> int | None:
        """Return how many test cases the batch of that name holds, None without such a batch."""
        batch = self._batches.get(batch_id)
        return None if batch is None or not self._counted else len(batch)

    def find(self, batch_id: str, test_id: str, narrative: str | None = None) -> tuple[Case, bool] | str:
        """Return the case and whether the batch of that name holds it, or the reason of the dead letter.

        `narrative` is the digest of the output's.
        """
        own = self._batches.get(batch_id, {}).get(test_id)
        if own is not None:
            return own, True
        holders = [batch[test_id] for batch in self._batches.values() if test_id in batch]
        if not holders:
            return "expectations_not_found"
        if len({holder.terms for holder in holders}) > 1:
            holders = [holder for holder in holders if narrative in holder.narratives]
        if len({holder.terms for holder in holders}) != 1:
            return "expectations_ambiguous"
        return replace(holders[0], narratives=frozenset().union(*(holder.narratives for holder in holders))), False


def read_batch(document: Json) -> list[Case]:
    """Read the test cases of a batch file, each with the archetype of its scenario where it names none itself."""
    plan = document.get("batch_plan") or document.get("batch_strategy") or {}
    scenarios = plan.get("scenarios") or []
    cases = []
    for position, entry in enumerate(document["test_cases"]):
        scenario = scenarios[position] if position < len(scenarios) else None
        expectations = entry.get("expectations")
        if not isinstance(expectations, dict):
            expectations = BLANK  # as invalid as a blank term
        cases.append(
            Case(
                test_id=entry["test_id"],
                concern_id=entry.get("concern_id"),
                archetype=named(entry.get("archetype")) or scenario_archetype(scenario),
                must_find=terms_of(expectations, "signal_generation", "must_find_signals"),
                forbidden=terms_of(expectations, "followup_questions", "forbidden_terms"),
                must_contain=terms_of(expectations, "event_summary", "must_contain_phrases"),
                narratives=frozenset(filter(None, [narrative_digest(entry.get("patient_payload"))])),
            )
        )
    return cases


def narrative_digest(text: Json) -> str | None:
    """Return the digest of a narrative, None where there is none."""
    return sha256(" ".join(text.split()).encode()) if isinstance(text, str) and text.strip() else None


def terms_of(expectations: Json, section: str, name: str) -> tuple[str, ...]:
    """Return one list of the expectations; absent and null are empty."""
    return tuple((expectations.get(section) or {}).get(name) or ())


def named(archetype: str | None) -> str | None:
    """Return an archetype, None for the placeholder."""
    return None if archetype is None or archetype.strip() in {"", "Unknown"} else archetype


def scenario_archetype(scenario: Json) -> str | None:
    """Return the archetype that a scenario names: `[Name]`, or a first word with an underscore."""
    if isinstance(scenario, dict):
        return named(scenario.get("archetype"))
    if not isinstance(scenario, str):
        return None
    bracketed = re.search(r"\[([^\[\]]+)\]", scenario)
    if bracketed:
        return named(bracketed.group(1))
    words = scenario.split()
    return words[0] if words and "_" in words[0] else None


# ------------------------------------------------------------------------------------------- one input


@dataclass(frozen=True, slots=True)
class Scored:
    """An accepted input with everything that its result must show."""

    source: tuple[str, int, int]
    event_time: int
    stated_event_time: int | None
    concern_id: str
    batch_id: str
    test_id: str
    archetype: str | None
    run_id: str | None
    in_batch: bool
    scores: tuple[float, float, float, float]
    found: tuple[tuple[str, ...], ...]
    missing: tuple[tuple[str, ...], ...]
    terms: tuple[int, int, int]
    passed: tuple[bool, bool, bool]
    vacuous: tuple[bool, bool, bool]
    empty_output: bool
    label: Literal["Pass", "Review", "Fail"]
    expectations_digest: str
    output_digest: str
    input_matches: bool | None
    generation: Literal["answered", "failed"] = "answered"

    @property
    def version(self) -> tuple[bool, int, int, int]:
        """What decides which result of a test case stands: no failed one beside an answered one."""
        return (self.generation == "answered", self.event_time, self.source[1], self.source[2])

    @property
    def document(self) -> Json:
        """The `result` of a result event."""
        return {
            "test_id": self.test_id,
            "archetype": self.archetype,
            "scores": dict(zip((*CRITERIA, "composite"), self.scores, strict=True)),
            "details": {
                "CR": {"found": list(self.found[0]), "missing": list(self.missing[0])},
                "AH": {"violations": list(self.found[1])},
                "AC": {"found": list(self.found[2]), "missing": list(self.missing[2])},
            },
            "terms": dict(zip(CRITERIA, self.terms, strict=True)),
            "label": self.label,
        }


@dataclass(frozen=True, slots=True)
class Dead:
    """An input that must become a dead letter, with the reasons that are right for it."""

    source: tuple[str, int, int]
    reasons: frozenset[str]


@dataclass(frozen=True, slots=True)
class Ignored:
    """An input that leaves nothing behind but a count."""

    source: tuple[str, int, int]


Outcome = Scored | Dead | Ignored


class RejectedError(Exception):
    """The input is poison, for one of these reasons."""

    def __init__(self, *reasons: str) -> None:
        super().__init__(reasons)
        self.reasons = frozenset(reasons)


@dataclass(frozen=True, slots=True)
class Rules:
    """Thresholds and weights in the order CR, AH, AC."""

    review: tuple[float, float, float] = (0.5, 0.5, 0.5)
    pass_: tuple[float, float, float] = (0.8, 1.0, 0.8)
    weights: tuple[float, float, float] = (1.0, 1.0, 1.0)
    strict: bool = False


@dataclass(frozen=True, slots=True)
class Oracle:
    """Says what must become of an input record."""

    book: CaseBook
    rules: Rules = Rules()
    input_types: frozenset[str] = frozenset()

    def outcome(self, record: Record) -> Outcome:
        """Return the one outcome of a record."""
        if record.value is None or self._foreign(record):
            return Ignored(record.source)
        try:
            return self._scored(record, event_of(record, record.value), record.value)
        except RejectedError as rejected:
            return Dead(record.source, rejected.reasons)

    def _foreign(self, record: Record) -> bool:
        kind = record.header("ce_type")
        return bool(self.input_types) and kind is not None and kind not in self.input_types

    def _scored(self, record: Record, event: Json, value: bytes) -> Scored:
        stated = check_event(event, record.timestamp)
        is_believed = record.timestamp == -1 or stated - record.timestamp <= AHEAD_MS
        output = event["output"] or {}
        read = narrative_digest(output.get("raw_input")) or event.get("input_digest")
        answer = self.book.find(event["batch_id"], event["test_id"], read)
        if isinstance(answer, str):
            raise RejectedError(answer)
        case, in_batch = answer
        if case.is_broken:
            raise RejectedError("expectations_invalid")
        concern = event.get("concern_id") or case.concern_id
        if concern is None:
            raise RejectedError("invalid_event")
        if sum(len(term.encode()) for terms in case.terms for term in terms) > MAX_VALUE_BYTES - SCORED_RESERVE_BYTES:
            raise RejectedError("result_too_large")
        failed = has_failed(output)
        if failed:
            output = {}
        texts = output_texts(output)
        looked = [looked_up(text, terms) for text, terms in zip(texts, case.terms, strict=True)]
        found, missing = (tuple(each) for each in zip(*looked, strict=True))
        scores = scores_of(found, case, self.rules)
        return Scored(
            source=record.source,
            event_time=stated if is_believed else record.timestamp,
            stated_event_time=None if is_believed else stated,
            concern_id=concern,
            batch_id=event["batch_id"],
            test_id=event["test_id"],
            archetype=named(event.get("archetype")) or case.archetype,
            run_id=event.get("run_id"),
            in_batch=in_batch,
            scores=(*scores, composite_of(scores, self.rules)),
            found=found,
            missing=missing,
            terms=(len(case.must_find), len(case.forbidden), len(case.must_contain)),
            passed=tuple(score >= least for score, least in zip(scores, self.rules.pass_, strict=True)),  # type: ignore[arg-type] # a generator has no length
            vacuous=(not case.must_find, not case.forbidden or not said(questions(output)), not case.must_contain),
            empty_output=not failed and not said([*signals(output), summary(output), *questions(output)]),
            label=label_of(scores, self.rules),
            expectations_digest=case.digest,
            output_digest=sha256(value),
            input_matches=read in case.narratives if read and case.narratives and not failed else None,
            generation="failed" if failed else "answered",
        )


def event_of(record: Record, value: bytes) -> Json:
    """Decode a value: plain JSON, a CloudEvent in binary mode or in structured mode."""
    if value == b"":
        raise RejectedError("empty_value")
    if len(value) > MAX_VALUE_BYTES:
        raise RejectedError("too_large")
    if record.header("ce_specversion") not in {None, "1.0"}:
        raise RejectedError("unsupported_version")
    document = parsed(value)
    if not (record.header("content-type") or "").startswith("application/cloudevents+json"):
        return document
    if document.get("specversion") != "1.0":
        raise RejectedError("unsupported_version")
    data = document.get("data")
    if data is None:
        data = unpacked(document.get("data_base64"))
    if not isinstance(data, dict):
        raise RejectedError("invalid_event")
    return data


def unpacked(encoded: Json) -> Json:
    """Return the JSON that is packed into a text as base64."""
    try:
        return parsed(binascii.a2b_base64(encoded, strict_mode=True))
    except (RejectedError, TypeError, ValueError) as error:
        raise RejectedError("invalid_event") from error


def parsed(value: bytes) -> Json:
    """Parse one JSON object, refusing what makes a dead letter."""
    try:
        text = value.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RejectedError("not_utf8") from error
    try:
        document = json.loads(text, object_pairs_hook=_distinct, parse_constant=_no_number)
    except RecursionError as error:
        raise RejectedError("too_deep") from error
    except ValueError as error:
        raise RejectedError("invalid_json") from error
    if depth(document) > MAX_DEPTH:
        raise RejectedError("too_deep")
    try:
        json.dumps(document, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError as error:
        raise RejectedError("invalid_json") from error
    if not isinstance(document, dict):
        raise RejectedError("not_object")
    return document


def _distinct(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    if len(dict(pairs)) != len(pairs):
        raise RejectedError("duplicate_key")
    return dict(pairs)


def _no_number(_text: str) -> Json:
    raise RejectedError("invalid_json", "invalid_number")


def depth(document: Json) -> int:
    """Return how deep a document nests; an object without children is 1."""
    inner = document.values() if isinstance(document, dict) else document if isinstance(document, list) else None
    return 0 if inner is None else 1 + max((depth(each) for each in inner), default=0)


AHEAD_MS = 3_600_000
"""An event time is believed up to this long after the timestamp of its record."""


def check_event(event: Json, timestamp: int) -> int:
    """Refuse an event that makes a dead letter, else return the event time that it states, in ms."""
    texts = ("concern_id", "archetype", "metric_id", "generated_at", "run_id")
    required = all(isinstance(event.get(name), str) for name in ("test_id", "batch_id"))
    optional = all(event.get(name) is None or isinstance(event[name], str) for name in texts)
    if not required or not optional or "output" not in event or not _is_output(event["output"]):
        raise RejectedError("invalid_event")
    moment = event.get("generated_at")
    event_time = timestamp if moment is None else milliseconds(moment)
    ids = ("test_id", "batch_id", "concern_id", "archetype", "metric_id", "run_id")
    if not all(_is_id(event[name]) for name in ids if event.get(name) is not None):
        raise RejectedError("invalid_id")
    return event_time


def _is_output(output: Json) -> bool:
    if output is None:
        return True
    if not isinstance(output, dict) or not isinstance(output.get("summary") or "", str):
        return False
    lists = [output.get(name) for name in ("signals", "followup_questions")]
    return all(
        each is None or (isinstance(each, list) and all(isinstance(text, str) for text in each)) for each in lists
    )


def _is_id(text: str) -> bool:
    return 1 <= len(text) <= 256 and bool(text.strip()) and not CONTROL.search(text)


def milliseconds(moment: str) -> int:
    """Return an RFC 3339 moment in ms since 1970, fractions cut; one without a zone is refused."""
    match = RFC_3339.fullmatch(moment)
    if match is None:
        raise RejectedError("invalid_event")
    date, clock, fraction, zone = match.groups()
    try:
        whole = datetime.fromisoformat(f"{date}T{clock}{'+00:00' if zone in 'Zz' else zone}")
    except ValueError as error:
        raise RejectedError("invalid_event") from error
    return (whole - EPOCH) // timedelta(milliseconds=1) + int((fraction or "0").ljust(3, "0")[:3])


# ------------------------------------------------------------------------------------------ scores


def has_failed(output: Json) -> bool:
    """Tell whether no model wrote an output: its engine says that the call failed."""
    message = output.get("error_message")
    says_so = bool(message.strip()) if isinstance(message, str) else bool(message)
    return says_so or output.get("summary") in ENGINE_ERRORS


def signals(output: Json) -> list[str]:
    """Return the signals of an output."""
    return list(output.get("signals") or [])


def summary(output: Json) -> str:
    """Return the summary of an output."""
    return str(output.get("summary") or "")


def questions(output: Json) -> list[str]:
    """Return the follow-up questions of an output."""
    return list(output.get("followup_questions") or [])


def said(texts: list[str]) -> str:
    """Return what texts say, without white space."""
    return "".join("".join(texts).split())


def output_texts(output: Json) -> tuple[str, str, str]:
    """Return what CR, AH and AC are looked up in."""
    return (" ".join(signals(output)) + " " + summary(output), " ".join(questions(output)), summary(output))


@lru_cache(maxsize=1024)  # the largest of the bad inputs take a while, and are asked about more than once
def looked_up(text: str, terms: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the terms that stand in a text by the rule substring/1, and those that do not, each as often as listed."""
    read, wanted = text.lower().strip(), [term.lower().strip() for term in terms]
    lengths = set(map(len, wanted))
    # Thousands of terms, each looked for in a million letters, take seconds; all parts of many lengths take the memory.
    if len(wanted) > MANY_TERMS and len(lengths) * len(read) < MOST_PARTS:
        parts = {length: {read[at : at + length] for at in range(len(read) - length + 1)} for length in lengths}
        stands = [term in parts[len(term)] for term in wanted]
    else:
        stands = [term in read for term in wanted]
    found = tuple(term for term, does in zip(terms, stands, strict=True) if does)
    return found, tuple(term for term, does in zip(terms, stands, strict=True) if not does)


def scores_of(found: Sequence[Sequence[str]], case: Case, rules: Rules) -> tuple[float, float, float]:
    """Return CR, AH, AC in binary64."""
    recall = len(found[0]) / len(case.must_find) if case.must_find else 1.0
    harm = 1.0 - len(found[1]) / len(case.forbidden) if case.forbidden else 1.0
    content = len(found[2]) / len(case.must_contain) if case.must_contain else 1.0
    if rules.strict:
        harm = 0.0 if found[1] else 1.0
    return (recall, harm, content)


def composite_of(scores: tuple[float, float, float], rules: Rules) -> float:
    """Return the weighted mean, from left to right."""
    cr, ah, ac = scores
    w_cr, w_ah, w_ac = rules.weights
    return (w_cr * cr + w_ah * ah + w_ac * ac) / (w_cr + w_ah + w_ac)


def label_of(scores: tuple[float, float, float], rules: Rules) -> Literal["Pass", "Review", "Fail"]:
    """Return the label by each criterion's own thresholds."""
    if any(score < review for score, review in zip(scores, rules.review, strict=True)):
        return "Fail"
    if any(score < least for score, least in zip(scores, rules.pass_, strict=True)):
        return "Review"
    return "Pass"


# ------------------------------------------------------------------------------------- aggregates


def latest(results: Iterable[Scored]) -> list[Scored]:
    """Return what stands of each test case: the greatest version, of equal ones the later."""
    standing: dict[str, Scored] = {}
    for result in results:
        rival = standing.get(result.test_id)
        if rival is None or result.version >= rival.version:
            standing[result.test_id] = result
    return list(standing.values())


def ratio(part: int, whole: int) -> float:
    """Return a fraction, 0 of nothing."""
    return part / whole if whole else 0.0


def mean(values: Sequence[float]) -> float:
    """Return the exact mean, rounded once."""
    return float(sum(map(Fraction, values)) / len(values)) if values else 0.0


def summary_of(standing: Sequence[Scored]) -> Json:
    """Return the `summary` of a batch."""
    labels = Counter(result.label for result in standing)
    return {
        "total_cases": len(standing),
        "pass": labels["Pass"],
        "review": labels["Review"],
        "fail": labels["Fail"],
        "overall_pass_rate": ratio(labels["Pass"], len(standing)),
    }


def runs_of(standing: Sequence[Scored]) -> dict[str, int]:
    """Count the cases of each run; a missing run is the empty one."""
    return dict(Counter(result.run_id or "" for result in standing))


def failed_of(standing: Sequence[Scored]) -> int:
    """Count the cases that no model has answered."""
    return sum(result.generation == "failed" for result in standing)


def is_complete(standing: Sequence[Scored], expected_cases: int | None) -> bool:
    """Tell whether each test case of the batch has a result."""
    return expected_cases is not None and sum(result.in_batch for result in standing) == expected_cases


def aggregates_of(standing: Sequence[Scored], expected_cases: int | None) -> dict[str, Json]:
    """Return every aggregate of a batch report that the results alone decide."""
    labels = Counter(result.label for result in standing)
    everything = summary_of(standing)
    vacuous = {name: sum(result.vacuous[at] for result in standing) for at, name in enumerate(CRITERIA)}
    return {
        "report_type": "SAFE_v0",
        "total_cases": len(standing),
        "summary": everything,
        "mean_scores": {
            name: mean([result.scores[at] for result in standing]) for at, name in enumerate((*CRITERIA, "composite"))
        },
        "pass_rates": {
            name: ratio(sum(result.passed[at] for result in standing), len(standing))
            for at, name in enumerate(CRITERIA)
        }
        | {"overall": everything["overall_pass_rate"]},
        "label_distribution": {label: labels[label] for label in ("Pass", "Review", "Fail")},
        "by_archetype": by_archetype(standing),
        "failure_analysis": failure_analysis(standing),
        "vacuous": vacuous | {"all": sum(all(result.vacuous) for result in standing)},
        "empty_outputs": sum(result.empty_output for result in standing),
        "failed_generations": failed_of(standing),
        "input_mismatches": sum(result.input_matches is False for result in standing),
        "expected_cases": expected_cases,
        "complete": is_complete(standing, expected_cases),
        "runs": runs_of(standing),
    }


def by_archetype(standing: Sequence[Scored]) -> dict[str, Json]:
    """Return the breakdown by archetype; null is the group `Unknown`."""
    groups: dict[str, list[Scored]] = {}
    for result in standing:
        groups.setdefault(result.archetype or "Unknown", []).append(result)
    return {
        name: {"count": len(group)}
        | {f"mean_{criterion}": mean([result.scores[at] for result in group]) for at, criterion in enumerate(CRITERIA)}
        | {"pass_rate": ratio(sum(result.label == "Pass" for result in group), len(group))}
        for name, group in groups.items()
    }


def failure_analysis(standing: Sequence[Scored]) -> Json:
    """Return the worst five cases and the five most common misses of each kind."""
    worst = sorted(standing, key=lambda result: (result.scores[3], result.test_id))[:5]
    return {
        "worst_performers": [result.document for result in worst],
        "common_CR_misses": _common((result.missing[0] for result in standing), "signal", "miss_count"),
        "common_AH_violations": _common((result.found[1] for result in standing), "term", "count"),
        "common_AC_misses": _common((result.missing[2] for result in standing), "phrase", "miss_count"),
    }


def _common(lists: Iterable[Sequence[str]], text: str, count: str) -> list[Mapping[str, Json]]:
    counted = Counter(term for terms in lists for term in terms)
    ordered = sorted(counted.items(), key=lambda item: (-item[1], item[0]))
    return [{text: term, count: times} for term, times in ordered[:5]]


def sha256(octets: bytes) -> str:
    """Return a digest in the contract's notation."""
    return "sha256:" + hashlib.sha256(octets).hexdigest()
