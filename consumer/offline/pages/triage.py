"""What `safe triage` prints: the steps first, then what to ask for in the prompt, then each proposal."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from consumer.files.json_text import json_text
from consumer.files.unused_outputs import without_output
from consumer.offline.destinations import Format
from consumer.offline.pages.console_layout import columns
from consumer.offline.pages.html_parts import page
from consumer.offline.pages.markdown_parts import literal, mark, table
from consumer.offline.pages.quotes import place_of
from consumer.offline.pages.report_content import Table, confidentiality
from consumer.offline.triage import Priced, Triage
from consumer.text import count_of, printable, quoted
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
    "in other words than the narrative or the output cannot be replaced: `--format json` says why, in `not_replaced`."
)
NOT_JUDGED: Final = "What an output says besides the terms of its test case is not judged."
BESIDE: Final = "These outputs have {}, of which no proposal speaks: see safe explain --all."


# --- content ----------------------------------------------------------------------------------------------------------


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


class Group(NamedTuple):
    """Proposals of one change; the change is empty where each proposal has words of its own to put in."""

    change: str
    proposals: Sequence[Priced]


class Pile(NamedTuple):
    """The proposals of those who must act, by change."""

    heading: str
    groups: Sequence[Group]

    @property
    def title(self) -> str:
        """Give the heading with the number of proposals."""
        return f"{self.heading} ({sum(len(group.proposals) for group in self.groups)})"


def piles(triage: Triage) -> Iterator[Pile]:
    """Give the proposals by who must act; none for what is not there."""
    for verdict in VERDICTS:
        pile = triage.of(verdict)
        used = [each for each in pile if each.proposal.criterion == "AH"]
        wrong = [each for each in pile if each.proposal.remedy == "correct_case"]
        lacking = [each for each in pile if each not in used and each not in wrong and not _is_by_hand(each)]
        by_hand = [each for each in pile if each not in wrong and _is_by_hand(each)]
        for heading, some in ((_PILES[verdict], lacking), (_BY_HAND, by_hand), (_WRONG, wrong), (_USED, used)):
            if some:
                yield Pile(heading, _by_change(some))


def _is_by_hand(each: Priced) -> bool:
    return each.proposal.verdict == "term" and not each.proposal.replacement


def _by_change(pile: Iterable[Priced]) -> list[Group]:
    by_change: dict[str, list[Priced]] = {}
    for each in pile:
        by_change.setdefault("" if each.proposal.replacement else each.proposal.change, []).append(each)
    return [Group(change, proposals) for change, proposals in by_change.items()]


def compared(each: Priced, *, include_text: bool) -> str:
    """Give what a person must compare with the term: words of the output, or their place; nothing if not asked to."""
    passage = each.proposal.contradicted_by or each.proposal.passage
    if passage is None or not (each.proposal.verdict in _COMPARED or _is_by_hand(each)):
        return ""
    return f"output: {quoted(each.case.words_at(passage)) if include_text else place_of(passage)}"


def gain(each: Priced) -> str:
    """Say whether a proposal raises a label, what people decided about it, and what a model thinks."""
    raised = "raises the label" if each.gains_alone else "raises the label, together with others of this case"
    gains = each.gains_alone or each.gains_in_order
    opinion = "" if each.opinion is None else f"opinion: {each.opinion.words}"
    return "; ".join(filter(None, (raised if gains else "", each.decided, opinion)))


# --- the console ------------------------------------------------------------------------------------------------------


def console_lines(triage: Triage) -> Iterator[str]:
    """Give the lines for a console."""
    yield headline(triage)
    for found in (steps(triage), causes(triage)):
        if found.rows:
            yield ""
            yield from columns([found.headings, *found.rows])
    yield ""
    yield from remarks(triage)
    for pile in piles(triage):
        yield ""
        yield pile.title
        for change, proposals in pile.groups:
            if change:
                yield f"  {change}"
            indent = "    " if change else "  "
            yield from (f"{indent}{line}" for each in proposals for line in _lines(each, triage))


def _lines(each: Priced, triage: Triage) -> Iterator[str]:
    worth = f"  ({gain(each)})" if gain(each) else ""
    case = f"{printable(each.case.line.test_id)}  {each.case.line.label}"
    yield f"{case}  {each.proposal.criterion}  {quoted(each.proposal.term)}{worth}"
    for phrase in each.proposal.replacement:
        yield f"    -> {quoted(phrase)}"
    if words := compared(each, include_text=triage.include_text):
        yield f"    {words}"


# --- files ------------------------------------------------------------------------------------------------------------


def _blocks(triage: Triage) -> Iterator[str]:
    yield f"{mark('triage')}\n# SAFE v0: what to change first\n"
    yield f"**{headline(triage)}**\n"
    yield from (table(each) for each in (steps(triage), causes(triage)) if each.rows)
    yield f"{' '.join(remarks(triage))} {confidentiality('page')}\n"
    for pile in piles(triage):
        yield f"## {pile.title}\n"
        for change, proposals in pile.groups:
            if change:
                yield f"{change}\n"
            yield "".join(_item(each, compared(each, include_text=triage.include_text)) for each in proposals)


def _item(each: Priced, words: str) -> str:
    proposal, worth = each.proposal, gain(each)
    phrases = ", ".join(map(literal, proposal.replacement))
    instead = f" → {phrases}" if phrases else ""
    output = f"; {literal(words)}" if words else ""
    more = f" ({worth})" if worth else ""
    return f"- {literal(each.case.line.test_id)} {proposal.criterion} {literal(proposal.term)}{instead}{output}{more}\n"


def triage_html(triage: Triage) -> str:
    """Give the HTML page."""
    return page(
        "triage.html.j2",
        "triage",
        ["report.css"],
        headline=headline(triage),
        tables=[steps(triage), causes(triage)],
        remarks=" ".join(remarks(triage)),
        piles=[*piles(triage)],
        gain=gain,
        compared=partial(compared, include_text=triage.include_text),
    )


RENDERED: Final[Mapping[Format, Callable[[Triage], str]]] = {
    "console": lambda triage: "".join(f"{line}\n" for line in console_lines(triage)),
    "json": lambda triage: json_text(triage.document()),
    "markdown": lambda triage: "\n".join(_blocks(triage)),
    "html": triage_html,
}
"""Each format, and what makes it."""
