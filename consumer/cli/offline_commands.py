"""Commands that run on files, such as `safe score`, `explain`, `triage`, `lint` and `compare`.

What a command needs is imported when it runs, so that help is printed at once.
"""
# ruff: noqa: PLC0415

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from consumer.cli import option_groups as groups
from consumer.cli import options
from consumer.cli.app import app, command, load, load_for_kafka, test_folder
from consumer.errors import ConfigurationError

if TYPE_CHECKING:
    from consumer.offline.gate import Gate
    from consumer.offline.triage import TriageRequest
    from consumer.settings import Loaded

_Report = Annotated[Path, typer.Argument(help="A JSON report of safe score; - is standard input.")]


@command(app, "Score outputs from files, for people and for CI.", name="score")
def score_(
    *,
    outputs: options.Outputs,
    test_dir: options.TestDir = None,
    batch: options.Batch = "*",
    concern: options.SoleConcern = None,
    report: groups.ReportOptions,
    on_duplicate: options.OnDuplicateOption = None,
    allow_empty: options.AllowEmpty = False,
    conditions: groups.GateOptions,
    rules: groups.RuleOptions,
) -> int:
    """Score outputs from files: scorecard, reports, and an exit code for CI.

    Exits with 0 if all cases pass, 1 if any fails, 2 if none fails but some need review, 3 if options or files are
    wrong. Each --fail-on, --min or --max option is a condition; with any of them: 0 if all hold, 1 if not.
    In GitHub Actions the report is also added to the run's summary page; unset GITHUB_STEP_SUMMARY to prevent that.

    Examples:

    \b
      safe score -i run.json -t ./test-cases
      safe score -i run.json -t ./test-cases -c I25 -b "I25_batch_*" -o report.json
    """
    from consumer.offline.score_command import ScoreRequest, score_command

    loaded = load(**rules.flags)
    request = ScoreRequest(
        concern, batch, outputs, test_folder(test_dir, loaded), report.output or (), report.format_,
        on_duplicate=on_duplicate, allow_empty=allow_empty, config_file=rules.config_file, gate=_gate(conditions),
        explain=report.explained, opinions=report.opinions,
        verbose=report.verbose, bom=report.bom, force=report.force,
    )  # fmt: skip
    return score_command(loaded.settings, loaded.policy, request)


@command(app, "Score again whenever outputs or test cases change.")
def watch(
    *,
    outputs: options.Outputs,
    test_dir: options.TestDir = None,
    concern: options.SoleConcern = None,
    batch: options.Batch = "*",
    on_duplicate: options.OnDuplicateOption = None,
    rules: groups.RuleOptions,
) -> int:
    """Score outputs again whenever they or the test cases change, until Ctrl-C.

    Each run is shown with what changed against the last run and, if that is another one, against the best run so far:
    the one with the highest pass rate and, of equal ones, the highest mean composite. A file that is being written is
    read again once it is complete. Nothing is written, and no text of an output is shown. --concern is needed if the
    test cases are of several concerns.

    Example:

    \b
      safe watch -i run.json -t ./test-cases
    """
    from consumer.offline.watch import WatchRequest, watch_command

    loaded = load(**rules.flags)
    request = WatchRequest(outputs, test_folder(test_dir, loaded), concern, batch, on_duplicate)
    return watch_command(loaded.policy, request)


@command(app, "Check whether a report is good enough.")
def gate(*, report: _Report, conditions: groups.GateOptions, page: groups.PageOptions) -> int:
    """Check whether a report is good enough: exit 0 if it is, 1 if not, 3 if the report cannot be used.

    All conditions that are given must hold; a number that is equal to its bound passes. The line that is printed names
    the conditions that failed. If you give no condition, the gate passes only if no case fails.

    Examples:

    \b
      safe gate report.json --min-pass-rate 0.8
      safe gate report.json --fail-on review
      safe gate report.json --max-violations 0 --max-missing 0 --min-mean CR=0.7 --min-mean AC=0.7
    """
    from consumer.offline.gate import NO_CASE_FAILS
    from consumer.offline.report_commands import gate_command

    return gate_command(report, _gate(conditions) or NO_CASE_FAILS, page.wanted)


def _gate(given: groups.GateOptions) -> "Gate | None":
    from consumer.offline.gate import Gate, conditions

    bounds = {f"--{name.replace('_', '-')}": bound for name, bound in given._asdict().items()}
    return Gate.asked(given.min_pass_rate, given.fail_on, given.confidence, conditions(bounds))


