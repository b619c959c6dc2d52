"""Words that carry grammar instead of content; general and clinical English."""

from safe_core.diagnosis.words import by_spelling, stem, word_set

_ARTICLES = "a an the this that these those his her its their our my your such any some x"
_PREPOSITIONS = (
    "of in on at to for with by from into onto about as per via upon over through towards toward along among around "
    "across between near off out up until till during"
)
_CONJUNCTIONS = (
    "and or also both either plus then than so but yet while whilst although though who whom whose which where when "
    "there here it he she they him them we i you rather instead"
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
# Words of content that a note may leave out: "aspirin was started" is "aspirin". Those of one line say the same.
WEAK_WORDS = {
    stem(word): words.split()[0]
    for words in (
        "give administer receive get provide supply infuse inject transfuse",
        "start begin commence initiate",
        "make do perform carry complete",
        "place insert put apply fit left",
        "arrange book order",
        "see note observe audible visible",
        "feel have develop",
        "need require",
        "use take",
        "measure read weigh",
        "ask request",
        *("set", "run", "go", "produce", "obtain", "follow"),
        "each every all own same",
        "old aged age",
        *("then", "also", "now", "still", "already", "again", "well", "very", "subsequently", "total"),
        "room side level count condition reading value result",
        "last persist continue stay throughout",
        *("fall drop", "rise", "against"),
    )
    for word in words.split()
}
FOUND_WORDS = word_set("found detected identified present confirmed seen shown revealed grew grown isolated positive")
"""What is "positive" is said to be there: "positive for benzodiazepines", "benzodiazepines were found"."""
RELATION_WORDS = word_set("before after since prior following preceding earlier later within under once pre post")
SAME_ORDER = by_spelling({"after": "post following once", "before": "pre prior preceding"})
"""A relation → the one that says the same: "post-dialysis" is "after dialysis"."""

STATES = word_set("on off up down in out")
"""What they say at the end of a clause is a state: "the brake was on", "bed rails up"."""
PHRASAL_VERBS = word_set(
    "come comes came go goes went gone get gets got give gives gave given take takes took taken put puts set sets turn "
    "turns look looks sat sit sits stood stand stands carry carries run runs ran fall falls fell fallen break breaks "
    "broke broken bring brings brought pick picks hold holds held cut let make makes made move moves wake wakes woke "
    "rise fill fills grow grows grew grown show shows throw threw thrown log logs call calls point slow slows cool "
    "back end ends pull pulls push step steps hand send sends sent pass write wrote written drop drops shut blow work "
    "works wear wears wore follow follows check checks later further early so far from over it him her them me us"
)
"""After them, such a word is a part of what is done: "the fever went down", "followed up"."""
