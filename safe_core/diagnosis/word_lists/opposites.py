"""Words that deny each other or mean the opposite; general and clinical English."""

from functools import lru_cache

from safe_core.diagnosis.words import stem, word_set

_DENYING_PREFIXES = ("un", "in", "im", "ir", "il", "non", "ab", "dis")
_DENYING_SUFFIX = "less"
_NO_DENIALS = tuple(
    word_set("discharg disorder diseas display distress dissect dislocat dismiss disclos dispos important under until")
)
_ONLY_OF_ADJECTIVES = ("in", "im", "ab")  # "intubate", "informed" and "abuse" deny nothing
_ADJECTIVE_ENDINGS = tuple(word_set("ate ent ant able ible ive al ous ete ect ure ity ence ance ile ic"))
_TURNED_PREFIXES = (("hyper", "hypo"), ("tachy", "brady"), ("pre", "post"), ("ab", "ad"))
# One side of a line against the other; inflections are told by their stems.
_ANTONYMS = {
    (stem(one), stem(other))
    for line in (
        "open | closed",
        "intact | diminished reduced decreased impaired absent lost",
        "present | absent",
        "warm hot | cold cool",
        "increased increasing elevated raised | decreased decreasing reduced lowered diminished",
        "high higher | low lower",
        "improved improving better | worsened worsening worse deteriorated deteriorating",
        "palpable | impalpable",
        "able | unable",
        "positive | negative",
        "suspected | confirmed",
        "before prior pre | after following post",
        "accepted agreed consented | refused declined",
        "halved | doubled",
        "central | peripheral",
        "arterial | venous",
        "systolic | diastolic",
        "home | hospital",
        "palm palms | sole soles",
        "arm arms | leg legs",
        "hand hands | foot feet",
        "finger fingers | toe toes",
        "pink | pale blue dusky white",
        "alert awake | drowsy asleep unconscious",
        "soft | hard rigid",
        "dry | wet moist weeping",
        "started begun commenced continued resumed restarted | stopped discontinued withdrawn withheld ceased",
        "started begun commenced resumed restarted | held paused suspended",
        "stopped discontinued withdrawn | increased reduced halved doubled",
        "started begun commenced | completed finished ended",
        "inserted placed | removed",
        "divided severed | preserved spared",
        "intact undamaged uninjured | injured injury damaged damage torn tear ruptured rupture broken cracked",
        "gained gain | lost loss",
        "rose risen increased | fell fallen dropped",
        "flexion | extension",
        "dilated | constricted",
        "sitting standing | lying supine",
        "male | female",
        "moves moving mobile mobilised | fixed immobile immobilised",
        "smooth regular | rough irregular nodular",
        "patent | occluded blocked obstructed thrombosed",
        "bounding | weak thready",
        "apposed approximated | gaping dehisced",
        "shrunk shrunken smaller | grown enlarged larger bigger",
        "functioning functional working | failed faulty broken defective",
        "distended | flat scaphoid",
        "sterile | contaminated",
        "stable | unstable deteriorating deteriorated worsening",
        "ON | OFF",
        "continued given | held paused suspended",
        "recovered | unwell relapsed",
        "UP | DOWN",
        "IN | OUT",
        "keen eager willing | reluctant unwilling hesitant",
        "stable | fell fallen dropped rose risen",
        "sharp stabbing | dull aching",
        "sudden abrupt | gradual insidious",
        "prone | supine",
        "healed closed | open unhealed",
        "visible | hidden obscured",
        "calm settled | agitated restless distressed",
        "oriented orientated | disoriented disorientated confused",
        "purulent | serous",
        "formed | loose watery",
        "productive | dry",
        "remembered remembers recalls | forgot forgotten",
        "passed | failed",
        "more | less fewer",
        "most | least",
        "most all | few",
        "part | entire whole",
        "relieved eased helped resolved | ineffective",
        "unchanged | changed improved improvement recovered recovery worsened increased decreased",
        "pending | positive negative reported",
        "given taken administered received performed done | postponed",
        "inconclusive | conclusive proving proves proved diagnostic",
        "relieved eased relieves eases | aggravated worsened exacerbated aggravates exacerbates",
        "inside | outside",
        "arrived | left departed",
        "admitted | discharged",
        "detected found identified | missed overlooked",
        "kept retained | discarded removed",
        "adequate sufficient | inadequate insufficient",
        "reassured | worried anxious",
        "mother | father",
        "son | daughter",
        "husband | wife",
        "brother | sister",
        "viable | necrotic",
        "full | empty",
        "single | multiple",
        "witnessed | unwitnessed",
        "clear | cloudy turbid",
        "sensitive susceptible | resistant",
        "normal unremarkable | reduced impaired diminished raised enlarged swollen rose risen increased elevated",
        "normal unremarkable | fell fallen dropped decreased deranged high low",
        "typical | atypical",
        "symmetrical symmetric | asymmetrical asymmetric",
        "ischaemic | haemorrhagic",
        "inspiratory inspiration | expiratory expiration",
        "sensory | motor",
        "radial | ulnar",
        "tibia tibial | fibula fibular",
        "elective planned | emergency urgent",
        "transient temporary | persistent permanent",
        "solid | cystic",
        "dilatation | stenosis",
        "fast rapid quick | slow",
        "early | late",
        "long | short",
        "large big | small little",
        "wide | narrow",
        "thick | thin",
        "strong | weak",
        "good | poor bad",
        "clean | dirty",
        "frequent | rare",
        "succeeded successful success | failed failure unsuccessful",
        "alive survived survives | dead died",
        "correct | wrong incorrect",
        "same | different",
        "general | spinal local regional",
        "nephew | niece",
        "given taken administered received | missed omitted skipped withheld",
        "approved granted | rejected",
        "allergic | tolerant",
        "attended | missed",
        "improvement | deterioration",
        "aunt | uncle",
        "wife | daughter sister",
        "husband | son brother",
        "nurse | doctor surgeon anaesthetist consultant registrar pharmacist physiotherapist porter paramedic",
        "midwife | doctor obstetrician anaesthetist consultant registrar paediatrician",
        "pharmacist physiotherapist | doctor surgeon anaesthetist consultant registrar porter paramedic",
        "pharmacist anaesthetist porter | physiotherapist",
        "anaesthetist | surgeon obstetrician",
        "registrar | consultant",
        "blunt | penetrating",
        "underweight | overweight obese",
        "singleton | twin twins",
    )
    for ones, others in (line.split(" | "),)
    for one in ones.split()
    for other in others.split()
}
_ANTONYMS_OF: dict[str, frozenset[str]] = {
    word: frozenset(pair[1 - pair.index(word)] for pair in _ANTONYMS if word in pair)
    for word in {word for pair in _ANTONYMS for word in pair}
}
_SHORTEST = 4  # letters of the word that is denied


