"""Words that carry grammar instead of content, and words that deny each other; general and clinical English."""

from safe_core.diagnosis.words import by_spelling, stem, word_set

_DENYING_PREFIXES = ("un", "in", "im", "ir", "il", "non", "ab", "dis")
_DENYING_SUFFIX = "less"
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
        "before prior | after following",
    )
    for ones, others in (line.split(" | "),)
    for one in ones.split()
    for other in others.split()
}
_SHORTEST = 4  # letters of the word that is denied


def are_opposites(one: str, other: str) -> bool:
    """Tell whether one folded word is the other with a denying prefix or suffix, or means the opposite."""
    return _denies(one, other) or _denies(other, one) or are_antonyms(one, other) or _are_turned(one, other)


def are_antonyms(one: str, other: str) -> bool:
    """Tell whether two folded words, or inflections of them, stand against each other in the table."""
    pair = stem(one), stem(other)
    return pair in _ANTONYMS or pair[::-1] in _ANTONYMS


def _are_turned(one: str, other: str) -> bool:
    """Tell whether two words differ by a turned prefix alone: hypertension, hypotension."""
    for pair in _TURNED_PREFIXES:
        for front, back in (pair, pair[::-1]):
            rest = one.removeprefix(front)
            if one.startswith(front) and len(rest) >= _SHORTEST and stem(back + rest) == stem(other):
                return True
    return False


def _denies(longer: str, word: str) -> bool:
    if len(word) < _SHORTEST or len(longer) <= len(word):
        return False
    if any(longer == prefix + word for prefix in _DENYING_PREFIXES):
        return True
    return longer.endswith(_DENYING_SUFFIX) and stem(longer.removesuffix(_DENYING_SUFFIX)) == stem(word)


_ARTICLES = "a an the this that these those his her its their our my your such any some"
_PREPOSITIONS = (
    "of in on at to for with by from into onto about as per via upon over through towards toward along among around "
    "across between near off out up until till during"
)
_CONJUNCTIONS = (
    "and or also both either plus then than so but yet while whilst although though who whom whose which where when "
    "there here it he she they him them we i you"
)
_CAUSES = "due because secondary owing attributed attributable"
_AUXILIARIES = (
    "is are was were be been being am has have had having do does did done will would shall should can could able "
    "get got gets became become becomes only just"
)
_LIGHT_VERBS = (
    "take takes took taken taking place perform performs performed performing undergo undergoes underwent undergoing "
    "cause caused causing lead leads led leading result results resulted resulting occur occurs occurred occurring "
    "conduct conducts conducted conducting carry carries carried carrying schedule schedules scheduled scheduling "
    "plan plans planned planning done"
)
_LEAD_INS = (
    "present presents presented presenting presentation report reports reported reporting note notes noted noting "
    "show shows showed shown showing reveal reveals revealed revealing exhibit exhibits exhibited exhibiting "
    "demonstrate demonstrates demonstrated demonstrating display displays displayed displaying "
    "describe describes described describing document documents documented documenting "
    "observe observes observed observing find finds found finding findings experience experiences experienced "
    "experiencing sustain sustains sustained sustaining suffer suffers suffered suffering "
    "identify identified identifies include includes included including complain complains complained complaining "
    "remain remains remained remaining appear appears appeared appearing indicate indicates indicated indicating "
    "state states stated stating record recorded involve involves involved involving diagnose diagnosed patient pt "
    "bring brings brought bringing come comes came coming attend attends attended attending"
)

CONNECTIVES = frozenset(f"{_ARTICLES} {_PREPOSITIONS} {_CONJUNCTIONS} {_CAUSES} {_AUXILIARIES}".split())
LEAD_IN_WORDS = frozenset(f"{_LEAD_INS} {_LIGHT_VERBS}".split())
RELATION_WORDS = word_set("before after since prior following preceding earlier later within under once")

NOT_WORDS = word_set(
    "not never cannot dont doesnt didnt isnt arent wasnt werent hasnt havent hadnt wont cant couldnt wouldnt shouldnt"
)
DENIALS = word_set(
    "without absence absent denies denied denying deny negative lack lacks lacked lacking unable inability non"
)
"""What "not" takes back: "not without pain" is no negation."""
NEGATIONS = NOT_WORDS | DENIALS | word_set("no none neither nor nil excluded")
PRIVATIONS = word_set("loss lost missing deprived devoid")
"""They deny nothing by themselves, but may say what a denial says: "lack of", "loss of"."""
AFFIRMATIONS = word_set("positive presence admitted admits")
"""Their loss changes nothing, their opposite does."""

# A doubt or a certainty → the words that say it.
CERTAINTY_CLASSES = by_spelling(
    {
        "suspected": "suspect suspects suspected suspecting suspicion suspicious",
        "possible": "possible possibly possibility potential potentially may might could questionable query",
        "probable": "probable probably probability likely likelihood presumed presumably presumptive",
        "unlikely": "unlikely",
        "apparent": "apparent apparently seemingly seems seemed",
        "uncertain": "uncertain unclear equivocal",
        "sign": "suggest suggests suggested suggesting suggestive indicative consistent compatible concern concerns "
        "concerning",
        "risk": "risk",
        "developing": "developing evolving",
        "impending": "impending imminent threatened incipient",
        "confirmed": "confirm confirms confirmed confirming definite definitely established proven certainly",
        "approximate": "approximately approximate about around roughly nearly almost estimated",
    }
)

STOPPED = word_set("vs dr mr mrs ms approx eg ie cf")
"""Abbreviations whose full stop ends no sentence."""

# The usual abbreviations of clinical notes, and what they stand for in words.
ABBREVIATIONS = by_spelling(
    {
        "ED": "ed|er|emergency department|emergency room|accident and emergency",
        "OR": "operating room|operating theatre|operating theater",
        "ICU": "icu|itu|intensive care unit|intensive therapy unit",
        "CT": "ct|computed tomography",
        "MRI": "mri|magnetic resonance imaging",
        "ECG": "ecg|ekg|electrocardiogram",
        "GCS": "gcs|glasgow coma scale|glasgow coma score",
        "BP": "bp|blood pressure",
        "HR": "hr|heart rate",
        "RR": "rr|respiratory rate",
        "GP": "gp|general practitioner",
        "DVT": "dvt|deep vein thrombosis",
        "UTI": "uti|urinary tract infection",
    },
    separator="|",
)
