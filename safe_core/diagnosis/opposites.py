"""Words that deny each other by how they are built: stable and unstable, pulses and pulseless."""

from safe_core.diagnosis.words import stem

_DENYING_PREFIXES = ("un", "in", "im", "ir", "il", "non", "ab", "dis")
_DENYING_SUFFIX = "less"
_SHORTEST = 4  # letters of the word that is denied


def are_opposites(one: str, other: str) -> bool:
    """Tell whether one folded word is the other with a denying prefix or suffix."""
    return _denies(one, other) or _denies(other, one)


def _denies(longer: str, word: str) -> bool:
    if len(word) < _SHORTEST or len(longer) <= len(word):
        return False
    if any(longer == prefix + word for prefix in _DENYING_PREFIXES):
        return True
    return longer.endswith(_DENYING_SUFFIX) and stem(longer.removesuffix(_DENYING_SUFFIX)) == stem(word)
