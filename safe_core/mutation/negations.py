"""Alterations that take a denial out of a narrative, or put one in."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from safe_core.diagnosis.denials_in_context import is_negation
from safe_core.diagnosis.word_lists.denial_words import NEGATIONS
from safe_core.diagnosis.words import word_set
from safe_core.mutation.alteration import Alteration, Cut, article_of

# --- taken out --------------------------------------------------------------------------------------------------------

_BE = word_set("was were is are")
_ONLY_AFTER_BE = word_set("withheld discontinued cancelled canceled")

# A word that denies → what affirms in its place; of two words, where the second must follow.
_AFFIRMED: Final[Mapping[str, str]] = {
    "cannot": "can", "cant": "can", "wont": "will",
    "denies": "reports", "denied": "reported", "denying": "reporting", "deny": "report",
    "absent": "present", "absence": "presence", "unable": "able", "inability": "ability",
    "negative": "positive", "excluded": "confirmed", "none": "some", "nil": "some",
    "lacks": "has", "lacked": "had", "lacking": "having",
    "without": "with",
    "lack of": "presence of",
    "ruled out": "confirmed", "rules out": "confirms", "rule out": "confirm", "ruling out": "confirming",
    "failed to": "managed to", "fails to": "manages to", "fail to": "manage to", "failing to": "managing to",
    "refused to": "agreed to", "refuses to": "agrees to", "declined to": "agreed to", "declines to": "agrees to",
    "not yet": "already", "no longer": "still", "nil by": "fed by", "hardly any": "some", "hardly ever": "often",
    "stopped taking": "continued taking", "stops taking": "continues taking",
}  # fmt: skip
_TAKES_ANY = word_set("without denies denied denying deny")
_REFUSED = {
    "refused": "accepted", "refuses": "accepts", "refusing": "accepting", "refusal": "acceptance",
    "declined": "accepted", "declines": "accepts", "declining": "accepting",
}  # fmt: skip
_DETERIORATED = word_set("over in since after during from by to at on and with until further")  # "declined over days"
_AFFIRMED_WHOLE = {  # no negations, but what is said by them is taken back
    "nobody": "somebody", "nothing": "something", "nka": "known allergies", "nkda": "known drug allergies",
    "withheld": "given", "discontinued": "continued", "cancelled": "performed", "canceled": "performed",
}  # fmt: skip
_ENDED = {"resolved": "persisted", "stopped": "continued", "ceased": "continued", "subsided": "persisted"}
_FREE_OF = {"is": "has", "was": "had", "are": "have", "were": "had"}
_FREE = {"pain": "in pain", "symptom": "symptomatic"}  # what is behind it is "-free"
_NON = word_set(
    "smoker smokers verbal diabetic ambulatory responsive reactive compliant adherent invasive contrast operative "
    "surgical weightbearing alcoholic drinker drinkers"
)
_NO_NUMBER = word_set("more less fewer later earlier sooner better worse")  # "no later than" is no denial
_UNCOUNTED = word_set(
    "evidence pain bleeding swelling movement sensation weakness tenderness edema oedema fever nausea vomiting "
    "numbness cyanosis distress discharge trauma infection improvement syndrome erythema blood fluid air contact "
    "access consent damage loss food alcohol medication treatment surgery relief redness guarding rigidity"
)
_COUNTED_S = ("ss", "us", "is")
_ENDS_PHRASE = word_set(
    "of in on at to for with by from during after before and or but that which who was were is are has had noted "
    "documented seen found reported observed identified detected recorded present"
)
_LONGEST_PHRASE = 6


def negations_removed(cut: Cut) -> Iterator[Alteration]:
    """Take out each denial of a narrative."""
    for at in range(len(cut.words)):
        removed = next((altered for rule in _REMOVED_BY if (altered := rule(cut, at))), None)
        if removed is not None:
            yield removed


def _of_two_words(cut: Cut, at: int) -> Alteration | None:
    two = f"{cut.folded(at)} {cut.folded(at + 1)}" if cut.touches(at + 1) else ""
    is_said = two in _AFFIRMED and not cut.folded(at + 2)[:1].isdecimal()
    return _two_affirmed(cut, at, _AFFIRMED[two]) if is_said else None


def _accepted(cut: Cut, at: int) -> Alteration | None:
    """Make "accepted surgery" of "refused surgery"; what "declined over days" was not refused."""
    folded, following = cut.folded(at), cut.folded(at + 1)
    if folded not in _REFUSED or not cut.touches(at + 1):
        return None
    deteriorated = folded.startswith("declin") and following in _DETERIORATED
    return None if deteriorated else cut.altered("negation_removed", at, at, _REFUSED[folded])


def _two_affirmed(cut: Cut, at: int, affirmed: str) -> Alteration:
    if cut.folded(at) == "lack" and cut.folded(at - 1) == "a" and cut.touches(at):
        return cut.altered("negation_removed", at - 1, at + 1, f"the {affirmed}")
    return cut.altered("negation_removed", at, at + 1, affirmed)


def _whole_affirmed(cut: Cut, at: int) -> Alteration | None:
    """Make "was given" of "was withheld", and "known drug allergies" of "NKDA"."""
    folded = cut.folded(at)
    if folded not in _AFFIRMED_WHOLE or (folded in _ONLY_AFTER_BE and cut.folded(at - 1) not in _BE | {"been"}):
        return None
    if folded in {"nka", "nkda"}:  # not in capitals
        affirmed = _AFFIRMED_WHOLE[folded]
        after = affirmed.capitalize() if "." in cut.between(at) else affirmed
        return Alteration("negation_removed", cut.words[at].start, cut.words[at].end, after)
    return cut.altered("negation_removed", at, at, _AFFIRMED_WHOLE[folded])


def _persisting(cut: Cut, at: int) -> Alteration | None:
    """Make "pain persisted" of "pain resolved"."""
    folded = cut.folded(at)
    if folded not in _ENDED or not cut.touches(at) or at == 0:
        return None
    is_passive = cut.folded(at - 1) in _BE | {"been", "being"}
    if is_passive and folded != "stopped":
        return None
    return cut.altered("negation_removed", at, at, _ENDED[folded])


def _not_free(cut: Cut, at: int) -> Alteration | None:
    """Make "has pain" of "is free of pain", and "in pain" of "pain-free"."""
    if cut.folded(at) != "free":
        return None
    if cut.folded(at + 1) in {"of", "from"} and cut.folded(at - 1) in _FREE_OF and cut.touches(at):
        return cut.altered("negation_removed", at - 1, at + 1, _FREE_OF[cut.folded(at - 1)])
    if cut.between(at) == "-" and cut.folded(at - 1) in _FREE and cut.folded(at - 2) in _BE:
        return cut.altered("negation_removed", at - 1, at, _FREE[cut.folded(at - 1)])
    return None


def _with_again(cut: Cut, at: int) -> Alteration | None:
    """Make "with" of "w/o"."""
    is_short = cut.folded(at) == "w" and cut.folded(at + 1) == "o" and cut.between(at + 1) == "/"
    return cut.altered("negation_removed", at, at + 1, "with") if is_short else None


def _easily(cut: Cut, at: int) -> Alteration | None:
    """Make "could easily walk" of "could hardly walk"."""
    is_hardly = cut.folded(at) in {"hardly", "barely", "scarcely"} and cut.folded(at - 1) in {"can", "could"}
    return cut.altered("negation_removed", at, at, "easily") if is_hardly else None


def _without_prefix(cut: Cut, at: int) -> Alteration | None:
    """Make "smoker" of "nonsmoker"."""
    folded = cut.folded(at)
    rest = folded.removeprefix("non")
    return cut.altered("negation_removed", at, at, rest) if folded.startswith("non") and rest in _NON else None


def _removed(cut: Cut, at: int) -> Alteration | None:
    folded = cut.folded(at)
    if not is_negation(cut.words, at):
        return None
    if remove := _REMOVED_FROM.get(folded):
        return remove(cut, at)
    if folded in _AFFIRMED:
        has_any = folded in _TAKES_ANY and cut.folded(at + 1) == "any"
        affirmed = "while" if folded == "without" and cut.folded(at + 1).endswith("ing") else _AFFIRMED[folded]
        return cut.altered("negation_removed", at, at + has_any, affirmed)
    if folded.endswith("nt") and folded in NEGATIONS:  # didn't
        return cut.altered("negation_removed", at, at, folded.removesuffix("nt"))
    return None


def _not(cut: Cut, at: int) -> Alteration | None:
    return cut.altered("negation_removed", at, at, "")


def _no(cut: Cut, at: int) -> Alteration | None:
    following = cut.folded(at + 1)
    if not cut.touches(at + 1):
        return cut.altered("negation_removed", at, at, "yes")
    if following in _NO_NUMBER or following[:1].isdecimal():
        return None
    if following == "one":
        return cut.altered("negation_removed", at, at + 1, "someone")
    affirmed = "" if _needs_no_article(cut, at) else article_of(following)
    return cut.altered("negation_removed", at, at, affirmed)


def _needs_no_article(cut: Cut, at: int) -> bool:
    """Tell whether what "no" denies can stand alone: a plural, or what is not counted."""
    last = at + 1
    while last - at < _LONGEST_PHRASE and cut.touches(last + 1) and cut.folded(last + 1) not in _ENDS_PHRASE:
        last += 1
    head = cut.folded(last)
    plural = head.endswith("s") and not head.endswith(_COUNTED_S)
    return plural or head in _UNCOUNTED or head.endswith(("ness", "ing", "emia", "aemia"))


def _neither(cut: Cut, at: int) -> Alteration | None:
    """Make "both … and" of "neither … nor"."""
    for other in range(at + 2, min(len(cut.words), at + 12)):
        if cut.folded(other) == "nor":
            between = cut.text[cut.words[at].end : cut.words[other].start]
            return cut.altered("negation_removed", at, other, f"both{between}and")
    return None


def _non(cut: Cut, at: int) -> Alteration | None:
    is_prefix = at + 1 < len(cut.words) and cut.between(at + 1) in {"-", "\u2010", "\u2011"}
    return cut.altered("negation_removed", at, at + 1, cut.written(at + 1)) if is_prefix else None


_Rule = Callable[[Cut, int], Alteration | None]
_REMOVED_FROM: Final[Mapping[str, _Rule]] = {
    "not": _not,
    "never": _not,
    "no": _no,
    "neither": _neither,
    "non": _non,
}
_REMOVED_BY: Final[tuple[_Rule, ...]] = (
    *(_of_two_words, _accepted, _whole_affirmed, _persisting, _not_free, _with_again, _easily, _without_prefix),
    _removed,
)

# --- put in -----------------------------------------------------------------------------------------------------------

_MODALS = word_set("can could will would did does")
_HAVE = word_set("has had have")
_ARTICLES = word_set("a an the any some")
_FINDING_VERBS = _HAVE | word_set(
    "showed shows showing revealed reveals revealing exhibited exhibits exhibiting demonstrated demonstrates "
    "demonstrating displayed displays displaying developed develops developing reported reports experienced "
    "experiences experiencing suffered suffers sustained sustains received receives required requires underwent "
    "undergoes identified identifies detected detects"
)
_TOLD = word_set("family parents parent mother father caregivers guardians relatives")
_TELLING = word_set("informed reassured counseled counselled advised updated told educated instructed")
_NOT_OBJECTS = word_set(
    "that the to how what when where whether it him her them by of in on at for with from during after before until "
    "as than and or but if only up been also either both"
)
_NOT_DENIED = word_set("only also that because if to")
_WITH_LED_BY = word_set(
    "consistent compatible along associated together comply compliance correlates correlated interfere interferes "
    "agreement accordance line deal dealt dealing concerned familiar spoke speak discussed discussion met consulted "
    "consultation contact shared communicated communication diagnosed treated managed evaluated assessed classified"
)
_WITH_NO_FINDING = word_set(
    "one two another his her their the its regard regards respect which whom whose it him them each"
)
_PAIRS: Final[Mapping[str, str]] = {
    "complains of": "denies",
    "complained of": "denied",
    "complaining of": "denying",
    "presence of": "absence of",
    "able to": "unable to",
    "ability to": "inability to",
}
_PAST: Final[Mapping[str, str]] = {
    "took": "take", "gave": "give", "vomited": "vomit", "fell": "fall", "bled": "bleed", "fainted": "faint",
    "collapsed": "collapse", "lost": "lose", "ate": "eat", "drank": "drink", "smoked": "smoke", "moved": "move",
    "walked": "walk", "responded": "respond", "tolerated": "tolerate", "consented": "consent", "breathed": "breathe",
}  # fmt: skip
_WHO = word_set("he she they who patient girl boy man woman child infant baby")
_WHEN = word_set("when where after before because until while as")  # "when he did not fall" is no event
_GIVEN = word_set("given administered performed done obtained started")
_IS_SHORT = word_set("he she it that who")
_LONGEST_SUBJECT = 12
_AUXILIARIES = _BE | _HAVE | _MODALS | word_set("be been being")
_IRREGULAR_PARTICIPLES = word_set("been gone taken seen given begun become fallen done made lost felt left found shown")


def negations_added(cut: Cut) -> Iterator[Alteration]:
    """Put a denial before each claim of a narrative that has none."""
    for at in range(len(cut.words)):
        added = next((altered for rule in _ADDED_BY if (altered := rule(cut, at))), None)
        if added is not None:
            yield added


def _is_affirmed(cut: Cut, at: int) -> bool:
    """Tell whether no denial stands within the next words, as far as the next pause."""
    for ahead in range(at + 1, at + 4):
        if not cut.touches(ahead):
            break
        if is_negation(cut.words, ahead) or cut.folded(ahead) in NEGATIONS:
            return False
    return not is_negation(cut.words, at)


def has_denied_subject(cut: Cut, at: int) -> bool:
    """Tell whether the subject of a verb is denied already: "no signs of infection were noted"."""
    for before in range(at - 1, max(-1, at - _LONGEST_SUBJECT), -1):
        if not cut.touches(before + 1):
            return False
        if cut.folded(before) in {"no", "neither", "nor", "none", "nothing"}:
            return True
    return False


def _there(cut: Cut, at: int) -> Alteration | None:
    """Make "there were no signs" of "there were signs"."""
    if cut.folded(at) not in _BE or cut.folded(at - 1) != "there" or not cut.touches(at + 1):
        return None
    return _with_no(cut, at) if _is_affirmed(cut, at) else None


def _with_no(cut: Cut, at: int) -> Alteration:
    has_article = cut.folded(at + 1) in _ARTICLES
    return cut.altered("negation_added", at, at + has_article, f"{cut.written(at)} no")


def _auxiliary(cut: Cut, at: int) -> Alteration | None:
    """Make "was not stable" of "was stable"."""
    folded, following = cut.folded(at), cut.folded(at + 1)
    if cut.folded(at - 1) in {"there", "case"} or not cut.touches(at + 1) or following in _NOT_DENIED:
        return None
    is_participle = following in _IRREGULAR_PARTICIPLES or following.endswith("ed")
    denies = folded in _BE | _MODALS or (folded in _HAVE and is_participle)
    if following in _TELLING and any(cut.folded(before) in _TOLD for before in range(at - 3, at)):
        return None  # nobody's health depends on it
    if not denies or not _is_affirmed(cut, at) or has_denied_subject(cut, at):
        return None
    denied = "cannot" if folded == "can" else f"{cut.written(at)} not"
    return cut.altered("negation_added", at, at, denied)


def _finding(cut: Cut, at: int) -> Alteration | None:
    """Make "revealed no swelling" of "revealed swelling"."""
    following = cut.folded(at + 1)
    is_active = cut.folded(at) in _FINDING_VERBS and cut.folded(at - 1) not in _AUXILIARIES
    if not is_active or not cut.touches(at + 1) or following in _NOT_OBJECTS or following.endswith("ly"):
        return None
    return _with_no(cut, at) if _is_affirmed(cut, at) else None


def _with(cut: Cut, at: int) -> Alteration | None:
    """Make "without fever" of "with fever"."""
    if cut.folded(at) != "with" or cut.folded(at - 1) in _WITH_LED_BY or cut.folded(at + 1) in _WITH_NO_FINDING:
        return None
    return cut.altered("negation_added", at, at, "without") if _is_affirmed(cut, at) else None


def _pair(cut: Cut, at: int) -> Alteration | None:
    denied = _PAIRS.get(f"{cut.folded(at)} {cut.folded(at + 1)}")
    if denied is None or is_negation(cut.words, at - 1) or cut.folded(at - 2) in NEGATIONS:
        return None
    return cut.altered("negation_added", at, at + 1, denied)


def _past(cut: Cut, at: int) -> Alteration | None:
    """Make "he did not take" of "he took"."""
    base = _PAST.get(cut.folded(at))
    is_told = cut.folded(at - 1) in _WHO and cut.touches(at) and cut.folded(at - 2) not in _WHEN
    if base is None or not is_told or not _is_affirmed(cut, at):
        return None
    return cut.altered("negation_added", at, at, f"did not {base}")


def _given(cut: Cut, at: int) -> Alteration | None:
    """Make "antibiotics not given." of "antibiotics given."."""
    ends = at + 1 == len(cut.words) or not cut.touches(at + 1)
    clause = [cut.folded(before) for before in range(max(0, at - _LONGEST_SUBJECT), at)]
    if cut.folded(at) not in _GIVEN or not ends or not cut.touches(at) or at == 0 or _AUXILIARIES & set(clause):
        return None
    if cut.folded(at - 1) in _ENDS_PHRASE or cut.folded(at - 1).endswith("ly") or is_negation(cut.words, at - 1):
        return None
    return cut.altered("negation_added", at, at, f"not {cut.written(at)}")


def _contracted(cut: Cut, at: int) -> Alteration | None:
    """Make "he's not diabetic" of "he's diabetic"."""
    is_short = cut.folded(at) in _IS_SHORT and cut.written(at)[-2:].lower() in {"'s", "\u2019s"}
    return (
        cut.altered("negation_added", at, at, f"{cut.written(at)} not") if is_short and _is_affirmed(cut, at) else None
    )


_ADDED_BY: Final[tuple[_Rule, ...]] = (_there, _auxiliary, _finding, _with, _pair, _past, _given, _contracted)
