"""A sentence read plainly: what means the same becomes one word, and words that add nothing to it go.

Only the last question on a miss reads so: whether the output says all of the term in a light paraphrase. Every rule of
`verdicts` is asked again of such sentences, so that a value, a side or a denial that differs still differs.
"""

from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from typing import Final

from safe_core.diagnosis.passages import Term
from safe_core.diagnosis.sentences import sentences
from safe_core.diagnosis.tokens import NEGATED, Item
from safe_core.diagnosis.word_lists.meaning_groups import MEANING_GROUPS
from safe_core.diagnosis.words import word_set, words

Keys = tuple[str, ...]
Phrase = tuple[Keys, tuple[Item, ...]]  # what follows its first word, and how all of it is read

_MAX_WORDS: Final = 16  # of a phrase of the table
_PASSED_OVER: Final = word_set(
    "a an the his her its their my our your any is are was were be been being has have had do does did"
)
"""They may stand between the words of a phrase: "acts out her dreams" is "acts out dreams"."""

_LISTING: Final = word_set("list lists form forms chart charts letter letters label labels notes record records sheet")
_SAYING: Final = word_set("said says say read reads stated")
_LOOKING: Final = word_set("look looks looked looking feels felt")
_PLACES: Final = word_set("area region")
_WHAT_THERE_WAS: Final = word_set("history episode episodes bout bouts attack attacks sensation feeling")
_EVENTS: Final = word_set("falls faints blackouts collapses injuries")  # which no scan or test shows
_KNOWN: Final = word_set("known")  # "known diabetes", unlike "not known" and "no known allergy"
_ALSO_BEFORE_OF: Final = word_set("dose course amount total period")
_FILLERS: Final = _SAYING | _LOOKING | _PLACES | _WHAT_THERE_WAS | _ALSO_BEFORE_OF | _KNOWN
_NOT: Final = Item(NEGATED, "negation", "no", None, pause=False, start=0, end=0)
_NOTHING: Final = Item("", "connective", "", None, pause=True, start=0, end=0)


def _cut(text: str) -> list[Item]:
    return [item for sentence in sentences(text, words(text, _MAX_WORDS)) for item in sentence]


@cache
def _phrases() -> dict[str, list[Phrase]]:
    """Give, by the key of its first word, the phrases of the table that are read as something else, longest first."""
    phrases: dict[str, dict[Keys, Phrase]] = {}
    for group in MEANING_GROUPS:
        first, *others = ([*_told(_cut(phrase))] for phrase in group.split(" | "))
        for told in (first, *others) if len(first) > 1 else others:
            keys = tuple(item.key for item in told)
            phrases.setdefault(keys[0], {})[keys] = (keys[1:], tuple(first))
    return {key: sorted(found.values(), key=lambda phrase: -len(phrase[0])) for key, found in phrases.items()}


def _told(items: Sequence[Item]) -> Iterator[Item]:
    return (item for item in items if item.folded not in _PASSED_OVER)


def plainly(items: Sequence[Item]) -> list[Item]:
    """Read the items of a sentence plainly; each new one stands where the words stood for which it stands."""
    return _reordered(_without_fillers(_in_one_word(items)))


@lru_cache(maxsize=1024)
def plain_term(text: str) -> Term:
    """Read a term plainly, once for all cases in a row that miss it."""
    return Term(text, plainly)


def _in_one_word(items: Sequence[Item]) -> list[Item]:
    """Read each phrase of the table, the longest that begins at a place, as its group is read."""
    read: list[Item] = []
    phrases, end = _phrases(), 0
    for at, item in enumerate(items):
        if at < end:
            continue
        end = at + 1
        for rest, instead in phrases.get(item.key, ()):
            found = 0 if _denies_twice(read, instead) else _end(items, at + 1, rest)
            if found:
                end, stop = found, items[found - 1].end
                read += [one._replace(start=item.start, end=stop, pause=False) for one in instead]
                read[-len(instead)] = read[-len(instead)]._replace(pause=item.pause)
                break
        else:
            read.append(item)
    return read


