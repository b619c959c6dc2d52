"""Words that deny, doubt or affirm; general and clinical English.

`denials_in_context` decides whether one denies where it stands, `denial_scope` how far that reaches.
"""

from safe_core.diagnosis.words import by_spelling, word_set

NOT_WORDS = word_set(
    "not never cannot dont doesnt didnt isnt arent wasnt werent hasnt havent hadnt wont cant couldnt wouldnt shouldnt"
)
DENIALS = word_set(
    "without absence absent denies denied denying deny negative lack lacks lacked lacking unable inability non"
)
"""What "not" takes back: "not without pain" is no negation."""
NEGATIONS = NOT_WORDS | DENIALS | word_set("no none neither nor nil nobody nothing excluded")
PRIVATIONS = word_set("loss lost missing deprived devoid")
"""They deny nothing by themselves, but may say what a denial says: "lack of", "loss of"."""
REFUSALS = word_set("refuse refused refuses refusing refusal decline declined declines declining")
FAILURES = word_set("fail failed fails failing failure")
RULINGS = word_set("rule rules ruled ruling")
"""They deny before "out": "ruled out"."""
DENYING_AMONG_OTHERS = word_set("free rather instead unlikely excludes")
"""They deny among certain words: "free of", "rather than"."""
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
        "considered": "consider considers considered considering",
        "risk": "risk",
        "developing": "developing evolving",
        "impending": "impending imminent threatened incipient",
        "confirmed": "confirm confirms confirmed confirming definite definitely established proven certain certainly",
        "approximate": "approximately approximate about around roughly nearly almost estimated",
    }
)