@command(app, "Say why a test case scored as it did.")
def explain(
    *,
    chosen: groups.ChosenOptions,
    outputs: options.OptionalOutputs = None,
    source: options.Source = None,
    shown: groups.ExplanationOptions,
    answers: groups.AnswerOptions,
    cases: groups.CaseOptions,
    on_duplicate: options.OnDuplicateOption = None,
    strict_ah: options.StrictAH = False,
    cluster: groups.ClusterOptions,
) -> int:
    """Say why test cases scored as they did: for each missed term two answers, a verdict on what must change, evidence.

    The answers: what the output says of the term (said, contradicted, both, elsewhere: in a field that the criterion
    does not read, part, absent, not_read: in another language) and what the narrative says (supported, partly, silent,
    contradicts, unknown). The verdicts that follow from both: term (accept the output's wording, or correct the case),
    prompt (change the prompt), output (the output contradicts the narrative), look (only a person can tell), not asked
    for (by the prompt). On the console, text from outputs is shown, which may contain patient data. No score changes.

    Examples:

    \b
      safe explain -i run.json -t ./test-cases
      safe explain I25-BATCH1-004 -i run.json -t ./test-cases
      safe explain --all --format csv -i run.json -t ./test-cases
      safe explain --source factory.generation.output/0/41 -t ./test-cases
    """
    from consumer.offline.explain_command import ExplainRequest, explain_tests

    which = chosen.which
    if source is not None:
        _refuse_beside_source(chosen, answers, cases, {"--outputs": outputs, "--on-duplicate": on_duplicate})
        return _explain_record(source, cases, shown, cluster, strict_ah=strict_ah)
    if not outputs:
        raise ConfigurationError("nothing to explain was given: give --outputs, or --source")
    loaded = load(**cluster.flags, ah_strict=strict_ah or None)
    files = (outputs, test_folder(cases.test_dir, loaded), on_duplicate, answers.chosen, answers.opinions)
    request = ExplainRequest(chosen.named, which, cases.concern, cases.batch, *files)
    return explain_tests(loaded.policy, request, shown.shape)


def _explain_record(
    source: str,
    cases: groups.CaseOptions,
    shown: groups.ExplanationOptions,
    cluster: groups.ClusterOptions,
    *,
    strict_ah: bool,
) -> int:
    from consumer.offline.explain_command import Coordinates, explain_record

    coordinates = Coordinates.read(source)
    loaded = load_for_kafka(**cluster.flags, ah_strict=strict_ah or None)
    folder = test_folder(cases.test_dir, loaded)
    return explain_record(loaded.settings, loaded.policy, coordinates, folder, shown.shape)


def _refuse_beside_source(
    chosen: groups.ChosenOptions, answers: groups.AnswerOptions, cases: groups.CaseOptions, given: Mapping[str, object]
) -> None:
    choosing = {
        "test_ids": chosen.named,
        "--failing": chosen.failing,
        "--label": chosen.label,
        "--all": chosen.everything,
        "--batch": cases.batch != "*",
        "--concern": cases.concern,
        "--output-says": answers.output_says,
        "--narrative-says": answers.narrative_says,
        "--opinions": answers.opinions,
    }
    without_effect = [name for name, value in {**choosing, **given}.items() if value]
    if without_effect:
        raise ConfigurationError(
            f"--source explains every term of one record: leave {' and '.join(without_effect)} out"
        )


@command(app, "Say what to change first, and how many cases would then get a better label.")
def triage(
    *,
    outputs: options.Outputs,
    cases: groups.CaseOptions,
    page: groups.PageOptions,
    write_cases: options.WriteCases = None,
    include_text: options.TriageIncludesText = False,
    answers: groups.AnswerOptions,
    on_duplicate: options.OnDuplicateOption = None,
    rules: groups.RuleOptions,
) -> int:
    """Say what to change first: a proposal for each missed term, and how many cases would then get a better label.

    If the output says a term in other words, triage proposes phrases of the narrative in its place, unless that would
    weaken the test case; if the narrative does not say a term at all, the test case is wrong, and no other wording is
    proposed. For misses that the prompt causes, triage proposes sentences to add to the prompt, one for each cause.
    With --write-cases, the batch files are written to another folder, with new terms in place of those to blame; if
    you score the same outputs against that folder, you get the numbers that triage prints for its step "term". The
    command shows text of narratives, which may contain patient data. It exits with 0, or 3 if files cannot be used.

    Examples:

    \b
      safe triage -i run.json -t ./test-cases
      safe triage -i run.json -t ./test-cases --write-cases ./better-cases -o triage.html
    """
    from consumer.offline.triage_command import triage_command

    loaded = load(**rules.flags)
    request = _triage_request(cases, answers, on_duplicate, loaded, include_text=include_text)
    return triage_command(loaded.policy, request, outputs, page.wanted, write_cases)


