"""What `safe triage` prints: the steps first, then what to ask for in the prompt, then each proposal."""

from collections.abc import Iterable, Iterator
from typing import Final

from consumer.files.unused_outputs import without_output
from consumer.offline.pages.document import Document, Item, Name, Section, Sentence, Table, Texts
from consumer.offline.pages.formats import formats
from consumer.offline.pages.quotes import place_of
from consumer.offline.triage import Priced, Triage
from consumer.text import count_of
from safe_core import LABELS
from safe_core.diagnosis import VERDICTS, Verdict

_HEADINGS: Final = ("Step", "Proposals", *LABELS)
_PILES: Final[dict[Verdict, str]] = {
    "term": "Test cases: terms to replace",
    "prompt": "Prompt: what the outputs lack",
    "output": "Outputs that contradict the narrative",
    "look": "To be looked at by a person",
    "not_asked_for": "Not asked for: nothing to change",
    "accepted": "Accepted wordings: nothing to change",
}
_COMPARED: Final = frozenset[Verdict](("output", "look"))
_BY_HAND: Final = "Test cases: terms that a person must change, or whose output's words to accept"
_USED: Final = "Prompt: forbidden terms that the outputs use"
_WRONG: Final = "Test cases that are wrong: terms to correct"
SCORED_AGAIN: Final = 'For step "term", the outputs are scored again with the new terms.'
IF_ALL_WORK: Final = 'In the steps "prompt" and "output", each proposal is assumed to work: its term counts as found.'
STILL_MISSED: Final = (
    "Terms that only a person can change or judge, and new terms that these outputs miss, still count as missed."
)
NOT_REPLACED: Final = (
    "for which the narrative or the output has other words: SAFE proposes no replacement; `--format json` says why, in "
    "`not_replaced`."
)
NOT_JUDGED: Final = "What an output says besides the terms of its test case is not judged."
BESIDE: Final = "These outputs have {}, of which no proposal speaks: see safe explain --all."


def headline(triage: Triage) -> str:
    """Say where things stand, and what they can come to."""
    total, now = len(triage.lines), triage.now["Pass"]
    passes = "passes" if total == 1 else "pass"
    term, *_, last = triage.steps
    return (
        f"{now} of {count_of(total, 'case')} {passes} now; {term.labels['Pass']} with better terms; "
        f"{last.labels['Pass']} with a better prompt and correct outputs as well"
    )


def steps(triage: Triage) -> Table:
    """Give the labels now and behind each step."""
    taken = [(step.verdict, str(step.proposals), step.labels) for step in triage.steps]
    rows = [(*named, *(str(labels[label]) for label in LABELS)) for *named, labels in (("now", "", triage.now), *taken)]
    return Table("What each step would give", _HEADINGS, rows, texts=1)


def _beside(triage: Triage) -> str:
    """Count what stands beside the terms; "" if there is nothing."""
    near = sum(len(case.near) for case in triage.lines)
    values = sum(value.kind == "nowhere" for case in triage.lines for value in case.unsupported)
    counts = ((near, "near violation"), (values, "unsupported value"))
    told = " and ".join(count_of(count, what) for count, what in counts if count)
    return BESIDE.format(told) if told else ""


def remarks(triage: Triage) -> list[str]:
    """Say what the numbers mean, and which cases have no proposals."""
    missing = sum(case.generation is None for case in triage.lines)
    failed = sum(case.generation == "failed" for case in triage.lines)
    mismatched = sum(case.input_matches is False for case in triage.lines)
    told = [SCORED_AGAIN, IF_ALL_WORK, STILL_MISSED, _beside(triage) or NOT_JUDGED]
    if left := sum(bool(each.proposal.not_replaced) for each in triage.proposals):
        told.insert(3, f"{count_of(left, 'term')} {NOT_REPLACED}")
    if mismatched:
        were = "was" if mismatched == 1 else "were"
        told.insert(
            0, f"{count_of(mismatched, 'output')} {were} made from another narrative: nothing is proposed there."
        )
    if failed:
        cases = count_of(failed, "case")
        told.insert(0, f"{cases} {'has' if failed == 1 else 'have'} a failed generation: nothing is proposed there.")
    if missing:
        told.insert(0, f"{without_output(missing, len(triage.lines))}, and nothing is proposed there.")
    return told


def causes(triage: Triage) -> Table:
    """Give what to ask for in the prompt, and what it is worth."""
    rows = [(each.instruction, str(each.cases_gained), str(each.proposals)) for each in triage.causes]
    return Table("What to ask for in the prompt", ("Instruction", "Cases gained", "Proposals"), rows, texts=1)


def page(triage: Triage) -> Document:
    """Give the steps first, then what to ask for in the prompt, then each proposal by who must act."""
    return Document(
        "triage",
        Sentence("SAFE v0: what to change first"),
        headline(triage),
        tables=[steps(triage), causes(triage)],
        notes=remarks(triage),
        sections=[*_piles(triage)],
    )


def _piles(triage: Triage) -> Iterator[Section]:
    for verdict in VERDICTS:
        pile = triage.of(verdict)
        used = [each for each in pile if each.proposal.criterion == "AH"]
        wrong = [each for each in pile if each.proposal.remedy == "correct_case"]
        lacking = [each for each in pile if each not in used and each not in wrong and not _is_by_hand(each)]
        by_hand = [each for each in pile if each not in wrong and _is_by_hand(each)]
        for heading, some in ((_PILES[verdict], lacking), (_BY_HAND, by_hand), (_WRONG, wrong), (_USED, used)):
            yield Section(Sentence(f"{heading} ({len(some)})"), [*_by_change(some, include_text=triage.include_text)])


def _is_by_hand(each: Priced) -> bool:
    return each.proposal.verdict == "term" and not each.proposal.replacement


def _by_change(pile: Iterable[Priced], *, include_text: bool) -> Iterator[Sentence | Item]:
    """Give proposals below the change that they share; first those of which each has words of its own to put in."""
    by_change: dict[str, list[Priced]] = {"": []}
    for each in pile:
        by_change.setdefault("" if each.proposal.replacement else each.proposal.change, []).append(each)
    for change, proposals in by_change.items():
        if change:
            yield Sentence("{}", (Name(change),))
        yield from (_item(each, include_text=include_text) for each in proposals)


def _item(each: Priced, *, include_text: bool) -> Item:
    proposal, line = each.proposal, each.case.line
    raises = "raises the label" if each.gains_alone else "raises the label, together with others of this case"
    worth = f" ({raises})" if each.gains_alone or each.gains_in_order else ""
    below = [
        Texts.of("instead", proposal.replacement),
        Texts.of("output", _compared(each, include_text=include_text)),
        Texts.of("decided", [Name(each.decided)] if each.decided else []),
        Texts.of("opinion", [] if each.opinion is None else [Name(each.opinion.words)]),
    ]
    said = Sentence(f"{{}} {proposal.criterion} {{}}{worth}", (Name(line.test_id), proposal.term))
    return Item(said, [line.label], below=[each for each in below if each.texts])


def _compared(each: Priced, *, include_text: bool) -> list[str]:
    """Give what a person must compare with the term: words of the output, or their place; nothing if not asked to."""
    passage = each.proposal.contradicted_by or each.proposal.passage
    if passage is None or not (each.proposal.verdict in _COMPARED or _is_by_hand(each)):
        return []
    return [each.case.words_at(passage) if include_text else Name(place_of(passage))]


RENDERED: Final = formats(page, Triage.document)
