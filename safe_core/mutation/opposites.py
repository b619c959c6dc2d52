"""Alterations that put the opposite of a word in its place: sides, grades, normal and abnormal, sure and unsure."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from safe_core.diagnosis.denials_in_context import is_negation
from safe_core.diagnosis.tokens import Item
from safe_core.diagnosis.words import word_set
from safe_core.mutation.alteration import Alteration, Cut, MutantKind
from safe_core.mutation.negations import has_denied_subject
from safe_core.plain_values import SIDE_LETTER


def _pairs(text: str) -> dict[str, str]:
    """Read "one=other" pairs, in both directions; ">" goes in one alone."""
    both = [pair.partition("=") for pair in text.split() if "=" in pair]
    one_way = [pair.partition(">") for pair in text.split() if ">" in pair]
    pairs = {one: other for one, _, other in both} | {other: one for one, _, other in both}
    return pairs | {one: other for one, _, other in one_way}


_SIDES: Final = _pairs(
    "left=right lt=rt bilateral>unilateral bilaterally>unilaterally unilateral>bilateral upper=lower proximal=distal "
    "proximally=distally medial=lateral medially=laterally anterior=posterior anteriorly=posteriorly volar=dorsal "
    "palmar>dorsal superior=inferior ipsilateral=contralateral cephalad=caudad"
)
_GRADES: Final = _pairs(
    "mild=severe mildly=severely moderate>severe moderately>severely minor=major superficial=deep "
    "superficially>deeply acute=chronic acutely=chronically benign=malignant complete=partial completely=partially "
    "incomplete>complete incompletely>completely"
)
_STATES: Final = _pairs(
    "normal=abnormal normally=abnormally stable=unstable intact=impaired palpable=impalpable warm=cold hot>cold "
    "cool>warm pink=pale white>pink pulseless>well-perfused good=poor poorly>well diminished>normal reduced>normal "
    "decreased=increased decreasing=increasing elevated=lowered raised=lowered high=low higher=lower open=closed "
    "displaced=undisplaced nondisplaced>displaced positive=negative improved=worsened improving=worsening "
    "improvement=deterioration deteriorated>improved deteriorating>improving febrile=afebrile tachycardic=bradycardic "
    "tachycardia=bradycardia hypertensive=hypotensive hypertension=hypotension hyperglycemia=hypoglycemia "
    "hyperglycaemia=hypoglycaemia hyperkalemia=hypokalemia hyperkalaemia=hypokalaemia unremarkable>abnormal "
    "healthy>ill alert>drowsy conscious=unconscious oriented=disoriented responsive=unresponsive "
    "symmetrical=asymmetrical symmetric=asymmetric regular=irregular tender=non-tender nontender>tender soft>rigid "
    "clear>abnormal adequate=inadequate sufficient=insufficient ambulatory>immobile mobile=immobile "
    "reactive=unreactive dilated=constricted present=absent impaired>intact alive=dead died=survived deceased>alive"
)
_CERTAINTIES: Final = _pairs(
    "suspected=confirmed possible>definite possibly>definitely probable>definite probably>definitely likely=unlikely "
    "definite>possible definitely>possibly questionable>definite presumed>proven uncertain>certain unclear>clear"
)
_TABLES: Final[Mapping[MutantKind, Mapping[str, str]]] = {
    "grade": _GRADES,
    "normal_abnormal": _STATES,
    "certainty": _CERTAINTIES,
}
_QUADRANT: Final = re.compile("[LR](?:[LU][QEL]|ML)")  # of the abdomen, a limb, a lobe of the lung
_LETTERS: Final = {"L": "R", "R": "L"}
_LOWER_LIMBS = word_set("limb limbs extremity extremities lip lobe lobes quadrant back abdomen leg arm jaw eyelid")
_NO_STATES = {  # a word → what follows it where it says something else
    "open": word_set("to reduction the"),
    "present": word_set("with to at in day"),
    "conscious": word_set("of sedation"),
    "complete": word_set("the a blood"),
    "likely": word_set("to"),
    "reduced": word_set("under in with"),
    "raised": word_set("concerns concern questions the immediate some significant"),
    "good": word_set("morning evening"),
    "alert": word_set("the a"),
    "regular": word_set("intervals follow"),
    "confirmed": word_set("that the his her"),
    "poorly": word_set("documented"),
    "partially": word_set("due attributed because"),
    "completely": word_set("due attributed because"),
    "well": word_set("documented"),
    "clear": word_set("pass fail"),
    "major": word_set("trauma"),
}
_ONLY_AFTER = {  # a word → what stands before it where it says what it says here
    "clear": word_set("lung lungs chest fields was were is are urine bilaterally"),
    "soft": word_set("abdomen abdominal was is"),
}
_NOT_AFTER = {  # a word → what stands before it where it says something else
    "present": word_set("to at the and"),
    "closed": word_set("was were"),
    "white": word_set("a black"),
    "increased": word_set("not"),
    "confirmed": word_set("and"),
}


def opposites(cut: Cut, items: Mapping[int, Item]) -> Iterator[Alteration]:
    """Put the opposite in the place of each word that has one; `items` are by where they begin."""
    for at, word in enumerate(cut.words):
        folded = word.folded
        if folded in _SIDES and _is_side(cut, at, items):
            yield cut.altered("side", at, at, _SIDES[folded])
        elif _is_short_side(cut, at):
            yield Alteration("side", word.start, word.start + 1, _LETTERS[cut.text[word.start]])
        for kind, table in _TABLES.items():
            if folded in table and _means_a_state(cut, at):
                yield cut.altered(kind, at, at, table[folded])
                break


def _is_side(cut: Cut, at: int, items: Mapping[int, Item]) -> bool:
    """Tell whether a word names a side: "upper limb", but not "left the hospital" and "lower than"."""
    folded, item = cut.folded(at), items.get(cut.words[at].start)
    if folded in {"upper", "lower"}:
        return cut.folded(at + 1) in _LOWER_LIMBS
    if folded in {"ipsilateral", "contralateral", "cephalad", "caudad"}:
        return True
    if folded in {"superior", "inferior"}:
        return cut.folded(at + 1) != "to"
    return item is not None and item.value is not None and item.value.type == "side"


def _is_short_side(cut: Cut, at: int) -> bool:
    """Tell whether a word begins with the letter of a side: "R leg", "LLQ"."""
    word = cut.words[at]
    return _QUADRANT.fullmatch(cut.written(at)) is not None or SIDE_LETTER.match(cut.text, word.start) is not None


def _means_a_state(cut: Cut, at: int) -> bool:
    folded = cut.folded(at)
    if cut.folded(at + 1) in _NO_STATES.get(folded, ()) or cut.folded(at - 1) in _NOT_AFTER.get(folded, ()):
        return False
    if folded in _ONLY_AFTER and cut.folded(at - 1) not in _ONLY_AFTER[folded]:
        return folded == "soft" and cut.folded(at + 1) == "abdomen"
    if folded == "present" and has_denied_subject(cut, at):
        return False
    return not is_negation(cut.words, at) and cut.between(at) != "-"
