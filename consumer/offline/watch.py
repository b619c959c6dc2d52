"""`safe watch`: score again when outputs or test cases change, and show the change against the last and the best run.

Files are looked at twice a second by stat(): what tells programs of changes (inotify and the like) says nothing of
network folders and of some mounts of containers, where others write, and some hundred stats take a millisecond. A file
that cannot be used is probably being written: it is read again when it changes, and only if nothing has changed for a
while is it told what is wrong.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from consumer.errors import ConfigurationError
from consumer.exit_codes import EXIT_OK
from consumer.files.outputs import OUTPUT_SUFFIXES, OnDuplicate, is_standard_input, open_all
from consumer.files.selection import select
from consumer.offline.compare import Change, Comparison, NotJudged, compare
from consumer.offline.pages.comparison_content import headline, measures, remarks, terms_of, why_not
from consumer.offline.pages.numbers import pass_rate, score
from consumer.offline.scoring import score_files
from consumer.terminal import print_message
from consumer.text import named, printable, quoted
from safe_core import CRITERIA, Policy

LOOK_SECONDS: Final = 0.5
SETTLED_SECONDS: Final = 2.0
"""A writer that has paused this long has finished, or will not finish."""

_LISTED, _TERMS, _LONGEST_TERM = 10, 3, 60


@dataclass(frozen=True, slots=True)
class WatchRequest:
    """What is watched: files of outputs, or folders of them, and the test cases; `concern` where there are several."""

    outputs: Sequence[Path]
    test_dir: Path
    concern: str | None = None
    batch: str = "*"
    on_duplicate: OnDuplicate | None = None

    def __post_init__(self) -> None:
        if any(map(is_standard_input, self.outputs)):
            raise ConfigurationError("--outputs -: standard input cannot be watched; name files or folders")


class _Stamp(NamedTuple):
    """What changes when a file is written, or replaced by another one."""

    modified_ns: int
    size: int
    inode: int


def stamps(request: WatchRequest) -> Mapping[Path, _Stamp]:
    """Look at every file that counts; one that is not there is left out."""
    found = {}
    for path in _files(request):
        with suppress(OSError):  # it may go between two looks, or its folder may be away for a moment
            status = path.stat()
            found[path] = _Stamp(status.st_mtime_ns, status.st_size, status.st_ino)
    return found


def _files(request: WatchRequest) -> Iterator[Path]:
    with suppress(OSError):
        yield from request.test_dir.glob("*.json")
    for path in request.outputs:
        with suppress(OSError):
            yield from (each for each in path.iterdir() if each.suffix in OUTPUT_SUFFIXES) if path.is_dir() else [path]


class _Run(NamedTuple):
    """A run, by its number, and its report."""

    number: int
    report: Mapping[str, Any]

    @property
    def rank(self) -> tuple[float, float]:
        """What decides which run is the best: its pass rate and, if that is equal, its mean composite."""
        return self.report["summary"]["overall_pass_rate"], self.report["mean_scores"]["composite"]


@dataclass(slots=True)
class Watch:
    """What has been seen and scored so far."""

    policy: Policy
    request: WatchRequest
    _seen: Mapping[Path, _Stamp] | None = None
    _changed_at: float = 0.0
    _is_waiting: bool = False
    _remarks: Sequence[str] = ()
    _runs: list[_Run] = field(default_factory=list)
    """The best one, and the last one, which may be the same."""

    def look(self, now: float) -> list[str]:
        """Look at the files, at a moment in seconds, and give what to print: nothing if nothing has changed."""
        seen = stamps(self.request)
        if seen != self._seen:
            self._seen, self._changed_at, self._is_waiting = seen, now, True
        elif not self._is_waiting or now - self._changed_at < SETTLED_SECONDS:
            return []
        try:
            report = self._scored()
        except ConfigurationError as error:
            if now - self._changed_at < SETTLED_SECONDS:
                return []
            self._is_waiting = False
            return [f"{printable(str(error))}; waiting for a change"]
        self._is_waiting = False
        return self._shown(report)

    def _scored(self) -> Mapping[str, Any]:
        request = self.request
        selection = select(request.test_dir, request.concern, request.batch)
        files = open_all(request.outputs)
        run, said = score_files(selection, files, self.policy, generated_at="", on_duplicate=request.on_duplicate)
        if said != self._remarks:
            print_message(*said)
            self._remarks = said
        return run.report

    def _shown(self, report: Mapping[str, Any]) -> list[str]:
        """Give the lines of a run, and keep it if it is the best one or has something else than the last one."""
        if not self._runs:
            self._runs = [_Run(1, report)] * 2
            return [_summary(self._runs[-1])]
        best, last = self._runs
        if report["results"] == last.report["results"]:
            return [f"scored again: nothing has changed since run {last.number}"]
        run = _Run(last.number + 1, report)
        lines = [_summary(run), *_against(last, run, "the last")]
        if best.number != last.number:
            lines += _against(best, run, "the best so far")
        self._runs = [run if run.rank > best.rank else best, run]
        return lines


def _summary(run: _Run) -> str:
    summary, means = run.report["summary"], run.report["mean_scores"]
    scores = ", ".join(f"{name} {score(means[name])}" for name in CRITERIA)
    passes, total = summary["pass"], summary["total_cases"]
    counts = f"{passes} of {total} Pass, {summary['review']} Review, {summary['fail']} Fail"
    return f"run {run.number}: {counts}; {pass_rate(passes, total)}; {scores}"


def _against(before: _Run, run: _Run, which: str) -> Iterator[str]:
    """Say what changed between two runs."""
    about = f"  against run {before.number} ({which})"
    try:
        comparison = compare(before.report, run.report, f"run {before.number}", f"run {run.number}")
    except ConfigurationError as error:
        yield f"{about}: {printable(str(error))}"
        return
    moved = [f"{row[0]} {row[-1]}" for row in measures(comparison).rows if row[-1] != "0"]
    yield f"{about}: {headline(comparison)}" + (f"; {', '.join(moved)}" if moved else "")
    yield from (f"    {each.written(quoted)}" for each in remarks(comparison))
    yield from _cases(comparison)


def _cases(comparison: Comparison) -> Iterator[str]:
    listed: Mapping[str, Sequence[Change | NotJudged]]
    listed = {"lost": comparison.lost, "worse": comparison.fell, "better": comparison.rose}
    for what, cases in listed.items():
        yield from (f"    {what:6}  {_case(case)}" for case in cases[:_LISTED])
        if len(cases) > _LISTED:
            yield f"    {what:6}  and {len(cases) - _LISTED} more"


def _case(case: Change | NotJudged) -> str:
    if isinstance(case, NotJudged):
        return f"{printable(case.test_id)}  {why_not(case)}"
    terms = (f"{what}: {named(each, _TERMS, _LONGEST_TERM)}" for what, each in terms_of(case))
    return f"{printable(case.test_id)}  {case.before.label} -> {case.after.label}  {'; '.join(terms)}".rstrip()


def watch_command(policy: Policy, request: WatchRequest, wait: Callable[[float], None] = time.sleep) -> int:
    """Watch until Ctrl-C, and give the exit code."""
    watch = Watch(policy, request)
    try:
        while True:
            clock = time.strftime("%H:%M:%S")
            for number, line in enumerate(watch.look(time.monotonic())):
                print(f"{clock if number == 0 else ' ' * len(clock)}  {line}", flush=True)
            wait(LOOK_SECONDS)
    except KeyboardInterrupt:
        return EXIT_OK
