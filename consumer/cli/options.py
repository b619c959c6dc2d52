"""The options of the command line that several commands take, or that need more than a line.

An option that is not named here is named after the parameter that takes it. A value that is also a setting is read and
checked by consumer.settings, like the values of every other source.
"""

from collections.abc import Collection
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import typer
from typing_extensions import override

from consumer.cli.missing_libraries import missing_library
from consumer.dead_letter_reasons import REASONS
from consumer.errors import ConfigurationError

Role = Literal["scorer", "aggregator", "all"]
EventName = Literal["input", "result", "report", "dead-letter"]
ExampleName = Literal["story", "subscriber"]
ShowFormat = Literal["console", "json"]
OnDuplicate = Literal["first", "last"]
ReportFormat = Literal["json", "console", "markdown", "junit", "csv", "terms", "html", "all"]
PageFormat = Literal["console", "json", "markdown", "html"]
FailOn = Literal["fail", "review", "never"]
RegressionsOf = Literal["labels", "scores", "lenient"]

ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", metavar="PATH", help="The configuration file; default: ./safe.config.json, if it exists."),
]
Servers = Annotated[str | None, typer.Option(metavar="SERVERS", help="The Kafka cluster, as host:port,host:port.")]
GroupId = Annotated[str | None, typer.Option(metavar="NAME", help="The consumer group; default: safe-v0.")]
Expectations = Annotated[
    str | None, typer.Option(metavar="WHERE", help="Where test cases are: a folder, a URL, or topic:NAME.")
]
Delivery = Annotated[str | None, typer.Option(metavar="GUARANTEE", help="exactly_once (default) or at_least_once.")]
HttpAddress = Annotated[
    str | None, typer.Option(metavar="HOST:PORT", help="Address of /metrics, /livez, /readyz; default: 127.0.0.1:9464.")
]
LogLevel = Annotated[
    str | None, typer.Option(metavar="LEVEL", help="debug, info (default), warning, error or critical.")
]
LogFormat = Annotated[str | None, typer.Option(metavar="FORMAT", help="json, or console (default on a terminal).")]
ConsoleOrJson = Annotated[ShowFormat, typer.Option("--format", "-f", help="console is for people, json for programs.")]
StrictAH = Annotated[
    bool, typer.Option("--strict-ah", help="One forbidden term makes AH 0, even if an override says otherwise.")
]


def fraction(text: str) -> float:
    """Read a number that should be a share; the error for "80 %" says what to write."""
    try:
        return float(text)
    except ValueError:
        advice = "; 80 percent is 0.8" if text.strip().endswith("%") else ""
        raise typer.BadParameter(f"{text!r} is not a fraction from 0 to 1{advice}") from None


def _folder(text: str) -> Path:
    if not text:
        raise typer.BadParameter("the name is empty; name a folder")
    return Path(text)


def _test_dir(more: str) -> object:
    return typer.Option("--test-dir", "-t", metavar="DIR", help=f"The folder of batch files{more}.")


TestDir = Annotated[Path | None, _test_dir("; required unless SAFE_V0_EXPECTATIONS is a folder")]
CheckingTestDir = Annotated[
    Path | None, _test_dir(". Without one (here or in SAFE_V0_EXPECTATIONS), test_ids are not checked")
]
_OUTPUTS = typer.Option(
    "--outputs",
    "--input",
    "-i",
    metavar="PATH",
    help="A factory-cli report, a JSONL file of events, or a folder of them; - is standard input; can be repeated.",
)
Outputs = Annotated[list[Path], _OUTPUTS]
OptionalOutputs = Annotated[list[Path] | None, _OUTPUTS]
MinPassRate = Annotated[
    float | None,
    typer.Option(
        metavar="RATE",
        parser=fraction,
        help="Exit 1 if the share of passing cases is below RATE, a number from 0 to 1.",
    ),
]
FailOnOption = Annotated[
    FailOn | None,
    typer.Option(
        help="Exit 1 if any case has this label or a worse one. If no condition is given, safe gate applies "
        "--fail-on fail; safe score does not."
    ),
]
Confidence = Annotated[
    float | None,
    typer.Option(
        metavar="SHARE",
        parser=fraction,
        help="Confidence level, such as 0.95: the lower end of the pass rate's confidence interval must reach "
        "--min-pass-rate.",
    ),
]


