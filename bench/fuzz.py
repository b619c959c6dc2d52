"""Fuzzing: runs arbitrary records and expectations through decode → validate → score → encode, for a chosen time.

    python -m bench.fuzz [--minutes 60] [--seed N] [--engine all|mutate|hypothesis|atheris] [--findings DIR]
    python -m bench.fuzz --replay FINDING.json

`mutate` changes known inputs with a seeded random generator, and keeps those with a new outcome. `hypothesis` uses the
strategies of the tests. `atheris`, if it is installed, is guided by coverage. `all` gives each engine its share of the
time. tests/support/fuzzing.py says what must hold for every input. An input that breaks a rule is written to a file
that `--replay` reads.
"""

import argparse
import base64
import importlib
import importlib.util
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from array import array
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from tests.support.fuzzing import ALLOWED_SECONDS, Case, Examiner, Finding, Verdict
from tests.support.mutation import TOKENS, Mutator, seeds

SHARES = {"mutate": 0.5, "hypothesis": 0.15, "atheris": 0.35}
"""Shares of the time of `all`. The share of an engine that is not installed goes to `mutate`."""

SLOWER = {"atheris": 6}
"""A case may take this many times longer under an engine that counts every branch."""

TOLD_EVERY_SECONDS = 60.0
POOL = 20_000
"""How many cases are kept as seeds. When there are more, the oldest one found during the run is dropped first."""

INSTRUMENTED = (
    "consumer.wire.input_event",
    "consumer.worker.dead_letter_writing",
    "consumer.case_sources.cases",
    "consumer.wire.headers",
    "consumer.wire.scored_record",
    "consumer.worker.scorer",
    "safe_core.expectations",
    "safe_core.ids",
    "safe_core.matching_rule",
    "safe_core.outputs",
    "safe_core.scoring",
    "safe_core.testcases",
    "json.decoder",
)
"""The modules whose branch coverage guides atheris."""


def main() -> int:
    """Run the chosen engines; return 1 if there was a finding."""
    arguments = _arguments()
    if arguments.replay is not None:
        return _replay(arguments.replay)
    arguments.findings.mkdir(parents=True, exist_ok=True)
    if arguments.engine == "all":
        return max(_as_process(arguments, *turn) for turn in _turns(arguments.minutes))
    run = Run(arguments.engine, arguments.seed, arguments.minutes * 60, arguments.findings)
    ENGINES[arguments.engine](run)
    run.tell()
    return int(run.findings > 0)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=20260302)
    parser.add_argument("--engine", choices=["all", *ENGINES], default="all")
    parser.add_argument("--findings", type=Path, default=Path("fuzz-findings"))
    parser.add_argument("--replay", type=Path)
    return parser.parse_args()


def _turns(minutes: float) -> list[tuple[str, float]]:
    """Each engine with its minutes."""
    there = {name: share for name, share in SHARES.items() if name != "atheris" or _has_atheris()}
    there["mutate"] += 1 - sum(there.values())
    return [(name, minutes * share) for name, share in there.items()]


def _has_atheris() -> bool:
    return importlib.util.find_spec("atheris") is not None


def _as_process(arguments: argparse.Namespace, engine: str, minutes: float) -> int:
    """Run one engine in a separate process: atheris ends the process that it runs in."""
    command = [sys.executable, "-m", "bench.fuzz", "--engine", engine, "--minutes", str(minutes)]
    command += ["--seed", str(arguments.seed), "--findings", str(arguments.findings)]
    return subprocess.run(command, check=False).returncode


# --- a run ------------------------------------------------------------------------------------------------------------


