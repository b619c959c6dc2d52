"""Which words of a term a sentence has in another form: "haemolysed" as "haemolysis", "CTPA" as "CT pulmonary …"."""

from collections.abc import Collection, Sequence
from itertools import pairwise

from safe_core.diagnosis.passages import Term
from safe_core.diagnosis.sentence_index import ROOT, Sentence
from safe_core.diagnosis.tokens import Item
from safe_core.diagnosis.words import word_set

_ENDINGS = frozenset({""}) | word_set(
    "s c cy es d ed ing ings ion ions tion tions ation ations ive ory or er ant ent ance ence e y ies ity ic ical al "
    "ally ly ery ment ments ist ise ised ize ized able ible ous osis osed otic sis ses sed is us um a ful ness t th"
)
_OF_ADJECTIVES = frozenset(("", "ful", "y"))  # "pain", "painful"
_SHORTEST_ROOT = ROOT + 1  # letters that two forms of a word have in common; one fewer does for long endings
_SHORTEST_ACRONYM, _LONGEST_ACRONYM = 2, 6
_SHORTEST_ALONE = 3  # letters of an acronym by which alone a sentence is found
_AROUND = 40  # characters before and after an acronym that are not all capitals


def held_in_other_form(term: Term, lacking: Sequence[Item], sentence: Sentence) -> set[Item]:
    """Give those of the lacking items of a term that a sentence has in another form."""
    content = [item for item in sentence.items if item.role == "content"]
    grades = (item.value.canonical for item in sentence.items if item.value and item.value.type == "grade")
    words, text = {*(item.folded for item in content), *grades}, sentence.element.text
    wanted = [item for item in lacking if item.role == "content"]
    same = {item for item in wanted if any(is_same_word(item.folded, other) for other in words)}
    spelled = {item for item in wanted if _is_acronym(term.text, item) and _spelled(term.text, item, sentence.items)}
    shortened = {meant for item in content if _is_acronym(text, item) for meant in _spelled(text, item, term.items)}
    apart = _joined(wanted, sentence.items) | _parted(term.items, words)
    return (same | spelled | shortened | apart | _by_initial(term.items, sentence.items)).intersection(lacking)


def _by_initial(term: Sequence[Item], items: Sequence[Item]) -> set[Item]:
    """Give the first of two words of which a sentence has the initial: "Escherichia coli" as "E. coli", or that way."""
    firsts = {other.key: one.folded for one, other in pairwise(items) if one.role == "content"}
    return {
        one
        for one, other in pairwise(term)
        if one.role == "content"
        and (first := firsts.get(other.key))
        and 1 in (len(one.folded), len(first))
        and first[0] == one.folded[0]
    }


def _joined(wanted: Sequence[Item], items: Sequence[Item]) -> set[Item]:
    """Give the words that a sentence has in parts: "readmitted" as "re-admitted"."""
    joined = {one.folded + other.folded for one, other in pairwise(items)}
    return {item for item in wanted if item.folded in joined}


def _parted(items: Sequence[Item], words: Collection[str]) -> set[Item]:
    """Give the words of a term that a sentence has in one: "non-weight-bearing" as "nonweightbearing"."""
    runs = [items[at : at + count] for count in (2, 3) for at in range(len(items) - count + 1)]
    return {item for run in runs if "".join(each.folded for each in run) in words for item in run}


def is_same_word(one: str, other: str) -> bool:
    """Tell whether two folded words have one root, or one is the other cut short ("bicarb")."""
    shared = next((at for at, (mine, its) in enumerate(zip(one, other, strict=False)) if mine != its), None)
    if shared is None:
        shared = min(len(one), len(other))
    rests = one[shared:], other[shared:]
    if "less" in rests:
        return False  # "pulse", "pulseless"
    if shared < _SHORTEST_ROOT:
        endings = _ENDINGS if min(map(len, rests)) > 1 else _OF_ADJECTIVES
        return shared == ROOT and endings.issuperset(rests)
    return not all(rests) or _ENDINGS.issuperset(rests)


def is_acronym_of(term: Term, item: Item, text: str) -> bool:
    """Tell whether a word of a text is written in capitals and stands for words of a term: "PED"."""
    return (
        item.end - item.start >= _SHORTEST_ALONE and _is_acronym(text, item) and bool(_spelled(text, item, term.items))
    )


def spelled_out(term: Term, sentence: Sentence) -> frozenset[Item]:
    """Give the items of a sentence that spell out an acronym of a term."""
    acronyms = [item for item in term.items if _is_acronym(term.text, item)]
    return frozenset(item for acronym in acronyms for item in _spelled(term.text, acronym, sentence.items))


def _is_acronym(text: str, item: Item) -> bool:
    """Tell whether a word is written in capitals, unlike those around it."""
    word = text[item.start : item.end]
    if not (_SHORTEST_ACRONYM <= len(word) <= _LONGEST_ACRONYM and word.isupper()):
        return False
    before, after = text[max(0, item.start - _AROUND) : item.start], text[item.end : item.end + _AROUND]
    return not (before + after).isupper()


def _spelled(text: str, acronym: Item, items: Sequence[Item]) -> frozenset[Item]:
    """Give the items that an acronym of a text stands for."""
    letters = text[acronym.start : acronym.end].lower()
    begins = [at for at, item in enumerate(items) if item.folded[:1].lower() == letters[0]]
    return frozenset(item for at in begins for item in items[at : at + _length_spelled(letters, items[at:])])


def _length_spelled(acronym: str, items: Sequence[Item]) -> int:
    """Give how many items an acronym stands for, from the first on; 0 if for none or only for one.

    Each word gives its first letter, perhaps further ones in order ("TXA"); a short one may be there whole ("CTPA").
    """
    rest = acronym
    for count, item in enumerate(items[: _LONGEST_ACRONYM + 2], start=1):
        word, following = item.folded.lower(), items[count].folded[0].lower() if count < len(items) else ""
        if item.value and item.value.canonical[:1].isdecimal():  # the "number" of "INR 7.4" is no word
            return 0
        if 1 < len(word) < len(rest) and rest.startswith(word):
            rest = rest.removeprefix(word)
        elif rest.startswith(word[:1]):
            rest = _without_inner(rest[1:], word[1:], following)
        elif item.role != "connective" or count == 1:
            return 0
        if not rest:
            return count if count > 1 else 0
    return 0


def _without_inner(rest: str, letters: str, following: str) -> str:
    """Take one letter of an acronym away that stands within a word, unless the next word begins with it."""
    return rest[1:] if rest and rest[0] != following and rest[0] in letters else rest
