"""`safe lint`: what is wrong with test cases, before it is looked for in a prompt."""

import json
import os
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from msgspec import Struct

from consumer.case_sources.folder import SUFFIX, list_folder
from consumer.case_sources.source import ExpectationsKey
from consumer.dead_letter_reasons import Poison
from consumer.errors import ConfigurationError
from consumer.files.batches import (
    Batches,
    beside_lines,
    chosen,
    has_wildcard,
    load_batch,
    no_batch,
    only_beside,
    read_document,
)
from consumer.files.join import answered_by
from consumer.files.json_text import RepeatedKey, parse_json_of_file, repeated_keys
from consumer.files.outputs import is_own_report, open_all, readable, unusable
from consumer.files.unused_outputs import UnreadKeys
from consumer.offline.decisions import Decisions
from consumer.offline.pages.quotes import nearest_in
from consumer.offline.stored_report import part_of
from consumer.text import count_of, named, visible
from safe_core import (
    CRITERIA,
    Criterion,
    EngineTexts,
    Expectations,
    InvalidBatch,
    NoBatch,
    Output,
    OutputField,
    Policy,
    PreparedExpectations,
    Rules,
    TestCase,
    is_of_concern,
    judged_by,
    kind_of,
    narrative_of,
    normalise,
    prepare,
    score,
)
from safe_core.ceiling import Ceiling, NarratedCase, ceiling
from safe_core.diagnosis import Passage, asked_criteria
from safe_core.expectations import PLACES
from safe_core.lint_rules import (
    SEVERITIES,
    Code,
    Finding,
    ListedTerm,
    Severity,
    WrittenCase,
    findings,
    listed_terms,
    longer_word,
    written_cases,
)
from safe_core.mutation import MutatedCase
from safe_core.narrative_digests import digest_of_narrative
from safe_core.scoring import READ

# --- what was found ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Located:
    """A finding, the file it is in, and its line there as near as it is known.

    `narrative` holds at `nearest` the words that come closest to a term that is not in it. A finding is `known` if the
    baseline has it, perhaps with a reason why it stays; `decided` is what people decided about its term, in words.
    """

    file: Path
    line: int
    finding: Finding
    narrative: str = ""
    nearest: Passage | None = None
    known: bool = False
    reason: str | None = None
    decided: str = ""

    def document(self) -> dict[str, Any]:
        """Give its entry in the JSON."""
        finding, nearest = self.finding, self.nearest
        return {
            "code": finding.code,
            "severity": finding.severity,
            "file": str(self.file),
            "line": self.line,
            "place": finding.place,
            "test_id": finding.test_id,
            "term": finding.term,
            "sentence": finding.sentence,
            "nearest": None if nearest is None else {"start": nearest.start, "end": nearest.end},
            "known": self.known,
            "reason": self.reason,
            "decided": self.decided or None,
        }


class CaseMutants(NamedTuple):
    """How many mutants of a test case there are, and how many of them would pass (contract.md, "Mutants")."""

    file: str
    test_id: str
    mutants: int
    survived: int


@dataclass(frozen=True, slots=True)
class Lint:
    """The ceiling of the test cases, and the findings in the order of files and cases.

    `cases` counts them as they stand in the files; the ceiling, those that can be scored, and each once. `answers`
    counts the outputs that answer one of them, None where no outputs were given. Findings that the baseline knows are
    listed, but neither counted nor a reason to fail; `gone` counts those of the baseline that are there no more.
    `remarks` are for the person who asked.
    """

    ceiling: Ceiling
    batches: int
    cases: int
    findings: Sequence[Located]
    answers: int | None
    gone: int = 0
    mutation: Sequence[CaseMutants] | None = None
    remarks: Sequence[str] = ()

    @property
    def new(self) -> list[Located]:
        """The findings that the baseline does not know."""
        return [each for each in self.findings if not each.known]

    @property
    def known(self) -> int:
        """How many findings the baseline knows."""
        return sum(each.known for each in self.findings)

    @property
    def by_severity(self) -> dict[Severity, int]:
        """How many new findings there are of each severity."""
        counts = Counter(each.finding.severity for each in self.new)
        return {severity: counts[severity] for severity in _SEVERITIES}

    @property
    def is_clean(self) -> bool:
        """Nothing asks anybody to act."""
        return self.passes("warning")

    def passes(self, fail_on: Severity) -> bool:
        """Tell whether nothing is of a severity, or worse."""
        return not any(self.by_severity[severity] for severity in _SEVERITIES[: _SEVERITIES.index(fail_on) + 1])

    def document(self) -> dict[str, Any]:
        """Give what `--format json` prints."""
        codes = Counter(each.finding.code for each in self.new)
        return {
            "ceiling": self.ceiling.document(),
            "batches": self.batches,
            "cases": self.cases,
            "answers": self.answers,
            "is_clean": self.is_clean,
            "known": self.known,
            "by_severity": self.by_severity,
            "by_code": {code: codes[code] for code in SEVERITIES if codes[code]},
            "findings": [each.document() for each in self.findings],
            **({} if self.mutation is None else {"mutation": [each._asdict() for each in self.mutation]}),
        }


