"""What people decided about the terms and cases of a folder of test cases; never a score depends on it.

The file stands beside the batch files, and is as confidential as they are (contract.md, "Decisions").
"""

import fcntl
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, get_args

import msgspec

from consumer.case_sources.folder import DECISIONS_NAME
from consumer.errors import ConfigurationError
from consumer.offline.stored_report import in_words
from consumer.offline.whole_files import write_whole
from consumer.terminal import print_message
from consumer.text import quoted, visible
from safe_core import CRITERIA, Criterion
from safe_core.diagnosis import Verdict

Choice = Literal["accepted", "edited", "rejected", "paraphrase", "commented"]
"""What was decided about a term; a comment alone decides nothing."""
CaseChoice = Literal["safe", "unsafe"]
SCHEMA: Final = 1


class TermDecision(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was decided about a term of a case: who, when and why; `narrative` is the digest of the case's narrative.

    `replacement` are the terms to put in its place, where it was accepted or edited; `words` those of the output that
    were accepted as a paraphrase; `applied_at` says when the batch files were changed by it; `commented_by` who wrote
    the comment, where somebody else did. `verdict` is what SAFE said of a missed term then.
    """

    test_id: str
    criterion: Criterion
    term: str
    narrative: str | None
    choice: Choice
    by: str
    at: str
    comment: str = ""
    replacement: tuple[str, ...] = ()
    words: str = ""
    applied_at: str | None = None
    commented_by: str = ""
    verdict: Verdict | None = None

    @property
    def key(self) -> "TermKey":
        return self.test_id, self.narrative, self.criterion, self.term

    @property
    def decides(self) -> bool:
        """Whether it is more than a comment."""
        return self.choice != "commented"

    def in_words(self, *, shows_text: bool = True) -> str:
        """Say it in a sentence; the words of outputs only where they may be shown."""
        words = f' ("{self.words}")' if self.words and shows_text else ""
        what = {"paraphrase": "accepted as a paraphrase"}.get(self.choice, self.choice)
        terms = " to " + ", ".join(map(quoted, self.replacement)) if self.choice == "edited" else ""
        said_by = f" ({self.commented_by})" if self.commented_by else ""
        comment = f": {self.comment}{said_by}" if self.comment and shows_text else ""
        applied = ", applied" if self.applied_at is not None else ""
        return f"{what}{terms}{words} by {self.by}, {self.at[:10]}{applied}{comment}"


class CaseDecision(msgspec.Struct, frozen=True, omit_defaults=True):
    """A clinician's verdict on the output of a case: safe or unsafe, with the label that it had then."""

    test_id: str
    narrative: str | None
    verdict: CaseChoice
    by: str
    at: str
    comment: str = ""

    @property
    def key(self) -> "CaseKey":
        return self.test_id, self.narrative

    def in_words(self, *, shows_text: bool = True) -> str:
        """Say it in a sentence; the comment only where texts may be shown."""
        comment = f": {self.comment}" if self.comment and shows_text else ""
        return f"{self.verdict} by {self.by}, {self.at[:10]}{comment}"


_CHOICES: Final = {"criterion": CRITERIA, "choice": get_args(Choice)}

TermKey = tuple[str, str | None, Criterion, str]
CaseKey = tuple[str, str | None]


class _Document(msgspec.Struct):
    safe_decisions: int
    terms: tuple[TermDecision, ...] = ()
    cases: tuple[CaseDecision, ...] = ()


class OutdatedError(Exception):
    """Somebody else decided meanwhile."""


class CaseDecisions(NamedTuple):
    """What was decided about a case while its narrative was the same: about its terms, and about the whole of it."""

    terms: Mapping[tuple[Criterion, str], TermDecision] = MappingProxyType({})
    verdict: CaseDecision | None = None

    def of_term(self, criterion: Criterion, term: str, *, shows_text: bool) -> str:
        """Say what was decided about a term; empty if nothing was."""
        decision = self.terms.get((criterion, term))
        return "" if decision is None else decision.in_words(shows_text=shows_text)

    def document(self, *, include_text: bool) -> dict[str, Any]:
        """Give them as JSON; comments, and words of outputs, only where texts are included."""
        confidential = set() if include_text else {"comment", "commented_by", "words"}

        def shown(decision: TermDecision | CaseDecision) -> dict[str, Any]:
            fields: dict[str, Any] = msgspec.to_builtins(decision)
            return {name: fields[name] for name in fields if name not in confidential | {"test_id", "narrative"}}

        return {
            "verdict": None if self.verdict is None else shown(self.verdict),
            "terms": [shown(self.terms[key]) for key in sorted(self.terms)],
        }


NO_DECISIONS: Final = CaseDecisions()


@dataclass(frozen=True)
class Decisions:
    """The decisions of a folder, as they were read."""

    terms: dict[TermKey, TermDecision] = field(default_factory=dict)
    cases: dict[CaseKey, CaseDecision] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path) -> "Decisions":
        """Read the file of a folder, if there is one; raises ConfigurationError where it cannot be used."""
        path = folder / DECISIONS_NAME
        try:
            document = msgspec.json.decode(path.read_bytes(), type=_Document)
        except (FileNotFoundError, NotADirectoryError):
            return cls()
        except OSError as error:
            raise ConfigurationError(
                f"{visible(str(path))}: cannot be read ({error.strerror}); check who may read it"
            ) from error
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            wrong = f": {in_words(error, _CHOICES)}" if isinstance(error, msgspec.ValidationError) else ""
            raise ConfigurationError(
                f"{visible(str(path))}: is not a file of decisions{wrong}; correct it, move it away, or restore it "
                "from a backup"
            ) from error
        if document.safe_decisions != SCHEMA:
            raise ConfigurationError(
                f"{visible(str(path))}: was written by another version of SAFE; use that version, or move the file away"
            )
        return cls({each.key: each for each in document.terms}, {each.key: each for each in document.cases})

    @classmethod
    def to_show(cls, folder: Path) -> "Decisions":
        """Read the file for a command whose results do not depend on it: one that cannot be used is only named."""
        try:
            return cls.read(folder)
        except ConfigurationError as error:
            print_message(f"decisions are not shown: {error}")
            return cls()

    def of_case(self, test_id: str, narrative: str | None) -> CaseDecisions:
        """Give the decisions on a case; they hold while the digest of its narrative is the same."""
        return CaseDecisions(self._by_case.get((test_id, narrative), {}), self.cases.get((test_id, narrative)))

    @cached_property
    def _by_case(self) -> dict[CaseKey, dict[tuple[Criterion, str], TermDecision]]:
        found: dict[CaseKey, dict[tuple[Criterion, str], TermDecision]] = {}
        for each in self.terms.values():
            found.setdefault((each.test_id, each.narrative), {})[each.criterion, each.term] = each
        return found

    def text(self) -> str:
        """Give the document, in a lasting order."""
        document = _Document(
            SCHEMA,
            tuple(sorted(self.terms.values(), key=lambda each: (each.test_id, each.criterion, each.term))),
            tuple(sorted(self.cases.values(), key=lambda each: each.test_id)),
        )
        return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"