def are_opposites(one: str, other: str) -> bool:
    """Tell whether one folded word is the other with a denying prefix or suffix, or means the opposite."""
    return _denies(one, other) or _denies(other, one) or are_antonyms(one, other) or _are_turned(one, other)


def are_antonyms(one: str, other: str) -> bool:
    """Tell whether two folded words, or inflections of them, stand against each other in the table."""
    pair = stem(one), stem(other)
    return pair in _ANTONYMS or pair[::-1] in _ANTONYMS


@lru_cache(maxsize=8192)
def opposites_of(word: str) -> frozenset[str]:
    """Give the stems of what are_opposites() takes for the opposites of a folded word."""
    prefixed = (prefix + word for prefix in _DENYING_PREFIXES if len(word) >= _SHORTEST)
    bare = (word.removeprefix(prefix) for prefix in _DENYING_PREFIXES if word.startswith(prefix))
    turned = (
        back + word.removeprefix(front)
        for pair in _TURNED_PREFIXES
        for front, back in (pair, pair[::-1])
        if word.startswith(front)
    )
    others = {stem(other) for other in (*prefixed, *bare, *turned) if are_opposites(word, other)}
    return frozenset(others | _ANTONYMS_OF.get(stem(word), frozenset()))


@lru_cache(maxsize=8192)
def denied_parts(word: str) -> tuple[str, ...]:
    """Give what a folded word may deny by a prefix: the "tolerant" of "intolerant"."""
    if word.startswith(_NO_DENIALS) or not word.startswith(_DENYING_PREFIXES):
        return ()
    parts = ((prefix, word.removeprefix(prefix)) for prefix in _DENYING_PREFIXES if word.startswith(prefix))
    return tuple(part for prefix, part in parts if len(part) + (prefix == "un") > _SHORTEST and _may_deny(prefix, part))


def _are_turned(one: str, other: str) -> bool:
    """Tell whether two words differ by a turned prefix alone: hypertension, hypotension."""
    for pair in _TURNED_PREFIXES:
        for front, back in (pair, pair[::-1]):
            rest = one.removeprefix(front)
            if one.startswith(front) and len(rest) >= _SHORTEST and stem(back + rest) == stem(other):
                return True
    return False


def _may_deny(prefix: str, word: str) -> bool:
    return prefix not in _ONLY_OF_ADJECTIVES or word.endswith(_ADJECTIVE_ENDINGS)


def _denies(longer: str, word: str) -> bool:
    if len(word) < _SHORTEST or len(longer) <= len(word):
        return False
    if longer.startswith(_NO_DENIALS):
        return False
    if any(longer == prefix + word and _may_deny(prefix, word) for prefix in _DENYING_PREFIXES):
        return True
    return longer.endswith(_DENYING_SUFFIX) and stem(longer.removesuffix(_DENYING_SUFFIX)) == stem(word)