_SEVERITIES: Final[tuple[Severity, ...]] = ("error", "warning", "info")


# --- findings that are known and stay ---------------------------------------------------------------------------------


class _Known(Struct, frozen=True):
    """A finding of the baseline; `reason` is what people wrote beside it. Lines and positions may have moved since."""

    code: str
    file: str
    test_id: str | None = None
    term: str | None = None
    reason: str | None = None


class _Baseline(Struct):
    """What an earlier `safe lint --format json` printed, perhaps with reasons added."""

    findings: tuple[_Known, ...]


def _read_baseline(path: Path) -> Sequence[_Known]:
    with readable(path):
        raw = path.read_bytes()
    try:
        document = parse_json_of_file(raw)
    except Poison as error:
        raise unusable(path, f"cannot be read: {error.detail}") from error
    if not isinstance(document, dict) or "findings" not in document:
        raise ConfigurationError(f"{path}: is not a baseline; safe lint --format json > baseline.json writes one")
    return part_of(document, _Baseline, str(path)).findings


def _compared(lint: Lint, baseline: Iterable[_Known]) -> Lint:
    """Mark the findings that the baseline knows; each of its entries stands for one finding."""
    left: dict[tuple[str, str, str | None, str | None], list[_Known]] = {}
    for known in baseline:
        left.setdefault((known.code, Path(known.file).name, known.test_id, known.term), []).append(known)
    marked = []
    for each in lint.findings:
        known_ones = left.get((each.finding.code, each.file.name, each.finding.test_id, each.finding.term))
        marked.append(replace(each, known=True, reason=known_ones.pop(0).reason) if known_ones else each)
    return replace(lint, findings=marked, gone=sum(map(len, left.values())))


# --- reading ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _LintedFile:
    """A batch file, its test cases of the concern asked for, and what was found in it so far."""

    path: Path
    text: str
    cases: Sequence[WrittenCase]
    found: list[Finding] = field(default_factory=list)
    repeated_keys: Sequence[RepeatedKey] = ()

    @property
    def batch_id(self) -> str:
        return self.path.name.removesuffix(SUFFIX)


@dataclass(frozen=True, slots=True)
class LintRequest:
    """What was asked for: folders and batch files; in both, `batch` is a glob over the names of batches."""

    paths: Sequence[Path]
    concern: str | None = None
    batch: str = "*"
    outputs: Sequence[Path] = ()
    baseline: Path | None = None
    mutate: bool = False


def lint_batches(policy: Policy, request: LintRequest) -> Lint:
    """Look at the batches that were asked for; raises ConfigurationError where nothing can be."""
    baseline = None if request.baseline is None else _read_baseline(request.baseline)
    beside: list[str] = []
    files = _files(request, beside)
    for file in files:
        file.found.extend(findings(file.cases))
    _compare_batches(files)
    keys = UnreadKeys()
    answers, failed = (
        _look_at_outputs(files, request.outputs, keys, policy.engine_texts) if request.outputs else (None, 0)
    )
    decisions = {folder: Decisions.to_show(folder) for folder in {file.path.parent for file in files}}
    located = [located for file in files for located in _located(file, decisions[file.path.parent])]
    counts = [len(file.cases) for file in files if file.cases]
    narrated = [*_narrated(files, policy, request.concern)]
    mutation = [*_mutants(narrated)] if request.mutate else None
    reachable = ceiling(case for _, _, case in narrated)
    lint = Lint(
        reachable,
        len(counts),
        sum(counts),
        located,
        answers,
        mutation=mutation,
        remarks=[*beside_lines(beside), *keys.remarks(), *_failed_lines(failed)],
    )
    return lint if baseline is None else _compared(lint, baseline)


def _failed_lines(failed: int) -> Iterator[str]:
    if failed:
        is_one = failed == 1
        told = (
            "1 output is a failed generation and tells"
            if is_one
            else f"{failed} outputs are failed generations and tell"
        )
        yield f"{told} nothing of the terms"


