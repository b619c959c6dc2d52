"""Two tables: what follows from both answers about a miss, and of which kind it is.

The first row whose condition holds decides. The example of each row is tested, and printed in diagnosis.md (docs).
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from safe_core.diagnosis.alignment import Edit, is_said_alike
from safe_core.diagnosis.diagnosis_types import (
    NARRATIVE_SAYS,
    OUTPUT_SAYS,
    Kind,
    NarrativeSays,
    OutputSays,
    Remedy,
    Verdict,
)
from safe_core.diagnosis.words import run_together, words


class Example(NamedTuple):
    """A term that the summary of an output misses, the signals of the output, and the narrative of the case."""

    term: str
    summary: str
    narrative: str | None
    signals: tuple[str, ...] = ()


class Row(NamedTuple):
    """Of which answers it holds, what they come to, and why."""

    name: str
    output: frozenset[OutputSays]
    narrative: frozenset[NarrativeSays]
    verdict: Verdict
    remedy: Remedy
    why: str
    example: Example
    has_it_too: bool | None = None  # holds only if the narrative also says what the output says instead, or does not


def _row(name: str, output: str, narrative: str, verdict: Verdict, remedy: Remedy, why: str, example: Example) -> Row:
    says = frozenset(each for each in OUTPUT_SAYS if each in output.split())
    story = frozenset(each for each in NARRATIVE_SAYS if each in narrative.split())
    return Row(name, says, story, verdict, remedy, why, example)


VERDICT_ROWS: Final = (
    _row(
        "said",
        "said",
        "supported partly unknown",
        "term",
        "accept_wording",
        "The output says it in other words: accept its wording.",
        Example("shortness of breath", "She was breathless on the stairs.", "Shortness of breath since Monday."),
    ),
    _row(
        "said, not given",
        "said",
        "silent",
        "term",
        "accept_wording",
        "The output says it in other words, and SAFE does not find it in the narrative: "
        "accept the wording, and check the case.",
        Example("shortness of breath", "She was breathless on the stairs.", "Her knee has been painful since Monday."),
    ),
    _row(
        "said against the narrative",
        "said",
        "contradicts",
        "look",
        "read",
        "Term and output say what the narrative does not: read all three.",
        Example("shortness of breath", "She was breathless on the stairs.", "She denies shortness of breath."),
    ),
    _row(
        "in another field",
        "elsewhere",
        "supported partly unknown",
        "prompt",
        "ask_in_field",
        "The output says it in a field that this criterion does not read: ask for it in the right field.",
        Example("dry cough", "The case was reviewed.", "A dry cough for two weeks.", ("dry cough",)),
    ),
    _row(
        "in another field, not given",
        "elsewhere",
        "silent contradicts",
        "look",
        "read",
        "The output says it in a field that this criterion does not read, but SAFE does not find it in the narrative.",
        Example("dry cough", "The case was reviewed.", "Her knee has been painful since Monday.", ("dry cough",)),
    ),
    _row(
        "left out",
        "part absent",
        "supported partly unknown",
        "prompt",
        "ask",
        "The output leaves it out: ask for it in the prompt.",
        Example("dry cough", "She has had a fever since Monday.", "A dry cough and a fever since Monday."),
    ),
    _row(
        "never given",
        "part absent",
        "silent",
        "term",
        "correct_case",
        "SAFE does not find it in the narrative: check whether the case asks for what the model was not given.",
        Example("dry cough", "She has had a fever since Monday.", "A fever since Monday."),
    ),
    _row(
        "case contradicts narrative",
        "part absent contradicted",
        "contradicts",
        "term",
        "correct_case",
        "The narrative says otherwise: the case is wrong.",
        Example("dry cough", "She has had a fever since Monday.", "A fever since Monday. She denies a dry cough."),
    ),
    _row(
        "output contradicts",
        "contradicted",
        "supported",
        "output",
        "fix_output",
        "The output contradicts the term and the narrative: the output is wrong.",
        Example("potassium 5.6", "Potassium was 3.6.", "Her potassium was 5.6."),
    )._replace(has_it_too=False),
    _row(
        "contradicted, not settled",
        "contradicted",
        "supported partly unknown silent",
        "look",
        "read",
        "The output contradicts the term, and the narrative does not settle which of the two is right.",
        Example("potassium 5.6", "Potassium was 3.6.", "Potassium was 5.6 on Monday. Potassium was 3.6 on Friday."),
    ),
    _row(
        "not read",
        "not_read",
        "supported partly unknown silent contradicts",
        "look",
        "read",
        "The output is not in English, or the term is too long to be compared: only a person can tell.",
        Example(
            "dry cough",
            "Die Patientin klagt seit zwei Wochen über trockenen Husten und Fieber, sie hat aber keine Atemnot und "
            "kann ohne Pause die Treppe gehen.",
            "A dry cough for two weeks.",
        ),
    ),
    _row(
        "both",
        "both",
        "supported partly unknown silent contradicts",
        "look",
        "read",
        "The output says it in one place and the opposite in another: read both.",
        Example("potassium 5.6", "Potassium of 5.6. The potassium was 3.6.", "Her potassium was 5.6."),
    ),
)


def verdict_row(output: OutputSays, narrative: NarrativeSays, *, has_it_too: bool) -> Row:
    """Give the row that decides the verdict; there is one for all answers."""
    return next(
        row
        for row in VERDICT_ROWS
        if output in row.output and narrative in row.narrative and row.has_it_too in {None, has_it_too}
    )


class Nearest(NamedTuple):
    """What was found of a missed term: the edits of the place that decides, its text, and over how many sentences."""

    term: str
    says: OutputSays
    edits: tuple[Edit, ...]
    passage: str
    sentences: int


class KindRow(NamedTuple):
    """A kind of miss, when it is one, and that in words."""

    kind: Kind
    holds: Callable[[Nearest], bool]
    why: str
    example: Example


def _has(*kinds: str) -> Callable[[Nearest], bool]:
    return lambda found: any(edit.kind in kinds and edit.fact.tells for edit in found.edits)


def _is_form(found: Nearest) -> bool:
    term, passage = (run_together(words(text, 64)) for text in (found.term, found.passage))
    return found.says == "said" and term in passage


def _is_in_order(found: Nearest) -> bool:
    places = [edit.other.start for edit in found.edits if edit.other is not None and edit.fact.tells]
    return found.says == "said" and places == sorted(places) and all(map(is_said_alike, found.edits))


def _is(*answers: OutputSays) -> Callable[[Nearest], bool]:
    return lambda found: found.says in answers


def _opposes(*kinds: str) -> Callable[[Nearest], bool]:
    return lambda found: found.says in {"contradicted", "both"} and _has(*kinds)(found)


KIND_ROWS: Final = (
    KindRow(
        "form",
        _is_form,
        "The output has the same words in the same order: only spaces, hyphens, punctuation or spelling differ.",
        Example("follow-up", "Follow up in two weeks.", None),
    ),
    KindRow(
        "value",
        _opposes("value", "rival", "replaced"),
        "The output has another value, or another thing of the same kind.",
        Example("potassium 5.6", "Potassium was 3.6.", None),
    ),
    KindRow(
        "polarity",
        _is("contradicted", "both"),
        "The output denies what the term states, states what it denies, or says the opposite.",
        Example("no fever", "He had a fever.", None),
    ),
    KindRow(
        "split",
        lambda found: found.says == "said" and found.sentences > 1,
        "The output says it, but in two sentences.",
        Example("dry cough and swollen ankles", "She has a dry cough. The ankles are swollen.", None),
    ),
    KindRow(
        "connectives",
        _is_in_order,
        "The output has the same words of content in the same order: only small words differ.",
        Example("pain in the left knee", "Pain of his left knee.", None),
    ),
    KindRow(
        "rearranged",
        _is("said"),
        "The output says it in another order or in other words.",
        Example("left knee pain", "Pain in the left knee.", None),
    ),
    KindRow(
        "other_field",
        _is("elsewhere"),
        "A field that the criterion does not read says it.",
        Example("dry cough", "The case was reviewed.", None, ("dry cough",)),
    ),
    KindRow(
        "polarity",
        lambda found: found.says == "part" and _has("weaker", "negated", "undone")(found),
        "The output says part of it, and is less sure or surer of the rest, or denies it.",
        Example("pneumonia with fever and cough", "Fever, cough and possible pneumonia.", None),
    ),
    KindRow(
        "part",
        _is("part"),
        "The output says part of it.",
        Example("dry cough for two weeks", "She has a dry cough.", None),
    ),
    KindRow(
        "absent",
        lambda _: True,
        "The output says next to nothing of it.",
        Example("dry cough", "The case was reviewed.", None),
    ),
)


def kind_row(found: Nearest) -> KindRow:
    """Give the row that decides the kind of a miss."""
    return next(row for row in KIND_ROWS if row.holds(found))
