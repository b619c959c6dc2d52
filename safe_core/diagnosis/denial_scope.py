"""Whether a sentence denies what stands at a place in it: a literal hit, a phrase or a single word.

Where a whole term is compared with a passage, `passage_denials.is_negated` is asked instead.

A denial reaches forward or backward. Forward ("no", "denies", "did not"), the words between it and the place are read
one after the other: a conjunction goes on, a comma only in a list, a preposition only after a word such as "evidence",
and the beginning of another clause ends it. Backward ("was ruled out", "not seen"), the place must be the subject of
the words that take it back. A second denial between the two, or right before, takes the first one back.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

from safe_core.diagnosis.passage_denials import is_grammar
from safe_core.diagnosis.tokens import Item
from safe_core.diagnosis.word_lists.denial_words import DENYING_AMONG_OTHERS, FAILURES, NOT_WORDS, REFUSALS
from safe_core.diagnosis.words import word_set

_MOST_BETWEEN = 5  # words of content that a denial reaches over, from the last conjunction on
_MOST_LISTED = 40  # items from a denial to a member of its list
_MOST_AFTER = 14  # items between a place and what takes it back

_AUXILIARIES = word_set("is are was were be been being has have had do does did can could will would should may might")
_PREPOSITIONS = word_set(
    "of in on at to for with by from into onto about as per via upon over through towards toward along among around "
    "across between near off up during that despite under within"
)
_CLAUSE_BREAKS = word_set(
    "but however although though while whilst whereas who whom whose which where when there because despite except "
    "excepting besides apart aside save only just then than owing if unless whether until it he she they we i you"
)
_BREAKS_LATER = word_set("yet so due secondary since after before following once")  # not right after the denial
_DETERMINERS = word_set("a an the his her their this these another all both")
_DEFINITE = word_set("the this these those")  # "did not treat the infection": there was one
_OR, _AND = word_set("or nor"), word_set("and")
_PLURAL = word_set("were are have")  # what is said of all members of a list
_LEADING_ON = word_set("of for with to that about")
_DIRECTLY_LEADING_ON = word_set("of for to")
_CARRIERS = word_set(
    "sign signs symptom symptoms feature features evidence finding findings history complaint complaints complain "
    "complains complained complaining indication indications suggestion suggestive suspicion report reports mention "
    "trace traces episode episodes need able likely want wish appear appears appeared seem seems known thoughts "
    "consistent compatible associated concern concerns positive diagnosed presence possibility risk tested thought "
    "believed allowed"
)
"""The words after which a preposition leads on to what is denied: "no evidence of", "not consistent with"."""
_PSEUDO = word_set(
    "further increase increased change changes necessarily cause caused drain doubt reduction decrease "
    "improvement exclude excluding eliminate rule document record recognise recognize notice mention address explain "
    "clarify treat communicate miss overlook"
)
"""The words after which a denial denies no more than themselves: "no increase in pain", "did not document a rash"."""

_VERBAL = NOT_WORDS | REFUSALS | FAILURES | word_set("never unable inability")  # they deny verbs
_ASKING = word_set("denies denied denying deny without negative absence")  # a list after it needs no "or"
_TAKING_BACK = word_set("absent denied excluded negative ruled lacking refused declined unlikely impossible withheld")
_AFTER_TAKING_BACK = {"negative": word_set("for"), "ruled": word_set("out"), "rules": word_set("out")}
_NOTHING = word_set("no none nil negative denied absent never")
_FOUND = word_set(
    "seen present noted found identified detected observed reported evident elicited appreciated demonstrated "
    "visualised visualized felt heard palpable performed done given administered started required needed indicated "
    "suspected considered obtained available shown visible apparent likely possible used attempted undertaken "
    "necessary prescribed ordered applied inserted"
)
"""What is denied by not having been so: "free fluid was not seen"."""
_WHERE = _PREPOSITIONS - word_set("that of for to") | {"bilaterally"}
_JUDGED = word_set("thought considered felt deemed judged very highly most extremely rather also clearly found noted")
_VERBS = _AUXILIARIES | word_set(
    "heard felt began came grew rose fell became went raised prompted worsened persisted continued intact normal"
)
_NOUNS = word_set("patient pt finding findings presentation suffering report")
_ATTRIBUTE_ENDINGS = ("al", "ary", "ed", "ible", "ic", "ive", "ous")
_HYPOTHETICAL = word_set("if unless whether should")


_DENYING_AMONG = REFUSALS | FAILURES | set(_AFTER_TAKING_BACK) | DENYING_AMONG_OTHERS
"""The words that begin a denial among certain neighbours."""
_DENYING = _DENYING_AMONG | _TAKING_BACK | _NOTHING


@dataclass(frozen=True, slots=True)
class Place:
    """The items `first` to `last` of a sentence of a text."""

    text: str
    items: Sequence[Item]
    first: int
    last: int

    def mark(self, at: int) -> str:
        """Give the sign between an item and the one before it; nothing where only a space is."""
        return self.text[self.items[at - 1].end : self.items[at].start].strip()[:1] if self.items[at].pause else ""

    def folded(self, at: int) -> str:
        """Give an item as it is written; nothing beyond the ends."""
        return self.items[at].folded if 0 <= at < len(self.items) else ""


def is_denied_at(place: Place) -> bool:
    """Tell whether the sentence denies the place; a denial within the place is the place's own."""
    if any(item.role == "negation" for item in place.items[place.first : place.last + 1]):
        return False
    nearest = range(place.first - 1, max(-1, place.first - 1 - _MOST_LISTED), -1)
    denials = (at for at in nearest if _may_begin_denial(place.items[at]) and _denies(place, at))
    return any(_reaches_forward(place, at) for at in denials) or _is_taken_back(place)


