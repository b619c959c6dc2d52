"""The tutorial about Kafka, done from its first command to its last against a real broker."""

import json
import os
import re
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.documents import Block, blocks_of, lines_of, text_of
from tests.support.outside import Outgoing, Outside, Topics
from tests.support.waiting import wait_until
from tests.support.worker import Installation, running

pytestmark = pytest.mark.broker

BLOCKS = blocks_of(text_of("docs/tutorials/kafka.md"))
SECONDS = 90.0


def block_with(words: str) -> Block:
    [block] = [block for block in BLOCKS if words in block.text and block.language == "bash"]
    return block


def printed_by(installation: Installation, command: str, folder: Path) -> str:
    """What one command of the tutorial prints."""
    line = re.sub(r"^SAFE_V0_EXPECTATIONS= ", "", command)
    words = [word.strip("'") for word in line.split()]
    bare = installation if line == command else _without_cases(installation)
    done = bare.run(*words[1:], folder=folder)
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout


def _without_cases(installation: Installation) -> Installation:
    """The same where no folder of test cases says which of them exist."""
    return Installation(installation.bootstrap_servers, installation.topics, installation.group, "", {})


@contextmanager
def receiving(installation: Installation, folder: Path) -> Iterator[Path]:
    """The subscriber of the tutorial; gives the file of what it prints."""
    [line] = [line for line in lines_of(block_with("receive_results.py")) if line.startswith("python ")]
    variables = {
        "KAFKA_BROKERS": installation.bootstrap_servers,
        "RESULT_TOPIC": installation.topics.result,
        "GROUP_ID": f"g{uuid.uuid4().hex[:10]}",
    }
    log = folder / "received.log"
    with log.open("wb") as out:
        command = [sys.executable, *line.split()[1:]]
        process = subprocess.Popen(command, cwd=folder, env=os.environ | variables, stdout=out, stderr=out)
    try:
        yield log
    finally:
        process.terminate()
        process.wait(SECONDS)


def test_the_tutorial_about_kafka_works(outside: Outside, tmp_path: Path) -> None:
    settings = dict(re.findall(r"^export (\w+)=(\S+)", block_with("export ").text, re.MULTILINE))
    assert settings.keys() == {"SAFE_V0_KAFKA_BOOTSTRAP_SERVERS", "SAFE_V0_EXPECTATIONS"}
    cases = settings["SAFE_V0_EXPECTATIONS"]
    installation = Installation(outside.bootstrap_servers, Topics.fresh(), f"g{uuid.uuid4().hex[:10]}", cases)
    for line in lines_of(block_with("example story")):
        printed_by(installation, line, tmp_path)
    create, work = lines_of(block_with("safe worker"))
    assert work == "safe worker"
    printed_by(installation, create, tmp_path)
    with running(installation, tmp_path), receiving(installation, tmp_path) as log:
        [publish] = lines_of(block_with("safe publish story"))
        printed_by(installation, publish, tmp_path)
        shown = next(block for block in BLOCKS if block.language == "text").text.splitlines()
        wait_until(lambda: len(log.read_text().splitlines()) >= len(shown), within_seconds=SECONDS, what="results")
        received = log.read_text().splitlines()
        # Outputs of several partitions are counted in any order; the labels, and the last summary, are the same.
        assert sorted(line.split()[:3] for line in received) == sorted(line.split()[:3] for line in shown)
        assert received[-1].split()[3:] == shown[-1].split()[3:]
        assert _dead_letter_of_the_stray(installation, tmp_path).startswith("expectations_not_found")
        _send_the_event_of(block_with("kcat"), outside, installation.topics)
        wait_until(lambda: "ST-105" in log.read_text()[len("\n".join(received)) :], within_seconds=SECONDS, what="it")


def _dead_letter_of_the_stray(installation: Installation, folder: Path) -> str:
    echo, publish, listing = lines_of(block_with("stray.jsonl"))
    subprocess.run(["/bin/sh", "-c", echo], cwd=folder, check=True)
    printed_by(installation, publish, folder)

    def listed() -> str:
        found = re.search(r"expectations_not_found.*", printed_by(installation, listing, folder))
        return found.group() if found else ""

    wait_until(lambda: bool(listed()), within_seconds=SECONDS, what="a dead letter", every_seconds=1.0)
    return listed()


def _send_the_event_of(block: Block, outside: Outside, topics: Topics) -> None:
    """Write the event that the tutorial pipes into kcat."""
    [event] = re.findall(r"echo '(\{.*\})'", block.text)
    outside.produce(topics.input, [Outgoing(json.dumps(json.loads(event)).encode())])
