"""What the HTML pages are made of: their templates, and the policy that keeps everything else out.

Whatever a template shows goes through printable() and is then escaped. If something should get by, the page's own
policy forbids every style and script but those that it names by their hashes.
"""

import base64
import hashlib
from functools import cache
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from consumer.offline.pages import report_content
from consumer.offline.pages.numbers import BRACKETS, percent, score
from consumer.offline.scored_run import LABELS
from consumer.text import count_of, printable


@cache
def block(name: str) -> str:
    """Give a style or script that is put into a page as it is."""
    return files("consumer.offline").joinpath("templates", name).read_text(encoding="utf-8")


@cache
def template(name: str) -> Template:
    """Give a template whose every text is escaped."""
    environment = Environment(
        loader=PackageLoader("consumer.offline"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"percent": percent, "score": score, "written": _written}
    environment.globals |= {"brackets": BRACKETS, "content": report_content, "count_of": count_of, "labels": LABELS}
    return environment.get_template(name)


def _shown(value: object) -> object:
    """Escape what could fool a reader in anything that the template shows, unless it is markup already."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _written(sentence: report_content.Sentence) -> Markup:
    text = Markup('<span class="text">{}</span>')
    return ours(sentence.template).format(*(text.format(printable(each)) for each in sentence.texts))


def ours(markup: str) -> Markup:
    """Give markup that is put into a page as it is."""
    return Markup(markup)  # noqa: S704 (it holds no text from outside)


def policy(style: str, script: str | None = None) -> str:
    """Give the content security policy: nothing may be loaded, and only this style and this script are allowed."""
    scripts = "" if script is None else f"script-src '{_hash(script)}'; "
    return f"default-src 'none'; style-src '{_hash(style)}'; {scripts}base-uri 'none'; form-action 'none'"


def script_and_style_policy(style: str, script: str) -> str:
    """Give the policy of a page that talks to its own server, and to nobody else."""
    return f"{policy(style, script)}; connect-src 'self'; frame-ancestors 'none'"


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
