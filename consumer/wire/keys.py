"""Keys of records, written and parsed."""

from functools import lru_cache

from consumer.wire.headers import Undecodable


def _part(text: str) -> str:
    return text.replace("%", "%25").replace("/", "%2F") if "%" in text or "/" in text else text


def key_of(*parts: str) -> str:
    """A key of parts, each escaped (contract.md, "Topics and keys")."""
    return "/".join(map(_part, parts))


@lru_cache(maxsize=4_096)
def batch_key(concern_id: str, batch_id: str) -> str:
    """Key of results and reports, `<concern>/<batch>`; it alone decides the partition."""
    return key_of(concern_id, batch_id)


def event_key(batch_id: str, test_id: str) -> bytes:
    """Key of an input event, `<batch>/<test>`."""
    return key_of(batch_id, test_id).encode()


_CASE_SLASHES = 2


def case_key(concern_id: str, batch_id: str, test_id: str) -> str:
    """Key of scored records and rows, `<concern>/<batch>/<test>`."""
    key = f"{concern_id}/{batch_id}/{test_id}"
    if "%" in key or key.count("/") != _CASE_SLASHES:
        return key_of(concern_id, batch_id, test_id)
    return key  # nothing to escape, as in nearly all


PROGRESS_KEY = b"progress"
"""Key of a partition's progress row: without a slash, so that no batch or case can have it."""
MARK_KEY = b"mark"
"""Key of the tombstone that a new owner of the changelog writes first, so that a restore knows where to end."""


def parts_of(key: bytes) -> tuple[str, ...]:
    """The parts of a key as they were before escaping: one for progress, two for a batch, three for a case."""
    try:
        text = key.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Undecodable("a key is not UTF-8") from error
    parts = text.split("/")
    return tuple(parts if "%" not in text else (part.replace("%2F", "/").replace("%25", "%") for part in parts))
