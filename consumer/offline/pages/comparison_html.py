"""A comparison as one HTML page: the verdict first, then the cases. It loads nothing, and opens from disk."""

from typing import Final

from consumer.offline.compare import Comparison
from consumer.offline.pages import comparison_content
from consumer.offline.pages.html import slug
from consumer.offline.pages.html_parts import block, ours, policy, template
from consumer.offline.pages.report_content import Table

MARK: Final = '<meta name="generator" content="SAFE v0 comparison">'
"""It is in the first lines of each such page: SAFE recognises its own pages by it."""

_HEADINGS: Final = ("Judged cases", "Base", "New", "Difference")


def comparison_html(comparison: Comparison, decision: str | None = None) -> str:
    """Give the page; `decision` is the gate's line where one was asked for."""
    style = block("report.css")
    return template("comparison.html.j2").render(
        mark=ours(MARK),
        policy=ours(policy(style)),
        style=ours(style),
        comparison=comparison,
        decision=decision,
        words=comparison_content,
        slug=slug,
        measures=Table("Judged cases", _HEADINGS, [*comparison_content.measures(comparison)], texts=1),
    )