def _files(request: LintRequest, beside: list[str]) -> list[_LintedFile]:
    """Read the batch files; the names of those that hold no test cases are added to `beside`."""
    read = [file for path in request.paths for file in _files_of(path, request, beside)]
    files = [*{os.path.realpath(file.path): file for file in read}.values()]
    if request.concern is not None and not any(file.cases or file.found for file in files):
        places = named([str(path) for path in request.paths])
        raise ConfigurationError(f"no test case of --concern {visible(request.concern)} in {places}")
    return files


def _files_of(path: Path, request: LintRequest, beside: list[str]) -> list[_LintedFile]:
    concern, batch = request.concern, request.batch
    test_dir = path if path.is_dir() else path.parent
    with readable(path):
        listing = list_folder(test_dir)
        if test_dir is not path:
            path.stat()
    names = [name.removesuffix(SUFFIX) for name in sorted(listing.files.keys() | listing.ignored.keys())]
    if test_dir is not path:
        names = [name for name in names if name + SUFFIX == path.name]
        if not names:
            raise unusable(path, "is not a batch file (<batch_id>.json)")
    files_chosen = [name + SUFFIX for name in chosen(batch, names)]
    is_named = test_dir is not path or not has_wildcard(batch)
    found_beside: dict[str, str] = {}
    files: list[_LintedFile] = []
    for name in files_chosen:
        try:
            file = (
                _unreadable(test_dir / name, listing.ignored[name])
                if name in listing.ignored
                else _file(test_dir / name, Path(listing.files[name].path), concern)
            )
        except NoBatch as error:
            if is_named:
                files.append(_unreadable(test_dir / name, str(error)))
            else:
                found_beside[name] = str(error)
        else:
            files += [] if file is None else [file]
    if found_beside and not files:
        raise only_beside(test_dir, batch, found_beside)
    beside += found_beside
    if not files:
        raise no_batch(test_dir, batch, [name for name in names if name + SUFFIX not in files_chosen])
    return files


def _file(path: Path, target: Path, concern: str | None) -> _LintedFile | None:
    """Read a batch file; None for a report that SAFE wrote into the folder. Raises NoBatch."""
    if is_own_report(target):
        return None
    try:
        raw, document = read_document(target)
        cases = written_cases(document)
    except NoBatch:
        raise
    except InvalidBatch as error:
        return _unreadable(path, str(error))
    asked = [case for case in cases if concern is None or is_of_concern(concern, case.read)]
    return _LintedFile(path, raw.decode(errors="replace"), asked, repeated_keys=repeated_keys(raw, document))


def _unreadable(path: Path, why: str) -> _LintedFile:
    return _LintedFile(path, "", (), [Finding("unreadable_file", why)])


def _mutants(narrated: Iterable[tuple[_LintedFile, str, NarratedCase]]) -> Iterator[CaseMutants]:
    """Count the mutants of each case that has a narrative."""
    for file, test_id, case in narrated:
        if case.narrative is not None:
            mutated = MutatedCase(case)
            yield CaseMutants(str(file.path), test_id, len(mutated.alterations), mutated.survivors)


def _narrated(
    files: Iterable[_LintedFile], policy: Policy, concern: str | None
) -> Iterator[tuple[_LintedFile, str, NarratedCase]]:
    """Give the cases that can be scored; one that stands in several batches with equal expectations counts once."""
    seen: set[tuple[str, Expectations]] = set()
    for file, case in ((each, case) for each in files for case in each.cases):
        read = case.read
        if not isinstance(read, TestCase) or (read.test_id, read.expectations) in seen:
            continue
        seen.add((read.test_id, read.expectations))
        by = judged_by(read, concern_id=concern)
        rules = policy.rules_for(by.metric_id, by.archetype)
        yield file, read.test_id, NarratedCase(prepare(read.expectations), narrative_of(case.written), rules)


def _compare_batches(files: Sequence[_LintedFile]) -> None:
    first: dict[str, tuple[_LintedFile, TestCase]] = {}
    for file in files:
        for case in file.cases:
            if not isinstance(case.read, TestCase):
                continue
            holder, held = first.setdefault(case.read.test_id, (file, case.read))
            if holder is not file and held.expectations != case.read.expectations:
                sentence = f"{holder.path.name} has the same test_id with other expectations"
                file.found.append(case.finding("test_id_differs_elsewhere", sentence, "test_id"))


# --- outputs ----------------------------------------------------------------------------------------------------------

_ANY_RULES: Final = Rules()

# criterion → what it reads of an output, in words
_FIELDS: Final[Mapping[Criterion, str]] = {
    "CR": "the signals or the summary",
    "AH": "a follow-up question",
    "AC": "the summary",
}


