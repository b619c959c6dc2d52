"""Files of outputs: factory-cli reports, and JSONL of input events.

This is for people who name files: one that cannot be used raises ConfigurationError naming the file and the entry.
"""

import hashlib
import io
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, Final, Literal, TypeVar

from consumer.dead_letter_reasons import Poison
from consumer.errors import ConfigurationError
from consumer.files.json_text import BYTE_ORDER_MARK, parse_json_of_file
from consumer.terminal import print_message
from consumer.text import named, printable, quoted, visible
from safe_core import (
    MAX_ID_LENGTH,
    InvalidBatch,
    InvalidDigest,
    InvalidOutput,
    Output,
    id_problem,
    known_archetype,
)
from safe_core.misspelt_keys import (
    ENTRY_KEYS,
    EVENT_KEYS,
    OUTPUT_KEYS,
    KeyLevel,
    LookAlikes,
    look_alikes,
    resembling,
)
from safe_core.narrative_digests import narrative_read
from safe_core.outputs import FAILURE_KEYS, failure_in, holds_nothing, not_an_object

EVENT_SUFFIXES = frozenset({".jsonl", ".ndjson"})
OUTPUT_SUFFIXES = EVENT_SUFFIXES | {".json"}

_OWN_REPORT = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{\s*"report_type"\s*:\s*"SAFE_v0"')

_OPTIONAL_IDS = ("batch_id", "concern_id", "archetype", "metric_id", "run_id")

OnDuplicate = Literal["first", "last"]
"""Which of several answers to one test case counts."""

NO_OUTPUT: Final = "its entry in the report has no engine_output"
"""The error of an entry that says of none."""

_LISTED: Final = 50
_LONGEST_ERROR: Final = 200

_Value = TypeVar("_Value")

# --- standard input, which can be read once ---------------------------------------------------------------------------

_DASH: Final = Path("-")
STANDARD_INPUT: Final = Path("standard input")
"""What `-` is called in messages and in reports."""


def is_standard_input(path: Path) -> bool:
    """Tell whether a path given on the command line means standard input."""
    return path == _DASH


def called(path: Path) -> Path:
    """Give the path as messages name it."""
    return STANDARD_INPUT if is_standard_input(path) else path


def read_standard_input() -> bytes:
    """Read it to the end; raises ConfigurationError if nothing comes, as when `-` is given a second time."""
    written = sys.stdin.buffer.read()
    if not written.strip():
        raise ConfigurationError(
            f"{STANDARD_INPUT}: is empty; check that the command that writes to it has succeeded, and give - only once"
        )
    return written


# --- outputs ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Entry:
    """One answer of a file: an element of a report's `raw_results`, or an event of a JSONL.

    `place` says in words where it is; `engine_output` is what the engine wrote, unchanged, `output` what scoring reads;
    `narrative` is the digest of the narrative that the model read, None where it is not known. `error` is what the file
    says of a generation that failed, beside what the engine wrote; it is the output's `error_message` then.
    `look_alikes` are keys that nothing reads, though they resemble one that is read; `unknown_keys` are all others that
    nothing knows, of an entry that has neither an output nor a failure: the answer may be there.
    """

    place: str
    test_id: str
    batch_index: int | None
    batch_id: str | None
    concern_id: str | None
    archetype: str | None
    metric_id: str | None
    run_id: str | None
    generated_at: str | None
    engine_output: Mapping[str, object] | None
    output: Output
    narrative: str | None = None
    error: str | None = None
    look_alikes: LookAlikes = ()
    unknown_keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OutputFile:
    """A file of outputs; `sha256` in hex. A report answers a test case once; of several events the latest counts.

    `lines` counts the lines of a file of events, the last one too if it does not end in a newline; `size` is in bytes.
    `held` is all of standard input, which cannot be read a second time.
    """

    path: Path
    kind: Literal["report", "events"]
    sha256: str
    lines: int
    size: int
    held: bytes | None = None

    def entries(self) -> Iterator[Entry]:
        """Read the file from its beginning, entry by entry; raises ConfigurationError at the first that cannot be used.

        Raises it at the end, too, if the bytes were not those of `sha256`: what is reported must be what was read.
        """
        digest = hashlib.sha256()
        with readable(self.path), self._opened() as file:
            yield from (_report_entries if self.kind == "report" else _event_entries)(self.path, file, digest.update)
        if digest.hexdigest() != self.sha256:
            raise unusable(self.path, "has changed while it was being read; try again when nothing writes to it")

    def _opened(self) -> BinaryIO:
        return self.path.open("rb") if self.held is None else io.BytesIO(self.held)


def output_files(path: Path) -> list[Path]:
    """The files that a path names: itself or, of a folder, those that may hold outputs, sorted by name.

    A report that SAFE wrote into the folder holds no outputs, nor does a plan or batch file; of these it is told.
    """
    if is_standard_input(path) or not path.is_dir():
        return [path]
    with readable(path):
        found = sorted(file for file in path.iterdir() if file.suffix in OUTPUT_SUFFIXES and file.is_file())
        found = [file for file in found if not is_own_report(file)]
    beside = [file for file in found if _is_about_something_else(file)]
    line = _beside_line([file.name for file in beside])
    if len(found) == len(beside):
        more = f": {line}" if beside else ""
        raise ConfigurationError(f"{visible(str(path))} holds neither reports (.json) nor events (.jsonl){more}")
    if beside:
        print_message(line)
    return [file for file in found if file not in beside]


def _is_about_something_else(file: Path) -> bool:
    """Whether a file is JSON, but no report, nor one with a misspelt key; False if it cannot be read."""
    if file.suffix in EVENT_SUFFIXES:
        return False
    try:
        raw = file.read_bytes()
        if b'"raw_results"' in raw:  # which need not be parsed twice
            return False
        document = parse_json_of_file(raw)
    except (OSError, Poison):
        return False  # the reader will say why it cannot be read
    return isinstance(document, dict) and not any(
        name in document or any(resembling(document, name)) for name in ("raw_results", "test_id")
    )


def _beside_line(names: Sequence[str]) -> str:
    listed = named(names, _LISTED, MAX_ID_LENGTH)
    if len(names) == 1:
        return f"{listed} is left out: it has no raw_results, so it holds no outputs"
    return f"{len(names)} files are left out: they have no raw_results, so they hold no outputs: {listed}"


def is_own_report(path: Path) -> bool:
    """Whether a file begins like the JSON reports that SAFE writes; False if it cannot be read."""
    try:
        with path.open("rb") as file:
            return _OWN_REPORT.match(file.read(256)) is not None
    except OSError:
        return False  # the reader will say why it cannot be read


def open_outputs(path: Path) -> OutputFile:
    """Find out what a file is, and hash it; `-` is standard input. Raises ConfigurationError if it cannot be read."""
    if is_standard_input(path):
        held = read_standard_input()
        return _examined(STANDARD_INPUT, io.BytesIO(held), held)
    with readable(path):
        if path.exists() and not path.is_file():
            raise unusable(path, "is not a regular file; to read a stream, give - and redirect it to standard input")
        with path.open("rb") as file:
            return _examined(path, file)


def _examined(path: Path, file: BinaryIO, held: bytes | None = None) -> OutputFile:
    digest, lines, first_line = hashlib.sha256(), 0, b""
    for line in file:
        digest.update(line)
        lines += 1
        first_line = first_line if first_line.strip() else line
    events = path.suffix in EVENT_SUFFIXES or _is_event(first_line)
    return OutputFile(path, "events" if events else "report", digest.hexdigest(), lines, file.tell(), held)


def open_all(paths: Iterable[Path]) -> list[OutputFile]:
    """Open the files that each path names."""
    return [open_outputs(file) for path in paths for file in output_files(path)]


def _is_event(line: bytes) -> bool:
    """Whether a first line is a whole event, not a report or another document on one line."""
    if b'"test_id"' not in line:  # nor need it be JSON then
        return False
    try:
        document = parse_json_of_file(line)
    except Poison:
        return False
    return isinstance(document, dict) and "test_id" in document


def holds_outputs(document: object) -> bool:
    """Whether a document is a report of factory-cli, with the outputs of a run."""
    return isinstance(document, dict) and "raw_results" in document


def _report_entries(path: Path, file: BinaryIO, note: Callable[[bytes], None]) -> Iterator[Entry]:
    raw = file.read()
    note(raw)
    if not raw.strip():
        raise unusable(path, "is empty; check that the step that writes it has succeeded")
    document = _parsed(raw, path, "the file")
    results = document.get("raw_results")
    if not isinstance(results, list):
        if document.get("report_type") == "SAFE_v0":
            raise unusable(path, "is a report of SAFE, not the outputs that were scored")
        if "test_cases" in document:
            raise unusable(path, "holds test cases, not outputs")
        raise unusable(
            path,
            "is neither a factory-cli report, which has a list named raw_results, nor a JSONL file of events"
            + _did_you_mean("raw_results", document),
        )
    for position, result in enumerate(results):
        place = f"raw_results[{position}]"
        if not isinstance(result, dict):
            raise unusable(path, f"{place} is {not_an_object(result)}")
        # A report may name its concern once, for all.
        inherited = {"concern_id": document.get("concern_id")} if result.get("concern_id") is None else {}
        yield _entry(path, place, {**result, **inherited}, _output_of_report(path, place, result), ENTRY_KEYS)


def _event_entries(path: Path, file: BinaryIO, note: Callable[[bytes], None]) -> Iterator[Entry]:
    for number, line in enumerate(file, 1):
        note(line)
        if line.removeprefix(BYTE_ORDER_MARK if number == 1 else b"").strip():
            place = f"line {number}"
            yield _entry(path, place, _parsed(line, path, place, number), "output", EVENT_KEYS)


def _output_of_report(path: Path, place: str, entry: Mapping[str, object]) -> str:
    """Give the key under which an entry has its output: a name that is nearly right is no failed generation.

    Of two, the first that holds something.
    """
    there = sorted(
        (name for name in ("engine_output", "output") if name in entry), key=lambda n: holds_nothing(entry[n])
    )
    name = next(iter(there), None)
    if name is None and (
        near := next(resembling(entry, "engine_output"), None) or next(resembling(entry, "output"), None)
    ):
        raise unusable(path, f"{place} has no engine_output; did you mean {quoted(near)}?")
    return name or "engine_output"


def _entry(path: Path, place: str, document: Mapping[str, object], output_name: str, keys: KeyLevel) -> Entry:
    is_report = keys is ENTRY_KEYS
    texts = {name: _member(path, place, document, name, str) for name in (*_OPTIONAL_IDS, "generated_at")}
    if is_report:
        # In a report "" means that it is not known; in an event it is a bad id.
        texts = {name: text if text and text.strip() else None for name, text in texts.items()}
    test_id = _member(path, place, document, "test_id", str)
    if test_id is None:
        raise unusable(path, f"{place} has no test_id{_did_you_mean('test_id', document)}")
    for name, identifier in [("test_id", test_id), *((name, texts[name]) for name in _OPTIONAL_IDS)]:
        if identifier is not None and (problem := id_problem(identifier)):
            raise unusable(path, f"{place}: {name} {problem}")
    batch_index = _member(path, place, document, "batch_index", int)
    if output_name not in document and not is_report:
        raise unusable(path, f"{place} has no {output_name}{_did_you_mean(output_name, document)}")
    engine_output = document.get(output_name)
    try:
        output = Output.parse(engine_output)
        error = _error(document, output, output_name)
        narrative = narrative_read(document, engine_output)
    except InvalidOutput as invalid:
        # which calls it as an event does
        raise unusable(path, f"{place}: {output_name}{str(invalid).removeprefix('output')}") from invalid
    except InvalidDigest as invalid:
        raise unusable(path, f"{place}: input_digest {invalid}") from invalid
    fields = engine_output if isinstance(engine_output, dict) else {}
    return Entry(
        place=place,
        test_id=test_id,
        batch_index=batch_index,
        **(texts | {"archetype": known_archetype(texts["archetype"])}),
        engine_output=engine_output if isinstance(engine_output, dict) else None,
        output=output if error is None else replace(output, error_message=error),
        narrative=narrative,
        error=error,
        look_alikes=look_alikes(document, keys) + look_alikes(fields, OUTPUT_KEYS),
        unknown_keys=tuple(key for key in document if key not in keys.known) if error == NO_OUTPUT else (),
    )


def _did_you_mean(name: str, document: Mapping[str, object]) -> str:
    near = next(resembling(document, name), None)
    return "" if near is None else f"; did you mean {quoted(near)}?"


def _error(document: Mapping[str, object], output: Output, output_name: str) -> str | None:
    """Give what a file says went wrong beside an output; None if it says nothing, or has an answer."""
    names = (*FAILURE_KEYS, "message") if output_name not in document else FAILURE_KEYS if output.is_empty else ()
    error = printable(failure_in(document, names).strip())[:_LONGEST_ERROR]
    return error or (NO_OUTPUT if output_name not in document else None)


def _member(path: Path, place: str, document: Mapping[str, object], name: str, kind: type[_Value]) -> _Value | None:
    value = document.get(name)
    if value is None:
        return None
    # True is an int in Python, but not the index of a batch.
    if not isinstance(value, kind) or isinstance(value, bool):
        raise unusable(path, f"{place}: {name} is not a {'string' if kind is str else 'whole number'}")
    return value


def _parsed(raw: bytes, path: Path, place: str, first_line: int = 1) -> dict[str, object]:
    try:
        document = parse_json_of_file(raw, first_line)
    except Poison as error:
        raise unusable(path, f"{place} cannot be read: {error.detail}") from error
    if not isinstance(document, dict):
        raise unusable(path, f"{place} is {not_an_object(document, 'a JSON object')}")
    return document


def unusable(path: Path, why: str) -> ConfigurationError:
    """The error for a file that cannot be used."""
    return ConfigurationError(f"{visible(str(path))}: {why}")


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Make a ConfigurationError that names the path, if the file system refuses it or it is not a batch file."""
    try:
        yield
    except OSError as error:
        raise unusable(path, f"cannot be read ({error.strerror})") from error
    except InvalidBatch as error:
        raise unusable(path, str(error)) from error
