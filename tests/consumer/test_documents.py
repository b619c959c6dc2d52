"""README and docs as one web of pages: each link leads somewhere, and each page can be found from the first one."""

import re
from pathlib import Path

import pytest

from tests.support.documents import documents, leads_somewhere, links
from tests.support.kafka_broker import PROJECT

INDEX = PROJECT / "docs" / "README.md"
KINDS = {"tutorials", "how-to", "reference", "explanation"}


def name_of(page: Path) -> str:
    return page.relative_to(PROJECT).as_posix()


@pytest.mark.parametrize("page", documents(), ids=name_of)
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    assert [link for link in links(page) if not leads_somewhere(page, link)] == []


def test_a_link_to_nowhere_is_seen() -> None:
    assert leads_somewhere(INDEX, "contract.md#matching")
    assert not leads_somewhere(INDEX, "contract.md#mending")
    assert not leads_somewhere(INDEX, "reference/contract.md")


def test_the_index_names_every_page_of_the_docs() -> None:
    named = {(INDEX.parent / link.partition("#")[0]).resolve() for link in links(INDEX)}
    pages = {page for page in documents() if page.is_relative_to(INDEX.parent) and page != INDEX}
    assert [name_of(page) for page in sorted(pages - named)] == []


def test_every_page_is_of_one_kind() -> None:
    pages = [page for page in documents() if page.is_relative_to(INDEX.parent) and page != INDEX]
    above = {"docs/contract.md", "docs/develop.md"}  # what outsiders rely on, and what insiders begin with
    assert {name_of(page) for page in pages if page.parent.name not in KINDS} == above


def test_what_names_a_page_of_the_docs_names_one_that_is_there() -> None:
    """Code, errors, alerts and settings name pages by their path in the project."""
    folders = ("consumer", "safe_core", "safe_scorer", "config", "charts", "tests", "bench")
    files = [
        path
        for folder in folders
        for path in (PROJECT / folder).rglob("*")
        if path.suffix in {".py", ".yml", ".yaml", ".md", ".sh", ".json"} and "node_modules" not in path.parts
    ]
    files += [PROJECT / name for name in ("Makefile", "Dockerfile", "compose.yaml", "CHANGELOG.md")]
    named = {
        (page, path.relative_to(PROJECT).as_posix())
        for path in files
        if path.is_file()
        for page in re.findall(r"\bdocs/(?:[\w-]+/)*[\w-]+\.md", path.read_text(encoding="utf-8"))
    }
    assert [(page, by) for page, by in sorted(named) if not (PROJECT / page).is_file()] == []