@dataclass(slots=True)
class _Answered:
    """A test case, and what the outputs that answer it held of its terms."""

    file: _LintedFile
    case: WrittenCase
    prepared: PreparedExpectations
    terms: Mapping[Criterion, Sequence[ListedTerm]]
    answers: Counter[Criterion] = field(default_factory=Counter)  # those that were asked for what it reads
    met: dict[Criterion, set[str]] = field(default_factory=lambda: {criterion: set() for criterion in CRITERIA})
    inside: dict[ListedTerm, Criterion] = field(default_factory=dict)

    def note(self, output: Output, not_asked_for: Collection[OutputField]) -> None:
        """Look at one more answer."""
        self.answers.update(asked_criteria(not_asked_for))
        details = score(self.prepared, output, _ANY_RULES).details
        self.met["CR"].update(details.cr_found)
        self.met["AH"].update(details.ah_violations)
        self.met["AC"].update(details.ac_found)
        for criterion, terms in self.terms.items():
            text = READ[criterion](output) if terms else ""
            for listed in terms:
                if listed not in self.inside and longer_word(listed.needle, text):
                    self.inside[listed] = criterion

    def never_met(self, criterion: Criterion) -> list[ListedTerm]:
        """The terms of a criterion that no answer held, though the model was asked for what the criterion reads."""
        held, terms = self.met[criterion], self.terms[criterion]
        return [listed for listed in terms if listed.term not in held] if self.answers[criterion] else []


def _look_at_outputs(
    files: Sequence[_LintedFile], paths: Iterable[Path], read_keys: UnreadKeys, texts: EngineTexts
) -> tuple[int, int]:
    """Add what outputs say about the terms; gives how many answer one of the cases, and how many of these have failed.

    Raises ConfigurationError where nothing of them would be read.
    """
    cases = _to_be_answered(files)
    batches = Batches(load_batch(file.path.parent, file.batch_id) for file in files if file.cases)
    answers = failed = 0
    for outputs in open_all(paths):
        for entry in outputs.entries():
            read_keys.note(entry)
            keys = [ExpectationsKey(batch.name, entry.test_id) for batch in answered_by(batches, entry)]
            is_asked = any(key in cases for key in keys)
            answers += is_asked
            kind = kind_of(entry.output, texts)
            failed += is_asked and kind.generation == "failed"
            for key in keys:
                if key in cases and kind.generation == "answered":
                    cases[key].note(entry.output, kind.not_asked_for)
    read_keys.refuse()
    answered = [case for case in cases.values() if case.answers]
    for case, code, sentence, listed in (*_never_found(answered), *_never_used(answered), *_inside(answered)):
        case.file.found.append(case.case.finding(code, sentence, listed.path, listed.term))
    return answers, failed


def _to_be_answered(files: Iterable[_LintedFile]) -> dict[ExpectationsKey, _Answered]:
    """Give the test cases that can be scored; of a test_id that stands twice in a file, the first."""
    cases: dict[ExpectationsKey, _Answered] = {}
    for file in files:
        for case in file.cases:
            if isinstance(case.read, TestCase):
                terms = {criterion: listed_terms(case, criterion) for criterion in CRITERIA}
                answered = _Answered(file, case, prepare(case.read.expectations), terms)
                cases.setdefault(ExpectationsKey(file.batch_id, case.read.test_id), answered)
    return cases


_Told = Iterator[tuple[_Answered, Code, str, ListedTerm]]


def _never_found(answered: Iterable[_Answered]) -> _Told:
    for case in answered:
        for criterion in ("CR", "AC"):
            one, none = "the only output does not contain", f"none of the {case.answers[criterion]} outputs contains"
            for listed in case.never_met(criterion):
                yield case, "never_found", f'{one if case.answers[criterion] == 1 else none} "{listed.term}"', listed


def _never_used(answered: Sequence[_Answered]) -> _Told:
    """Say once of each forbidden term that no output used it, however many cases forbid it."""
    used = {normalise(term) for case in answered for term in case.met["AH"]}
    unused: dict[str, list[tuple[_Answered, ListedTerm]]] = {}
    for case in answered:
        for listed in case.never_met("AH"):
            if listed.needle not in used:
                unused.setdefault(listed.needle, []).append((case, listed))
    for (first, listed), *others in unused.values():
        cases = count_of(len(others) + 1, "test case")
        yield first, "never_used", f'"{listed.term}" is forbidden in {cases}, and no output used it', listed


