"""Options that several commands take together: one parameter of a command, with a field for each of them."""
# ruff: noqa: PLC0415

import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from consumer.cli import options
from consumer.errors import ConfigurationError

if TYPE_CHECKING:
    from consumer.offline.answers import AnswerFilter
    from consumer.offline.destinations import Wanted
    from consumer.offline.explain_command import Shape, Which


def grouped(command: Callable[..., int | None]) -> Callable[..., int | None]:
    """Let typer see the fields of each parameter that is a NamedTuple as options of their own."""
    parameters = inspect.signature(command).parameters.values()
    groups = {each.name: each.annotation for each in parameters if hasattr(each.annotation, "_fields")}

    @wraps(command)
    def with_groups(**given: Any) -> int | None:  # noqa: ANN401 (the values of any options)
        filled = {name: group(*map(given.pop, group._fields)) for name, group in groups.items()}
        return command(**given, **filled)

    seen = [one for each in parameters for one in (_fields(groups[each.name]) if each.name in groups else [each])]
    with_groups.__signature__ = inspect.signature(command).replace(parameters=seen)  # type: ignore[attr-defined]
    return with_groups


def _fields(group: Any) -> Iterator[inspect.Parameter]:  # noqa: ANN401 (no type stands for every NamedTuple)
    for name, annotation in inspect.get_annotations(group).items():
        default = group._field_defaults.get(name, inspect.Parameter.empty)
        yield inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


# --- settings ---------------------------------------------------------------------------------------------------------


class RuleOptions(NamedTuple):
    """The rules by which is scored."""

    strict_ah: options.StrictAH = False
    config_file: options.ConfigFile = None

    @property
    def flags(self) -> Mapping[str, object]:
        """The settings that they set."""
        return {"ah_strict": self.strict_ah or None, "config": self.config_file}


class ClusterOptions(NamedTuple):
    """A cluster."""

    bootstrap_servers: options.Servers = None
    config_file: options.ConfigFile = None

    @property
    def flags(self) -> Mapping[str, object]:
        """The settings that they set."""
        return {"kafka_bootstrap_servers": self.bootstrap_servers, "config": self.config_file}


class GroupOptions(NamedTuple):
    """A consumer group of a cluster."""

    group_id: options.GroupId = None
    bootstrap_servers: options.Servers = None
    config_file: options.ConfigFile = None

    @property
    def flags(self) -> Mapping[str, object]:
        """The settings that they set."""
        return {"kafka_group_id": self.group_id, **ClusterOptions(self.bootstrap_servers, self.config_file).flags}


# --- cases and terms --------------------------------------------------------------------------------------------------


class CaseOptions(NamedTuple):
    """Test cases of a folder."""

    test_dir: options.TestDir = None
    batch: options.Batch = "*"
    concern: options.AnyConcern = None


class ChosenOptions(NamedTuple):
    """Which of the test cases are explained."""

    test_ids: options.TestIds = None
    tests: options.Tests = None
    failing: options.Failing = False
    label: options.OfLabel = None
    everything: options.AllCases = False

    @property
    def named(self) -> list[str]:
        """The test_ids that are named."""
        return [*(self.test_ids or ()), *(self.tests or ())]

    @property
    def which(self) -> "Which":
        """Which cases count where none is named."""
        if sum((self.failing, self.label is not None, self.everything, bool(self.named))) > 1:
            raise ConfigurationError("give only one of test_ids, --failing, --label and --all")
        return "all" if self.everything else self.label or "fail"


class AnswerOptions(NamedTuple):
    """A choice of missed terms, and what a model thinks of them."""

    output_says: options.OutputSays = None
    narrative_says: options.NarrativeSays = None
    opinions: options.Opinions = None

    @property
    def chosen(self) -> "AnswerFilter":
        """Which missed terms are shown."""
        from consumer.offline.answers import AnswerFilter

        return AnswerFilter(self.output_says or (), self.narrative_says or ())


# --- conditions, pages and files --------------------------------------------------------------------------------------


class GateOptions(NamedTuple):
    """What is asked of a report; named as the options are."""

    min_pass_rate: options.MinPassRate = None
    confidence: options.Confidence = None
    fail_on: options.FailOnOption = None
    max_violations: options.MaxViolations = None
    max_missing: options.MaxMissing = None
    max_failed_generations: options.MaxFailedGenerations = None
    max_vacuous: options.MaxVacuous = None
    max_mismatches: options.MaxMismatches = None
    max_near_violations: options.MaxNearViolations = None
    max_unsupported: options.MaxUnsupported = None
    max_doubtful: options.MaxDoubtful = None
    min_mean: options.MinMean = None
    min_pass_rate_of: options.MinPassRateOf = None


class RegressionOptions(NamedTuple):
    """How much may be worse than before."""

    fail_on_regression: options.FailOnRegression = None
    max_regressions: options.MaxRegressions = None
    allow_lost: options.AllowLost = None
    fail_on_score_drop: options.MaxDrop = None


class PageOptions(NamedTuple):
    """The formats and files of a page."""

    format_: options.PageFormatOption = None
    output: options.PageFiles = None
    force: options.Force = False

    @property
    def wanted(self) -> "Wanted":
        """What is printed and written."""
        from consumer.offline.destinations import Wanted

        return Wanted(self.format_, self.output or (), self.force)


class HistoryOptions(NamedTuple):
    """The formats, files and folders of a history."""

    format_: options.PageFormatOption = None
    output: options.HistoryFiles = None
    force: options.Force = False

    @property
    def wanted(self) -> "Wanted":
        """What is printed and written."""
        return PageOptions(*self).wanted


class ExplanationOptions(NamedTuple):
    """The formats and files of explanations, and what is told in them."""

    format_: options.ExplainFormat = None
    output: options.ExplanationFiles = None
    bom: options.ByteOrderMark = False
    include_text: options.ExplainIncludesText = False
    verbose: options.EveryTerm = False
    force: options.Force = False

    @property
    def shape(self) -> "Shape":
        """How explanations are told."""
        from consumer.offline.destinations import Wanted
        from consumer.offline.explain_command import Shape

        wanted = Wanted(self.format_, self.output or (), self.force)
        return Shape(wanted, self.verbose, self.include_text, self.bom)


class ReportOptions(NamedTuple):
    """The formats and files of a report, and what is told in them."""

    output: options.OutputFiles = None
    format_: options.Format = None
    verbose: options.Verbose = False
    explain: options.Explained = False
    include_text: options.ScoreIncludesText = False
    opinions: options.Opinions = None
    bom: options.ByteOrderMark = False
    force: options.Force = False

    @property
    def explained(self) -> Literal["with text", "without text"] | None:
        """Whether misses are explained."""
        if self.include_text:
            return "with text"
        return "without text" if self.explain or self.opinions else None


# --- dead letters -----------------------------------------------------------------------------------------------------


class LetterOptions(NamedTuple):
    """A choice of dead letters."""

    reason: options.Reasons = None
    partition: options.Partitions = None
    since: options.Since = None
    until: options.Until = None
    after: options.After = None
