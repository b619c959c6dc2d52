"""Explained cases as JSON, CSV and Markdown: a miss in each row, its verdict first."""

import csv
import io
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal, NamedTuple

from consumer.offline.explanations import misses_documents
from consumer.offline.pages.csv_tables import cell
from consumer.offline.pages.markdown_parts import literal
from consumer.offline.pages.misses import KIND_LABELS, reason
from consumer.offline.pages.report_content import about_output, score_of
from consumer.offline.scored_run import CaseLine, Explanation
from safe_core.diagnosis import VERDICTS, doubtful_document

ExplainFormat = Literal["console", "json", "csv", "markdown"]


class ExplainedCase(NamedTuple):
    """A scored case and why it scored as it did."""

    case: CaseLine
    explanation: Explanation

    @property
    def has_reasons(self) -> bool:
        """Whether its misses say anything: not without an output, nor with one of another patient."""
        return self.case.answered and self.case.input_matches is not False


def written(cases: Sequence[ExplainedCase], format_: ExplainFormat, *, include_text: bool) -> str:
    """Give explained cases in a format other than the console's; texts are quoted only with `include_text`."""
    if format_ == "json":
        return json.dumps(document(cases, include_text=include_text), indent=2) + "\n"
    if format_ == "csv":
        return _csv(cases, include_text=include_text)
    return "\n".join(_markdown(cases, include_text=include_text)) + "\n"


def document(cases: Sequence[ExplainedCase], *, include_text: bool) -> dict[str, Any]:
    """Give the JSON of explained cases; the counts by verdict add up to the misses of the cases that have reasons."""
    doubtful = sum(len(each.case.doubtful) for each in cases)
    misses = [miss for each in cases if each.has_reasons for miss in each.explanation.diagnosis.misses]
    verdicts = Counter(miss.verdict for miss in misses)
    return {
        "cases": len(cases),
        "misses": len(misses),
        "miss_verdicts": {verdict: verdicts[verdict] for verdict in VERDICTS},
        "doubtful_hits": doubtful,
        "missing_outputs": sum(not each.case.answered for each in cases),
        "input_mismatches": sum(each.case.input_matches is False for each in cases),
        "results": [
            {
                "test_id": each.case.test_id,
                "batch_id": each.case.batch_id,
                "archetype": each.case.archetype,
                "label": each.case.label,
                "scores": each.case.row.scores._asdict(),
                "answered": each.case.answered,
                "input_matches": each.case.input_matches,
                "doubtful": [doubtful_document(hit) for hit in each.case.doubtful],
                "misses": misses_documents(each.explanation, include_text=include_text),
            }
            for each in cases
        ],
    }


_COLUMNS: Final = (
    "criterion", "term", "verdict", "kind", "in_narrative", "field", "element", "start", "end", "similarity",
)  # fmt: skip


def _csv(cases: Sequence[ExplainedCase], *, include_text: bool) -> str:
    file = io.StringIO()
    writer = csv.writer(file)
    more = ("text",) if include_text else ()
    writer.writerow(("batch_id", "test_id", "label", "output", *_COLUMNS, "missing_words", "also_in", *more))
    for each in cases:
        about = about_output(each.case) or "answered"
        for miss in misses_documents(each.explanation, include_text=include_text):
            told = ["" if miss[name] is None else cell(str(miss[name])) for name in (*_COLUMNS, *more)]
            places = "; ".join(f"{place['field']}[{place['element']}]" for place in miss["also_in"])
            extra = (cell("; ".join(miss["missing_words"])), places.replace("[None]", ""))
            row = (*told[: len(_COLUMNS)], *extra, *told[len(_COLUMNS) :])
            writer.writerow((cell(each.case.batch_id), cell(each.case.test_id), each.case.label, about, *row))
    return file.getvalue()


def _markdown(cases: Sequence[ExplainedCase], *, include_text: bool) -> Iterator[str]:
    yield "# Why terms were missed"
    for each in cases:
        scores = ", ".join(f"{judged.criterion} {score_of(judged)}" for judged in each.case.judged)
        about = f", **{nothing}**" if (nothing := about_output(each.case)) else ""
        yield f"\n## {literal(each.case.test_id)}: {each.case.label}{about}\n\n{scores}\n"
        quoted = each.explanation if include_text else None
        for miss in each.explanation.diagnosis.misses if each.case.answered else ():
            yield (
                f"- **{miss.verdict}** {miss.criterion} {literal(miss.term)} ({KIND_LABELS[miss.kind]}): "
                f"{literal(reason(miss, quoted))}"
            )