def _denies_twice(read: Sequence[Item], instead: Sequence[Item]) -> bool:
    """Tell whether a denial stands before one: "no fever or loss of power" is not read as "no fever or no power"."""
    return instead[0].role == "negation" and any(item.role == "negation" for item in read)


def _end(items: Sequence[Item], end: int, rest: Keys) -> int:
    """Give where a phrase ends of whose words all but the first are to follow; 0 if they do not."""
    for key in rest:
        while end < len(items) and items[end].folded in _PASSED_OVER and items[end].key != key:
            end += 1
        if end == len(items) or items[end].key != key or items[end].pause:
            return 0
        end += 1
    return end


def _without_fillers(items: list[Item]) -> list[Item]:
    """Leave out the words that add nothing where they stand; a comma before one stands before the next word."""
    if _FILLERS.isdisjoint([item.folded for item in items]):  # as in most sentences
        return items
    kept: list[Item] = []
    pause = False
    for at, item in enumerate(items):
        if _is_filler(items, at):
            pause = pause or item.pause
        else:
            kept.append(item._replace(pause=True) if pause and not item.pause else item)
            pause = False
    return kept


def _is_filler(items: Sequence[Item], at: int) -> bool:
    """Tell whether a word adds nothing: the "looked" of "looked clean"."""
    folded = items[at].folded
    if folded not in _FILLERS:
        return False
    before = items[at - 1] if at else _NOTHING
    after, next_but_one = (items[place] if place < len(items) else _NOTHING for place in (at + 1, at + 2))
    return (
        (folded in _WHAT_THERE_WAS and after.folded == "of" and _is_of_no_past(items, at))
        or (folded in _ALSO_BEFORE_OF and after.folded == "of" and next_but_one.value is not None)
        or (folded in _KNOWN and after.role == "content" and not after.pause and _begins(items, at))
        or (folded in _SAYING and before.folded in _LISTING)
        or (folded in _LOOKING and at > 0 and after.role == "content" and not after.pause)
        or (folded in _PLACES and before.role in {"content", "value"} and not items[at].pause)
    )


def _begins(items: Sequence[Item], at: int) -> bool:
    """Tell whether a clause, or what is said of a patient, begins at a place: "with known asthma"."""
    begins = at == 0 or items[at].pause or items[at - 1].role == "connective"
    return begins and all(item.role != "negation" for item in items[:at])


def _is_of_no_past(items: Sequence[Item], at: int) -> bool:
    """Tell whether a "history" is no more than what there was: of denied events, it lasts, or is that of a relative.

    "No history of falls" is "no falls"; "no history of stroke" is more than the "no stroke" of a scan.
    """
    if items[at].folded != "history":
        return True
    before, events = items[max(0, at - 3) : at], items[at + 2 : at + 3]
    is_denied = any(item.role == "negation" for item in before) and any(item.folded in _EVENTS for item in events)
    return is_denied or any(item.value or item.folded == "family" for item in before)


def _reordered(items: list[Item]) -> list[Item]:
    """Read "last vomited two days ago" as "no vomiting for two days"."""
    for at, item in enumerate(items):
        if item.folded == "last" and (end := _ago(items, at)):
            denial = _NOT._replace(pause=item.pause, start=item.start, end=item.end)
            return [*items[:at], denial, *items[at + 1 : end], *items[end + 1 :]]
    return items


def _ago(items: Sequence[Item], at: int) -> int:
    """Give the place of "ago" in the clause of "last", after a duration and at least one word; 0 if none is there."""
    for place in range(at + 1, len(items)):
        if items[place].pause:
            return 0
        if items[place].folded == "ago":
            value = items[place - 1].value
            return place if value and value.scale == "duration" and place > at + 2 else 0
    return 0