def _triage_request(
    cases: groups.CaseOptions,
    answers: groups.AnswerOptions,
    on_duplicate: options.OnDuplicate | None,
    loaded: "Loaded",
    *,
    include_text: bool = False,
) -> "TriageRequest":
    from consumer.judging.opinions import read_opinions
    from consumer.offline.triage import TriageRequest

    folder, file = test_folder(cases.test_dir, loaded), answers.opinions
    chosen, read = answers.chosen, read_opinions(file)
    return TriageRequest(folder, cases.batch, cases.concern, on_duplicate, include_text, chosen, read, file)


@command(app, "Decide on missed terms and proposals, on a page in the browser.")
def review(
    *,
    outputs: options.Outputs,
    cases: groups.CaseOptions,
    port: Annotated[int, typer.Option(metavar="N", min=0, max=65535, help="The port; 0 picks a free one.")] = 0,
    by: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The name that is saved with each decision; default: your login name."),
    ] = None,
    answers: groups.AnswerOptions,
    on_duplicate: options.OnDuplicateOption = None,
    rules: groups.RuleOptions,
) -> int:
    """Decide on missed terms and proposals, on a page in the browser that shows narrative and output side by side.

    Accept, edit or reject each proposal, accept a paraphrase, add a comment, and say whether an output is safe.
    Decisions are kept in safe.decisions.json beside the test cases; no score depends on a decision. The button Apply
    writes the accepted terms into the batch files. The page is served on 127.0.0.1 to anyone who has its address, and
    loads nothing from elsewhere.

    Example:

    \b
      safe review -i run.json -t ./test-cases
    """
    from consumer.offline.review_command import review_command

    loaded = load(**rules.flags)
    request = _triage_request(cases, answers, on_duplicate, loaded)
    return review_command(loaded.policy, request, outputs, by=by, port=port)


_LintPaths = Annotated[
    list[Path] | None, typer.Argument(help="Folders of batch files, or batch files; or give --test-dir.")
]
_Baseline = Annotated[
    Path | None,
    typer.Option(
        metavar="PATH", help="Known findings, as printed earlier by --format json; they are not counted again."
    ),
]
_Mutate = Annotated[
    bool, typer.Option("--mutate", help="For each case, count the dangerous errors that it would let through.")
]


@command(app, "Find flaws in test cases.")
def lint(
    *,
    paths: _LintPaths = None,
    cases: groups.CaseOptions,
    outputs: options.OptionalOutputs = None,
    format_: options.ConsoleOrJson = "console",
    fail_on: options.LintFailOn = "warning",
    baseline: _Baseline = None,
    mutate: _Mutate = False,
    config_file: options.ConfigFile = None,
) -> int:
    """Find flaws in test cases: repeated or contradictory terms, and terms that the narrative does not have.

    With --outputs, it also finds terms that no output contains. Exits with 1 if a finding is at least as severe as
    --fail-on says (a broken file counts as a finding of severity error), with 3 if there is nothing to check or an
    option is wrong, else with 0. In GitHub Actions, findings become annotations. Findings that you accept can be kept
    in a baseline, where the field "reason" of a finding may say why you accept it. The command shows text of
    narratives, which may contain patient data.

    Examples:

    \b
      safe lint ./test-cases --outputs run.json
      safe lint ./test-cases --format json > baseline.json
      safe lint ./test-cases --baseline baseline.json
    """
    from consumer.offline.lint_command import lint_command
    from consumer.offline.lint_files import LintRequest
    from consumer.settings import surroundings

    loaded, on_github = load(config=config_file), surroundings().github_actions
    if paths and cases.test_dir is not None:
        raise ConfigurationError("name the test cases once: as arguments, or with --test-dir")
    folders = paths or [test_folder(cases.test_dir, loaded)]
    request = LintRequest(folders, cases.concern, cases.batch, outputs or (), baseline, mutate)
    return lint_command(loaded.policy, request, format_=format_, fail_on=fail_on, github_actions=on_github)


