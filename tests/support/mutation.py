"""Inputs that nobody should write, made from those that somebody does: by bytes, structure, header, all seeded."""

import gzip
import json
import random
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from tests.support.cases import POISON, WrittenBatch, encoded, make_batches, make_event
from tests.support.fuzzing import CANARY, NOW, PIECE, Case

Json = Any
Header = tuple[str, bytes | None]

LIMIT = 1_048_576
_LARGE_SHARE = 0.02
"""So many of the cases may grow beyond a piece, up to the limit of a value and a little more."""

# --- what is put in ---------------------------------------------------------------------------------------------------

TOKENS: tuple[bytes, ...] = (
    *(b'"', b"'", b"{", b"}", b"[", b"]", b":", b",", b"\\", b"/", b"//", b"/*", b"#", b" ", b"\t", b"\n", b"\r\n"),
    *(b"null", b"true", b"false", b"NaN", b"Infinity", b"-Infinity", b"-0", b"1e999", b"-1e999", b"1e-400", b"5e-324"),
    *(b"9007199254740993", b"18446744073709551616", b"9" * 5_000, b"0" * 30, b"0x1F", b"1.", b".5", b"+1", b"01"),
    *(b"\\ud800", b"\\udc00", b"\\ud83d\\ude00", b"\\uDBFF", b"\\u0000", b"\\u001b", b"\\x41", b"\\", b'\\"', b"\\ud8"),
    *(b"\xef\xbb\xbf", b"\xff\xfe", b"\x00", b"\x00\x00\xfe\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80"),
    *(b"\x80", b"\xc3", b"\xe2\x82", b"\x1b]0;", b"\x7f", b"\xc2\x9b", b"\xe2\x80\xae", b"\xe2\x80\xa8"),
    *(b"[" * 70, b'{"a":' * 70, b"]" * 70, b"[" * 2_000, b'"test_id":"x",', b'"output":null', b'"x":1,"x":1'),
    *("\u0300\u0327".encode() * 40, "\ufdfa".encode() * 20, "İ".encode(), "ß".encode(), "ς".encode(), "ﬀ".encode()),
    *(b"2026-11-21T20:00:00Z", b"0000-00-00T00:00:00Z", b"9999-12-31T23:59:59-23:59", CANARY.encode()),
)