def _at_most(what: str) -> object:
    return typer.Option(metavar="N", min=0, help=f"Exit 1 if there are more than N {what}.")


# The further conditions of a gate, read by consumer.offline.gate.
MaxViolations = Annotated[int | None, _at_most("AH violations")]
MaxMissing = Annotated[int | None, _at_most("cases without an output")]
MaxFailedGenerations = Annotated[int | None, _at_most("failed generations (cases that no model answered)")]
MaxVacuous = Annotated[int | None, _at_most("cases with nothing at all to check")]
MaxMismatches = Annotated[int | None, _at_most("outputs made from another narrative than that of their test case")]
MaxNearViolations = Annotated[
    int | None,
    _at_most(
        "near violations (forbidden terms that a question has in another form), or if no case has both a forbidden "
        "term and a question"
    ),
]
MaxUnsupported = Annotated[
    int | None,
    _at_most(
        "values that an output has and its narrative does not, or if no output could be checked, because no narrative "
        "is known"
    ),
]
MaxDoubtful = Annotated[
    int | None, _at_most("doubtful hits (terms that were found, but that the text may not really state)")
]
MinMean = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=MEAN", help="Exit 1 if the mean of CR, AH, AC or composite is below MEAN; can be repeated."
    ),
]
MinPassRateOf = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=RATE", help="Exit 1 if the pass rate of CR, AH, AC or overall is below RATE; can be repeated."
    ),
]


Explained = Annotated[
    bool, typer.Option("--explain", help="Say why each missed term was missed; this changes no score.")
]


def _include_text(where: str = "") -> object:
    return typer.Option("--include-text", help=f"Quote outputs, which may contain patient data{where}.")


ScoreIncludesText = Annotated[bool, _include_text("; only the formats json and html can quote")]
ExplainIncludesText = Annotated[bool, _include_text("; on the console, they are quoted even without this option")]
TriageIncludesText = Annotated[bool, _include_text()]
LintFailOn = Annotated[
    Literal["error", "warning", "info", "never"],
    typer.Option("--fail-on", help="Exit 1 for findings of this severity or a worse one."),
]
AllowEmpty = Annotated[
    bool, typer.Option("--allow-empty", help="Score even if no output answers any selected test case.")
]
Tests = Annotated[
    list[str] | None,
    typer.Option("--test", metavar="ID", help="The same as an argument."),
]
TestIds = Annotated[list[str] | None, typer.Argument(metavar="[TEST_ID]...", help="Which cases to explain.")]
Source = Annotated[
    str | None,
    typer.Option(metavar="TOPIC/PARTITION/OFFSET", help="An input record, as the field `source` of a result names it."),
]
Failing = Annotated[bool, typer.Option("--failing", help="Explain the cases that fail. This is the default.")]
OfLabel = Annotated[
    Literal["pass", "review", "fail"] | None,
    typer.Option("--label", case_sensitive=False, help="Explain the cases with this label."),
]
AllCases = Annotated[bool, typer.Option("--all", help="Explain all cases.")]
ExplainFormat = Annotated[
    Literal["console", "json", "csv", "markdown", "html"] | None,
    typer.Option(
        "--format",
        "-f",
        help="What to print; default: console. CSV has a row for each missed term, each forbidden term that "
        "was used, and each doubtful hit.",
    ),
]
EveryTerm = Annotated[
    bool,
    typer.Option(
        "--verbose", "-v", help="Show every term, all its places in the output, and the row that decided each verdict."
    ),
]


def _answers(which: str, *answers: str) -> object:
    def answer(text: str) -> str:
        if text not in answers:
            raise typer.BadParameter(f"{text!r} is no answer of the {which}; choose from {', '.join(answers)}")
        return text

    return typer.Option(
        metavar="ANSWER",
        parser=answer,
        help=f"Only missed terms of which the {which} says this; can be repeated. One of {', '.join(answers)}.",
    )