class Run:
    """The run of one engine: what it has examined, how long each case took, what it found."""

    def __init__(self, engine: str, seed: int, seconds: float, folder: Path) -> None:
        self.engine = engine
        self.seed = seed
        self.findings = 0
        self._folder = folder
        self._examiner = Examiner(ALLOWED_SECONDS * SLOWER.get(engine, 1))
        self._begun = time.monotonic()
        self._ends = self._begun + seconds
        self._told_at = self._begun
        self._inputs = 0
        self._bytes = 0
        self._outcomes: Counter[str] = Counter()
        self._times = array("d")
        self._slowest = 0.0
        self._problems: Counter[str] = Counter()

    @property
    def is_over(self) -> bool:
        """Whether the time is up."""
        return time.monotonic() >= self._ends

    def examine(self, case: Case) -> Verdict | None:
        """Examine one case and count it; None if it is a finding, which is then written to a file."""
        self._inputs += 1
        self._bytes += case.size
        try:
            verdict = self._examiner.examine(case)
        except Exception as finding:  # noqa: BLE001 - a defect of the fuzz is noted like one of the product
            self._note(case, finding)
            return None
        self._outcomes[verdict.outcome] += 1
        self._times.append(verdict.seconds_a_piece)
        if verdict.seconds_a_piece > self._slowest:
            self._slowest = verdict.seconds_a_piece
            self._write(f"slowest-{self.engine}-{self.seed}", case, f"{self._slowest:.6f} s for each 64 KiB", None)
        if time.monotonic() - self._told_at >= TOLD_EVERY_SECONDS:
            self.tell()
        return verdict

    def _note(self, case: Case, finding: Exception) -> None:
        """Write the first few findings of each kind to files."""
        self.findings += 1
        said = f"{type(finding).__name__}: {finding}"
        problem = "".join(character for character in said if not character.isdigit())
        self._problems[problem] += 1
        if self._problems[problem] <= 5:
            cause = None if finding.__cause__ is None else repr(finding.__cause__)
            file = self._write(f"{self.engine}-{self.seed}-{self._inputs}", case, str(finding), cause)
            print(f"{self.engine}: FINDING {said} ({file})", flush=True)

    def _write(self, name: str, case: Case, problem: str, cause: str | None) -> Path:
        file = self._folder / f"{name}.json"
        document = {"problem": problem, "cause": cause, "seed": self.seed, "case": _written(case)}
        file.write_text(json.dumps(document, indent=1))
        return file

    def tell(self) -> None:
        """Print all counts so far."""
        self._told_at = time.monotonic()
        seconds = self._told_at - self._begun
        times = sorted(self._times) or [0.0]
        p50, p99, most = (1_000 * times[int(share * (len(times) - 1))] for share in (0.5, 0.99, 1.0))
        print(
            f"{self.engine} (seed {self.seed}): {self._inputs:,} inputs, {self._bytes / 2**20:,.0f} MiB "
            f"in {seconds:,.0f} s; {self.findings} findings; "
            f"ms for each 64 KiB p50 {p50:.3f} p99 {p99:.3f} max {most:.3f}",
            *(f"    {count:>10,} {outcome}" for outcome, count in self._outcomes.most_common()),
            *(f"    {count:>10,} FINDING {problem}" for problem, count in self._problems.most_common()),
            sep="\n",
            flush=True,
        )


# --- findings as files ------------------------------------------------------------------------------------------------


def _written(case: Case) -> dict[str, Any]:
    document = asdict(case)
    document["headers"] = [[name, _base64(content)] for name, content in case.headers]
    return document | {name: _base64(document[name]) for name in ("value", "key", "expectations")}


def _read(document: dict[str, Any]) -> Case:
    headers = tuple((name, _octets(content)) for name, content in document["headers"])
    octets = {name: _octets(document[name]) for name in ("value", "key", "expectations")}
    return Case(**{**document, **octets, "headers": headers})


def _base64(octets: bytes | None) -> str | None:
    return None if octets is None else base64.b64encode(octets).decode()