def decide_term(folder: Path, decision: TermDecision, seen: str) -> None:
    """Note a decision on a term; `seen` is when the one that it replaces was made, "" for none.

    Raises OutdatedError if another one was made meanwhile, and ConfigurationError if the file cannot be written.
    """
    with _changing(folder) as decisions:
        _check_seen(decisions.terms.get(decision.key), seen)
        decisions.terms[decision.key] = decision


def decide_case(folder: Path, decision: CaseDecision, seen: str) -> None:
    """The same for the verdict on a case."""
    with _changing(folder) as decisions:
        _check_seen(decisions.cases.get(decision.key), seen)
        decisions.cases[decision.key] = decision


def withdraw_term(folder: Path, key: TermKey, seen: str) -> None:
    """Take back what was decided about a term; raises as decide_term() does."""
    with _changing(folder) as decisions:
        _check_seen(decisions.terms.pop(key, None), seen)


def withdraw_case(folder: Path, key: CaseKey, seen: str) -> None:
    """The same for the verdict on a case."""
    with _changing(folder) as decisions:
        _check_seen(decisions.cases.pop(key, None), seen)


def remove_unfinished(folder: Path) -> None:
    """Remove what writers left behind that were killed; nobody writes meanwhile. Raises ConfigurationError."""
    with _locked(folder), suppress(OSError):
        for path in folder.glob(f".{DECISIONS_NAME}.*"):
            path.unlink()


def note_applied(folder: Path, applied: Iterable[TermKey], at: str | None, *, was: str | None = None) -> None:
    """Note when decisions were applied to the batch files, or, with `was`, that those of that time no longer are."""
    with _changing(folder) as decisions:
        for key in applied:
            known = decisions.terms.get(key)
            if known is not None and (was is None or known.applied_at == was):
                decisions.terms[key] = msgspec.structs.replace(known, applied_at=at)


def _check_seen(known: TermDecision | CaseDecision | None, seen: str) -> None:
    if (known.at if known is not None else "") != seen:
        raise OutdatedError


@contextmanager
def _changing(folder: Path) -> Iterator[Decisions]:
    """Change the file while nobody else does: read it, change what was read, write it whole."""
    with _locked(folder):
        decisions = Decisions.read(folder)
        yield decisions
        write_whole(folder / DECISIONS_NAME, decisions.text())


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise ConfigurationError(f"{visible(str(folder))} cannot be opened: {error.strerror}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