# Those of safe_core.diagnosis, which is not imported for help.
OutputSays = Annotated[
    list[str] | None, _answers("output", "both", "said", "contradicted", "elsewhere", "part", "absent", "not_read")
]
NarrativeSays = Annotated[
    list[str] | None, _answers("narrative", "supported", "partly", "unknown", "silent", "contradicts")
]
OnDuplicateOption = Annotated[
    OnDuplicate | None,
    typer.Option(help="Which output counts if a test_id has several; without this option, that is an error."),
]


class Once(typer.core.TyperCommand):
    """A command that refuses an option given twice, rather than ignore one of two gates or folders.

    Commands import what they need when they run: if a library is missing, this is where the user hears of it.
    """

    def __init__(self, *arguments: Any, **named: Any) -> None:  # noqa: ANN401 (whatever typer passes)
        super().__init__(*arguments, **named)
        for parameter in self.params:
            if isinstance(parameter, typer.core.TyperArgument):  # help says what it is; `<str>` says nothing more
                object.__setattr__(parameter, "display_type_rich", lambda ctx: None)  # noqa: ARG005

    @override
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # typer exports no name for the class of its contexts
        if ctx.resilient_parsing:  # a shell asks what may follow what is there
            return super().parse_args(ctx, args)
        values, _, given = self.make_parser(ctx).parse_args(args=list(args))
        if not values.get("help"):
            self._refuse_missing(ctx, {each.name for each in given if values.get(each.name)})
        for parameter in given:
            repeats = parameter.multiple or parameter.nargs != 1 or getattr(parameter, "is_flag", False)
            if not repeats and given.count(parameter) > 1:
                raise typer.BadParameter("it is given twice; give it once", ctx, param_hint=parameter.opts[0])
        return super().parse_args(ctx, args)

    def _refuse_missing(self, ctx: Any, given: Collection[str]) -> None:  # noqa: ANN401 (as above)
        missing = [_called(each) for each in self.params if each.required and each.name not in given]
        if missing:
            raise ConfigurationError(f"missing {', '.join(missing)}; see {ctx.command_path} --help")

    @override
    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except ModuleNotFoundError as error:
            missing = missing_library(error, ctx.command_path)
            if missing is None:
                raise
            raise missing from error


def _called(parameter: Any) -> str:  # noqa: ANN401 (typer exports no name for the class of options)
    """An option or argument as help names it, with what it takes."""
    option = parameter.opts[0]
    takes: str = parameter.metavar or parameter.name.upper()
    return f"{option} {takes}" if option.startswith("-") else takes


class Comparing(Once):
    """A command whose --fail-on-regression may stand without a word; then it is about labels."""

    @override
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        words = get_args(RegressionsOf)
        end = args.index("--") if "--" in args else len(args)
        told = [
            f"{arg}=labels" if arg == "--fail-on-regression" and following not in words else arg
            for arg, following in zip_longest(args[:end], args[1:end])
        ]
        return super().parse_args(ctx, [*told, *args[end:]])


# --- the options of `score`

Batch = Annotated[
    str, typer.Option("--batch", "-b", metavar="GLOB", help='Which batches: a name or a quoted glob; "*" means all.')
]
SoleConcern = Annotated[
    str | None,
    typer.Option(
        "--concern", "-c", metavar="ID", help="The concern whose test cases are scored; needed where there are several."
    ),
]
AnyConcern = Annotated[
    str | None, typer.Option("--concern", "-c", metavar="ID", help="Only this concern's test cases.")
]
OutputFiles = Annotated[
    list[str] | None,
    typer.Option(
        "--output",
        "-o",
        metavar="PATH",
        help="Write .json, .md, .html, .xml (JUnit), .csv (cases), .terms.csv or .txt; - is stdout; can be repeated.",
    ),
]
Format = Annotated[
    ReportFormat | None,
    typer.Option(
        "--format",
        "-f",
        help="The output format. With markdown, html or all, files are written to SAFE_V0_REPORT_DIR (default: "
        "reports).",
    ),
]
PageFormatOption = Annotated[PageFormat | None, typer.Option("--format", "-f", help="What to print; default: console.")]


