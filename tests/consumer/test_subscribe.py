"""The page for services that subscribe shows the very examples that are run, and names what there is."""

import re
from pathlib import Path

from consumer.dead_letter_reasons import Poison
from consumer.settings import Settings
from consumer.wire.dead_letter import dead_letter_headers
from tests.support.chain import Written

ROOT = Path(__file__).parents[2]
SHIPPED = ROOT / "consumer" / "examples" / "subscriber"
PAGE = (ROOT / "docs" / "how-to" / "subscribe.md").read_text(encoding="utf-8")
EXAMPLES = [
    ("python", "receive_results.py"),
    ("typescript", "typescript/publish-outputs.ts"),
    ("typescript", "typescript/receive-results.ts"),
    ("typescript", "typescript/score-run.ts"),
]


def test_the_blocks_of_the_page_are_the_files_that_run() -> None:
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    code = [(language, block) for language, block in blocks if language != "bash"]
    assert code == [(language, (SHIPPED / path).read_text(encoding="utf-8")) for language, path in EXAMPLES]


def test_every_example_is_on_the_page() -> None:
    sources = {
        path.relative_to(SHIPPED).as_posix()
        for path in SHIPPED.glob("**/*.[pt][ys]")
        if "node_modules" not in path.parts
    }
    assert sources == {path for _, path in EXAMPLES}


def test_topics_and_headers_are_named_as_they_are() -> None:
    settings = Settings()
    names = (settings.result_topic, settings.report_topic, settings.dead_letter_topic, settings.scored_topic)
    assert not [name for name in names if f"`{name}`" not in PAGE]
    record, poison = Written("t", 0, 0, None, None, ()), Poison("not_utf8", "byte 0")
    ours = dead_letter_headers(record, poison, stage="scorer", group="g", version="0.1.0", failed_at=0)
    headers = [name.removeprefix("safe.dlq") for name, _ in ours]
    assert not [name for name in headers if f"`{name}`" not in PAGE and f"`safe.dlq{name}`" not in PAGE]


def test_the_example_in_python_is_short() -> None:
    assert len((SHIPPED / "receive_results.py").read_text(encoding="utf-8").splitlines()) <= 30
