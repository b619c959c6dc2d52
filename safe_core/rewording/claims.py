"""What a text claims, as far as a rewording must keep it: the values that it gives, what it denies, what it doubts.

A denial is any word that says that something is not so, ended, was withheld, refused or failed. What it is about is in
the same clause, most often behind it. All this is judged narrowly: two texts claim the same only where that is plain.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal, NamedTuple

from safe_core.diagnosis.bound_values import clauses
from safe_core.diagnosis.sentences import sentences
from safe_core.diagnosis.tokens import Item
from safe_core.diagnosis.values.value_types import Value
from safe_core.diagnosis.word_lists.denial_words import NOT_WORDS
from safe_core.diagnosis.words import stem, word_set, words
from safe_core.plain_values import plain

DenialKind = Literal["denied", "doubted", "undenied", "delayed"]
"""Not so; not sure; not not so ("could not be excluded"); so, but later ("not given until 18:00")."""

_NOT_FACTS: Final = word_set(
    "stop stops stopped stopping discontinue discontinues discontinued discontinuing cease ceases ceased ceasing "
    "quit withhold withholds withheld withholding omit omits omitted omitting skip skips skipped skipping miss "
    "misses missed forget forgets forgot forgotten neglect neglects neglected overlook overlooks overlooked "
    "avoid avoids avoided avoiding exclude excludes excluding cancel cancels cancelled canceled cancelling "
    "canceling abandon abandoned aborted postpone postponed deferred prevent prevents prevented preventing "
    "refuse refuses refused refusing refusal decline declines declined declining reject rejects rejected "
    "rejecting dismissed fail fails failed failing unsuccessful unsuccessfully loss lost losing missing devoid "
    "deprived nothing nobody hardly scarcely barely rarely seldom except excepting resolved resolves resolving "
    "gone subsided subsides subsiding recovered cured weaned spared sparing"
)
"""Words that deny without being negations: what they are about ended, was withheld, refused or failed."""
_DOUBTED: Final = word_set("unlikely doubtful doubt doubts doubted doubting questionable if unless whether")
_ONLY_BEFORE: Final = {  # a word that denies only before one of these
    "free": word_set("of from"),
    "instead": word_set("of"),
    "rather": word_set("than"),
    "other": word_set("than"),
    "apart": word_set("from"),
    "failure": word_set("to"),
    "w": word_set("o"),
}
_PRIVATIONS: Final = word_set("loss lost losing missing")  # "no loss of" denies
_OF_ANOTHER: Final = word_set("instead rather other apart except excepting")
_OFF_AFTER: Final = word_set(
    "keep keeps kept keeping take takes taken took come came stay stays stayed been were is was"
)
_TAKING_BACK: Final = _NOT_FACTS | _DOUBTED | word_set("absent denied excluded negative ruled none")
_NOT_BE: Final = word_set("isnt arent wasnt werent")
_BE: Final = word_set("is are was were be been being remain remains remained")
_PARTING: Final = word_set("and but while whereas although though however who whom whose which then")
_BEFORE_IT: Final = _BE | word_set(
    "of to from for than that out o any a an the his her their he she they it has have had"
)
_WITHIN_IT: Final = word_set("of to any a an the his her their or nor")
_WHEN: Final = word_set("now then still yet already again currently later last today")
_MOST_ABOUT: Final = 6  # words that a denial is about
_MOST_WORDS: Final = 50_000  # of a text

DOUBTS: Final = word_set("suspected possible probable unlikely apparent uncertain sign risk developing impending")
_PRIVATIVE: Final = re.compile(r"(?:un|in|im|ir|il|non|dis|a)(\w{4,})|(\w{3,})less")
_NOT_UN: Final = ("under", "uni", "unless", "until", "uncle", "nonetheless")
_MARK: Final = re.compile(r"(?<!\w)(?:I{1,3}|IV|VI{0,3}|IX|X|[Ll]eft|[Rr]ight)(?!\w)")


# --- denials ----------------------------------------------------------------------------------------------------------


class Denial(NamedTuple):
    """A word that denies or doubts, by its place in a sentence, and the places of what it is about.

    One `of_another` cannot begin a phrase: "rather than admitted".
    """

    at: int
    kind: DenialKind
    about: tuple[int, ...]
    of_another: bool = False


def denials(items: Sequence[Item]) -> list[Denial]:
    """Give the denials of a sentence."""
    kinds = {at: kind for at in range(len(items)) if (kind := _kind(items, at))}
    for at in [*kinds]:
        inner = next((here for here in range(at + 1, len(items)) if _tells(items[here]) or here in kinds), at)
        is_double = inner in kinds and items[at].role == "negation" and items[inner].folded not in _PRIVATIONS
        if inner != at and is_double and not any(item.pause for item in items[at + 1 : inner + 1]):
            kinds[at] = kinds[inner] = "undenied"
    return [Denial(at, kind, _about(items, at), items[at].folded in _OF_ANOTHER) for at, kind in kinds.items()]


def _kind(items: Sequence[Item], at: int) -> DenialKind | None:
    item, before, after = items[at], _folded(items, at - 1), _folded(items, at + 1)
    if item.folded in NOT_WORDS and item.role == "connective":
        return "delayed" if any(other.folded == "until" for other in items[at:]) else None
    if item.folded in _DOUBTED:
        return "doubted"
    if item.folded in _ONLY_BEFORE:
        return "denied" if after in _ONLY_BEFORE[item.folded] else None
    denies = item.role == "negation" or item.folded in _NOT_FACTS or (item.folded == "off" and before in _OFF_AFTER)
    return "denied" if denies else None


def _about(items: Sequence[Item], at: int) -> tuple[int, ...]:
    """Give what a denial is about: what is behind it, and what it takes back, "pulses were absent"."""
    folded, behind = items[at].folded, _behind(items, at)
    before = items[at - 1] if at else None
    takes_back = folded in _TAKING_BACK and (not behind or (before is not None and before.folded in _BE))
    is_passive = before is not None and (before.folded in _BE or before.role == "content")
    if takes_back or folded in _NOT_BE or (folded in NOT_WORDS and is_passive):
        return (*_in_front(items, at), *behind)
    return behind


def _behind(items: Sequence[Item], at: int) -> tuple[int, ...]:
    """Read on to the next pause, conjunction or preposition."""
    about: list[int] = []
    for here in range(at + 1, len(items)):
        item, before = items[here], _folded(items, here - 1)
        if item.pause or item.folded in _PARTING or len(about) == _MOST_ABOUT:
            break
        if item.folded == "longer" and before == "no":
            continue
        if _tells(item):
            about.append(here)
        elif item.role in {"connective", "relation"}:
            leads_on = item.folded in (_WITHIN_IT if about else _BEFORE_IT) or before in {"longer", "off"}
            if not leads_on:
                break
    return tuple(about)


def _in_front(items: Sequence[Item], at: int) -> tuple[int, ...]:
    """Read back to the pause or conjunction before it."""
    about: list[int] = []
    for here in range(at - 1, -1, -1):
        if items[here + 1].pause or items[here].folded in _PARTING or len(about) == _MOST_ABOUT:
            break
        if _tells(items[here]):
            about.append(here)
    return tuple(about)


def _tells(item: Item) -> bool:
    """Tell whether something can be denied of a word: it is one of content, a side or a grade."""
    if item.value is not None:
        return item.value.type in {"side", "grade"}
    return item.role == "content" and item.folded not in _WHEN


def _folded(items: Sequence[Item], at: int) -> str:
    return items[at].folded if 0 <= at < len(items) else ""


# --- claims of a text -------------------------------------------------------------------------------------------------


class Denied(NamedTuple):
    """A kind of denial, and the keys of what it is about; of "drug not given", "given" is its object."""

    kind: DenialKind
    about: frozenset[str]
    objects: frozenset[str]

    def is_of(self, other: "Denied") -> bool:
        """Tell whether two denials are plainly of the same."""
        return self.kind == other.kind and bool(self.about & other.about or not (self.about or other.about))


@dataclass(frozen=True, slots=True)
class Claims:
    """What some texts claim; `privative` are words that deny a part of themselves, such as pulseless, by their keys.

    `doubts` are classes of doubt, `marks` words that mostly are values: Roman numerals, left, right. `bound` says of a
    word and a scale which values of that scale are in the word's clauses.
    """

    values: tuple[Value, ...]
    denied: tuple[Denied, ...]
    privative: Mapping[str, Denied]
    doubts: frozenset[str]
    marks: frozenset[str]
    bound: Mapping[tuple[str, str], frozenset[str]]
    keys: frozenset[str]

    def denies(self, other: Denied) -> bool:
        """Tell whether this denies what another text denies, each word of it that is here, too."""
        alike = [each for each in (*self.denied, *self.privative.values()) if each.is_of(other)]
        return bool(alike) and other.objects & self.keys <= frozenset[str]().union(*(each.about for each in alike))

    def has(self, value: Value) -> bool:
        """Tell whether it gives the same value; 325 is that of "325 mg"."""
        is_bare = value.type == "number" and not value.amount
        return any(each.key == value.key or (is_bare and each.amount == value.canonical) for each in self.values)


@lru_cache(maxsize=512)
def claims_of(*texts: str) -> Claims:
    """Read what some texts claim."""
    items: list[Item] = []
    denied: list[Denied] = []
    bound: dict[tuple[str, str], frozenset[str]] = {}
    for text in map(plain, texts):
        for sentence in sentences(text, words(text, _MOST_WORDS)):
            items.extend(sentence)
            for key, values in _bound(sentence):
                bound[key] = bound.get(key, frozenset()) | values
            denied.extend(_denied(sentence, each) for each in denials(sentence) if each.kind != "delayed")
    return Claims(
        tuple(item.value for item in items if item.value is not None),
        tuple(denied),
        {item.key: Denied("denied", frozenset((base,)), frozenset((base,))) for item in items if (base := _base(item))},
        frozenset(item.key for item in items if item.role == "certainty" and item.key in DOUBTS),
        frozenset(mark.lower() for text in texts for mark in _MARK.findall(text)),
        bound,
        frozenset(item.key for item in items),
    )


def _denied(sentence: Sequence[Item], denial: Denial) -> Denied:
    told = {at: sentence[at].key for at in denial.about if sentence[at].role == "content"}
    objects = [key for at, key in told.items() if at > denial.at] or told.values()
    return Denied(denial.kind, frozenset(told.values()), frozenset(objects))


def _bound(sentence: Sequence[Item]) -> Iterator[tuple[tuple[str, str], frozenset[str]]]:
    """Bind each word of content to the values in its clauses, scale by scale."""
    for clause in clauses(sentence):
        values = [item for item in clause if item.value is not None]
        for item in clause:
            if item.role == "content":
                yield from (((item.key, each.value.scale), frozenset((each.key,))) for each in values if each.value)


def _base(item: Item) -> str | None:
    match = _PRIVATIVE.fullmatch(item.folded) if item.role == "content" else None
    return stem(match[1] or match[2]) if match else None


def are_kept(term: str, phrases: Sequence[str], narrative: str) -> bool:
    """Tell whether phrases of a narrative keep what a term claims: all that it denies or doubts, and each value.

    Where the narrative has another value in its place, the phrases must have that one.
    """
    wanted, kept, told = claims_of(term), claims_of(*phrases), claims_of(narrative)
    privative = {key: each for key, each in wanted.privative.items() if _is_clear(key, each, told)}
    return (
        all(map(kept.denies, wanted.denied))
        and all(key in kept.keys or kept.denies(each) for key, each in privative.items())
        and wanted.doubts <= kept.doubts
        and wanted.marks & told.marks <= kept.marks
        and _values_are_kept(wanted, kept, told)
    )


def _is_clear(key: str, denied: Denied, narrative: Claims) -> bool:
    """Tell whether a word denies a part of itself: untreated, pulseless; "infection" does not deny a word "fection"."""
    is_prefixed = key.startswith(("un", "non")) and not key.startswith(_NOT_UN)
    return is_prefixed or key.endswith("less") or denied.about <= narrative.keys


def _values_are_kept(wanted: Claims, kept: Claims, told: Claims) -> bool:
    """Tell whether each value is kept, or the one that the narrative has in its place, and with the same words."""
    for (word, scale), keys in wanted.bound.items():
        others = kept.bound.get((word, scale), keys)
        if keys.isdisjoint(others) and any(value.key in keys for value in kept.values):
            return False  # "left leg", where only another word has the left
    further = [value for value in kept.values if not wanted.has(value)]
    if any(value.scale == other.scale and kept.has(value) for value in wanted.values for other in further):
        return False  # "180 mmHg", where it fell from 180 to 90
    lacking = [value for value in wanted.values if not kept.has(value)]
    for value in lacking:
        rival = next((each for each in further if value.is_alternative(each)), None)
        if rival is None or told.has(value):
            return False
        further.remove(rival)  # it is in the place of one value alone
    return True
