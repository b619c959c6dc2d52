"""Eight secrets to plant, and a search for them that is not taken in by quoting, encoding or cutting."""

import base64
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import quote, unquote_plus

_PIECE = 8
"""So many characters in a row of a secret are a leak."""


@dataclass(frozen=True)
class Secret:
    """One planted text; its pieces must look like nothing that SAFE says of its own accord."""

    name: str
    text: str

    @cached_property
    def pieces(self) -> frozenset[str]:
        """What to look for in a text in small letters."""
        return frozenset(_runs(self.text.lower(), _PIECE)) | frozenset(_runs(self.text.encode().hex(), 2 * _PIECE))

    @cached_property
    def encoded_pieces(self) -> frozenset[str]:
        """What to look for in a text as it is: base64, whose letters depend on what stood before."""
        return frozenset(run for form in _base64_forms(self.text.encode()) for run in _runs(form, _PIECE + 2))


def _runs(text: str, length: int) -> Iterator[str]:
    return (text[start : start + length] for start in range(max(1, len(text) - length + 1)))


def _base64_forms(octets: bytes) -> Iterator[str]:
    """Give the letters that the octets alone decide, for each of the three places they may begin at."""
    for before in range(3):
        whole = base64.b64encode(b"\0" * before + octets).decode().rstrip("=")
        letters = whole[-(-before * 8 // 6) : len(whole) - 1]
        yield letters
        yield letters.replace("+", "-").replace("/", "_")


SASL_PASSWORD = Secret("SASL password", "Vq7!kTz2#Lw9/Xr4Jd")
TOKEN = Secret("token of the expectations", "Hb5Yg8.NcQ3_sWu6-PzK")
KEY = Secret("key of the certificate", "Mx4tRj9Fv2ZpQb7LkD8w")
BEARER = Secret("bearer in a variable of others", "Gn6cUe3Ks8TyHv5Bq2Xa")
USERINFO = Secret("userinfo of a URL", "Wd8:fJ@3/Rk7%Zm2?Tq9")
ENVIRONMENT = Secret("secret in the environment", "Pz3vNh6+Lc9=Yt4/Gs7b")
OUTPUT = Secret("text of an output", "Kf2wXq8 Zj5mVb9 Ud7r")
TEST_ID = Secret("test_id of a dead letter", "Ty9hBw4-Qx6nRz3-Jm8c")
ALL = (SASL_PASSWORD, TOKEN, KEY, BEARER, USERINFO, ENVIRONMENT, OUTPUT, TEST_ID)

OF_OTHERS: Mapping[str, str] = {
    "AUTHORIZATION": f"Bearer {BEARER.text}",
    "AWS_SECRET_ACCESS_KEY": ENVIRONMENT.text,
    "HTTP_PROXY": f"http://someone:{quote(ENVIRONMENT.text, safe='')}@127.0.0.1:9",
}
"""Variables that are not SAFE's, and none of its business."""


def with_userinfo(url: str) -> str:
    """Put a user and the planted password into a URL."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://reader:{quote(USERINFO.text, safe='')}@{rest}"


def leaks(*texts: str | bytes) -> list[str]:
    """Name the secrets that the texts hold, whole or in part, plain or encoded."""
    return [secret.name for secret in ALL if any(_holds(text, secret) for text in texts)]


def _holds(text: str | bytes, secret: Secret) -> bool:
    told = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    if any(piece in told for piece in secret.encoded_pieces):
        return True
    return any(piece in form.lower() for form in _unquoted(told) for piece in secret.pieces)


def _unquoted(text: str) -> Iterator[str]:
    """Give a text as it is, and as it was before a URL or a string literal held it."""
    yield text
    once = unquote_plus(text)
    yield once
    yield unquote_plus(once)
    yield _ESCAPE.sub(lambda found: chr(int(found[1] or found[2], 16)), text).replace("\\", "")


_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})|\\x([0-9a-fA-F]{2})")
