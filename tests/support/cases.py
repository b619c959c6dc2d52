"""Clinically plausible test cases and outputs from a seed, in the shapes that factory-cli writes.

Nothing here is copied from a real case: every narrative is put together from the tables below.
"""

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from tests.support.outside import Outgoing

Json = Any
Quality = Literal["pass", "review", "harm", "fail", "empty", "failed"]
QUALITIES: tuple[Quality, ...] = ("pass", "review", "harm", "fail", "empty")
QUALITY_WEIGHTS = (50, 20, 12, 15, 3)
START = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)

ARCHETYPES = (
    "Medication_Auditor",
    "Handover_Reviewer",
    "Escalation_Tracker",
    "Consent_Checker",
    "Discharge_Planner",
    "Monitoring_Gap",
)
# Concern, the ward it arises on, and what may be seen, done and found there.
CONCERNS: dict[str, dict[str, Sequence[str]]] = {
    "S11": {
        "place": ("the surgical ward", "the high dependency unit", "the emergency department"),
        "seen": ("a temperature of 39.2 °C", "a heart rate of 128", "a lactate of 4.1 mmol/L", "new confusion"),
        "done": (
            "blood cultures were drawn",
            "the first dose of piperacillin was given",
            "a litre of saline was started",
        ),
        "found": ("suspected urosepsis", "a leaking anastomosis", "an infected central line"),
    },
    "F07": {
        "place": ("the stroke unit", "the geriatric ward", "the rehabilitation ward"),
        "seen": (
            "a bruise over the left hip",
            "a shortened right leg",
            "a laceration above the eyebrow",
            "a GCS of 14",
        ),
        "done": ("a head CT was ordered", "neurological observations were begun", "the bed alarm was switched on"),
        "found": ("an unwitnessed fall from bed", "a fractured neck of femur", "a small subdural haematoma"),
    },
    "M23": {
        "place": ("the day clinic", "the oncology ward", "the dialysis unit"),
        "seen": ("an INR of 7.8", "a potassium of 6.4 mmol/L", "a blood glucose of 2.1 mmol/L", "a rash on both arms"),
        "done": ("vitamin K was given", "calcium gluconate was given", "the infusion was stopped"),
        "found": ("a tenfold dose of insulin", "warfarin given beside clarithromycin", "a missed renal dose reduction"),
    },
}
FORBIDDEN = ("negligence", "blame", "lawsuit", "protocol breach", "malpractice", "incompetent", "per policy")
QUESTIONS = (
    "Which observations led to the decision to escalate at that hour?",
    "Who was told about the change, and when was it written down?",
    "What was known about the patient's usual medication on arrival?",
    "Was a second clinician asked to confirm the finding?",
    "How was the plan explained to the patient and the family?",
)


@dataclass(frozen=True, slots=True)
class WrittenCase:
    """A test case of ours with the entry that stands in its batch file."""

    batch_id: str
    concern_id: str
    test_id: str
    entry: Json

    @property
    def terms(self) -> tuple[list[str], list[str], list[str]]:
        """What must be found, what is forbidden, what must be said."""
        wanted = self.entry["expectations"]
        return (
            wanted["signal_generation"]["must_find_signals"],
            wanted["followup_questions"]["forbidden_terms"],
            wanted["event_summary"]["must_contain_phrases"],
        )


@dataclass(frozen=True, slots=True)
class WrittenBatch:
    """A batch file of ours."""

    batch_id: str
    document: Json
    cases: tuple[WrittenCase, ...]

    def write(self, folder: Path) -> Path:
        """Write the file as factory-cli names it."""
        file = folder / f"{self.batch_id}.json"
        file.write_text(json.dumps(self.document, indent=1, ensure_ascii=False), encoding="utf-8")
        return file


def make_batches(seed: int, *, batches: int = 6, cases_a_batch: int = 8) -> tuple[WrittenBatch, ...]:
    """Make batches over all concerns; the same seed makes the same cases."""
    rng = random.Random(seed)
    concerns = list(CONCERNS)
    return tuple(_batch(rng, concerns[index % len(concerns)], index + 1, cases_a_batch) for index in range(batches))


