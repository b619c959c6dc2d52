"""Commands that need a Kafka cluster: `safe worker`, `topics create`, `publish`, `publish-cases`; and `safe demo`.

What a command needs is imported when it runs, so that help is printed at once.
"""
# ruff: noqa: PLC0415

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from consumer.cli import option_groups as groups
from consumer.cli import options
from consumer.cli.app import app, command, config, load_for_kafka, topics


@command(app, "Score outputs from Kafka as they arrive.")
def worker(
    *,
    role: Annotated[
        options.Role,
        typer.Option(help="Which stages to run: scorer scores outputs, aggregator adds the scores up for each batch."),
    ] = "all",
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
    loaded = load_for_kafka(
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


@command(config, "Try the settings on the brokers and the test cases.")
def check(
    *,
    role: Annotated[options.Role, typer.Option(help="Which stages the worker would run.")] = "all",
    expectations: options.Expectations = None,
    cluster: groups.ClusterOptions,
) -> None:
    """Ask the brokers for the topics, and look up a test case, as a worker with these settings would; change nothing.

    Example:

    \b
      safe config check --bootstrap-servers broker:9092 --expectations topic:safe.v0.cases
    """
    loaded = load_for_kafka(**cluster.flags, expectations=expectations)
    if role != "aggregator":
        loaded.require("expectations")
    from consumer.worker.check import try_settings

    async def say() -> None:
        async for line in try_settings(loaded, role):
            typer.echo(line)

    asyncio.run(say())


@command(topics, "Create the topics that are missing.")
def create(
    *,
    partitions: Annotated[int, typer.Option(metavar="N", min=1, help="Partitions of each topic.")] = 8,
    replication_factor: Annotated[int, typer.Option(metavar="N", min=1, help="Copies of each partition.")] = 1,
    leave_out: Annotated[
        list[str] | None,
        typer.Option(metavar="SETTING", help="A setting of topics that the cluster refuses; can be repeated."),
    ] = None,
    cluster: groups.ClusterOptions,
) -> None:
    """Create the topics that are missing, and report existing topics that are set up wrongly.

    Examples:

    \b
      safe topics create --bootstrap-servers broker:9092 --partitions 16 --replication-factor 3
      safe topics create --replication-factor 3 --leave-out segment.bytes
    """
    loaded = load_for_kafka(**cluster.flags)
    from consumer.kafka.topics import create_topics

    for line in asyncio.run(create_topics(loaded.settings, partitions, replication_factor, leave_out or ())):
        typer.echo(line)


_BatchToPublish = Annotated[
    str | None,
    typer.Option(
        "--batch",
        "-b",
        metavar="GLOB",
        help="With a folder of batch files (--test-dir or SAFE_V0_EXPECTATIONS): publish only outputs for these "
        "batches (a name or a quoted glob). Without a folder: the batch to use for outputs that do not name one.",
    ),
]
_WholeOutput = Annotated[
    bool, typer.Option("--whole-output", help="Send each output in full, including the patient's narrative.")
]
_Run = Annotated[
    str | None, typer.Option(metavar="ID", help="The run_id; default: derived from the file's name and content.")
]


@command(app, "Send outputs from files as input events.")
def publish(
    *,
    paths: Annotated[
        list[Path], typer.Argument(help="factory-cli reports, or JSONL files of events; - is standard input.")
    ],
    batch: _BatchToPublish = None,
    test_dir: options.CheckingTestDir = None,
    on_duplicate: options.OnDuplicateOption = None,
    whole_output: _WholeOutput = False,
    run: _Run = None,
    cluster: groups.ClusterOptions,
) -> int:
    """Send outputs from files to Kafka as input events, as a producer would.

    Examples:

    \b
      safe publish run.json --test-dir ./test-cases --batch "I25_batch_*"
      safe publish events.jsonl --run nightly-7
    """
    loaded = load_for_kafka(**cluster.flags)
    from consumer.files.outputs import open_all
    from consumer.files.publish_outputs import TargetBatches, plan_events, publish_events

    planned = plan_events(
        open_all(paths),
        TargetBatches.of(batch, test_dir or loaded.settings.expectations_folder),
        on_duplicate=on_duplicate,
        whole_output=whole_output,
        run=run,
        max_value_bytes=loaded.settings.max_value_bytes,
        texts=loaded.policy.engine_texts,
    )
    return publish_events(loaded.settings, planned)


@command(app, "Copy test cases from batch files to their topic.", name="publish-cases")
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
    cluster: groups.ClusterOptions,
) -> int:
    """Copy test cases from batch files to their topic: new and changed ones are sent, deleted ones are removed.

    All changes of a batch take effect together. Only the fields that scoring reads are sent, with
    accepted wordings, but not the narrative.

    Examples:

    \b
      safe publish-cases ./test-cases --topic safe.v0.cases
      safe publish-cases ./test-cases --batch "I25_batch_*" --dry-run
    """
    where = None if topic is None else f"topic:{topic}"
    loaded = load_for_kafka(**cluster.flags, expectations=where)
    from consumer.files.publish_cases import publish_cases

    return asyncio.run(
        publish_cases(loaded.settings, folder, batch=batch, with_narrative=with_narrative, prune=prune, dry_run=dry_run)
    )


_Batches = Annotated[
    list[str] | None,
    typer.Option("--batch", "-b", metavar="GLOB", help="Only these batches: a name or a quoted glob; can be repeated."),
]
_ResultsFormat = Annotated[
    options.ShowFormat | None,
    typer.Option("--format", "-f", help="console (default) is for people; json prints one CloudEvent on each line."),
]
_Reports = Annotated[
    bool, typer.Option("--reports", help="With --format json: print the batches' reports instead of results.")
]
_OfBatches = Annotated[
    bool,
    typer.Option(
        "--outputs",
        help="Print the outputs of the batches as JSONL for --outputs of safe explain or safe score. THEY MAY CONTAIN "
        "PATIENT DATA.",
    ),
]
_ResultsSince = Annotated[
    str | None,
    typer.Option(
        metavar="TIME", help="Only records of this time or later: 2026-03-02T08:00:00Z, or 2h for two hours ago."
    ),
]


@command(app, "Show what workers have scored, as it is or as it comes.")
def results(
    *,
    follow: Annotated[bool, typer.Option("--follow", help="Go on with what comes, until Ctrl-C.")] = False,
    batch: _Batches = None,
    format_: _ResultsFormat = None,
    reports: _Reports = False,
    outputs: _OfBatches = False,
    since: _ResultsSince = None,
    cluster: groups.ClusterOptions,
) -> int:
    """Show the batches of a cluster as their last reports have them; with --follow, the last results as they come.

    Only committed records are read, by no consumer group: workers and other readers do not notice. --format json prints
    every result that the topic holds; with --follow, those that come from now on, and those since --since before.
    Without a terminal, --follow prints a line for each result. No text of an output is shown, except by --outputs,
    which reads the input topic.

    Examples:

    \b
      safe results --bootstrap-servers broker:9092
      safe results --follow --batch "I25_*"
      safe results --format json --since 1d | jq -r '.data.result | [.test_id, .label] | @tsv'
      safe results --batch I25_batch_1 --outputs > outputs.jsonl
    """
    from consumer.dead_letters.selection import moment_of
    from consumer.results.show import ResultsRequest, show_results
    from consumer.wire.times import now_ms

    moment = None if since is None else moment_of("--since", since, now_ms())
    request = ResultsRequest(batch or (), follow, format_, reports, outputs, moment)
    return show_results(load_for_kafka(**cluster.flags), request)


@command(app, "See SAFE run, without Kafka, Java or containers.")
def demo(
    *,
    keep: Annotated[bool, typer.Option("--keep", help="Keep it running until Ctrl-C.")] = False,
    port: Annotated[
        int | None, typer.Option(metavar="N", min=1, max=65_535, help="The broker's port; default: one that is free.")
    ] = None,
) -> int:
    """See SAFE run: a broker, topics, a worker and sample traffic, without Kafka, Java or containers."""
    from consumer.demo.run import run_demo

    return run_demo(keep=keep, port=port)
