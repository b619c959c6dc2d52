"""What many misses of a run have in common, counted over its cases."""

from collections import Counter
from collections.abc import Iterator

from consumer.offline.pages.misses import misses_in_words
from consumer.offline.pages.report_content import Sentence
from consumer.offline.scored_run import CaseLine, ScoredRun
from consumer.text import count_of

_NAMED = 5


def why_missed(run: ScoredRun) -> Iterator[Sentence]:
    """Say why terms were missed, the causes that many cases share first; nothing of a run that is not explained."""
    if run.explanations is None:
        return
    judged = [case for case in run.cases if case.answered and case.input_matches is not False]
    yield from _in_another_field(run, judged)
    yield from _same_summary(run, judged)
    if misses := misses_in_words(run.report):
        yield Sentence(f"Why terms were missed: {misses}.")
    uncounted = len(run.cases) - len(judged)
    if uncounted:
        yield Sentence(f"Not counted: {count_of(uncounted, 'case')} without an output or with one of another patient.")


def _in_another_field(run: ScoredRun, judged: list[CaseLine]) -> Iterator[Sentence]:
    """Say how many misses of a criterion stand word for word in a field that it does not read."""
    missed: Counter[str] = Counter()
    elsewhere: Counter[tuple[str, str]] = Counter()
    for case in judged:
        for miss in run.explanations[case.test_id].diagnosis.misses if run.explanations else ():
            missed[miss.criterion] += 1
            elsewhere.update({(miss.criterion, place.field) for place in miss.also_in})
    for (criterion, field), count in sorted(elsewhere.items(), key=lambda each: (-each[1], each[0])):
        misses = count_of(missed[criterion], f"{criterion} miss", "es")
        stand = "stands" if count == 1 else "stand"
        yield Sentence(f"{count} of {misses} {stand} word for word in {field}, which {criterion} does not read.")


def _same_summary(run: ScoredRun, judged: list[CaseLine]) -> Iterator[Sentence]:
    """Name the cases that one and the same summary answers, where they are several."""
    by_summary: dict[str, list[str]] = {}
    for case in judged:
        summary = run.explanations[case.test_id].output.summary.strip() if run.explanations else ""
        if summary:
            by_summary.setdefault(summary, []).append(case.test_id)
    for test_ids in by_summary.values():
        if len(test_ids) > 1:
            listed = ", ".join("{}" for _ in test_ids[:_NAMED])
            more = f" and {len(test_ids) - _NAMED} more" if len(test_ids) > _NAMED else ""
            yield Sentence(
                f"{len(test_ids)} cases have one and the same summary: {listed}{more}.", tuple(test_ids[:_NAMED])
            )
