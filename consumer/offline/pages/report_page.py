"""The report as a document, and as a Markdown page in GitHub's flavour: the verdict first, then the evidence."""

from collections.abc import Iterator
from typing import Final

from consumer.offline.pages import report_content as content
from consumer.offline.pages.document import Document, Item, Name, Section, Sentence, Texts
from consumer.offline.pages.markdown_parts import left_out, mark, markdown, markdown_headline, markdown_top
from consumer.offline.pages.numbers import BRACKETS, pass_rate, score
from consumer.offline.scored_run import CaseLine, ScoredRun
from consumer.text import count_of
from safe_core import Label


def render_markdown(run: ScoredRun, *, max_bytes: int | None = None) -> str:
    """Give the page; if it would take more than `max_bytes` of UTF-8, leave out some details and say so.

    First to go are the passing cases, last the verdict with the totals; where not even these fit, the text is empty.
    """
    document = page(run)
    whole = markdown(document, max_bytes)
    if max_bytes is None:
        return whole
    least = f"{mark('report')}\n{markdown_headline(document)}\n"
    pages = whole, markdown_top(document) + left_out(["all else"]), least
    return next((each for each in pages if len(each.encode()) <= max_bytes), "")


def page(run: ScoredRun) -> Document:
    """Give the report: the verdict first, then the numbers, then the cases that do not pass."""
    report, summary, ceiling = run.report, run.report["summary"], content.ceiling(run.report)
    total, passed = summary["total_cases"], summary["pass"]
    counts = f"{summary['fail']} Fail, {summary['review']} Review, {passed} Pass"
    return Document(
        "report",
        Sentence("SAFE v0: concern {}, batch {}", (Name(report["concern_id"]), Name(report["batch_id"]))),
        run.verdict,
        f"{count_of(total, 'case')}, of these {counts}; pass rate {pass_rate(passed, total)}.",
        decision=run.decision,
        facts=[Sentence(f"Ceiling: {ceiling}.")] if ceiling else [],
        tables=[content.totals(report)],
        notes=[BRACKETS],
        sections=[*figures(run), *_cases(run), why_missed(run), *missed(run), *how_made(run)],
    )


_LISTED: Final[tuple[tuple[str, Label, str], ...]] = (
    ("Failing cases", "Fail", "failing cases"),
    ("Cases to review", "Review", "cases to review"),
)


def _cases(run: ScoredRun) -> Iterator[Section]:
    """Give the cases, which are the first to go where there is no room."""
    for rank, (heading, label, left_out_) in enumerate(_LISTED, 7):
        cases = [_item(run, case) for case in run.labelled(label)]
        yield Section(Sentence(heading), cases, left_out=left_out_, rank=rank)
    passing = [Item(Sentence(f"{{}}{_about(case)}", (Name(case.test_id),))) for case in run.labelled("Pass")]
    folded = Sentence(count_of(len(passing), "passing case"))
    yield Section(folded, passing, is_folded=True, left_out="passing cases", rank=9)


def figures(run: ScoredRun) -> list[Section]:
    """Give what all cases come to."""
    report, lenient = run.report, content.lenient(run.report)
    told = (lenient, Sentence(content.LENIENT)) if lenient.rows else ()
    return [
        Section(Sentence("Criteria"), [content.criteria(report)], left_out="tables of criteria", rank=0),
        Section(Sentence(lenient.caption), told, left_out="lines on other words", rank=1),
        Section(Sentence("By archetype"), [content.archetypes(report)], left_out="archetypes", rank=5),
    ]


def missed(run: ScoredRun) -> list[Section]:
    """Give what was missed most often, and what a reader must know to read the numbers."""
    kinds, terms = content.kinds_of_misses(run.report), content.most_frequent_terms(run.report)
    remarks = [*map(Item, content.worth_knowing(run))]
    return [
        Section(Sentence(kinds.caption), [kinds], left_out="kinds of misses", rank=4),
        Section(Sentence(terms.caption), [terms], left_out="of the terms most often missed", rank=3),
        Section(Sentence("Worth knowing"), remarks, left_out="remarks", rank=2),
    ]


def why_missed(run: ScoredRun) -> Section:
    """Give why terms were missed, if the run is explained."""
    return Section(Sentence("Why terms were missed"), [*map(Item, content.why_missed(run))], left_out="reasons", rank=2)


def how_made(run: ScoredRun) -> list[Section]:
    """Give what made the report, and of what."""
    made = [*map(Item, content.how_made(run.report))]
    return [
        Section(Sentence("How it was made"), made, left_out="lines on how it was made", rank=4),
        Section(Sentence("Inputs"), [content.inputs(run.report)], left_out="inputs", rank=6),
    ]


def _item(run: ScoredRun, case: CaseLine) -> Item:
    archetype, batch = case.archetype, case.batch_id if run.has_batches else None
    named = [template for template, text in (("{}", archetype), ("batch {}", batch)) if text is not None]
    names = [Name(text) for text in (case.test_id, archetype, batch) if text is not None]
    about = f" ({', '.join(named)})" if named else ""
    lost = content.lost_terms(case, run.explanation_of(case))
    return Item(
        Sentence(f"{{}}{about}: {', '.join(_scores(case))}{_about(case)}", tuple(names)),
        below=[Texts(f"{each.criterion} {each.how}", each.terms) for each in lost],
    )


def _scores(case: CaseLine) -> Iterator[str]:
    for judged in case.judged:
        beside = content.lenient_of(case, judged.criterion)
        below = f" below {judged.missed}" if judged.missed else ""
        yield f"{judged.criterion} {content.score_of(judged)}{below}" + (f" ({beside})" if beside else "")
    yield f"composite {score(case.row.scores.composite)}"


def _about(case: CaseLine) -> str:
    return f", {about}" if (about := content.about_output(case)) else ""
