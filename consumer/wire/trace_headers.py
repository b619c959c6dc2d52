"""Headers that tell where an output came from: its trace (W3C Trace Context) and the CloudEvent that caused it."""

import re

from consumer.wire.headers import text_of
from consumer.wire.record import KafkaHeaders

_TRACEPARENT = "traceparent"
_TRACESTATE = "tracestate"
_CAUSATION = "ce_causationid"
# W3C Trace Context: version (not ff), trace and parent (neither all 0), flags. What a later version may add after these
# is unknown, and not carried.
_VALID_PARENT = re.compile(rb"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
# Up to 32 members `key=value`, in printable ASCII without further commas and equals signs, at most 512 bytes in all.
_MEMBER = rb"[a-z0-9][a-z0-9_\-*/@]{0,255}=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{1,256}"
_VALID_STATE = re.compile(_MEMBER + rb"(?:[ \t]*,[ \t]*" + _MEMBER + rb"){0,31}")
_LONGEST_STATE = 512
_LONGEST_ID = 256


def traced(headers: KafkaHeaders, source: KafkaHeaders) -> KafkaHeaders:
    """The headers, with the trace of the source record: its `traceparent`, and its `tracestate` beside a valid one.

    An invalid header is dropped. Of several of a name, the last counts.
    """
    trace = {name: content for name, content in source if name in (_TRACEPARENT, _TRACESTATE)}
    parent, state = trace.get(_TRACEPARENT), trace.get(_TRACESTATE)
    if parent is None or _VALID_PARENT.fullmatch(parent) is None:
        return headers
    if state is None or len(state) > _LONGEST_STATE or _VALID_STATE.fullmatch(state) is None:
        return [*headers, (_TRACEPARENT, parent)]
    return [*headers, (_TRACEPARENT, parent), (_TRACESTATE, state)]


def caused_by(headers: KafkaHeaders, event_id: str | None) -> KafkaHeaders:
    """The headers, with the id of the CloudEvent that a record was made of; None, or an odd one, adds nothing."""
    if not event_id or len(event_id) > _LONGEST_ID or not event_id.isprintable():
        return headers
    return [*headers, (_CAUSATION, event_id.encode())]


def passed_on(headers: KafkaHeaders, scored: KafkaHeaders) -> KafkaHeaders:
    """The headers of a result, with the trace and the cause that its scored record has."""
    return caused_by(traced(headers, scored), text_of(scored, _CAUSATION))
