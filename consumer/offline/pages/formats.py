"""The formats of every command that has a document: three layouts of it, and the JSON."""

from collections.abc import Callable, Mapping
from typing import TypeVar

from consumer.files.json_text import json_text
from consumer.offline.destinations import Format
from consumer.offline.pages.console_layout import console_text
from consumer.offline.pages.document import Document
from consumer.offline.pages.html_parts import html
from consumer.offline.pages.markdown_parts import markdown

_Found = TypeVar("_Found")


def formats(
    page: Callable[[_Found], Document], json: Callable[[_Found], object], max_bytes: int | None = None
) -> Mapping[Format, Callable[[_Found], str]]:
    """Give each format, and what makes it; a Markdown page takes at most `max_bytes` of UTF-8."""
    return {
        "console": lambda found: console_text(page(found)),
        "json": lambda found: json_text(json(found)),
        "markdown": lambda found: markdown(page(found), max_bytes),
        "html": lambda found: html(page(found)),
    }