def _inside(answered: Iterable[_Answered]) -> _Told:
    """Say which terms match inside longer words of outputs, whose text itself is shown nowhere."""
    for case in answered:
        narrative = normalise(narrative_of(case.case.written) or "")
        for listed, criterion in case.inside.items():
            if not longer_word(listed.needle, narrative):  # else it has been said already
                where = f"a longer word in {_FIELDS[criterion]} of an output"
                yield case, "hits_inside_word", f'"{listed.term}" also matches inside {where}', listed


# --- places -----------------------------------------------------------------------------------------------------------


def _located(file: _LintedFile, decisions: Decisions) -> list[Located]:
    """Give the findings line by line; a risk that has been seen to come true is not named beside it."""
    certain = {(each.position, each.path) for each in file.found if each.code == "hits_inside_word"}
    lines = _Lines(file)
    narratives: dict[int | None, str] = {
        case.position: narrative_of(case.written) or "" for case in file.cases if isinstance(case.read, TestCase)
    }
    nearest = dict(_nearest(file.found, narratives))
    located = [
        Located(
            file.path,
            lines.of(each),
            each,
            narratives.get(each.position, ""),
            nearest.get(each),
            decided=_decided(each, narratives.get(each.position), decisions),
        )
        for each in file.found
        if each.code != "may_hit_inside_word" or (each.position, each.path) not in certain
    ]
    located += [Located(file.path, each.line, _repetition(each.key)) for each in file.repeated_keys]
    return sorted(located, key=lambda each: (each.line, each.finding.position or 0))


def _repetition(key: str) -> Finding:
    sentence = f'"{key}" appears twice in one object: only the last one counts, and what the first one holds is lost'
    return Finding("duplicate_key", sentence, path=key, term=key)


def _decided(finding: Finding, narrative: str | None, decisions: Decisions) -> str:
    """Say what people decided about the term of a finding; nothing if they did not. No words of outputs are quoted."""
    criterion = next((name for name, place in _LISTED_AT.items() if finding.path.startswith(place)), None)
    if criterion is None or finding.test_id is None or finding.term is None:
        return ""
    told = decisions.of_case(finding.test_id, digest_of_narrative(narrative))
    return told.of_term(criterion, finding.term, shows_text=False)


_LISTED_AT: Final[Mapping[Criterion, str]] = {
    criterion: f"expectations.{section}.{name}[" for criterion, (section, name) in PLACES.items()
}


def _nearest(found: Iterable[Finding], narratives: Mapping[int | None, str]) -> Iterator[tuple[Finding, Passage]]:
    """Give the place of a narrative that comes closest to each term that is not in it, if any does."""
    absent: dict[int | None, list[Finding]] = {}
    for each in found:
        if each.code == "not_in_narrative" and each.position in narratives:
            absent.setdefault(each.position, []).append(each)
    for position, findings_of_case in absent.items():
        passages = nearest_in(narratives[position], [each.term or "" for each in findings_of_case])
        yield from ((each, passages[each.term]) for each in findings_of_case if each.term and each.term in passages)


class _Lines:
    """Finds the lines of what was found, by searching the text for it: near enough to lead a person there."""

    def __init__(self, file: _LintedFile) -> None:
        self._text = file.text
        self._ends = [end.start() for end in re.finditer("\n", file.text)] if file.found else []
        self._regions = dict(self._cases(file.cases)) if file.found else {}

    def of(self, finding: Finding) -> int:
        """Give the line of the term, else of its key, else of its test case, else 1."""
        if finding.position not in self._regions:
            return 1
        begin, end = self._regions[finding.position]
        key = finding.path.rpartition(".")[2].partition("[")[0]
        for text in (key, finding.term):
            if text and (at := self._find(text, begin, end)) >= 0:
                begin = at
        return bisect_left(self._ends, begin) + 1

    def _cases(self, cases: Sequence[WrittenCase]) -> Iterator[tuple[int, tuple[int, int]]]:
        """Give where each case begins, by its test_id, and where the next one does."""
        begins: list[int] = []
        for case in cases:
            at = begins[-1] + 1 if begins else 0
            begin = at if case.read.test_id is None else self._find(case.read.test_id, at, len(self._text))
            if begin < 0:  # searching to the end for each of the others would take its time
                break
            begins.append(begin)
        ends = [*begins[1:], len(self._text)]
        return ((case.position, region) for case, region in zip(cases, zip(begins, ends, strict=False), strict=False))

    def _find(self, text: str, begin: int, end: int) -> int:
        written = json.dumps(text, ensure_ascii=False), json.dumps(text)
        return next((at for each in written if (at := self._text.find(each, begin, end)) >= 0), -1)
