"""Where an output contradicts its narrative: another value or order, a claim denied or affirmed, an opposite.

Each word that a term asks for is looked up where the narrative has it, with the words around it there. A place of the
output contradicts it if it says otherwise among some of the same words, and if no other place explains it better:
"60 mg" beside "furosemide" is a changed "80 mg" unless the narrative itself gives 60 mg among as many of those words,
or the output gives 80 mg among more of them.
"""

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Final

from safe_core.diagnosis.one_sided_denials import agrees_all_the_same
from safe_core.diagnosis.same_words import is_same_word
from safe_core.diagnosis.sentence_index import ROOT, Sentences
from safe_core.diagnosis.tokens import Item
from safe_core.diagnosis.told_words import PARTING, TELLING, Around, At, Sides, in_clause, root, shared
from safe_core.diagnosis.word_lists.grammar_words import WEAK_WORDS
from safe_core.diagnosis.word_lists.opposites import are_opposites, denied_parts, opposites_of
from safe_core.diagnosis.word_lists.rival_kinds import RIVALS
from safe_core.diagnosis.words import stem, word_set

_NAMED_BEFORE: Final = frozenset(("bare", "grade", "ordinal", "ratio"))  # scales of numbers that no word after names
_PLAIN: Final = "how many"
_ANOTHER_QUESTION: Final = 50.0  # how many times longer a duration is than one that it does not stand against: an age
_DAYS_OF_AN_EVENT: Final = frozenset(("same", "next"))  # discharged "the same day", "the next day"
_ALONE: Final = 2  # what a word shares that stands alone in its sentence
_ENDING: Final = PARTING | frozenset(("or", "nor", "as", "because", "due", "owing"))
_BOTH: Final = 2  # sides of a word that say which was first
_MUCH: Final = 6  # three words of the same clause
_MOST_TOLD: Final = 64  # words of a term that are looked for
_REQUESTS: Final = frozenset(map(stem, word_set("ask request arrange book order")))  # what was not may still be
_LITTLE: Final = WEAK_WORDS.keys() - _REQUESTS  # they say of a thing only that there is one
_NO_ADVERBS: Final = word_set("family belly anomaly supply reply jelly assembly")


