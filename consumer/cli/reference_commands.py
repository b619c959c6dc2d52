"""`safe config show`, `schema`, `page` and `alerts`, `safe schema` and `safe example`: all that is printed to read.

What a command needs is imported when it runs, so that help is printed at once.
"""
# ruff: noqa: PLC0415

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from consumer.cli import option_groups as groups
from consumer.cli import options
from consumer.cli.app import app, command, config, load
from consumer.errors import ConfigurationError

if TYPE_CHECKING:
    from consumer.alerts.rules import Choices
    from consumer.settings import Loaded


@command(config, "Print each setting and where it came from.")
def show(
    *,
    format_: options.ConsoleOrJson = "console",
    rules: groups.RuleOptions,
) -> None:
    """Print each setting, its value and where it came from; secrets are hidden."""
    loaded = load(**rules.flags)
    typer.echo(_settings_as_json(loaded) if format_ == "json" else _settings_as_table(loaded))


@command(config)
def schema() -> None:
    """Print the JSON Schema of the configuration file, for editors.

    Example:

    \b
      safe config schema > safe.config.schema.json
    """
    from consumer.settings.schema import configuration_schema

    typer.echo(json.dumps(configuration_schema(), indent=2, ensure_ascii=False))


@command(config, "Print a page of all settings, as Markdown.")
def page() -> None:
    """Print every setting with its variable, key, default and meaning, as Markdown."""
    from consumer.settings.page import settings_page

    typer.echo(settings_page(), nl=False)


_Settings = Annotated[
    bool, typer.Option("--settings", help="For Prometheus, the file to edit: your batches and their floors.")
]
_Grafana = Annotated[bool, typer.Option("--grafana", help="Rules that Grafana itself evaluates, to provision.")]
_Datasource = Annotated[str | None, typer.Option(metavar="UID", help="The uid of Grafana's Prometheus data source.")]
_Floor = Annotated[
    float | None,
    typer.Option(metavar="RATE", parser=options.fraction, help="The pass rate below which a batch alerts, as 0.8."),
]
_Batches = Annotated[
    str | None, typer.Option(metavar="REGEX", help="Which batches to watch: matches their whole id; default: all.")
]
_Folder = Annotated[str | None, typer.Option(metavar="NAME", help="The folder in Grafana; default: SAFE.")]
_Receiver = Annotated[
    str | None, typer.Option(metavar="NAME", help="An existing contact point; else Grafana's policies apply.")
]
_Runbooks = Annotated[
    str, typer.Option(metavar="URL", help="The web address of your copy of the repository, before each runbook.")
]


@command(config, "Print the alert rules, for Prometheus or for Grafana.")
def alerts(
    *,
    settings: _Settings = False,
    grafana: _Grafana = False,
    datasource: _Datasource = None,
    floor: _Floor = None,
    batches: _Batches = None,
    folder: _Folder = None,
    receiver: _Receiver = None,
    runbooks: _Runbooks = "",
) -> None:
    """Print the alert rules for Prometheus or, with --grafana, those that Grafana itself evaluates.

    For Prometheus, print the settings too, once, and edit them: they name your batches and their floors.

    Examples:

    \b
      safe config alerts > safe-alerts.yml
      safe config alerts --settings > safe-alerts-settings.yml
      safe config alerts --grafana --datasource prometheus --floor 0.8 > safe-grafana-alerts.yml
    """
    from consumer.alerts.rules import every_prometheus_rule, grafana_rules, settings_file, with_runbooks
    from consumer.alerts.source import load as alerts_source

    chosen = {"datasource": datasource, "folder": folder, "batches": batches, "receiver": receiver}
    if settings and (grafana or runbooks):
        raise ConfigurationError("--settings prints the file to edit, which has no alerts: give it alone")
    if grafana:
        text = grafana_rules(alerts_source(), _choices(floor, **chosen))
    elif floor is not None or any(each is not None for each in chosen.values()):
        raise ConfigurationError(
            "--datasource, --floor, --batches, --folder and --receiver are for the rules of Grafana: give --grafana, "
            "too. For Prometheus, batches and floors are in the file that --settings prints"
        )
    else:
        text = settings_file() if settings else every_prometheus_rule(alerts_source())
    typer.echo(with_runbooks(text, runbooks), nl=False)


def _choices(floor: float | None, *, datasource: str | None, **others: str | None) -> "Choices":
    from consumer.alerts.rules import Choices

    if not datasource or floor is None:
        raise ConfigurationError(
            "--grafana needs --datasource UID (the end of the data source's address in Grafana) and --floor (the pass "
            "rate below which a batch alerts)"
        )
    if not 0 <= floor <= 1:
        raise ConfigurationError(f"--floor {floor:g} is not a number from 0 to 1")
    for name in ("batches", "folder"):
        if others[name] == "":
            raise ConfigurationError(f"--{name} is empty: leave it out, or name one")
    return Choices(datasource, f"{floor:.15g}", **{name: each for name, each in others.items() if each is not None})


@command(app, "Print the JSON Schema of an event.", name="schema")
def event_schema_command(
    event: Annotated[
        options.EventName,
        typer.Argument(help="The event whose schema is printed: input, result, report or dead-letter."),
    ],
) -> None:
    """Print the JSON Schema of an event's data or, for a dead letter, of its headers.

    Example:

    \b
      safe schema result > result.schema.json
    """
    from consumer.wire.event_schemas import event_schema

    typer.echo(json.dumps(event_schema(event), indent=2, ensure_ascii=False))


@command(app, "Copy files that the package ships to try SAFE on.")
def example(
    name: Annotated[
        options.ExampleName,
        typer.Argument(
            help="story: six made-up test cases, and two runs of one prompt. "
            "subscriber: programs in Python and TypeScript that receive results and publish outputs."
        ),
    ],
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Where the folder NAME is made; default: here.")
    ] = Path(),
) -> None:
    """Copy an example into a folder of its name in DIR; what is there already is never written over.

    Examples:

    \b
      safe example story .
      safe example subscriber .
    """
    from consumer.offline.example import copy_example

    typer.echo("\n".join(copy_example(name, folder)))


def _settings_as_json(loaded: "Loaded") -> str:
    document = {
        "settings": {row.name: {"value": row.value, "origin": row.origin} for row in loaded.rows()},
        "overrides": loaded.policy.configuration()["overrides"],
        "fingerprint": loaded.policy.fingerprint,
        "notes": list(loaded.notes()),
    }
    return json.dumps(document, indent=2)


def _settings_as_table(loaded: "Loaded") -> str:
    from consumer.text import printable

    overrides = loaded.policy.configuration()["overrides"]
    rows = [("SETTING", "VALUE", "ORIGIN")]
    rows += [(row.name, _cell(row.value), row.origin) for row in loaded.rows()]
    rows += [
        (f"overrides.{kind}.{name}", json.dumps(layer), "configuration file")
        for kind, layers in overrides.items()
        for name, layer in layers.items()
    ]
    widths = [min(60, max(len(row[column]) for row in rows)) for column in (0, 1)]
    lines = [f"{name:{widths[0]}}  {value:{widths[1]}}  {origin}" for name, value, origin in rows]
    notes = [f"fingerprint {loaded.policy.fingerprint}", *loaded.notes()]
    return "\n".join(printable(line) for line in [*lines, "", *notes])


def _cell(value: object) -> str:
    if value is None or value == []:
        return "-"
    return value if isinstance(value, str) else json.dumps(value)
