"""No command tells a secret, whatever is wrong with its settings or its files; and the search for leaks finds them."""

import base64
import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
import structlog

from consumer.cli.main import main
from tests.support.secrecy import (
    ALL,
    ENVIRONMENT,
    KEY,
    OF_OTHERS,
    OUTPUT,
    SASL_PASSWORD,
    TEST_ID,
    TOKEN,
    USERINFO,
    Secret,
    leaks,
    with_userinfo,
)

Json = Any

# --- the search -------------------------------------------------------------------------------------------------------


def inside(text: str) -> str:
    """As a log line might hold it."""
    return f'{{"level": "info", "event": "opening {text} at 07:30"}}'


# how a secret may come to be written
FORMS: Mapping[str, Callable[[str], str]] = {
    "as it is": lambda text: text,
    "the first half": lambda text: text[: len(text) // 2],
    "the second half": lambda text: text[len(text) // 2 :],
    "in capitals": lambda text: text.upper(),
    "in a URL": lambda text: quote(text, safe=""),
    "in a query": quote_plus,
    "in a URL in a URL": lambda text: quote(quote(text, safe=""), safe=""),
    "in JSON, escaped": lambda text: "".join(f"\\u{ord(letter):04x}" for letter in text),
    "as the repr of bytes": lambda text: repr(text.encode()),
    "in base64": lambda text: base64.b64encode(text.encode()).decode(),
    "in base64, behind a user": lambda text: base64.b64encode(f"reader:{text}".encode()).decode(),
    "in base64, behind one letter": lambda text: base64.urlsafe_b64encode(f"x{text}yz".encode()).decode(),
    "in hexadecimal": lambda text: text.encode().hex(),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("secret", ALL, ids=lambda secret: secret.name)
def test_a_planted_leak_is_found_in_every_form(secret: Secret, form: str) -> None:
    told = inside(FORMS[form](secret.text))
    assert leaks(told) == leaks("nothing", told.encode()) == [secret.name]


def test_nothing_is_found_where_nothing_was_planted() -> None:
    assert leaks(inside("nothing"), json.dumps(dict(os.environ)), Path(__file__).read_bytes()) == []
    assert len({piece for secret in ALL for piece in secret.pieces}) == sum(len(secret.pieces) for secret in ALL)


# --- commands ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Attempt:
    """A command with something wrong in its variables or files, and its exit code."""

    arguments: tuple[str, ...]
    code: int = 3
    variables: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str | bytes] = field(default_factory=dict)


CONFIG = ("config", "show")
BROKER = {
    "SAFE_V0_KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1",  # nobody listens there
    "SAFE_V0_START_PATIENCE_SECONDS": "1",
    "SAFE_V0_HTTP_ADDRESS": "127.0.0.1:0",
}
LOGIN = BROKER | {
    "SAFE_V0_KAFKA_SECURITY_PROTOCOL": "SASL_PLAINTEXT",
    "SAFE_V0_KAFKA_SASL_MECHANISM": "SCRAM-SHA-512",
    "SAFE_V0_KAFKA_SASL_USERNAME": "safe",
    "SAFE_V0_KAFKA_SASL_PASSWORD": SASL_PASSWORD.text,
}
SERVICE = {"SAFE_V0_EXPECTATIONS": with_userinfo("http://127.0.0.1:9/base")}
BY_TOKEN = {"SAFE_V0_EXPECTATIONS": "http://127.0.0.1:9/base", "SAFE_V0_EXPECTATIONS_TOKEN": TOKEN.text}
TLS = {
    **BROKER,
    **BY_TOKEN,
    "SAFE_V0_KAFKA_SECURITY_PROTOCOL": "SSL",
    "SAFE_V0_KAFKA_SSL_CERTFILE": "cert.pem",
    "SAFE_V0_KAFKA_SSL_KEYFILE": "key.pem",
}
FILE = "safe.config.json"


def pem(kind: str, body: str) -> str:
    return f"-----BEGIN {kind}-----\n{body}\n-----END {kind}-----\n"


def served(value: str) -> dict[str, str]:
    return BROKER | {"SAFE_V0_EXPECTATIONS": value}


PASSWORD = quote(USERINFO.text, safe="")
SETTINGS: dict[str, Attempt] = {
    "all is right, as a table": Attempt(CONFIG, 0, LOGIN | BY_TOKEN),
    "all is right, as JSON": Attempt((*CONFIG, "--format", "json"), 0, LOGIN | SERVICE),
    "nobody listens, and a URL holds a password": Attempt(("worker",), 3, LOGIN | SERVICE),
    "nobody listens, and a token is set": Attempt(("worker",), 3, LOGIN | BY_TOKEN),
    "a password that would not be used": Attempt(("worker",), 3, LOGIN | {"SAFE_V0_KAFKA_SECURITY_PROTOCOL": "SSL"}),
    "a mechanism that nobody knows": Attempt(("worker",), 3, LOGIN | {"SAFE_V0_KAFKA_SASL_MECHANISM": "NONE"}),
    "a URL with a bad port": Attempt(("worker",), 3, served(f"http://reader:{PASSWORD}@127.0.0.1:99999/x")),
    "a URL with half an address": Attempt(("worker",), 3, served(f"http://reader:{PASSWORD}@[::1/x")),
    "a URL of another scheme": Attempt(("worker",), 3, served(f"ftp://reader:{PASSWORD}@host/x")),
    "a URL without a host": Attempt(("worker",), 3, served(f"http://reader:{PASSWORD}@/x")),
    "a password that is not quoted in the URL": Attempt(("worker",), 3, served(f"http://reader:{USERINFO.text}@h/x")),
    "a token in the query of a URL": Attempt(("worker",), 3, served(f"http://host/x?token={TOKEN.text}")),
    "a token in the fragment of a URL": Attempt(("worker",), 3, served(f"http://host/x#{TOKEN.text}")),
    "a URL with a slip in its scheme": Attempt(CONFIG, 0, served(f"http:/reader:{PASSWORD}@host/x")),
    "a URL without a scheme": Attempt(CONFIG, 0, served(f"reader:{PASSWORD}@host/x")),
    "a password in an address": Attempt(CONFIG, 3, {"SAFE_V0_HTTP_ADDRESS": f"safe:{PASSWORD}@127.0.0.1:1"}),
    "a password in the file of another setting": Attempt(
        CONFIG, 3, {"SAFE_V0_SECRETS_DIR": "."}, {"SAFE_V0_BATCH_TTL_SECONDS": SASL_PASSWORD.text}
    ),
    "a password among the brokers": Attempt(
        ("worker",), 3, {"SAFE_V0_KAFKA_BOOTSTRAP_SERVERS": f"127.0.0.1:1,safe:{PASSWORD}@127.0.0.1:2"}
    ),
    "a variable with a slip in its name": Attempt(CONFIG, 3, {"SAFE_V0_KAFKA_SASL_PASSWORT": SASL_PASSWORD.text}),
    "a file with a slip in its name": Attempt(
        CONFIG, 3, {"SAFE_V0_SECRETS_DIR": "."}, {"SAFE_V0_EXPECTATION_TOKEN": TOKEN.text}
    ),
    "a secret that is no text": Attempt(
        CONFIG,
        3,
        {"SAFE_V0_SECRETS_DIR": "."},
        {"SAFE_V0_KAFKA_SASL_PASSWORD": b"\xff" + SASL_PASSWORD.text.encode()},
    ),
    "a token that is a list": Attempt(CONFIG, 3, files={FILE: json.dumps({"expectationsToken": [TOKEN.text]})}),
    "a file that breaks off at a token": Attempt(CONFIG, 3, files={FILE: f'{{"expectationsToken": "{TOKEN.text}'}),
    "a file that is no text": Attempt(
        CONFIG, 3, files={FILE: b'{"expectationsToken": "\xff' + TOKEN.text.encode() + b'"}'}
    ),
    "a token that is given twice": Attempt(
        CONFIG, 3, files={FILE: f'{{"expectationsToken": "{TOKEN.text}", "expectationsToken": "{TOKEN.text}"}}'}
    ),
    "a key with a slip in its name": Attempt(CONFIG, 3, files={FILE: json.dumps({"expectationToken": TOKEN.text})}),
    "TLS files that are not there": Attempt(("worker",), 3, TLS),
    "a key that is no key": Attempt(
        ("worker",), 3, TLS, {"cert.pem": pem("CERTIFICATE", "AAAA"), "key.pem": pem("PRIVATE KEY", KEY.text)}
    ),
    "a key in the place of a certificate": Attempt(
        ("worker",), 3, TLS | {"SAFE_V0_KAFKA_SSL_CAFILE": "key.pem"}, {"cert.pem": "x", "key.pem": KEY.text}
    ),
}


@pytest.fixture(autouse=True)
def loggers_as_they_were() -> Iterator[None]:
    """A command takes the process's logging in hand; the next test is another process's."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.captureWarnings(capture=False)
    structlog.reset_defaults()


Said = Callable[[Attempt], str]


@pytest.fixture
def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Said:
    """Run a command with every secret around it, and return what it says."""
    for name in [name for name in os.environ if name.startswith("SAFE_V0_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)

    def run(attempt: Attempt) -> str:
        for name, content in attempt.files.items():
            file = tmp_path / name
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(content if isinstance(content, bytes) else content.encode())
        for name, value in {**OF_OTHERS, "SAFE_V0_LOG_LEVEL": "debug", **attempt.variables}.items():
            monkeypatch.setenv(name, value)
        code = main(attempt.arguments)
        told = "".join(capfd.readouterr())
        assert code == attempt.code, told
        return told

    return run


@pytest.mark.parametrize("sentence", SETTINGS)
def test_no_setting_is_refused_with_a_secret(sentence: str, said: Said) -> None:
    assert leaks(said(SETTINGS[sentence])) == []


CASES = json.dumps(
    {
        "test_cases": [
            {
                "test_id": "t",
                "concern_id": "C",
                "expectations": {"signal_generation": {"must_find_signals": ["fever"]}},
            }
        ]
    }
)
HELD = {"cases/C_b.json": CASES}
SCORE = ("score", "-c", "C", "-b", "C_b", "-t", "cases", "-i", "run.json")
ANSWER = {"signals": [OUTPUT.text], "summary": OUTPUT.text, "raw_input": OUTPUT.text}
HIDDEN_CASES = f'{{"test_cases": [{{"test_id": "{TEST_ID.text}"'


def answered(output: Json, **more: Json) -> dict[str, str]:
    """The run of a prompt, beside its test cases."""
    return HELD | {"run.json": json.dumps({"raw_results": [{"test_id": "t", "engine_output": output, **more}]})}


COMMANDS: dict[str, Attempt] = {
    "an output that scores": Attempt(SCORE, 1, files=answered(ANSWER)),
    "an output that is a text": Attempt(SCORE, files=answered(OUTPUT.text)),
    "an output with a list for a text": Attempt(SCORE, files=answered({"summary": [OUTPUT.text]})),
    "an output with a number among texts": Attempt(SCORE, files=answered({"signals": [OUTPUT.text, 7]})),
    "a report that breaks off": Attempt(SCORE, files=HELD | {"run.json": f'{{"raw_results": ["{OUTPUT.text}'}),
    "a report that is a text": Attempt(SCORE, files=HELD | {"run.json": json.dumps(OUTPUT.text)}),
    "results that are a text": Attempt(SCORE, files=HELD | {"run.json": json.dumps({"raw_results": OUTPUT.text})}),
    "a report that is no text": Attempt(SCORE, files=HELD | {"run.json": b"\xff" + OUTPUT.text.encode()}),
    "test cases that break off": Attempt(SCORE, files=answered(ANSWER) | {"cases/C_b.json": HIDDEN_CASES}),
    "a gate on no report": Attempt(("gate", "run.json"), files={"run.json": json.dumps({"report_type": OUTPUT.text})}),
    "a comparison of no reports": Attempt(
        ("compare", "run.json", "run.json"), files={"run.json": f'{{"results": "{OUTPUT.text}'}
    ),
    "a proof of no report": Attempt(
        ("verify", "run.json", "-t", "cases", "-i", "run.json"),
        files=HELD | {"run.json": json.dumps({"results": [OUTPUT.text]})},
    ),
    "flaws of test cases that break off": Attempt(("lint", "cases"), 1, files={"cases/x.json": HIDDEN_CASES}),
    "events for nobody": Attempt(
        ("publish", "run.jsonl"),
        3,
        LOGIN,
        {"run.jsonl": json.dumps({"test_id": TEST_ID.text, "batch_id": "b", "output": ANSWER})},
    ),
    "dead letters of nobody": Attempt(("dead-letters", "list"), 3, LOGIN),
    "topics at nobody": Attempt(("topics", "create"), 3, LOGIN),
}


@pytest.mark.parametrize("sentence", COMMANDS)
def test_no_command_tells_a_secret(sentence: str, said: Said) -> None:
    assert leaks(said(COMMANDS[sentence])) == []


@pytest.mark.parametrize("level", ["debug", "info"])
def test_no_defect_of_ours_tells_a_secret(level: str, said: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    everything = " ".join(secret.text for secret in ALL)

    def defective(*_: object) -> None:
        cause = KeyError(everything)
        cause.add_note(everything)
        raise ExceptionGroup(everything, [ValueError(everything)]) from cause

    monkeypatch.setattr("consumer.settings.load", defective)
    told = said(Attempt(CONFIG, 3, {"SAFE_V0_LOG_LEVEL": level}))
    assert "unexpected ExceptionGroup" in told
    assert leaks(told) == []


def test_every_command_had_the_secrets_of_others_in_its_environment() -> None:
    assert leaks(*OF_OTHERS.values()) == ["bearer in a variable of others", ENVIRONMENT.name]
