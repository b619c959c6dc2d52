"""What docs/how-to/install.md tells people to write works as it stands there."""

import re

import pytest
import yaml

from consumer import __version__
from tests.support.chart import NAMESPACE, rendered
from tests.support.kafka_broker import PROJECT

PAGE = (PROJECT / "docs" / "how-to" / "install.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```yaml\n(.+?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_an_example_of_values_is_one_that_the_chart_takes(example: str) -> None:
    assert rendered(yaml.safe_load(example)).one("Deployment")["metadata"]["namespace"] == NAMESPACE


def test_there_is_an_example_without_and_one_with_everything_that_needs_an_operator() -> None:
    kinds = [{document["kind"] for document in rendered(yaml.safe_load(each)).documents} for each in EXAMPLES]
    assert not kinds[0] & {"PodMonitor", "PrometheusRule"}
    assert kinds[-1] > {"PodMonitor", "PrometheusRule"}


def test_the_page_speaks_of_the_version_and_the_base_that_there_are() -> None:
    dockerfile = (PROJECT / "Dockerfile").read_text(encoding="utf-8")
    [base] = re.findall(r"^ARG BASE=(.+)$", dockerfile, re.MULTILINE)
    assert f"`{base}`" in PAGE
    assert set(re.findall(r"\$IMAGE:([\d.]+)", PAGE)) == {__version__}