def may_deny(item: Item) -> bool:
    """Tell whether an item may deny what stands after or before it."""
    return item.role == "negation" or item.folded in _DENYING


def _may_begin_denial(item: Item) -> bool:
    return item.role == "negation" or item.folded in _DENYING_AMONG


def _denies(place: Place, at: int) -> bool:
    """Tell whether a word begins a denial of what follows it, and is not denied or only supposed itself."""
    item, after = place.items[at], place.folded(at + 1)
    if item.folded in _AFTER_TAKING_BACK:
        begins = after in _AFTER_TAKING_BACK[item.folded]
    elif item.folded in FAILURES:
        begins = after == "to"
    elif item.folded in REFUSALS:
        is_fall = after == "to" and at + 2 < len(place.items) and place.items[at + 2].value is not None
        begins = at + 1 < len(place.items) and not is_fall
    elif item.folded == "free":
        begins = after in {"of", "from"}
    elif after in {"than", "of"} and item.folded in {"rather", "instead"}:
        begins = True
    else:
        begins = item.folded != "rule" and (item.role == "negation" or item.folded in {"unlikely", "excludes"})
    return begins and not _is_doubly_denied(place, at) and not _is_supposed(place, at)


def _is_doubly_denied(place: Place, at: int) -> bool:
    """Tell whether another denial stands right before one, over nothing but grammar."""
    for before in range(at - 1, max(-1, at - 5), -1):
        if place.items[before + 1].pause:
            return False
        if place.items[before].role == "negation":
            return True
        if not is_grammar(place.items[before]):
            return False
    return False


def _is_supposed(place: Place, at: int) -> bool:
    """Tell whether the clause of a denial begins with "if" or the like."""
    for before in range(at - 1, -1, -1):
        if place.items[before + 1].pause:
            return False
        if place.items[before].folded in _HYPOTHETICAL:
            return True
    return False


def _reaches_forward(place: Place, denial: int) -> bool:
    """Read the words from a denial to the place; the next member of a list is reached whatever ended the last one."""
    start = denial + 2 if place.folded(denial + 1) in {"out", "than"} else denial + 1
    content, is_reached = 0, True
    for at in range(start, place.first + 1):
        item = place.items[at]
        if item.pause:
            if not _goes_on_after_pause(place, denial, at):
                return False
            content, is_reached = 0, True
        if item.folded in _OR | _AND:
            content = 0
        content += not is_grammar(item)
        if content > _MOST_BETWEEN or item.role == "negation" or item.folded in _CLAUSE_BREAKS:
            return False
        is_reached = is_reached and _leads_on(place, denial, at)
    return is_reached and (place.folded(denial) in _VERBAL or not _is_attribute(place))


def _is_attribute(place: Place) -> bool:
    """Tell whether a place only describes what follows it: "no surgical complications" denies no surgery."""
    after = place.last + 1
    describes = place.items[place.last].folded.endswith(_ATTRIBUTE_ENDINGS)
    return describes and after < len(place.items) and place.items[after].role == "content"


def _goes_on_after_pause(place: Place, denial: int, at: int) -> bool:
    return at > denial + 1 and place.mark(at) == "," and _is_listed(place, denial, at)


def _leads_on(place: Place, denial: int, at: int) -> bool:
    """Tell whether a denial goes on over a word between it and the place, or over the first word of the place."""
    item, is_next, is_verbal = place.items[at], at == denial + 1, place.folded(denial) in _VERBAL
    if item.folded in _OR | _AND:
        return item.folded in _OR or not _begins_clause(place, at + 1)
    if item.folded in _BREAKS_LATER or item.role == "relation":
        return is_next
    if item.folded in _PREPOSITIONS:
        return _preposition_leads_on(place, denial, at)
    if at == place.first:
        return True
    if is_verbal:
        return item.folded not in _PSEUDO and (item.folded not in _DEFINITE or place.folded(denial) in REFUSALS)
    return item.folded not in _PSEUDO | _VERBS and (is_next or not _is_participle(place, at))


