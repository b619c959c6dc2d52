"""The README of the chart: its values as a table, made of the comments in values.yaml."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import yaml

_KEY = re.compile(r"( *)([A-Za-z]+):")
# Shown as a whole: their keys are those of Kubernetes.
_WHOLE = ("resources", "podSecurityContext", "securityContext", "dashboard.labels", "grafana.alerts.labels")
_HEAD = """# The chart of SAFE

This chart runs `safe worker` on Kubernetes 1.27 or newer. It needs Helm 3 or 4.
[docs/how-to/install.md](../../docs/how-to/install.md#the-chart) says
how to build the image, what the chart needs, and what it does not do.

```bash
helm upgrade --install safe charts/safe --namespace scoring --create-namespace --values values.yaml
```

`ci/` has sample values for common setups: in an umbrella chart, on OpenShift, with KEDA, with Argo CD, and without
internet access.

## Values

`image.repository`, `config.kafkaBootstrapServers` and, unless `role` is `aggregator`, `config.expectations` are
required. `config` takes every setting of [docs/reference/configure.md](../../docs/reference/configure.md).

| value | default | meaning |
|---|---|---|
"""


class Value(NamedTuple):
    """A key with the keys that it stands under, and what the comment above it says."""

    path: str
    comment: str


def values_with_comments(text: str) -> Iterator[Value]:
    """Every key of values.yaml that is not part of a default, in order."""
    above: list[str] = []
    comments: list[str] = []
    for line in text.splitlines():
        found = _KEY.match(line)
        if found:
            depth = len(found[1]) // 2
            above[depth:] = [found[2]]
            path = ".".join(above)
            if not path.startswith(tuple(f"{whole}." for whole in _WHOLE)):
                yield Value(path, " ".join(comments))
            comments = []
        elif line.strip().startswith("# "):
            comments.append(line.strip().removeprefix("# ").strip())
        else:
            comments = []


def _default(values: Mapping[str, Any], path: str) -> Any:
    value: Any = values
    for key in path.split("."):
        value = value[key]
    return value


def _cell(path: str, value: Any) -> str:
    if isinstance(value, Mapping) and value and path not in _WHOLE:
        return ""
    return f"`{json.dumps(value, ensure_ascii=False)}`"


def chart_page(text: str) -> str:
    """Make the page from the text of values.yaml."""
    values = yaml.safe_load(text)
    rows = [
        (f"`{path}`", _cell(path, _default(values, path)), comment.replace("|", r"\|"))
        for path, comment in values_with_comments(text)
    ]
    return _HEAD + "".join(f"| {' | '.join(row)} |\n" for row in rows)
