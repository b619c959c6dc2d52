"""Whether an output was made from the narrative of its own test case (contract.md, "The right patient")."""

import hashlib
import re
from collections.abc import Collection, Mapping
from functools import lru_cache

_STATED = re.compile("sha256:[0-9a-f]{64}")


class InvalidDigest(ValueError):
    """A text that stands where the digest of a narrative belongs, and is none."""

    def __init__(self) -> None:
        super().__init__('is not "sha256:" followed by 64 lowercase hex digits')


def narrative_of(case: object) -> str | None:
    """Give the narrative of a test case as it stands in a batch file: what the prompt is told; None if it has none."""
    narrative = case.get("patient_payload") if isinstance(case, Mapping) else None
    return narrative if isinstance(narrative, str) and narrative.strip() else None


def digest_of_narrative(narrative: object) -> str | None:
    """Give `sha256:` and the hash of a narrative, whatever its white space; None if it is no text, or blank."""
    if not isinstance(narrative, str):
        return None
    return (_remembered_digest if len(narrative) <= _LONGEST_REMEMBERED else _digest)(narrative)


def _digest(narrative: str) -> str | None:
    words = narrative.split()
    if not words:
        return None
    return "sha256:" + hashlib.sha256(" ".join(words).encode(errors="surrogatepass")).hexdigest()


_LONGEST_REMEMBERED = 4_096  # characters
_remembered_digest = lru_cache(maxsize=4_096)(_digest)  # the same cases are answered again and again


def stated_digest(value: object) -> str | None:
    """Read a digest that is sent instead of a narrative; None if it is no text, or blank. Raises InvalidDigest."""
    if not isinstance(value, str) or not value.strip():
        return None
    if not _STATED.fullmatch(value):
        raise InvalidDigest
    return value


def narrative_read(event: Mapping[str, object], output: object) -> str | None:
    """Give the digest of the narrative that a model read: of the output's `raw_input`, else the event's `input_digest`.

    None where neither tells; raises InvalidDigest.
    """
    stated = stated_digest(event.get("input_digest"))
    if isinstance(output, (dict, Mapping)) and "raw_input" in output:  # dict first: that is asked more quickly
        return digest_of_narrative(output["raw_input"]) or stated
    return stated


def do_inputs_match(read: str | None, told: Collection[str]) -> bool | None:
    """Tell whether the narrative that a model read is one that the holders of the test case tell; None: not known.

    Both are given as digests. `told` holds those of all holders that tell any (contract.md, "The right patient").
    """
    return None if read is None or not told else read in told
