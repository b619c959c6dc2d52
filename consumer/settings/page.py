"""The page of all settings for people, in Markdown; it is committed as docs/reference/configure.md."""

import json
from collections.abc import Iterator, Mapping
from typing import Final

from consumer.settings.fields import FILE_KEYS, VARIABLES, Settings, expected
from consumer.settings.file import FILE_NAME
from consumer.settings.redaction import without_secrets
from safe_core import CRITERIA, DEFAULT_POLICY

_INTRODUCTION: Final = f"""\
# Settings

A setting may be given in several places. From the strongest to the weakest, these are: a flag, an environment variable,
a file in the secrets folder, a key in the configuration file, the default. `safe config show` prints each setting in
force and where it came from, with secrets hidden. The help of each command lists the settings for which the command has
a flag. A setting that SAFE does not know, or a value that it cannot use, stops the command with an error that names it.

The configuration file is `{FILE_NAME}` in the working directory, or what `--config` names. It is JSON, and `//`
comments are allowed. `safe config schema` prints its JSON Schema, which editors use to complete and check it. Each dot
in a key leads one level deeper: `thresholds.CR.pass` is `{{"thresholds": {{"CR": {{"pass": 0.8}}}}}}`.

Put each secret into the folder that `SAFE_V0_SECRETS_DIR` names, in a file named after its variable.

This page is the output of `safe config page`.
"""

_OVERRIDES: Final = """\
The configuration file, and only that, can set `thresholds`, `weights` and `strictAH` differently for some cases. A
setting that an override leaves out keeps its general value. An override for an archetype beats one for a metric_id, and
both beat the general settings, even those that a variable sets. Only the flag `--strict-ah` beats them all.

```json
{
  "overrides": {
    "metric_id": {"I25": {"thresholds": {"CR": {"pass": 0.9}}}},
    "archetype": {"Escalation_Tracker": {"strictAH": true}}
  }
}
```
"""

_SECTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "Scoring": (
        *("cr_", "ah_", "ac_", "lenient", "unsupported"),
        *("report_dir", "report_formats", "error_texts", "placeholder_"),
    ),
    "Kafka": ("kafka_", "secrets_", "delivery"),
    "Topics": ("input_topic", "scored_", "state_", "result_", "report_topic", "dead_letter_"),
    "Test cases": ("expectations",),
    "What is read, and how much": ("input_", "offset_", "event_", "max_value_", "max_batch_", "poison_"),
    "The process": ("batch_ttl_", "max_exported_", "http_", "start_", "shutdown_", "traces", "log_"),
}
"""The headings, and what the names of their settings begin with; a setting is under the first heading that fits."""


def settings_page() -> str:
    """Make the page from the settings themselves; each is under one heading."""
    return "\n".join([_INTRODUCTION, *(_section(heading) for heading in _SECTIONS)])


def _section(heading: str) -> str:
    names = [name for name in Settings.model_fields if _heading_of(name) == heading]
    rows = ["| variable | key in the file | value | default | |", "|---|---|---|---|---|", *map(_row, names)]
    if heading == "Scoring":
        rows += [*_weights(), "", _OVERRIDES.rstrip()]
    return "\n".join([f"## {heading}", "", *rows, ""])


def _heading_of(name: str) -> str:
    return next(heading for heading, beginnings in _SECTIONS.items() if name.startswith(beginnings))


def _row(name: str) -> str:
    field = Settings.model_fields[name]
    default = _default(without_secrets(name, field.get_default()))
    variable = f"`{VARIABLES[name]}`" if name in VARIABLES else ""
    return f"| {variable} | `{FILE_KEYS[name]}` | {expected(name)} | {default} | {field.description} |"


def _weights() -> Iterator[str]:
    for criterion in CRITERIA:
        key = f"weights.{criterion}"
        default = _default(DEFAULT_POLICY.default.settings()[key])
        yield f"|  | `{key}` | a number from 0 up | {default} | The weight of {criterion} in the composite. |"


def _default(value: object) -> str:
    if value is None or value == []:
        return ""
    return f"`{value if isinstance(value, str) else json.dumps(value)}`"
