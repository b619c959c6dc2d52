"""docs/reference/metrics.md lists every metric of a worker, and is what would be generated now."""

import os
import re

import pytest

from tests.support.golden import UPDATE
from tests.support.kafka_broker import PROJECT
from tests.support.metrics_page import metrics_page
from tests.support.promql import alerts, metrics_in

PAGE = PROJECT / "docs" / "reference" / "metrics.md"


def test_the_page_is_what_would_be_generated_now() -> None:
    made = metrics_page()
    if os.environ.get(UPDATE) == "1":
        PAGE.write_text(made, encoding="utf-8")
        pytest.fail(f"{PAGE.name} was rewritten: read what `git diff docs` shows, then run without {UPDATE}")
    assert PAGE.read_text(encoding="utf-8") == made, f"it differs from what is made now; run with {UPDATE}=1"


def test_every_alert_reads_a_metric_of_the_page() -> None:
    named = set(re.findall(r"\[(Safe\w+)\]", PAGE.read_text(encoding="utf-8")))
    of_prometheus_alone = {
        name for name, rules in alerts().items() if all(metrics_in(rule["expr"]) == {"up"} for rule in rules)
    }
    assert named == alerts().keys() - of_prometheus_alone
    assert of_prometheus_alone == set()
