"""The pages of `safe review`: the list of cases, and a case with its texts side by side."""

from typing import Final

from consumer.offline.pages.html_parts import page, served_policy
from consumer.offline.pages.report_content import about_output, score_of
from consumer.offline.review import Review

_STYLES, _SCRIPT = ("report.css", "review.css"), "review.js"
_KEYS: Final = (
    ("j", "next term, then next case"),
    ("k", "back"),
    ("a", "accept"),
    ("e", "edit"),
    ("r", "reject"),
    ("p", "accept the output's words as a paraphrase"),
    ("c", "comment"),
    ("s", "the output is safe"),
    ("u", "the output is unsafe"),
)


def index_page(review: Review) -> tuple[str, str]:
    """Give the list of cases, and its content security policy."""
    return _rendered("review_index.html.j2", review=review)


def review_case_page(review: Review, number: int) -> tuple[str, str]:
    """Give the page of a case, and its content security policy."""
    return _rendered(
        "review_case.html.j2",
        review=review,
        number=number,
        case=review.cases[number],
        last=len(review.cases) - 1,
        keys=_KEYS,
        score_of=score_of,
        about_output=about_output,
    )


def _rendered(name: str, **shown: object) -> tuple[str, str]:
    return page(name, None, _STYLES, _SCRIPT, **shown), served_policy(_STYLES, _SCRIPT)
