"""The program `safe`: one function for each command, and one place that turns every failure into a sentence and a code.

What a command needs is imported when it runs, so that help is printed at once.
"""
# ruff: noqa: PLC0415

import asyncio
import errno
import io
import json
import os
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from consumer import __version__
from consumer.cli import options
from consumer.errors import ConfigurationError, SafeError

if TYPE_CHECKING:
    from consumer.settings import Loaded

EXIT_ERROR: Final = 3  # 1 and 2 are verdicts on cases (contract.md, "Exit codes")
EXIT_INTERRUPTED: Final = 130
EXIT_BROKEN_PIPE: Final = 141

_EXAMPLES: Final = """Examples:

\b
  safe demo                                             see it run, without Kafka
  safe topics create --bootstrap-servers broker:9092    create the topics
  safe worker --bootstrap-servers broker:9092 --expectations ./cases
  safe score -c I25 -b "I25_batch_*" -i run.json -t ./test-cases -o report.json
  safe gate report.json --min-pass-rate 0.8             in CI: exit 1 below 80 %
  safe publish run.json --test-dir ./test-cases         send a report's outputs as events
  safe config show                                      each setting and where it came from

A flag beats its environment variable (SAFE_V0_…), which beats its key in safe.config.json."""

app = typer.Typer(
    name="safe",
    help="Score LLM outputs for clinical review with SAFE v0: as they arrive in Kafka, or from files.",
    epilog=_EXAMPLES,
    rich_markup_mode=None,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
topics = typer.Typer(help="Create the topics that the worker needs.", rich_markup_mode=None)
config = typer.Typer(help="Show the settings and where they come from.", rich_markup_mode=None)
app.add_typer(topics, name="topics")
app.add_typer(config, name="config")
dead_letters = typer.Typer(help="List and show dead letters, and send them again.", rich_markup_mode=None)
app.add_typer(dead_letters, name="dead-letters")


@app.callback(invoke_without_command=True)
def safe(
    *,
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Print the version or, if no command is given, the help."""
    if version:
        typer.echo(f"safe {__version__}")
        raise typer.Exit
    _help_without_command(context)


@topics.callback(invoke_without_command=True)
@config.callback(invoke_without_command=True)
@dead_letters.callback(invoke_without_command=True)
def _help_without_command(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command(cls=options.Once, short_help="Score outputs from Kafka as they arrive.")
def worker(
    *,
    role: Annotated[options.Role, typer.Option(help="Which stages to run.")] = "all",
    bootstrap_servers: options.Servers = None,
    expectations: options.Expectations = None,
    group_id: options.GroupId = None,
    delivery: options.Delivery = None,
    http_address: options.HttpAddress = None,
    strict_ah: options.StrictAH = False,
    log_level: options.LogLevel = None,
    log_format: options.LogFormat = None,
    config_file: options.ConfigFile = None,
) -> int:
    """Score outputs from Kafka as they arrive, until a signal stops the worker.

    Examples:

    \b
      safe worker --bootstrap-servers broker:9092 --expectations ./cases
      safe worker --role aggregator
    """
    loaded = _load_for_kafka(
        kafka_bootstrap_servers=bootstrap_servers,
        expectations=expectations,
        kafka_group_id=group_id,
        delivery=delivery,
        http_address=http_address,
        ah_strict=strict_ah or None,
        log_level=log_level,
        log_format=log_format,
        config=config_file,
    )
    if role != "aggregator":
        loaded.require("expectations")
    from consumer.worker.main import run_worker

    return run_worker(loaded, role)


@topics.command(cls=options.Once, short_help="Create the topics that are missing.")
def create(
    *,
    partitions: Annotated[int, typer.Option(min=1, help="Partitions of each topic.")] = 8,
    replication_factor: Annotated[int, typer.Option(min=1, help="Copies of each partition.")] = 1,
    bootstrap_servers: options.Servers = None,
    config_file: options.ConfigFile = None,
) -> None:
    """Create the topics that are missing, and report existing topics that are set up wrongly.

    Example:

    \b
      safe topics create --bootstrap-servers broker:9092 --partitions 16 --replication-factor 3
    """
    loaded = _load_for_kafka(kafka_bootstrap_servers=bootstrap_servers, config=config_file)
    from consumer.kafka.topics import create_topics

    for line in asyncio.run(create_topics(loaded.settings, partitions, replication_factor)):
        typer.echo(line)


@app.command(cls=options.Once, short_help="Send outputs from files as input events.")
def publish(
    *,
    paths: Annotated[list[Path], typer.Argument(help="factory-cli reports, or JSONL files of events.")],
    batch: Annotated[
        str | None,
        typer.Option("--batch", "-b", help="Which batches of --test-dir, as a glob; or the name of one batch."),
    ] = None,
    test_dir: options.TestDir = None,
    on_duplicate: options.OnDuplicateOption = None,
    whole_output: Annotated[
        bool, typer.Option("--whole-output", help="Send each output in full, including the patient's narrative.")
    ] = False,
    run: Annotated[
        str | None, typer.Option(help="The run_id; default: derived from the file's name and content.")
    ] = None,
    bootstrap_servers: options.Servers = None,
    config_file: options.ConfigFile = None,
) -> int:
    """Send outputs from files to Kafka as input events, as a producer would.

    Examples:

    \b
      safe publish report.json --test-dir ./test-cases --batch "I25_batch_*"
      safe publish events.jsonl --run nightly-7
    """
    loaded = _load_for_kafka(kafka_bootstrap_servers=bootstrap_servers, config=config_file)
    from consumer.files.outputs import open_all
    from consumer.files.publish_outputs import Destination, plan, publish_events

    planned = plan(
        open_all(paths),
        Destination.of(batch, test_dir or loaded.settings.expectations_folder),
        on_duplicate=on_duplicate,
        whole_output=whole_output,
        run=run,
        max_value_bytes=loaded.settings.max_value_bytes,
    )
    return publish_events(loaded.settings, planned)


@app.command(cls=options.Once, name="publish-cases", short_help="Copy test cases from batch files to their topic.")
def publish_cases_(
    *,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of batch files, <batch_id>.json.")],
    topic: Annotated[
        str | None, typer.Option(metavar="NAME", help="The topic to write; default: the one in SAFE_V0_EXPECTATIONS.")
    ] = None,
    batch: options.Batch = "*",
    with_narrative: Annotated[
        bool,
        typer.Option(
            "--with-narrative", help="Send each test case in full, including the patient's narrative (patient data)."
        ),
    ] = False,
    prune: Annotated[bool, typer.Option("--prune", help="Also remove batches that are not in DIR.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print what would change.")] = False,
    bootstrap_servers: options.Servers = None,
    config_file: options.ConfigFile = None,
) -> int:
    """Copy test cases from batch files to their topic: new and changed ones are sent, deleted ones are removed.

    All changes of a batch take effect together. Only the fields that scoring reads are sent, not the narrative.

    Examples:

    \b
      safe publish-cases ./test-cases --topic safe.v0.test-cases
      safe publish-cases ./test-cases --batch "I25_batch_*" --dry-run
    """
    where = None if topic is None else f"topic:{topic}"
    loaded = _load_for_kafka(kafka_bootstrap_servers=bootstrap_servers, expectations=where, config=config_file)
    from consumer.files.publish_cases import publish_cases

    return asyncio.run(
        publish_cases(loaded.settings, folder, batch=batch, with_narrative=with_narrative, prune=prune, dry_run=dry_run)
    )


@app.command(cls=options.Once, name="score", short_help="Score outputs from files, for people and for CI.")
def score_(
    *,
    concern: options.Concern,
    batch: options.Batch,
    outputs: options.Outputs,
    test_dir: options.TestDir = None,
    output: options.OutputFiles = None,
    format_: options.Format = None,
    strict_ah: options.StrictAH = False,
    verbose: options.Verbose = False,
    explain: options.Explained = False,
    include_text: options.IncludeText = False,
    on_duplicate: options.OnDuplicateOption = None,
    min_pass_rate: options.MinPassRate = None,
    confidence: options.Confidence = None,
    fail_on: options.FailOnOption = None,
    force: options.Force = False,
    config_file: options.ConfigFile = None,
) -> int:
    """Score outputs from files: scorecard, reports, and an exit code for CI.

    Exits with 0 if all cases pass, 1 if any fails, 2 if none fails but some need review, 3 if options or files are
    wrong. With --min-pass-rate or --fail-on: 0 if these rules hold, 1 if not.

    In GitHub Actions the report is also added to the run's summary page; unset GITHUB_STEP_SUMMARY to prevent that.

    Examples:

    \b
      safe score -c I25 -b "I25_batch_*" -i run.json -t ./test-cases
      safe score -c I25 -b golden_set -i run.json -t ./test-cases -o report.json
      safe score -c I25 -b "*" -i run.json -t ./test-cases -f json | jq .summary
    """
    from consumer.offline.commands import ScoreRequest, score_command
    from consumer.offline.gate import Gate
    from consumer.settings import surroundings
    from consumer.settings.file import FILE_NAME

    loaded = _load(config=config_file, ah_strict=strict_ah or None)
    request = ScoreRequest(
        concern=concern,
        batch=batch,
        outputs=outputs,
        test_dir=_test_dir(test_dir, loaded),
        files=output or [],
        format=format_,
        on_duplicate=on_duplicate,
        gate=Gate.asked(min_pass_rate, fail_on, confidence),
        explain=("with text" if include_text else "without text") if explain or include_text else None,
        verbose=verbose,
        force=force,
        config_file=config_file or Path(FILE_NAME),
    )
    return score_command(loaded.settings, loaded.policy, surroundings(), request)


@app.command(cls=options.Once, short_help="Check whether a report is good enough.")
def gate(
    *,
    report: Annotated[Path, typer.Argument(help="A JSON report of safe score.")],
    min_pass_rate: options.MinPassRate = None,
    confidence: options.Confidence = None,
    fail_on: options.FailOnOption = None,
) -> int:
    """Check whether a report is good enough: exit 0 if it is, 1 if not, 3 if the report cannot be used.

    If --min-pass-rate and --fail-on are both given, both must hold. A pass rate equal to --min-pass-rate passes.

    Examples:

    \b
      safe gate report.json --min-pass-rate 0.8
      safe gate report.json --fail-on review
    """
    from consumer.offline.commands import gate_command
    from consumer.offline.gate import NO_CASE_FAILS, Gate

    asked = Gate.asked(min_pass_rate, fail_on, confidence)
    return gate_command(report, asked or NO_CASE_FAILS)


@app.command(cls=options.Once, short_help="Say why a test case scored as it did.")
def explain(
    *,
    tests: Annotated[
        list[str] | None,
        typer.Option("--test", metavar="ID", help="The test_id of a case in --outputs; can be repeated."),
    ] = None,
    outputs: options.OptionalOutputs = None,
    source: Annotated[
        str | None,
        typer.Option(metavar="TOPIC/PARTITION/OFFSET", help="An input record, as named in the source of a result."),
    ] = None,
    test_dir: options.TestDir = None,
    concern: options.AnyConcern = None,
    batch: options.Batch = "*",
    on_duplicate: options.OnDuplicateOption = None,
    strict_ah: options.StrictAH = False,
    bootstrap_servers: options.Servers = None,
    config_file: options.ConfigFile = None,
) -> int:
    """Say why a test case scored as it did: for each missed term, the nearest passage, where it is and what differs.

    It shows text from the output, which may contain patient data. It does not change any score.

    Examples:

    \b
      safe explain --test I25-BATCH1-004 -i run.json -t ./test-cases
      safe explain --source factory.generation.output/0/41 -t ./test-cases
    """
    from consumer.offline.explain_command import Coordinates, ExplainRequest, explain_record, explain_tests

    if source is not None and (tests or outputs):
        raise ConfigurationError("--source names one record by itself: leave --test and --outputs out")
    if source is None and not (tests and outputs):
        raise ConfigurationError("what is to be explained? Give --test with --outputs, or --source")
    coordinates = None if source is None else Coordinates.read(source)
    load = _load if coordinates is None else _load_for_kafka
    loaded = load(config=config_file, ah_strict=strict_ah or None, kafka_bootstrap_servers=bootstrap_servers)
    folder = _test_dir(test_dir, loaded)
    if coordinates is not None:
        return explain_record(loaded.settings, loaded.policy, coordinates, folder)
    request = ExplainRequest(
        test_ids=tests or [],
        concern=concern,
        batch=batch,
        outputs=outputs or [],
        test_dir=folder,
        on_duplicate=on_duplicate,
    )
    return explain_tests(loaded.policy, request)


@app.command(cls=options.Once, short_help="Find flaws in test cases.")
def lint(
    *,
    test_dir: Annotated[Path | None, typer.Argument(help="The folder of batch files.")] = None,
    concern: options.AnyConcern = None,
    batch: options.Batch = "*",
    outputs: options.OptionalOutputs = None,
    format_: options.TableOrJson = "table",
    config_file: options.ConfigFile = None,
) -> int:
    """Find flaws in test cases: terms that even a copy of the narrative would miss, repeated and contradictory terms.

    With --outputs, also terms that no run has found. Exits with 0 if there are no findings, 1 if there are some, 3 if
    files cannot be used. In GitHub Actions, findings become annotations.

    Example:

    \b
      safe lint ./test-cases --outputs run.json
    """
    from consumer.offline.pages.findings import lint_command
    from consumer.settings import surroundings

    loaded = _load(config=config_file)
    return lint_command(
        _test_dir(test_dir, loaded),
        loaded.policy,
        concern=concern,
        batch=batch,
        outputs=outputs or (),
        format_=format_,
        github_actions=surroundings().github_actions,
    )


@app.command(cls=options.Once, name="compare", short_help="Compare two reports: what got better or worse.")
def compare_(
    *,
    base: Annotated[Path, typer.Argument(help="The JSON report to compare with.")],
    new: Annotated[Path, typer.Argument(help="The JSON report of the later run.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="PATH", help="Write the comparison as Markdown for a pull request."),
    ] = None,
    fail_on_regression: Annotated[
        bool, typer.Option("--fail-on-regression", help="Exit 1 if more cases got a worse label than allowed.")
    ] = False,
    max_regressions: Annotated[
        int | None, typer.Option(min=0, help="How many such cases are allowed; default: 0.")
    ] = None,
    force: options.Force = False,
) -> int:
    """Compare two reports of safe score, over the cases that are in both.

    Example:

    \b
      safe compare main.json branch.json -o comparison.md --fail-on-regression
    """
    from consumer.offline.commands import compare_command

    if max_regressions is not None and not fail_on_regression:
        raise ConfigurationError("--max-regressions is for --fail-on-regression: give that too")
    return compare_command(base, new, output, (max_regressions or 0) if fail_on_regression else None, force=force)


@app.command(cls=options.Once, short_help="Recompute a report from its inputs.")
def verify(
    *,
    report: Annotated[Path, typer.Argument(help="A JSON report of safe score.")],
    outputs: options.Outputs,
    test_dir: options.TestDir = None,
    config_file: options.ConfigFile = None,
) -> int:
    """Recompute a report from its inputs: exit 0 if every number is the same, 1 if not, 3 if that cannot be checked.

    The scoring rules are those in the report; they are printed if they are not the default rules.

    Example:

    \b
      safe verify report.json --test-dir ./test-cases --outputs run.json
    """
    from consumer.offline.commands import verify_command

    return verify_command(report, _test_dir(test_dir, _load(config=config_file)), outputs)


@app.command(cls=options.Once, short_help="See SAFE run, without Kafka, Java or containers.")
def demo(*, keep: Annotated[bool, typer.Option("--keep", help="Keep it running until Ctrl-C.")] = False) -> int:
    """See SAFE run: a broker, topics, a worker and sample traffic, without Kafka, Java or containers."""
    from consumer.demo.run import run_demo

    return run_demo(keep=keep)


@dead_letters.command(cls=options.Once, name="list", short_help="List dead letters: why, where, when.")
def list_(
    *,
    reason: options.Reasons = None,
    partition: options.Partitions = None,
    since: options.Since = None,
    until: options.Until = None,
    after: options.After = None,
    limit: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="At most this many, the first by partition and offset.")
    ] = None,
    format_: Annotated[
        options.ShowFormat,
        typer.Option("--format", "-f", help="table is for people; json prints one object on each line."),
    ] = "table",
    summary: Annotated[bool, typer.Option("--summary", help="Only print how many there are for each reason.")] = False,
    bootstrap_servers: options.Servers = None,
    config_file: options.ConfigFile = None,
) -> int:
    """List dead letters: why, where and when they failed, but nothing of their contents.

    The list has the dead letters of all consumer groups; with --format json, each names its group.

    Examples:

    \b
      safe dead-letters list --since 2h
      safe dead-letters list --reason expectations_not_found --format json | jq -r .letter
    """
    from consumer.dead_letters.list import ListRequest, list_letters
    from consumer.dead_letters.selection import read_selection

    selection = read_selection(
        reasons=reason or (), partitions=partition or (), since=since, until=until, after=after, now_ms=_now_ms()
    )
    loaded = _load_for_kafka(kafka_bootstrap_servers=bootstrap_servers, config=config_file)
    request = ListRequest(selection, format_, limit, summary_alone=summary)
    return asyncio.run(list_letters(loaded.settings, request))


@dead_letters.command(cls=options.Once, name="show", short_help="Show one dead letter.")
def show_letter(
    *,
    letter: Annotated[
        str,
        typer.Argument(
            metavar="LETTER", help="PARTITION/OFFSET as list prints it, or its source TOPIC/PARTITION/OFFSET."
        ),
    ],
    include_value: Annotated[
        bool, typer.Option("--include-value", help="Also show key, headers and value; they may contain patient data.")
    ] = False,
    raw: Annotated[
        bool, typer.Option("--raw", help="With --include-value: write the value's bytes and nothing else.")
    ] = False,
    format_: options.TableOrJson = "table",
    bootstrap_servers: options.Servers = None,
    config_file: options.ConfigFile = None,
) -> int:
    """Show one dead letter; its contents, which may be patient data, are shown only with --include-value.

    Examples:

    \b
      safe dead-letters show 3/41
      safe dead-letters show factory.generation.output/3/1207 --include-value --raw > event.json
    """
    from consumer.dead_letters import show as showing
    from consumer.wire.dead_letter import read_name

    request = showing.ShowRequest(read_name(letter), format_, include_value=include_value, raw=raw)
    loaded = _load_for_kafka(kafka_bootstrap_servers=bootstrap_servers, config=config_file)
    return asyncio.run(showing.show_letter(loaded.settings, request))


@dead_letters.command(cls=options.Once, short_help="Send dead letters to their topics again.")
def replay(
    *,
    letters: options.Letters = None,
    reason: options.Reasons = None,
    partition: options.Partitions = None,
    since: options.Since = None,
    until: options.Until = None,
    after: options.After = None,
    every: Annotated[
        bool, typer.Option("--all", help="Send all dead letters; without it, some must be selected.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print what would be sent.")] = False,
    rate: Annotated[int, typer.Option(metavar="N", min=1, help="Send at most this many per second.")] = 500,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Do not ask for confirmation; SAFE asks only at a terminal.")
    ] = False,
    group_id: options.GroupId = None,
    bootstrap_servers: options.Servers = None,
    config_file: options.ConfigFile = None,
) -> int:
    """Send dead letters to their topics again, once the cause is fixed: for example, the test case now exists.

    Each is sent unchanged, with its original timestamp: it never replaces a newer output, and sending it twice changes
    no summary (subscribers see its result again). A record that failed because of its own bytes, such as invalid_json,
    fails again. Only dead letters of this consumer group are sent. The dead letter itself stays in its topic until
    retention removes it.

    Exits with 0 if all were sent, 1 if some cannot be sent; these are named.

    Examples:

    \b
      safe dead-letters replay --reason expectations_not_found --since 1d --dry-run
      safe dead-letters replay 3/41 3/42
    """
    from consumer.dead_letters.replay import count_letters, replay_letters
    from consumer.dead_letters.selection import Selection, read_selection

    selection = read_selection(
        names=letters or (),
        reasons=reason or (),
        partitions=partition or (),
        since=since,
        until=until,
        after=after,
        now_ms=_now_ms(),
    )
    if letters and every:
        raise ConfigurationError("--all is for all dead letters: leave it out, or the names")
    if selection == Selection() and not every:
        raise ConfigurationError(
            "which dead letters? Name some, choose by --reason, --since and the like, or give --all"
        )
    loaded = _load_for_kafka(kafka_bootstrap_servers=bootstrap_servers, kafka_group_id=group_id, config=config_file)
    if sys.stdin.isatty() and not (yes or dry_run):
        count = asyncio.run(count_letters(loaded.settings, selection))
        _ask(f"Send {count} dead letter{'' if count == 1 else 's'} again?")
    return asyncio.run(replay_letters(loaded.settings, selection, per_second=rate, dry_run=dry_run))


@config.command(cls=options.Once, short_help="Print each setting and where it came from.")
def show(
    *,
    format_: options.TableOrJson = "table",
    strict_ah: options.StrictAH = False,
    config_file: options.ConfigFile = None,
) -> None:
    """Print each setting, its value and where it came from; secrets are hidden."""
    loaded = _load(config=config_file, ah_strict=strict_ah or None)
    typer.echo(_settings_as_json(loaded) if format_ == "json" else _settings_as_table(loaded))


@config.command(cls=options.Once)
def schema() -> None:
    """Print the JSON Schema of the configuration file, for editors.

    Example:

    \b
      safe config schema > safe.config.schema.json
    """
    from consumer.settings.schema import configuration_schema

    typer.echo(json.dumps(configuration_schema(), indent=2, ensure_ascii=False))


@config.command(cls=options.Once, short_help="Print a page of all settings, as Markdown.")
def page() -> None:
    """Print every setting with its variable, key, default and meaning, as Markdown."""
    from consumer.settings.page import settings_page

    typer.echo(settings_page(), nl=False)


@app.command(cls=options.Once, name="schema", short_help="Print the JSON Schema of an event.")
def event_schema_command(
    event: Annotated[
        options.EventName, typer.Argument(help="The schema is of its data; for dead-letter, of its headers.")
    ],
) -> None:
    """Print the JSON Schema of an event's data or, for a dead letter, of its headers.

    Example:

    \b
      safe schema result > result.schema.json
    """
    from consumer.wire.event_schemas import event_schema

    typer.echo(json.dumps(event_schema(event), indent=2, ensure_ascii=False))


def _load(**flags: object) -> "Loaded":
    from consumer.settings import load

    return load(flags)


def _load_for_kafka(**flags: object) -> "Loaded":
    """Load settings that name a cluster, patch the client, and configure logging before the client logs anything."""
    from consumer.kafka.patches import install_patches
    from consumer.telemetry import logs

    loaded = _load(**flags)
    loaded.require("kafka_bootstrap_servers")
    install_patches(loaded.settings)
    logs.configure(loaded.settings.log_level, loaded.settings.log_format)
    return loaded


def _ask(question: str) -> None:
    """Ask at the terminal; typer.confirm would write to standard output, too."""
    typer.echo(f"{question} [y/N] ", nl=False, err=True)
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise typer.Abort


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _test_dir(given: Path | None, loaded: "Loaded") -> Path:
    folder = given or loaded.settings.expectations_folder
    if folder is None:
        raise ConfigurationError("where are the test cases? Give --test-dir, or SAFE_V0_EXPECTATIONS as a folder")
    return folder


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


# --- whatever happens, an exit code and at most one sentence


def main(args: Sequence[str] | None = None) -> int:
    """Run the program; returns its exit code."""
    command = typer.main.get_command(app)
    _prepare_output()
    try:
        # Not command.main(): that one answers a broken pipe with 1, which here is a verdict.
        with command.make_context("safe", list(sys.argv[1:] if args is None else args)) as context:
            code = command.invoke(context)
        sys.stdout.flush()
    except typer.Exit as leaving:
        return leaving.exit_code
    except (KeyboardInterrupt, typer.Abort):
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader has gone, as in `safe config show | head -1`; the interpreter's own flush must not complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_BROKEN_PIPE
    except Exception as error:  # noqa: BLE001 (the outer edge: whatever it is, the caller gets a sentence and a code)
        _explain(error)
        return EXIT_ERROR
    return code if isinstance(code, int) else 0


def _prepare_output() -> None:
    """Do not fail because a terminal lacks UTF-8, or because the shell has closed standard output (`>&-`)."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123 - as long as the process
    elif isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _explain(error: Exception) -> None:
    from consumer.settings import debug_is_asked_for
    from consumer.telemetry.logs import describe, exception_lines, raised_at
    from consumer.text import printable

    more: list[str] = []
    if isinstance(error, SafeError):
        sentence = str(error)
    elif isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EFBIG}:
        # Code that writes a file names it in its error; what is left is the output that the shell has opened.
        sentence = f"standard output cannot be written: {error.strerror}"
        sys.stdout = None  # else the interpreter would complain once more when it ends
    elif isinstance(error, typer.TyperException):
        sentence = _usage_problem(error)
    else:  # a defect, whose message may quote an input: only its type and its frames are shown
        sentence = f"unexpected {describe(error)} at {raised_at(error)}; SAFE_V0_LOG_LEVEL=debug shows the traceback"
        more = exception_lines(error) if debug_is_asked_for() else []
    with suppress(OSError, ValueError):  # an stderr that is full or closed must not turn 3 into the shell's 1
        typer.echo("\n".join([f"safe: error: {printable(sentence)}", *more]), err=True)


def _usage_problem(error: typer.TyperException) -> str:
    # typer exports no name for the subclasses that know their command and format their message.
    problem: str = getattr(error, "format_message", error.__str__)()
    problem = " ".join(problem.split()).replace(": Value error, ", ": ").replace(": Input should be ", ": must be ")
    command = getattr(getattr(error, "ctx", None), "command_path", "safe")
    return f"{problem.removesuffix('.')}; see {command} --help"
