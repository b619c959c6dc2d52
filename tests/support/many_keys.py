"""JSON members with as many keys as a test needs, made in a moment: each process that collects tests makes them."""

_THOUSAND = b",".join(b'"K.%03d":0' % number for number in range(1_000))


def thousands_of_keys(thousands: int) -> bytes:
    """Return this many thousand members of a JSON object, without its braces, each with a key of its own."""
    return b",".join(_THOUSAND.replace(b"K", b"%d" % number) for number in range(thousands))
