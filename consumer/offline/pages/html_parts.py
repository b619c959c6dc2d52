"""What the HTML pages are made of: their templates, and the policy that keeps everything else out.

Whatever a template shows goes through printable() and is then escaped. If something should get by, the page's own
policy forbids every style and script but those that it names by their hashes.
"""

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from consumer.offline.pages import report_content
from consumer.offline.pages.document import Document, Mark, MarkedText, Name, Quote, Sentence
from consumer.offline.pages.numbers import BRACKETS, pass_rate, percent, score
from consumer.text import count_of, printable
from safe_core import LABELS

SCRIPTS_BESIDE: Final = "'self' file: "
"""Allows a page to load the scripts beside it: from its server or, if it was opened from a disk, from this."""


def page(
    name: str, kind: str | None, styles: Sequence[str], script: str | None = None, loaded: str = "", /, **shown: object
) -> str:
    """Give a page of a kind by which SAFE recognises its own pages; None for one that no file will hold.

    It may load nothing else than the scripts of `loaded`.
    """
    code = _ours("" if script is None else _block(script))
    style = _ours("".join(map(_block, styles)))
    policy = _policy(style, code).replace("script-src ", f"script-src {loaded}")
    return _template(name).render(kind=kind, policy=_ours(policy), style=style, script=code, **shown)


def data_block(data: object) -> Markup:
    """Give data as JSON that neither ends the script that holds it nor begins a comment in it, whatever they are."""
    return _ours(json.dumps(data, separators=(",", ":")).replace("<", "\\u003c"))


def html(document: Document) -> str:
    """Lay out a document as a page that loads nothing, and opens from disk."""
    return page("document.html.j2", document.kind, ["report.css"], document=document, plain=printable)


def served_policy(styles: Sequence[str], script: str) -> str:
    """Give the policy of a page that talks to its own server, and to nobody else."""
    policy = _policy("".join(map(_block, styles)), _block(script)).replace("form-action 'none'", "form-action 'self'")
    return f"{policy}; connect-src 'self'; frame-ancestors 'none'"


@cache
def _block(name: str) -> str:
    """Give a style or script that is put into a page as it is."""
    return files("consumer.offline").joinpath("templates", name).read_text(encoding="utf-8")


@cache
def _template(name: str) -> Template:
    """Give a template whose every text is escaped."""
    environment = Environment(
        loader=PackageLoader("consumer.offline"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"percent": percent, "score": score, "written": _written, "slug": slug, "marked": _marked}
    environment.globals |= {
        "brackets": BRACKETS, "content": report_content, "count_of": count_of, "labels": LABELS, "pass_rate": pass_rate,
    }  # fmt: skip
    return environment.get_template(name)


def _shown(value: object) -> object:
    """Escape what could fool a reader in anything that the template shows, unless it is markup already."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _written(sentence: Sentence) -> Markup:
    return _ours(sentence.template).format(*map(_span, sentence.texts))


_TAGS: Final[Mapping[Mark, Markup]] = {
    "lacking": Markup("<del>{}</del>"),
    "further": Markup("<ins>{}</ins>"),
    "unsupported": Markup('<mark class="unsupported">{}</mark>'),
    "pointed": Markup("<mark>{}</mark>"),
}


def _marked(texts: Iterable[MarkedText]) -> Markup:
    """Give a text with what is marked in it."""
    return Markup().join(_TAGS.get(each.mark, Markup("{}")).format(printable(each.text)) for each in texts)


def _span(text: str) -> Markup:
    if isinstance(text, Quote):
        return Markup('<span class="text">{}</span>').format(_marked(text.parts))
    name = "id text" if isinstance(text, Name) else "text"
    return Markup('<span class="{}">{}</span>').format(name, printable(text))


def slug(test_id: str) -> str:
    """Give the name of a case in an address: its test_id, or the characters that an address allows and a hash of it."""
    plain = re.sub(r"[^A-Za-z0-9_.-]+", "-", test_id)[:_SLUG_LENGTH]
    if plain == test_id:
        return plain
    return f"{plain}-{hashlib.sha256(test_id.encode(errors='surrogatepass')).hexdigest()[:8]}"


_SLUG_LENGTH: Final = 64


def _ours(markup: str) -> Markup:
    """Give markup that is put into a page as it is."""
    return Markup(markup)  # noqa: S704 (it holds no text from outside)


def _policy(style: str, script: str) -> str:
    """Give the content security policy: nothing may be loaded, and only this style and this script are allowed."""
    scripts = f"script-src '{_hash(script)}'; " if script else ""
    return f"default-src 'none'; style-src '{_hash(style)}'; {scripts}base-uri 'none'; form-action 'none'"


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