def _octets(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def _replay(file: Path) -> int:
    case = _read(json.loads(file.read_text())["case"])
    examiner = Examiner()
    try:
        examiner.examine(seeds(0)[0])  # what only the first case takes is not this one's
        print(f"no longer: {examiner.examine(case)}")
    except Finding as finding:
        print(f"still: {finding}; caused by {finding.__cause__!r}")
        return 1
    return 0


# --- engines ----------------------------------------------------------------------------------------------------------


def mutate(run: Run) -> None:
    """Change known inputs; an input with a new outcome is changed further."""
    rng = random.Random(run.seed)
    mutator = Mutator(rng)
    pool, met = list(seeds(run.seed)), set[tuple[str, str]]()
    known = len(pool)
    for case in pool:
        run.examine(case)
    while not run.is_over:
        case = mutator.mutated(rng.choice(pool), pool)
        verdict = run.examine(case)
        if verdict is not None and (kind := verdict[:2]) not in met:
            met.add(kind)
            pool.append(case)
            del pool[known : len(pool) - POOL]


def hypothesis(run: Run) -> None:
    """Use the strategies of the tests: a few hundred examples per seed, then the next seed."""
    drawing = importlib.import_module("hypothesis")
    strategy = importlib.import_module("tests.support.drawing").cases()
    limits = drawing.settings(
        max_examples=250,
        database=None,
        deadline=None,
        phases=[drawing.Phase.generate],
        suppress_health_check=list(drawing.HealthCheck),
    )

    def examine(case: Case) -> None:
        if not run.is_over:
            run.examine(case)

    seed = run.seed
    while not run.is_over:
        seed += 1
        drawing.seed(seed)(limits(drawing.given(strategy)(examine)))()


def atheris(run: Run) -> None:
    """Use coverage as the guide: libFuzzer changes the bytes, and half the time our own mutations change the case."""
    fuzzer = importlib.import_module("atheris")
    for name in INSTRUMENTED:
        _instrument(fuzzer, importlib.import_module(name))
    known = seeds(run.seed)

    def examine(octets: bytes) -> None:
        if run.is_over:
            run.tell()
            os._exit(int(run.findings > 0))  # libFuzzer would end the process itself, without a word of ours
        run.examine(_unpacked(octets))

    def change(octets: bytes, most: int, seed: int) -> bytes:
        rng = random.Random(seed)
        if rng.random() < 0.5:
            return bytes(fuzzer.Mutate(octets, most))
        return _packed(Mutator(rng).mutated(_unpacked(octets), known))[:most]

    with tempfile.TemporaryDirectory() as folder:
        fuzzer.Setup(_libfuzzer(run.seed, Path(folder), known), examine, custom_mutator=change)
        fuzzer.Fuzz()


def _libfuzzer(seed: int, folder: Path, known: Sequence[Case]) -> list[str]:
    corpus, words = folder / "corpus", folder / "words"
    corpus.mkdir()
    for number, case in enumerate(known):
        if case.size < 70_000:
            (corpus / str(number)).write_bytes(_packed(case))
    words.write_text("\n".join('"' + "".join(f"\\x{octet:02x}" for octet in token[:60]) + '"' for token in TOKENS))
    options = [f"-seed={seed % 2**31}", "-max_len=140000", "-timeout=60", "-rss_limit_mb=4096", "-verbosity=0"]
    return ["fuzz", str(corpus), f"-dict={words}", *options]


def _instrument(fuzzer: ModuleType, module: ModuleType) -> None:
    for thing in list(vars(module).values()):
        functions = vars(thing).values() if isinstance(thing, type) else [thing]
        for function in functions:
            if isinstance(function, FunctionType) and function.__module__ == module.__name__:
                fuzzer.instrument_func(function)


_ENVELOPES: tuple[tuple[tuple[str, bytes | None], ...], ...] = (
    (),
    (("ce_specversion", b"1.0"), ("ce_type", b"generation.output")),
    (("content-type", b"application/cloudevents+json"),),
    (("ce_specversion", b"2.0"), ("safe.dlq.reason", None)),
)


def _packed(case: Case) -> bytes:
    """One byte for the envelope, four for the length of the value, the value, the expectations."""
    value = case.value or b""
    at = _ENVELOPES.index(case.headers) if case.headers in _ENVELOPES else 0
    return bytes([at]) + len(value).to_bytes(4, "little") + value + case.expectations


def _unpacked(octets: bytes) -> Case:
    end = 5 + int.from_bytes(octets[1:5], "little")
    return Case(octets[5:end], octets[end:], headers=_ENVELOPES[(octets[0] if octets else 0) % len(_ENVELOPES)])


ENGINES: dict[str, Callable[[Run], None]] = {"mutate": mutate, "hypothesis": hypothesis, "atheris": atheris}

if __name__ == "__main__":
    sys.exit(main())