# Each gives a text; the larger ones are drawn as often as the others, for they are what takes time.
TEXTS: tuple[Callable[[random.Random, int], str], ...] = (
    lambda rng, _: rng.choice(["", " ", "\u2003", "x", "Unknown", "../../etc/passwd", "%2e%2e%2f", "a/b%c", "=1+1"]),
    lambda rng, _: rng.choice(
        ["\ud800", "\udfff\ud800", "\x00", "a\nb", "\x1b]0;", "\x9b", "\u202e", "\u200d", "\ufeff"]
    ),
    lambda rng, _: rng.choice(["İ", "ı", "ß", "ẞ", "ς", "Σ", "ΑΣ", "ﬀ", "ŉ", "ǰ", "ΐ", "\u0130\u0307", "\U0001f469"]),
    lambda rng, _: rng.choice(["1970-01-01T00:00:00Z", "2016-12-31T23:59:60Z", "2026-02-30T00:00:00Z", "9999-12-31"]),
    lambda _, most: CANARY * (1 + most // 1_000),
    lambda rng, most: "\u0300\u0327" * rng.randint(1, most // 4 + 1),
    lambda rng, most: "a\u0301\u0327" * rng.randint(1, most // 5 + 1),
    lambda rng, most: "\ufdfa" * rng.randint(1, most // 3 + 1),
    lambda rng, most: "İ" * rng.randint(1, most // 2 + 1),
    lambda rng, most: "x" * rng.randint(1, most + 1),
    lambda rng, most: "ab" * rng.randint(1, most // 2 + 1),
    lambda rng, most: " " * rng.randint(1, most + 1),
    lambda rng, most: "Σ" * rng.randint(1, most // 2 + 1),
    lambda rng, most: "".join(chr(rng.randint(1, 0xD7FF)) for _ in range(rng.randint(1, min(most, 600) + 1))),
    lambda rng, most: "".join(rng.choice("aAxXßİς \u0300") for _ in range(rng.randint(1, min(most, 2_000) + 1))),
)

# Each gives a node of another type.
NODES: tuple[Callable[[random.Random, int], Json], ...] = (
    lambda rng, _: rng.choice([None, True, False, 0, -1, 1.5, -0.0, 2**53 + 1, 2**64, 10**40, float("nan"), 1e308]),
    lambda rng, most: rng.choice(TEXTS)(rng, most),
    lambda rng, most: [rng.choice(TEXTS)(rng, most // 8) for _ in range(rng.randint(0, 8))],
    lambda rng, most: {rng.choice(TEXTS)(rng, most // 8): 1 for _ in range(rng.randint(0, 4))},
    lambda rng, most: [[]] * rng.randint(0, most // 4 + 1),
    lambda rng, most: [str(at) for at in range(rng.randint(0, most // 8 + 1))],
    lambda rng, most: {f"k{at}": None for at in range(rng.randint(0, most // 12 + 1))},
    lambda rng, _: _nested(rng.choice([2, 60, 62, 63, 64, 65, 66, 255, 900]), rng.choice("[{")),
    lambda rng, most: [rng.choice(["x", "ß", "é"]) * rng.randint(1, 30) for _ in range(rng.randint(0, most // 40 + 1))],
)

HEADERS: tuple[Header, ...] = (
    *(("ce_specversion", version) for version in (b"1.0", b"0.3", b"2.0", b"", b"\xff", None, b"1.0 ")),
    *(("ce_type", type_) for type_ in (b"generation.output", b"other", b"", b"\xff", None)),
    *(("content-type", type_) for type_ in (b"application/cloudevents+json", b"application/json", b"\xff", b"", None)),
    ("Content-Type", b" APPLICATION/CLOUDEVENTS+JSON; charset=utf-8"),
    ("CE_SPECVERSION", b"1.0"),
    ("ce_id", CANARY.encode()),
    ("safe.dlq.reason", CANARY.encode()),
    ("safe.dlq.detail", None),
    ("safe.dlq.", b""),
    ("SAFE.dlq.reason", b"\xff\xfe"),
    ("safe.schema", b"9" * 30),
    ("traceparent", b"00-" + b"z" * 60),
    ("", b""),
    ("\u0300" * 50, b"\x00" * 500),
    ("\ufeffce_specversion", b"1.0"),
)

TIMESTAMPS = (-1, 0, NOW, NOW + 10**12, 2**63 - 1, -(2**63))


def _nested(depth: int, bracket: str) -> Json:
    node: Json = []
    for _ in range(depth - 1):
        node = [node] if bracket == "[" else {"a": node}
    return node


# --- where it all begins ----------------------------------------------------------------------------------------------


def seeds(seed: int) -> tuple[Case, ...]:
    """Give good events in every envelope, and one input of each kind that is known to be bad."""
    rng = random.Random(seed)
    batches = make_batches(seed, batches=3, cases_a_batch=4)
    good = [case for batch in batches for case in _good(rng, batch)]
    files = [encoded(batch.document) for batch in batches]
    odd = [Case(value, rng.choice(files)) for value in (*POISON, *_bad_values(good[0].value or b""))]
    scored_otherwise = [replace(good[0], expectations=_dumps(each)) for each in _odd_batches(rng, batches[0])]
    return (*good, *odd, *scored_otherwise)


def _good(rng: random.Random, batch: WrittenBatch) -> Iterator[Case]:
    expectations = encoded(batch.document)
    for case in batch.cases:
        event = make_event(rng, case, run_id="r1", size=rng.choice([500, 1_300, 4_000]))
        event["generated_at"] = "2026-11-21T20:00:00.5+01:00"
        event["output"] = {**(event["output"] or {}), "raw_input": CANARY}
        plain = Case(encoded(event), expectations)
        envelope = {"specversion": "1.0", "type": "generation.output", "id": "1", "source": "/x", "data": event}
        yield plain
        yield replace(plain, headers=(("ce_specversion", b"1.0"), ("ce_type", b"generation.output"), ("ce_id", b"1")))
        yield replace(plain, value=encoded(envelope), headers=(("content-type", b"application/cloudevents+json"),))


def _bad_values(good: bytes) -> Iterator[bytes | None]:
    """Give what producers get wrong, one of each kind; the mutations make the rest of them."""
    yield from (
        None,
        good + good,
        good + b" x",
        b"\xef\xbb\xbf" + good,
        good[: len(good) // 2],
        b"\x00\x00\x00\x00\x07" + good,
    )
    yield from (good.decode().encode(name, "replace") for name in ("utf-16", "utf-32", "latin-1"))
    yield from (gzip.compress(good, mtime=0), zlib.compress(good), b"[" * 100_000, b'{"a":' * 100_000)
    yield from (good.replace(b'"', b"'"), good[:-1] + b",}", b"// x\n" + good, good.replace(b" ", b"\n"))
    yield from (_with(good, member) for member in _MEMBERS)
    yield from (good[:-1] + b" " * (LIMIT - len(good) + more) + b"}" for more in (0, 1))


_MEMBERS = (
    b'"x":NaN',
    b'"x":1e999',
    b'"x":-1e-400',
    b'"x":' + b"9" * 5_000,
    b'"x":"\\ud800"',
    b'"x":"a\tb"',
    b'"x":1,"\\u0078":2',
    b'"test_id":"T"',
    b'"x":' + b"[" * 63 + b"]" * 63,
    b'"x":' + b"[" * 64 + b"]" * 64,
    b'"x":"' + b"[{" * 5_000 + b'"',
    b'"x":"' + b"\\\\" * 20_000 + b'"',
    b'"x":[' + b",".join([b'"\\ud83d\\ude00"'] * 2_000) + b"]",
)


def _with(good: bytes, member: bytes) -> bytes:
    return good[:-1] + b"," + member + b"}"


def _odd_batches(rng: random.Random, batch: WrittenBatch) -> Iterator[Json]:
    """Give batch files whose terms are many, long, strange or none."""
    for terms in (
        [],
        ["x"],
        [" "],
        [7],
        ["\ud800"],
        ["İ", "ß", "ẞ", "ς", "ΑΣ", "ﬀ", "i\u0307", "ss", "FF"],
        [f"a sign of the number {at}" for at in range(3_000)],
        ["fever"] * 10_000,
        ["fever"] * 10_001,
        ["a\u0300\u0327" * 5_000, "\ufdfa" * 5_000],
        ["".join(rng.choice("ab") for _ in range(rng.randint(1, 12))) for _ in range(4_000)],
    ):
        sections = {
            "signal_generation": {"must_find_signals": terms},
            "followup_questions": {"forbidden_terms": terms[: 10_000 // 3] if len(terms) < 10_000 else []},
            "event_summary": {"must_contain_phrases": terms[:5] if len(terms) < 10_000 else []},
        }
        cases = [{**case.entry, "expectations": sections} for case in batch.cases[: 2 if len(terms) > 100 else None]]
        yield {**batch.document, "test_cases": cases}
    first, second = (case.entry for case in batch.cases[:2])
    yield {"test_cases": [first, {**second, "test_id": first["test_id"]}]}  # ambiguous
    larger = {"signal_generation": {"must_find_signals": [f"{at:0110d}" for at in range(9_900)]}}
    yield {"test_cases": [{**first, "expectations": larger}]}  # no scored record can hold them


def _dumps(document: Json) -> bytes:
    """Write a document, lone surrogates in the way that bytes can hold."""
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


# --- mutations --------------------------------------------------------------------------------------------------------


class Mutator:
    """Makes one case out of others; the same random numbers make the same case."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def mutated(self, case: Case, others: Sequence[Case]) -> Case:
        """Change a case in one to six ways, most often its value."""
        rng = self._rng
        most = LIMIT + 1_000 if rng.random() < _LARGE_SHARE else PIECE - 4_000
        for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 6))):
            change = rng.choices(*_CHANGES)[0]
            case = change(self, case, rng.choice(others), most)
        return case

    def value_by_bytes(self, case: Case, other: Case, most: int) -> Case:
        """Change some bytes of the value."""
        return replace(case, value=self._bytes(case.value or b"", other.value or b"", most))

    def value_by_structure(self, case: Case, other: Case, most: int) -> Case:
        """Change a node of the value, if it is JSON."""
        return replace(case, value=self._structure(case.value or b"", other.value or b"", most))

    def expectations_by_structure(self, case: Case, other: Case, most: int) -> Case:
        """Change a node of the batch file."""
        return replace(case, expectations=self._structure(case.expectations, other.expectations, most))

    def expectations_by_bytes(self, case: Case, other: Case, most: int) -> Case:
        """Change some bytes of the batch file."""
        return replace(case, expectations=self._bytes(case.expectations, other.expectations, most))

    def echo(self, case: Case, other: Case, most: int) -> Case:
        """Put terms of the expectations, in other letters, into a text of the output."""
        document, terms = _parsed(case.value or b""), list(_strings(_parsed(case.expectations)))
        output = document.get("output") if isinstance(document, dict) else None
        if not isinstance(output, dict) or not terms:
            return self.value_by_structure(case, other, most)
        rng = self._rng
        words = rng.choice((" ", "", "\u0300", "\u2003")).join(
            rng.choice((str.upper, str.lower, str.title, str.swapcase, str.strip))(term)
            for term in rng.choices(terms, k=rng.randint(1, 8))
        )[:most]
        output[rng.choice(("signals", "followup_questions"))] = [words]
        output["summary"] = words
        return replace(case, value=_dumps(document))  # as deep as it was, or it would not have been parsed

    def envelope(self, case: Case, other: Case, _most: int) -> Case:
        """Add, drop or borrow headers; now and then a thousand of them."""
        rng = self._rng
        headers = [
            *case.headers,
            *rng.choices(HEADERS, k=rng.randint(0, 3)),
            *(other.headers if rng.random() < 0.2 else ()),
        ]
        rng.shuffle(headers)
        kept = headers[: rng.randint(0, len(headers))] if rng.random() < 0.3 else headers
        return replace(case, headers=tuple(kept * (1_000 if rng.random() < 0.01 else 1))[:4_000])

    def frame(self, case: Case, other: Case, _most: int) -> Case:
        """Change key and timestamp."""
        rng = self._rng
        keys = (None, b"", b"\xff\xfe", CANARY.encode(), other.key, rng.randbytes(rng.randint(0, 300)))
        return replace(case, key=rng.choice(keys), timestamp=rng.choice(TIMESTAMPS))

    def elsewhere(self, case: Case, other: Case, _most: int) -> Case:
        """Look for the test case in another batch file."""
        return replace(case, expectations=other.expectations)

    # --- bytes

    def _bytes(self, raw: bytes, other: bytes, most: int) -> bytes:
        rng = self._rng
        start, end = sorted((rng.randint(0, len(raw)), rng.randint(0, len(raw))))
        if rng.random() < 0.7:  # near changes leave more of the input intact
            end = min(end, start + rng.randint(0, 16))
        return rng.choice(_EDITS)(rng, raw, start, end, other, most)[: most + 1]

    # --- structure

    def _structure(self, raw: bytes, other: bytes, most: int) -> bytes:
        document = _parsed(raw)
        places = list(_places(document))
        if not places or len(places) > 50_000:
            return self._bytes(raw, other, most)
        rng = self._rng
        holder, place = rng.choice(places)
        if rng.random() < 0.1:
            return _key_twice(raw, place)
        if rng.random() < 0.15:
            del holder[place]
        else:
            holder[place] = self._node(holder[place], other, most)
        try:
            return _dumps(document) if rng.random() < 0.9 else json.dumps(document).encode()
        except RecursionError:  # one nest in another
            return self._bytes(raw, other, most)

    def _node(self, node: Json, other: bytes, most: int) -> Json:
        rng = self._rng
        small = most // rng.choice((1, 10, 100, 1_000))
        if rng.random() < 0.1:
            borrowed = list(_places(_parsed(other)))
            if borrowed:
                holder, place = rng.choice(borrowed)
                return holder[place]
        if isinstance(node, str) and rng.random() < 0.5:
            return rng.choice(TEXTS)(rng, small) if rng.random() < 0.5 else node + rng.choice(TEXTS)(rng, small)
        return rng.choice(NODES)(rng, small)


_EDITS: tuple[Callable[[random.Random, bytes, int, int, bytes, int], bytes], ...] = (
    lambda rng, raw, start, _end, _other, _most: raw[:start] + bytes([rng.randrange(256)]) + raw[start + 1 :],
    lambda rng, raw, start, _end, _other, _most: raw[:start] + rng.choice(TOKENS) + raw[start:],
    lambda rng, raw, start, end, _other, _most: raw[:start] + rng.choice(TOKENS) + raw[end:],
    lambda _rng, raw, start, end, _other, _most: raw[:start] + raw[end:],
    lambda _rng, raw, start, end, _other, _most: raw[:end] + raw[start:end] + raw[end:],
    lambda _rng, raw, start, _end, _other, _most: raw[:start],
    lambda rng, raw, start, end, other, _most: raw[:start] + other[rng.randint(0, len(other)) :][:2_000] + raw[end:],
    lambda rng, raw, start, end, _other, most: (
        raw[:start]
        + raw[start:end] * rng.randint(2, max(2, most // (end - start + 1) // rng.choice((1, 50))))
        + raw[end:]
    ),
    lambda rng, raw, start, end, _other, _most: (
        raw[:start] + bytes(rng.sample(list(raw[start:end]), end - start)) + raw[end:]
    ),
)

_CHANGES: tuple[tuple[Callable[[Mutator, Case, Case, int], Case], ...], tuple[int, ...]] = (
    (
        Mutator.value_by_bytes,
        Mutator.value_by_structure,
        Mutator.expectations_by_structure,
        Mutator.expectations_by_bytes,
        Mutator.echo,
        Mutator.envelope,
        Mutator.frame,
        Mutator.elsewhere,
    ),
    (26, 30, 14, 4, 10, 8, 4, 4),
)


def _parsed(raw: bytes) -> Json:
    try:
        return json.loads(raw.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        return None


def _places(document: Json) -> Iterator[tuple[Json, Json]]:
    """Give each node as its holder and its place in it."""
    waiting = [document]
    while waiting:
        node = waiting.pop()
        keys = list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
        for key in keys:
            yield node, key
            waiting.append(node[key])


def _strings(document: Json) -> Iterator[str]:
    return (holder[place] for holder, place in _places(document) if isinstance(holder[place], str) and holder[place])


def _key_twice(raw: bytes, place: Json) -> bytes:
    """Write a key of an object a second time, before the first."""
    key = json.dumps(str(place), ensure_ascii=False).encode("utf-8", "surrogatepass")
    return raw.replace(key, key + b":null," + key, 1)