def _is_participle(place: Place, at: int) -> bool:
    """Tell whether a word closes what is denied: the "noted" of "no complications noted overnight"."""
    item = place.items[at]
    return (
        item.role == "lead-in" and item.folded.endswith(("ed", "seen", "found")) and not is_grammar(place.items[at - 1])
    )


def _preposition_leads_on(place: Place, denial: int, at: int) -> bool:
    """Tell whether a denial goes on over a preposition: right after it, or after "evidence" and the like."""
    folded, led = place.folded(at), place.items[at - 1]
    if at == denial + 1:
        return folded in _DIRECTLY_LEADING_ON or place.folded(denial) not in _TAKING_BACK
    if folded == "as":
        return led.folded == "such"
    return folded in _LEADING_ON and (led.folded in _CARRIERS or led.role == "certainty")


def _begins_clause(place: Place, at: int) -> bool:
    """Tell whether the words after an "and" are a clause or a thing of their own, up to the next pause."""
    if place.folded(at) in _DETERMINERS:
        return True
    return any(_is_verb(place, here) for here in _segment(place, at))


def _segment(place: Place, at: int) -> Iterator[int]:
    """Give the places from a word up to the next pause."""
    for here in range(at, len(place.items)):
        if here > at and place.items[here].pause:
            return
        yield here


def _is_verb(place: Place, at: int) -> bool:
    """Tell whether a word is likely the verb of a clause; "displaced fracture" has none."""
    item = place.items[at]
    if item.folded in _VERBS:
        return True
    if item.role == "lead-in":
        return item.folded not in _NOUNS
    ends = at + 1 == len(place.items) or place.items[at + 1].pause or place.items[at + 1].role != "content"
    return item.role == "content" and item.folded.endswith("ed") and ends


def _is_listed(place: Place, denial: int, at: int) -> bool:
    """Tell whether what follows a comma is a further member of the list that a denial begins.

    "Or" closes a list, and so does "and" where no clause follows; "denies" and the like need neither.
    """
    for here in _segment(place, at):
        folded = place.folded(here)
        if folded in _CLAUSE_BREAKS or place.items[here].role == "negation":
            return folded == "nor"
        if folded in _OR:
            return True
        if folded in _AND:
            return not _begins_clause(place, here + 1)
        if _is_verb(place, here):
            return False
    end = here + 1
    if end < len(place.items) and place.mark(end) == "," and end - denial < _MOST_LISTED:
        return _is_listed(place, denial, end) or _closes_without_or(place, denial)
    return _closes_without_or(place, denial)


def _closes_without_or(place: Place, denial: int) -> bool:
    return place.folded(denial) in _ASKING


def _is_taken_back(place: Place) -> bool:
    """Tell whether the words after a place take it back: "was ruled out", "not seen", ": none"."""
    is_predicate = in_phrase = is_listing = is_plural = False
    for at in range(place.last + 1, min(len(place.items), place.last + _MOST_AFTER)):
        item = place.items[at]
        if item.pause and place.mark(at) != ",":
            return at == place.last + 1 and item.folded in _NOTHING and _closes(place, at)
        if item.pause:
            is_listing = in_phrase = is_plural = True
        if item.role == "negation" or item.folded in _TAKING_BACK:
            can = not is_listing and (is_predicate or not in_phrase)
            return can and _takes_back(place, at, is_predicate=is_predicate)
        if item.folded in _AUXILIARIES:
            if is_plural and not is_predicate and item.folded not in _PLURAL:
                return False
            is_predicate = True
        elif is_predicate and not (item.folded in _JUDGED or item.folded.endswith("ly") or item.role == "connective"):
            return False
        elif item.folded in _PREPOSITIONS | _AND | _OR:
            in_phrase, is_listing = True, is_listing and item.folded in _PREPOSITIONS
            is_plural = is_plural or item.folded in _AND
        elif item.folded in _CLAUSE_BREAKS or not (in_phrase or is_predicate):
            return False
    return False


def _takes_back(place: Place, at: int, *, is_predicate: bool) -> bool:
    """Tell whether a negation takes back what stands before it."""
    folded = place.folded(at)
    if folded in _TAKING_BACK:
        is_whole = folded != "ruled" or place.folded(at + 1) == "out"
        return is_whole and (is_predicate or _closes(place, at))
    if folded == "no":  # "breathless no longer"
        return place.folded(at + 1) == "longer" and _closes(place, at + 1)
    if folded not in NOT_WORDS and folded != "never":
        return False
    following = takewhile(lambda after: not place.items[after].pause, range(at + 1, len(place.items)))
    items = (place.items[after] for after in following)
    first = next((item for item in items if item.role != "connective" or item.folded in _FOUND), None)
    return first is not None and first.role != "negation" and first.folded in _FOUND


def _closes(place: Place, at: int) -> bool:
    """Tell whether a word is the last of its clause, but for where and when."""
    end = at + 1
    return end >= len(place.items) or place.items[end].pause or place.folded(end) in _WHERE
