"""Words that deny each other: by how they are built, stable and unstable, or by what they mean, open and closed."""

from safe_core.diagnosis.words import stem

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