def write_batches(folder: Path, batches: Sequence[WrittenBatch]) -> Path:
    """Write all batch files into a folder, and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    for batch in batches:
        batch.write(folder)
    return folder


def _batch(rng: random.Random, concern: str, number: int, size: int) -> WrittenBatch:
    batch_id = f"{concern}_batch_{number}"
    archetypes = [rng.choice(ARCHETYPES) for _ in range(size)]
    cases = tuple(_case(rng, concern=concern, number=number, at=at + 1, archetype=archetypes[at]) for at in range(size))
    plan = {
        "batch_index": number,
        "scenario_count": size,
        "scenarios": [_scenario(rng, at + 1, archetype) for at, archetype in enumerate(archetypes)],
    }
    return WrittenBatch(batch_id, {"batch_plan": plan, "test_cases": [case.entry for case in cases]}, cases)


def _scenario(rng: random.Random, number: int, archetype: str) -> Json:
    """The three ways in which batch files name an archetype, and one that names none."""
    words = f"a patient of {rng.randint(19, 94)} with an unclear course"
    return rng.choice(
        [
            f"Generated Case {number}: [{archetype}] {words}, Borderline.",
            f"{archetype} case for {words}.",
            {"description": f"Review of {words}", "archetype": archetype},
            f"Review of {words}",
        ]
    )


def _case(rng: random.Random, *, concern: str, number: int, at: int, archetype: str) -> WrittenCase:
    table = CONCERNS[concern]
    batch_id = f"{concern}_batch_{number}"
    place, found, done = rng.choice(table["place"]), rng.choice(table["found"]), rng.choice(table["done"])
    first, second = rng.sample(list(table["seen"]), 2)
    hour, delay = rng.randint(0, 23), rng.randint(15, 600)
    moments = (f"brought to {place} at {hour:02}:{rng.randint(0, 59):02}", f"{done} after {delay} minutes")
    test_id = f"{concern}-B{number}-{at:03}"
    entry: Json = {
        "test_id": test_id,
        "concern_id": concern,
        "description": f"{archetype} case on {found}.",
        "patient_payload": f"The patient was {moments[0]} with {first} and {second}. {moments[1].capitalize()}. "
        f"The team concluded on {found}.",
        "expectations": {
            "signal_generation": {"must_find_signals": [moments[0], first, moments[1]], "min_signal_count": 3},
            "event_summary": {"must_contain_phrases": [found.capitalize(), f"{delay} minutes"]},
            "followup_questions": {"required_themes": ["timing"], "forbidden_terms": rng.sample(FORBIDDEN, 2)},
        },
    }
    if rng.random() < 0.3:
        entry["archetype"] = archetype
    return WrittenCase(batch_id, concern, test_id, entry)


def make_output(rng: random.Random, case: WrittenCase, quality: Quality) -> Json:
    """Make an engine output of the quality asked for: how it scores follows from the terms it repeats.

    "failed" is what factory-cli's engine writes where its call of the model fails.
    """
    if quality == "failed":
        error = rng.choice(["429 Too Many Requests", "Unexpected end of JSON input"])
        texts = {"summary": "ENGINE_ERROR", "error_message": error, "signals": [], "followup_questions": []}
        return {"raw_input": "Another patient was brought in at noon."} | texts
    if quality == "empty":
        return rng.choice([None, {}, {"signals": [], "summary": "", "followup_questions": None}])
    must_find, forbidden, must_contain = case.terms
    kept = {"pass": len(must_find), "review": len(must_find) - 1, "harm": len(must_find), "fail": 0}[quality]
    questions = rng.sample(QUESTIONS, 3)
    if quality == "harm":
        questions.append(f"Was there any {forbidden[0].upper()} in the record?")
    phrases = must_contain if quality != "fail" else must_contain[:1]
    summary = f"Summary: {'; '.join(phrases)}. The course was reviewed and the times were taken from the chart."
    return {
        "raw_input": case.entry["patient_payload"] if quality != "fail" else "Another patient was brought in at noon.",
        "signals": [text.title() if rng.random() < 0.3 else text for text in must_find[:kept]] + ["a stable airway"],
        "summary": summary,
        "followup_questions": questions,
        "model_name": "stand-in-1",
        "latency_ms": rng.randint(300, 9000),
    }


def make_event(
    rng: random.Random,
    case: WrittenCase,
    *,
    quality: Quality | None = None,
    generated_at: datetime | None = None,
    run_id: str | None = None,
    size: int = 1300,
) -> Json:
    """Make an input event of about `size` bytes; a quality not given is drawn."""
    chosen = quality or rng.choices(QUALITIES, QUALITY_WEIGHTS)[0]
    event = {
        "test_id": case.test_id,
        "batch_id": case.batch_id,
        "concern_id": case.concern_id,
        "run_id": run_id,
        "output": make_output(rng, case, chosen),
    }
    if generated_at is not None:
        event["generated_at"] = generated_at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    event["trace"] = "·" * max(0, (size - len(encoded(event))) // 2 - 8)
    return event


def encoded(event: Json) -> bytes:
    """Encode an event as a producer would."""
    return json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode()


POISON: tuple[bytes, ...] = (
    b"",  # empty_value
    b"   ",  # invalid_json: white space only
    b'{"test_id": "x", "batch_id": ',  # invalid_json: cut off
    b"\xff\xfe\x00",  # not_utf8
    b"[1, 2, 3]",  # not_object
    b'{"test_id": "x", "test_id": "y", "batch_id": "b", "output": {}}',  # duplicate_key
    b'{"test_id": "x", "batch_id": "b"}',  # invalid_event: no output
    b'{"test_id": " ", "batch_id": "b", "output": {}}',  # invalid_id
    b'{"test_id": "../../etc/passwd", "batch_id": "b", "output": {}}',  # expectations_not_found
    b'{"a":' * 70 + b"1" + b"}" * 70,  # too_deep
)


def event_stream(
    seed: int,
    batches: Sequence[WrittenBatch],
    count: int,
    *,
    partitions: int,
    repeated: float = 0.1,
    late: float = 0.1,
    poison: float = 0.01,
    failed: float = 0.0,
) -> Iterator[Outgoing]:
    """Yield `count` input records over all partitions.

    A share repeats an earlier test case (another output, often another run or partition), a share is dated before what
    came ahead of it, a share can never be scored, and of a share the call of the model failed.
    """
    rng = random.Random(seed)
    cases = [case for batch in batches for case in batch.cases]
    rng.shuffle(cases)
    fresh = 0
    for at in range(count):
        partition = rng.randrange(partitions)
        if rng.random() < poison:
            yield Outgoing(rng.choice(POISON), key=b"poison", partition=partition)
            continue
        again = fresh > 0 and (fresh >= len(cases) or rng.random() < repeated)
        case = cases[rng.randrange(fresh) if again else fresh]
        fresh += not again
        moment = START + timedelta(seconds=at // 2)
        moment -= timedelta(seconds=rng.randint(1, 3600)) if rng.random() < late else timedelta()
        quality: Quality | None = "failed" if failed and rng.random() < failed else None
        event = make_event(rng, case, quality=quality, generated_at=moment, run_id=rng.choice(["r1", "r1", "r1", None]))
        yield Outgoing(encoded(event), key=f"{case.batch_id}/{case.test_id}".encode(), partition=partition)
