"""Words that carry grammar instead of content; general English and the language of clinical notes."""

from safe_core.diagnosis.words import listed

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
RELATION_WORDS = frozenset(listed("before after since prior following preceding earlier later within under once"))

NOT_WORDS = frozenset(
    listed(
        "not never cannot dont doesnt didnt isnt arent wasnt werent hasnt havent hadnt wont cant couldnt wouldnt "
        "shouldnt"
    )
)
_DENIALS = frozenset(
    listed("without absence absent denies denied denying deny negative lack lacks lacked lacking unable inability non")
)
NEGATIONS = NOT_WORDS | _DENIALS | frozenset(listed("no none neither nor nil excluded"))
DENIALS = _DENIALS
"""What "not" takes back: "not without pain" is no negation."""
PRIVATIONS = frozenset(listed("loss lost missing deprived devoid"))
"""They deny nothing by themselves, but may say what a denial says: "lack of", "loss of"."""
AFFIRMATIONS = frozenset(listed("positive presence admitted admits"))
"""Their loss changes nothing, their opposite does."""

# A doubt or a certainty → the words that say it.
CERTAINTY_CLASSES = {
    word: name
    for name, listing in {
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
    }.items()
    for word in listing.split()
}

STOPPED = frozenset(listed("vs dr mr mrs ms approx eg ie cf"))
"""Abbreviations whose full stop ends no sentence."""

# The usual abbreviations of clinical notes, and what they stand for in words.
ABBREVIATIONS = {
    phrase: key.upper()
    for key, phrases in {
        "ed": "ed|er|emergency department|emergency room|accident and emergency",
        "or": "operating room|operating theatre|operating theater",
        "icu": "icu|itu|intensive care unit|intensive therapy unit",
        "ct": "ct|computed tomography",
        "mri": "mri|magnetic resonance imaging",
        "ecg": "ecg|ekg|electrocardiogram",
        "gcs": "gcs|glasgow coma scale|glasgow coma score",
        "bp": "bp|blood pressure",
        "hr": "hr|heart rate",
        "rr": "rr|respiratory rate",
        "gp": "gp|general practitioner",
        "dvt": "dvt|deep vein thrombosis",
        "uti": "uti|urinary tract infection",
    }.items()
    for phrase in phrases.split("|")
}