@command(app, "Find errors that test cases would let through.")
def mutate(
    *,
    cases: groups.CaseOptions,
    format_: options.ConsoleOrJson = "console",
    everything: Annotated[bool, typer.Option("--all", help="Also list the mutants that were caught.")] = False,
    rules: groups.RuleOptions,
) -> int:
    """Find errors that test cases would let through, such as a negation removed, a different number, time or side.

    For each test case, a perfect output is made, which contains the narrative. A mutant is this output with one
    dangerous change to the narrative. Each mutant is scored; one that still passes has survived: the test case would
    let this error through. Each survivor is shown with a phrase of the narrative. If you add this phrase to the
    required terms, the test case catches the error. The command shows text of narratives, which may contain patient
    data. It exits with 0 whatever survives, and 3 if files cannot be used.

    Examples:

    \b
      safe mutate --test-dir ./test-cases
      safe mutate --test-dir ./test-cases --batch "I25_batch_*" --format json | jq .by_kind
    """
    from consumer.offline.mutate_command import mutate_command

    loaded = load(**rules.flags)
    folder = test_folder(cases.test_dir, loaded)
    return mutate_command(loaded.policy, folder, cases.batch, cases.concern, format_=format_, with_caught=everything)


@command(app, "Compare two reports: what got better or worse.", name="compare", cls=options.Comparing)
def compare_(
    *,
    base: Annotated[Path, typer.Argument(help="The JSON report to compare with; - is standard input.")],
    new: Annotated[Path, typer.Argument(help="The JSON report of the later run.")],
    page: groups.PageOptions,
    regressions: groups.RegressionOptions,
) -> int:
    """Compare two reports of safe score: which cases got worse or better, which are lost.

    A case is judged if both reports have an output for it that was made from the case's own narrative. A case is lost
    if only the base report has such an output. Cases that are not judged are listed with the reason.

    Exits with 0, or 1 if a --fail-on option says so, or 3 if a report cannot be used or no case can be judged.

    Examples:

    \b
      safe compare main.json branch.json -o comparison.md --fail-on-regression
      safe compare main.json branch.json --fail-on-regression scores
      safe compare main.json branch.json --format json | jq .worse
    """
    from consumer.offline.gate import ComparisonGate
    from consumer.offline.report_commands import compare_command

    return compare_command(base, new, ComparisonGate.asked(*regressions), page.wanted)


_Groups = Annotated[
    list[str] | None,
    typer.Option(
        "--group",
        metavar="NAME=GLOB",
        help="Treat reports whose file names match GLOB as repeats of one prompt, and show how much they differ; can "
        "be repeated.",
    ),
]
_AsGiven = Annotated[
    bool,
    typer.Option("--as-given", help="Keep the order of the arguments; without this option, generated_at decides it."),
]


@command(app, "Follow each test case over many runs.", name="history")
def history_(
    *,
    reports: Annotated[list[Path], typer.Argument(help="JSON reports of safe score, or folders of them.")],
    repeats: _Groups = None,
    as_given: _AsGiven = False,
    page: groups.HistoryOptions,
    outputs: options.HistoryOutputs = None,
    include_text: options.HistoryIncludesText = False,
) -> int:
    """Follow test cases over many runs: their labels, and which never passed, which vary, and which stopped passing.

    The reports of one group (see --group) come from runs of one prompt, so differences between them are noise. For
    each group, the command shows the share of cases that pass in every run (pass^k) and in at least one run (pass@k),
    and the cases that change. It exits with 0, or 3 if a report cannot be used.

    With --output FOLDER, a page for many runs is written: open its index.html in a browser, also from a disk. It
    filters and searches the cases, and shows two runs side by side.

    Examples:

    \b
      safe history reports/
      safe history reports/ -o runs
      safe history reports/ -o runs --outputs ./outputs --include-text
      safe history reports/ --group "prompt 7=run_7_*" -o history.html
    """
    from consumer.offline.report_commands import HistoryRequest, history_command

    if include_text != bool(outputs):
        raise ConfigurationError("to quote outputs, give both --include-text and their files with --outputs")
    return history_command(HistoryRequest(reports, repeats or [], page.wanted, outputs, as_given))


@command(app, "Recompute a report from its inputs.")
def verify(
    *,
    report: _Report,
    outputs: options.Outputs,
    test_dir: options.TestDir = None,
    page: groups.PageOptions,
    config_file: options.ConfigFile = None,
) -> int:
    """Recompute a report from its inputs: exit 0 if every number is the same, 1 if not, 3 if that cannot be checked.

    The scoring rules are those in the report; they are printed if they are not the default rules.

    Example:

    \b
      safe verify report.json --test-dir ./test-cases --outputs run.json
    """
    from consumer.offline.report_commands import verify_command

    return verify_command(report, test_folder(test_dir, load(config=config_file)), outputs, page.wanted)
