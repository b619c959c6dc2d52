"""Markdown pages read back as GitHub would show them."""

from html.parser import HTMLParser

from markdown_it import MarkdownIt
from typing_extensions import override

_MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])


class Page(HTMLParser):
    """A rendered page: the tags met, the texts of its code spans, and all other text."""

    def __init__(self, markdown: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.code: list[str] = []
        self.prose = ""
        self._in_code = False
        self.feed(_MARKDOWN.render(markdown))
        self.close()

    @override
    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag == "code":
            self._in_code = True
            self.code.append("")

    @override
    def handle_endtag(self, tag: str) -> None:
        self._in_code = self._in_code and tag != "code"

    @override
    def handle_data(self, data: str) -> None:
        if self._in_code:
            self.code[-1] += data
        else:
            self.prose += data
