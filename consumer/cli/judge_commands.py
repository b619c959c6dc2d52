"""`safe judge`, which also calibrates.

What a command needs is imported when it runs, so that help is printed at once.
"""
# ruff: noqa: PLC0415

from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import typer

from consumer.cli import option_groups as groups
from consumer.cli import options
from consumer.cli.app import app, command, load, test_folder
from consumer.errors import ConfigurationError

_What = Annotated[
    Literal["ask", "calibrate"], typer.Argument(metavar="[calibrate]", help="Measure the model, see below.")
]
_Model = Annotated[str, typer.Option(metavar="NAME", help="The model; with --api-version, the deployment.")]
_BaseUrl = Annotated[str, typer.Option(metavar="URL", help="The endpoint, such as https://api.openai.com/v1.")]
_ApiVersion = Annotated[
    str | None, typer.Option(metavar="VERSION", help="The endpoint is Azure OpenAI's, with this version.")
]
_Timeout = Annotated[float, typer.Option(metavar="SECONDS", min=1, help="How long the endpoint may be silent.")]
_SendTextsTo = Annotated[
    str | None,
    typer.Option(metavar="HOST", help="Allow texts, which may hold patient data, to be sent to --base-url's HOST."),
]
_DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Print the questions and estimate their tokens; send nothing.")
]
_Cache = Annotated[Path | None, typer.Option(metavar="DIR", help="Keep replies here, to go on after an interruption.")]
_Calibration = Annotated[
    Path | None, typer.Option(metavar="PATH", help="What calibrate wrote; without it, opinions count for nothing.")
]
_Repeat = Annotated[int, typer.Option(metavar="N", min=1, max=20, help="calibrate: ask each question N times.")]
_LeaveOut = Annotated[
    Path | None,
    typer.Option(metavar="PATH", help="calibrate: decisions not to use, as --dry-run names them, one in a line."),
]
_Output = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="PATH", help="Write the opinions, or the calibration.")
]
_Format = Annotated[Literal["console", "json"], typer.Option("--format", "-f", help="How to print.")]
_AtOnce = Annotated[int, typer.Option(metavar="N", min=1, max=64, help="Ask N questions at once.")]


class _EndpointOptions(NamedTuple):
    """Who is asked."""

    base_url: _BaseUrl
    model: _Model
    api_version: _ApiVersion = None
    timeout: _Timeout = 60.0


class _AskingOptions(NamedTuple):
    """How is asked, and what becomes of the answers."""

    send_texts_to: _SendTextsTo = None
    dry_run: _DryRun = False
    cache: _Cache = None
    at_once: _AtOnce = 4
    output: _Output = None
    force: options.Force = False
    format_: _Format = "console"


class _CalibrationOptions(NamedTuple):
    """What is for calibrate, and what it has written."""

    calibration: _Calibration = None
    repeat: _Repeat = 1
    leave_out: _LeaveOut = None

    def check_fits(self, what: str) -> None:
        """Raise ConfigurationError for an option that is for the other of both."""
        if what == "ask" and (self.repeat > 1 or self.leave_out is not None):
            raise ConfigurationError("--repeat and --leave-out are for safe judge calibrate")
        if what == "calibrate" and self.calibration is not None:
            raise ConfigurationError("--calibration is what safe judge calibrate writes, with --output")


@command(app, "Ask a model about what rules leave open, and measure its answers.")
def judge(
    *,
    what: _What = "ask",
    outputs: options.Outputs,
    cases: groups.CaseOptions,
    endpoint: _EndpointOptions,
    asking: _AskingOptions,
    calibrating: _CalibrationOptions,
    include_text: options.TriageIncludesText = False,
    on_duplicate: options.OnDuplicateOption = None,
    config_file: options.ConfigFile = None,
) -> int:
    """Ask a model about what rules leave open: misses left to a person, doubtful hits, near violations, values.

    An opinion is shown beside the evidence (--opinions of safe explain); no score or label depends on it. The key is
    read from OPENAI_API_KEY, or AZURE_OPENAI_API_KEY. `safe judge calibrate` asks about what people decided in safe
    review instead, and measures agreement, kappa, sensitivity and specificity for each kind of question, and with
    --repeat how often the model agrees with itself.

    Examples:

    \b
      safe judge -i run.json -t ./test-cases --model m --base-url https://llm.example/v1 --dry-run
      safe judge calibrate -i run.json -t ./test-cases --model m --base-url https://llm.example/v1 \\
        --send-texts-to llm.example --cache replies --repeat 3 -o calibration.json
      safe judge -i run.json -t ./test-cases --model m --base-url https://llm.example/v1 \\
        --send-texts-to llm.example --cache replies --calibration calibration.json -o opinions.json
    """
    from consumer.judging.address import Address
    from consumer.judging.command import JudgeRequest, calibrate_command, judge_command
    from consumer.offline.triage import TriageRequest

    calibrating.check_fits(what)
    loaded = load(config=config_file)
    about = TriageRequest(test_folder(cases.test_dir, loaded), cases.batch, cases.concern, on_duplicate, include_text)
    request = JudgeRequest(outputs, about, Address(*endpoint), *asking)
    if what == "calibrate":
        return calibrate_command(loaded.policy, request, calibrating.leave_out, calibrating.repeat)
    return judge_command(loaded.policy, request, calibrating.calibration)
