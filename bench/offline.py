"""How much time and memory `safe score` takes when it is run as a command.

python -m bench.offline                     10,000 cases from a report, and 10**6 events for 1,000 cases
python -m bench.offline --events 100000
"""

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

TEXT = (
    "arrived at triage with chest pain and was seen by the registrar after forty minutes because the bay was full "
    "troponin was drawn twice the second sample haemolysed in transport aspirin had been given by the ambulance crew"
)
WORDS = TEXT.split()
TERMS = [" ".join(WORDS[start : start + 4]) for start in range(len(WORDS) - 4)]
BATCH_SIZE = 500


def batch_file(rng: random.Random, test_ids: Sequence[str]) -> dict[str, object]:
    """A batch whose cases have three signals, two forbidden terms and two phrases each."""
    return {
        "test_cases": [
            {
                "test_id": test_id,
                "concern_id": "B01",
                "archetype": rng.choice(("Delay_Driver_Profiler", "Process_Auditor", "Safety_Signal")),
                "expectations": {
                    "signal_generation": {"must_find_signals": rng.sample(TERMS, 3)},
                    "followup_questions": {"forbidden_terms": ["negligence", "blame"]},
                    "event_summary": {"must_contain_phrases": rng.sample(TERMS, 2)},
                },
            }
            for test_id in test_ids
        ]
    }


def output(rng: random.Random) -> dict[str, object]:
    """An output of about 1.2 KB."""
    text = " ".join(rng.choices(TERMS, k=12))
    return {"signals": rng.sample(TERMS, 6), "summary": text, "followup_questions": [" ".join(rng.choices(WORDS, k=9))]}


def test_ids(cases: int) -> list[str]:
    return [f"B01-{number:06d}" for number in range(cases)]


def write_cases(folder: Path, rng: random.Random, cases: int) -> None:
    folder.mkdir()
    ids = test_ids(cases)
    for start in range(0, cases, BATCH_SIZE):
        batch = batch_file(rng, ids[start : start + BATCH_SIZE])
        (folder / f"B01_batch_{start // BATCH_SIZE}.json").write_text(json.dumps(batch))


def write_report(path: Path, rng: random.Random, cases: int) -> None:
    results = [{"test_id": each, "engine_output": output(rng)} for each in test_ids(cases)]
    path.write_text(json.dumps({"concern_id": "B01", "raw_results": results}, indent=1))


def events(rng: random.Random, count: int, cases: int) -> Iterator[str]:
    outputs = [json.dumps(output(rng)) for _ in range(2_000)]
    for number in range(count):
        test_id = f"B01-{rng.randrange(cases):06d}"
        yield f'{{"test_id": "{test_id}", "run_id": "r{number % 3}", "output": {rng.choice(outputs)}}}\n'


def measured(name: str, arguments: Sequence[str]) -> None:
    """Run `safe` in a separate process; print how many seconds it took and its peak memory."""
    started = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "safe_scorer", *arguments], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - started
    code = os.waitstatus_to_exitcode(status)
    if code not in {0, 1, 2}:
        raise SystemExit(f"{name}: exit code {code}")
    print(f"{name:44} {seconds:7.2f} s  {usage.ru_maxrss / 1024:7.0f} MiB", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    rng = random.Random(20260302)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        write_cases(root / "cases", rng, asked.cases)
        write_report(root / "run.json", rng, asked.cases)
        files = ["--test-dir", str(root / "cases"), "--concern", "B01", "--batch"]
        for _ in range(asked.rounds):
            measured("safe --help", ["--help"])
            for formats in (["-f", "console"], ["-f", "json"], ["-o", str(root / "r.json"), "-o", str(root / "r.md")]):
                name = " ".join(formats).replace(f"{root}/", "")
                measured(
                    f"{asked.cases:,} cases, {name}",
                    ["score", *files, "*", "--outputs", str(root / "run.json"), *formats],
                )
            measured("verify", ["verify", f"{root}/r.json", *files[:2], "--outputs", str(root / "run.json")])
        for count in (asked.events // 10, asked.events):
            path = root / f"{count}.jsonl"
            with path.open("w") as file:
                file.writelines(events(rng, count, min(asked.cases, 1_000)))
            size = path.stat().st_size / 1e6
            name = f"{count:,} events ({size:.0f} MB) for 1,000 cases"
            measured(name, ["score", *files, "B01_batch_[01]".replace("[01]", "?"), "--outputs", str(path)])
            path.unlink()
    print(f"(this benchmark itself: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB)")


if __name__ == "__main__":
    main()