def _files(what: str, suffixes: str = ".json, .md, .html or .txt") -> object:
    help_ = f"Write the {what} as {suffixes}; - is stdout; can be repeated."
    return typer.Option("--output", "-o", metavar="PATH", help=help_)


ExplanationFiles = Annotated[list[str] | None, _files("explanations", ".json, .csv, .md, .html or .txt")]
PageFiles = Annotated[list[str] | None, _files("page")]
HistoryFiles = Annotated[
    list[str] | None,
    typer.Option(
        "--output",
        "-o",
        metavar="PATH",
        help="Write the history as .json, .md, .html or .txt, or as a page into a folder (a name without a suffix); - "
        "is stdout; can be repeated.",
    ),
]
HistoryOutputs = Annotated[
    list[Path] | None,
    typer.Option(
        "--outputs",
        metavar="PATH",
        help="With --include-text: the outputs that the reports were made from, as files or folders; can be repeated.",
    ),
]
HistoryIncludesText = Annotated[bool, _include_text("; only with --output FOLDER and --outputs")]
WriteCases = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER", parser=_folder, help="Write the batch files to this folder, with the terms replaced."
    ),
]
FailOnRegression = Annotated[
    RegressionsOf | None,
    typer.Option(
        help="Exit 1 if a case is lost, or a case got a worse label (labels, also without a word), or composites "
        "(scores) or lenient recall (lenient) fell beyond chance."
    ),
]
MaxRegressions = Annotated[
    int | None,
    typer.Option(
        metavar="N", min=0, help="With --fail-on-regression labels: how many cases may have a worse label; default: 0."
    ),
]
AllowLost = Annotated[
    int | None,
    typer.Option(metavar="N", min=0, help="With --fail-on-regression: how many cases may be lost; default: 0."),
]
MaxDrop = Annotated[
    float | None,
    typer.Option(
        "--fail-on-score-drop",
        metavar="DROP",
        parser=fraction,
        help="Exit 1 if the mean composite of the judged cases dropped by more than DROP, a number from 0 to 1.",
    ),
]
Verbose = Annotated[
    bool,
    typer.Option("--verbose", "-v", help="For each case that does not pass, show what was found and what was missed."),
]
ByteOrderMark = Annotated[
    bool, typer.Option("--bom", help="Begin CSV with a byte order mark: Excel needs it to read letters beyond ASCII.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace existing files even if SAFE did not write them.")]

Opinions = Annotated[
    Path | None, typer.Option(metavar="PATH", help="Show the opinions of a model, as safe judge wrote them.")
]

# --- the options of `offsets`

InputPartitions = Annotated[
    list[int] | None,
    typer.Option("--partition", metavar="N", min=0, help="Only this partition of the input; can be repeated."),
]
Execute = Annotated[bool, typer.Option("--execute", help="Do it; without this option, only print what would change.")]

# --- the options of `dead-letters`


def _reason(text: str) -> str:
    if text not in REASONS:
        raise typer.BadParameter(f"{text!r} is not a reason; choose from {', '.join(REASONS)}")
    return text


Letters = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="LETTER",
        help="PARTITION/OFFSET as `safe dead-letters list` prints it, or TOPIC/PARTITION/OFFSET of its source.",
    ),
]
Reasons = Annotated[
    list[str] | None,
    typer.Option(
        metavar="REASON",
        parser=_reason,
        help=f"Only dead letters with this reason; can be repeated. One of {', '.join(REASONS)}.",
    ),
]
Partitions = Annotated[
    list[int] | None,
    typer.Option(metavar="N", min=0, help="Only from this partition of the source topic; can be repeated."),
]
Since = Annotated[
    str | None,
    typer.Option(
        metavar="TIME", help="Only failures at this time or later: 2026-03-02T08:00:00Z, or 2h for two hours ago."
    ),
]
Until = Annotated[
    str | None, typer.Option(metavar="TIME", help="Only failures before this time; same notation as for --since.")
]
After = Annotated[
    str | None,
    typer.Option(
        metavar="PARTITION/OFFSET",
        help="Only dead letters after this one: go on from where a list or a replay stopped.",
    ),
]