Values = dict[str, list[At]]


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A word of the narrative, and the word of the output that stands against it or is claimed otherwise."""

    told: At
    instead: At


class Contradictions:
    """What some sentences say otherwise than a narrative; at most `most` places are looked at for each word."""

    def __init__(self, said: Sentences, narrative: Sentences, most: int) -> None:
        self.said = said
        self._narrative = narrative
        self._most = most

    def of(self, told: Sequence[At]) -> Iterator[Contradiction]:
        """Give what the sentences say otherwise than these words of the narrative."""
        for clause in _clauses(told[:_MOST_TOLD]):
            for word in clause:
                instead: At | None = None
                if word.item.value or word.item.role == "relation":
                    instead = self._other_value(word) or (self._turned(word, clause) if _is_named(word) else None)
                elif word.item.role in {"content", "lead-in", "affirmation"}:
                    instead = self._turned(word, clause) or self._opposite(word, clause)
                if instead := instead or self._crossed(word):
                    yield Contradiction(word, instead)

    def _other_value(self, told: At) -> At | None:
        """Find another value, or another order ("after" for "before"), among the words that stand around one."""
        rivals = self._rivals(self._values_said, told)
        if not rivals or _is_compared(told):
            return None
        around = told.around()
        least = _most_shared(around, self._places(self.said, told.item.key))
        common = [(shared(around, at.around()), at) for at in rivals]
        found = sorted((pair for pair in common if pair[0] > least), key=lambda pair: -pair[0])
        return next((at for count, at in found if not self._is_explained(at, told, count)), None)

    def _crossed(self, told: At) -> At | None:
        """Find where what the narrative has on the two sides of "before", "than" or "from … to" has changed sides."""
        mine = told.sides()
        if mine is None or any(crossed == _BOTH for _, _, crossed in self._pivots(self._narrative, told, mine)):
            return None
        found = [*self._pivots(self.said, told, mine)]
        if any(straight == _BOTH for _, straight, _ in found):
            return None  # it says so, too
        return next((at for at, _, crossed in found if crossed == _BOTH and not _has_changed(at, told)), None)

    def _pivots(self, where: Sentences, told: At, mine: Sides) -> Iterator[tuple[At, int, int]]:
        """Give the places of the same order or its opposite, and how many sides have not changed there, and have."""
        sentences = (sentence for key in sorted(mine.after) for sentence in where.holding.get(key, ()))
        for sentence in islice(sentences, self._most):
            for at in (At(sentence, number) for number in range(len(sentence.items))):
                turns = _other_order(told.item, at.item)
                if turns is not None and (its := at.sides()):
                    straight, crossed = mine.in_common(its)[:: -1 if turns else 1]
                    yield at, straight, crossed

    def _is_explained(self, found: At, told: At, common: int) -> bool:
        """Tell whether the narrative has the same value there, or the place is about another value of it."""
        mine, its = (told.sides(), found.sides()) if told.item.role == "relation" else (None, None)
        if mine and its and operator.lt(*mine.in_common(its)):
            return True  # "no tablets before the test" is "tablets only after the test"
        is_in_both = found.item.key in self._narrative.holding and told.item.key in self.said.holding
        if is_in_both and common < _MUCH and not self._are_exchanged(found, told):
            return True
        around = found.around()
        keys = (found.item.key, f"number {found.item.value.amount}") if found.item.value else (found.item.key,)
        places = [at for key in keys for at in self._places(self._narrative, key)]
        if _most_shared(around, places) >= common and not _is_nearer(found, told, places):
            return True
        if _is_another_claim(found, told, places):
            return True
        said = {told.item.key, *(item.key for item in found.sentence.items)}
        others = (at for at in self._rivals(self._values_told, found) if at.item.key not in said)
        return _most_shared(around, others) > common

    def _are_exchanged(self, found: At, told: At) -> bool:
        """Tell whether two values have taken each other's places: "lactate 4.2, potassium 6.8" the other way round.

        Their clauses tell nothing else than those of the narrative: a fall at 03:00 may be reviewed at 05:00.
        """
        of_found, of_told = self._places(self._narrative, found.item.key), self._places(self.said, told.item.key)
        if any(shared(found.around(), at.around()) for at in of_found):
            return False
        if not _tells_no_more(found, told) or any(shared(told.around(), at.around()) for at in of_told):
            return False
        pairs = ((mine, its) for mine in of_told for its in of_found)
        return any(shared(mine.around(), its.around()) and _tells_no_more(mine, its) for mine, its in pairs)

    def _turned(self, told: At, clause: Sequence[At]) -> At | None:
        """Find where the output claims what the narrative denies, or denies what it claims."""
        places = self._forms(self.said, told.item)
        denied = told.is_denied() if places else False
        turned = [at for at in places if at.is_denied() != denied and not at.is_hardly_so()]
        claims = [(at, at if denied else told) for at in turned]
        turned = [at for at, claim in claims if not (claim.is_beside_denial() or claim.is_lost_or_ended())]
        if not turned:
            return None
        around = told.around()
        least = _most_shared(around, (at for at in places if at not in turned))
        others = [at for at in self._forms(self._narrative, told.item) if at.is_denied() != denied]
        for found in turned:
            if agrees_all_the_same(told, found, clause, denied=denied):
                continue
            denial, claim = (told, found) if denied else (found, told)
            if not others and not least and _is_denied_outright(denial) and claim.is_plain():
                return found
            common = _shared_there(around, found)
            if common > least and _is_about(found, clause) and _most_shared(found.around(), others) < common:
                return found
        return None

    def _opposite(self, told: At, clause: Sequence[At]) -> At | None:
        """Find the opposite of a word of the narrative among the words that stand around it."""
        against = (
            opposites_of(told.item.folded) | RIVALS.get(told.item.key, frozenset()) | self._denied_forms(told.item)
        )
        opposites = sorted(against & self.said.holding.keys())
        if not opposites:
            return None
        around, denied = told.around(), told.is_denied()
        least = _most_shared(around, self._places(self.said, told.item.key))
        others = [at for at in clause if at.at != told.at and not at.item.value]
        others_told = [
            at for key in against & self._narrative.holding.keys() for at in self._places(self._narrative, key)
        ]
        for found in (at for key in opposites for at in self._places(self.said, key)):
            common = _shared_there(around, found, in_sentence=True)
            told_too = _most_shared(found.around(), others_told)
            is_claimed = found.item.role in {"content", "affirmation"} and _claims(found, denied=denied)
            is_about = (_is_about(found, others) and _shares_subject(found, told)) or _is_within(found, others)
            is_other = (
                is_claimed and told.item.key not in found.company() and is_about and not self._is_told_as(found, told)
            )
            if is_other and (common > max(least, told_too) or self._is_in_place_of(found, told, others_told)):
                return found
        return None

    def _denied_forms(self, item: Item) -> frozenset[str]:
        """Give the keys of what denies a word in another form: "intolerant" of "tolerates"."""
        alike = self._denied_said.get(item.folded[:ROOT], [])[: self._most]
        return frozenset(key for part, key in alike if is_same_word(item.folded, part) or is_same_word(item.key, part))

    @cached_property
    def _denied_said(self) -> dict[str, list[tuple[str, str]]]:
        """What words of the output deny by a prefix, with their keys, by its first letters."""
        denied: dict[str, list[tuple[str, str]]] = {}
        for key in self.said.holding:
            for part in denied_parts(key):
                denied.setdefault(part[:ROOT], []).append((part, key))
        return denied

    def _is_told_as(self, found: At, told: At) -> bool:
        """Tell whether the narrative has a word, too, of all that its clause is about: "a metal stent was placed".

        Of "fractures of the radius and of the ulna", the ulna has one as well.
        """
        its = found.company() - _LITTLE
        rivals = RIVALS.get(told.item.key, frozenset())
        places = self._places(self._narrative, found.item.key)
        companies = (at.company() | (told.company() if at.goes_on_from(told, rivals) else set()) for at in places)
        return (bool(its) or found.item.key in rivals) and any(its <= company for company in companies)

    def _is_in_place_of(self, found: At, told: At, others: Sequence[At]) -> bool:
        """Tell whether a word has in its clause what another one has in its own, unlike where they stand elsewhere."""
        clause, its = in_clause(told.around()), in_clause(found.around())
        common = shared(clause, its)
        least = _most_shared(clause, self._places(self.said, told.item.key), in_clause)
        return common > max(least, _most_shared(its, others, in_clause))

    def _places(self, where: Sentences, key: str) -> list[At]:
        held = islice(where.holding.get(key, ()), self._most)
        return [At(sentence, at) for sentence in held for at, item in enumerate(sentence.items) if item.key == key]

    def _forms(self, where: Sentences, item: Item) -> list[At]:
        """Give the places of a word in all its forms: of "smoke", also those of "smoker"."""
        keys = [item.key]
        if item.role == "content":
            alike = where.by_root.get(item.folded[:ROOT], [])[: self._most]
            keys += [key for key in alike if key != item.key and is_same_word(item.folded, key)]
        return [at for key in keys for at in self._places(where, key)]

    def _rivals(self, values: Values, one: At) -> list[At]:
        """Give the first of the values that stand against one."""
        candidates = (at for question in _questions(one.item) for at in values.get(question, ()))
        return [*islice((at for at in candidates if is_rival(one, at) or self._is_new_number(one, at)), self._most)]

    def _is_new_number(self, one: At, other: At) -> bool:
        """Tell whether two numbers count nothing in particular and the narrative has the other one nowhere."""
        mine, its = one.item.value, other.item.value
        is_bare = mine is not None and its is not None and mine.scale == its.scale == "bare"
        return is_bare and other.item.key not in self._narrative.holding

    @cached_property
    def _values_said(self) -> Values:
        return _values(self.said)

    @cached_property
    def _values_told(self) -> Values:
        return _values(self._narrative)


def _other_order(one: Item, other: Item) -> bool | None:
    """Tell whether a word gives the opposite order to that of another one; None if they do not compare."""
    if one.key == other.key:
        return False
    return True if one.role == other.role == "relation" and are_opposites(one.key, other.key) else None


def _is_another_claim(found: At, told: At, places: Sequence[At]) -> bool:
    """Tell whether a value is said of something else: of an opposite, or as the narrative has it at one of its places.

    There, another sentence has all of its clause, or it has the verb that the told value does not have ("reported").
    """
    if places:
        clause = in_clause(found.around()).keys()
        elsewhere = (at for at in places if at.sentence is not told.sentence)
        if clause and any(clause <= at.around().keys() for at in elsewhere):
            return True
        verbs = found.verbs() - told.verbs()
        if any(not verbs.isdisjoint(at.verbs()) for at in places):
            return True
    return _has_changed(found, told)


def _has_changed(found: At, told: At) -> bool:
    """Tell whether what is said of a value is the opposite: "normal before", "fell after"."""
    company = found.company()
    return any(not company.isdisjoint(opposites_of(key)) for key in told.company())


def _tells_no_more(said: At, told: At) -> bool:
    """Tell whether the clause of a value has no word of content that the clause of another one lacks."""
    return said.company() - _LITTLE <= told.company()


def _is_nearer(found: At, told: At, others: Sequence[At]) -> bool:
    """Tell whether a clause of the output is about what a clause of the narrative tells, and not about other ones."""
    its = found.clause()
    common = shared(its, told.clause())
    return all(common > shared(its, other.clause()) for other in others)


def is_rival(one: At, other: At) -> bool:
    """Tell whether two values answer the same question otherwise; plain numbers do after the same word."""
    mine, its = one.item.value, other.item.value
    if not mine and not its:
        return are_opposites(one.item.folded, other.item.folded)
    if not mine or not its or mine.key == its.key:
        return False
    if mine.scale == its.scale == "near day":  # what "tomorrow" is depends on when one writes
        return {mine.canonical, its.canonical} == _DAYS_OF_AN_EVENT and not (_is_dated(one) or _is_dated(other))
    if _is_plain(mine.scale) and _is_plain(its.scale):
        return mine.scale == its.scale != "bare" or _name_before(one) == _name_before(other)
    if mine.scale == its.scale == "duration" and mine.amount != its.amount:
        shorter, longer = sorted((float(mine.canonical), float(its.canonical)))
        return longer <= shorter * _ANOTHER_QUESTION
    return mine.is_alternative(its)


def _is_dated(at: At) -> bool:
    """Tell whether another day stands in the sentence, from which "the next day" may be counted."""
    return any(item.value and item.value.type == "day" and item is not at.item for item in at.sentence.items)


def _is_plain(scale: str) -> bool:
    return scale in _NAMED_BEFORE or scale.startswith("of ")


def _name_before(at: At) -> str:
    before = (item.key for item in reversed(at.sentence.items[: at.at]) if item.role == "content")
    return next(before, "")


def _is_named(at: At) -> bool:
    """Tell whether a value is the name of a finding: "hepatitis C"."""
    return at.item.value is not None and at.item.value.scale.endswith(" letter")


def _is_compared(at: At) -> bool:
    """Tell whether a value is the other side of a comparison, as in "cooler than the right"."""
    before = (item.folded for item in reversed(at.sentence.items[: at.at]) if item.folded not in {"the", "on"})
    return next(before, "") == "than"


def _clauses(told: Sequence[At]) -> Iterator[list[At]]:
    clause: list[At] = []
    for at in told:
        if clause and (at.item.pause or at.item.folded in _ENDING):
            yield clause
            clause = []
        clause.append(at)
    yield clause


def _is_about(found: At, clause: Sequence[At]) -> bool:
    """Tell whether a sentence has at least half of what a clause tells."""
    telling = [at.item for at in clause if at.item.role in TELLING]
    told = {root(item) for item in telling if not _says_little(item)}
    told = told or {root(item) for item in telling if item.key not in WEAK_WORDS}
    told = told or {root(at.item) for at in clause if at.item.role == "lead-in"}
    return 2 * len(told.intersection(map(root, found.sentence.items))) >= len(told)


def _shares_subject(found: At, told: At) -> bool:
    """Tell whether the clauses of two words have more in common than values, unless one has no other words."""
    mine, its = (
        {root(item) for item in at.near() if item.role == "content" and not _says_little(item)} for at in (told, found)
    )
    return not mine or not its or not mine.isdisjoint(its)


def _is_within(found: At, clause: Sequence[At]) -> bool:
    """Tell whether a clause tells nothing that another one does not: "cautery failed", "silver nitrate cautery"."""
    its = found.company()
    return bool(its) and its <= {at.item.key for at in clause}


def _is_denied_outright(at: At) -> bool:
    """Tell whether there is nothing of a kind, whatever its place, time or degree: "denies breathlessness"."""
    return at.item.role == "content" and not at.company() - _LITTLE


def _says_little(item: Item) -> bool:
    return item.key in WEAK_WORDS or (item.folded.endswith("ly") and item.folded not in _NO_ADVERBS)


def _claims(found: At, *, denied: bool) -> bool:
    """Tell whether a word is claimed, or denied, in a clause that denies nothing else."""
    return found.is_denied() if denied else not (found.is_denied() or found.is_beside_denial())


def _values(where: Sentences) -> Values:
    """Give the values, and the words that say in which order things were, by the questions that they answer."""
    values: Values = {}
    for sentence in where.sentences:
        for at, item in enumerate(sentence.items):
            for question in _questions(item):
                values.setdefault(question, []).append(At(sentence, at))
    return values


def _questions(item: Item) -> Iterator[str]:
    """Name what a value or an order may answer: only those with a question in common can be rivals."""
    if item.value:
        yield _PLAIN if _is_plain(item.value.scale) else item.value.scale
        if item.value.amount:
            yield f"{item.value.amount} of what"
    elif item.role == "relation":
        yield "in which order"


def _shared_there(around: Around, found: At, *, in_sentence: bool = False) -> int:
    """Give what a word shares with another place; what has nothing around it shares something with every place."""
    its = found.around()
    if in_sentence and around and its:
        return shared(around, its)
    return shared(around, its) if in_clause(around) and its else _ALONE


def _most_shared(around: Around, places: Iterable[At], of: Callable[[Around], Around] = lambda around: around) -> int:
    """Give the most that any of these places shares with another one."""
    return max((shared(around, of(at.around())) for at in places), default=0)
