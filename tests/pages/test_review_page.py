"""The page of `safe review` in a real browser, by the keyboard alone."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from consumer.files.outputs import open_all
from consumer.offline.review import Review
from consumer.offline.review_server import served
from consumer.offline.triage import TriageRequest
from safe_core import DEFAULT_POLICY
from tests.conftest import missing
from tests.support.browser import Browser, BrowserMissingError, Tab, browser
from tests.support.case_files import a_case, answer, write_batch, write_report

NARRATIVE = "A girl arrived at the clinic at 18:00 on Sunday. The left hand was warm, and she could move it."
OUTPUT = {
    "signals": ["arrived at the clinic at 18:00 on Sunday"],
    "summary": "Warm left hand.",
    "followup_questions": [],
}


@pytest.fixture
async def chrome(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Browser]:
    try:
        async with browser(tmp_path_factory.mktemp("profile")) as started:
            yield started
    except BrowserMissingError as error:
        missing(str(error))


@pytest.fixture
def review(tmp_path: Path) -> Review:
    """Two cases; the first has a term that can be replaced and one that has no other wording in the narrative."""
    first = a_case("T1", ["arrived Sunday 18:00"], (), ["the left hand was warm"], patient_payload=NARRATIVE)
    second = a_case("T2", ["she could move it"], (), [], patient_payload=NARRATIVE)
    write_batch(tmp_path / "cases", "b1", first, second)
    outputs = write_report(tmp_path / "run.json", answer("T1", OUTPUT), answer("T2", OUTPUT))
    return Review(DEFAULT_POLICY, TriageRequest(tmp_path / "cases", "*"), open_all([outputs]))


def kept(review: Review) -> Any:
    return json.loads((review.folder / "safe.decisions.json").read_text(encoding="utf-8"))


async def decided(tab: Tab, item: int, text: str) -> None:
    await tab.until(f"document.querySelectorAll('.item .decided')[{item}].textContent.includes({json.dumps(text)})")


async def test_each_decision_by_the_keyboard_is_kept_and_survives_a_reload(chrome: Browser, review: Review) -> None:
    async with served(review, by="ann") as address, chrome.tab() as tab:
        await tab.open(f"{address}case/0")
        await tab.press("a")
        await decided(tab, 0, "accepted by ann")
        await tab.press("j", "c")
        await tab.write("as good as said")
        await tab.press("Escape", "p")
        await decided(tab, 1, "accepted as a paraphrase")
        await tab.press("s")
        await tab.until("document.querySelector('#verdict .decided').textContent.startsWith('safe by ann')")
        await tab.open(f"{address}case/0")
        await decided(tab, 0, "accepted by ann")
        await decided(tab, 1, "as good as said")
    terms = {each["term"]: each for each in kept(review)["terms"]}
    assert terms["arrived Sunday 18:00"]["replacement"] == ["arrived at the clinic at 18:00 on Sunday"]
    assert terms["the left hand was warm"]["choice"] == "paraphrase"
    assert terms["the left hand was warm"]["words"]
    assert [each["verdict"] for each in kept(review)["cases"]] == ["safe"]


async def test_j_and_k_lead_through_terms_and_cases(chrome: Browser, review: Review) -> None:
    async with served(review, by="ann") as address, chrome.tab() as tab:
        await tab.open(f"{address}case/0")
        current = "document.querySelector('.item.current').dataset.item"
        assert await tab.evaluate(current) == "0"
        await tab.press("j")
        assert await tab.evaluate(current) == "1"
        await tab.press("k")
        assert await tab.evaluate(current) == "0"
        await tab.press("j", "j")
        await tab.until("document.querySelector('h1').textContent.includes('T2') && document.readyState === 'complete'")
        await tab.press("k")
        await tab.until("document.querySelector('h1').textContent.includes('T1')")


async def test_n_leads_to_the_terms_that_nobody_has_decided_on(chrome: Browser, review: Review) -> None:
    async with served(review, by="ann") as address, chrome.tab() as tab:
        is_at = "document.readyState === 'complete' && document.querySelector('.item.current')?.dataset.item === '{}'"
        await tab.open(address)
        await tab.press("n")
        await tab.until(is_at.format(0))
        await tab.press("j", "r")
        await decided(tab, 1, "rejected")
        await tab.open(f"{address}case/1")
        await tab.press("n")
        await tab.until("document.getElementById('nothing-left').textContent === 'No later term is undecided.'")
        await tab.open(f"{address}case/0")
        await tab.press("a")
        await decided(tab, 0, "accepted")
        await tab.press("j", "w")
        await decided(tab, 1, "nothing is decided")
        await tab.open(address)
        await tab.press("n")
        await tab.until(is_at.format(1))


async def test_a_comment_goes_with_its_decision_and_keys_work_again_when_a_field_is_left(
    chrome: Browser, review: Review
) -> None:
    async with served(review, by="ann") as address, chrome.tab() as tab:
        await tab.open(f"{address}case/0")
        await tab.press("r")
        await decided(tab, 0, "rejected")
        await tab.press("c")
        await tab.write("too long")
        await tab.press("Enter")
        await decided(tab, 0, "too long")
        await tab.press("w")
        await decided(tab, 0, "nothing is decided")
        await tab.press("r")
        await decided(tab, 0, "rejected")
        await tab.press("u")
        await tab.until("document.querySelector('#verdict .decided').textContent.includes('unsafe by ann')")
        before = await tab.evaluate("document.getElementById('verdict').dataset.seen")
        await tab.press("y")
        await tab.write("white hand")
        await tab.press("Enter", "?")
        await tab.until(f"document.getElementById('verdict').dataset.seen !== {json.dumps(before)}")
        assert await tab.evaluate("document.activeElement.id") == "keys"
    [term], [case] = kept(review)["terms"], kept(review)["cases"]
    assert "comment" not in term
    assert case["comment"] == "white hand"


async def test_an_edit_is_saved_and_applied_to_the_batch_file(chrome: Browser, review: Review) -> None:
    async with served(review, by="ann") as address, chrome.tab() as tab:
        await tab.open(f"{address}case/0")
        await tab.press("e")
        await tab.evaluate("document.querySelector('.item textarea').value = ''")
        await tab.write("arrived at the clinic\nat 18:00 on Sunday")
        await tab.evaluate("document.querySelector('[data-choice=edited]').click()")
        await decided(tab, 0, 'edited to "arrived at the clinic", "at 18:00 on Sunday" by ann')
        await tab.open(address)
        assert await tab.text("#to-apply") == "1 accepted change"
        await tab.evaluate("document.getElementById('apply').click()")
        await tab.until("document.getElementById('status').textContent.startsWith('Written: b1.json')")
        assert await tab.text("#to-apply") == "0 accepted changes"
    [first, _] = json.loads((review.folder / "b1.json").read_text(encoding="utf-8"))["test_cases"]
    signals = first["expectations"]["signal_generation"]["must_find_signals"]
    assert signals == ["arrived at the clinic", "at 18:00 on Sunday"]


async def test_two_tabs_lose_nothing_of_each_other(chrome: Browser, review: Review) -> None:
    async with served(review, by="ann") as address, chrome.tab() as one, chrome.tab() as other:
        await one.open(f"{address}case/0")
        await other.open(f"{address}case/0")
        await one.press("a")
        await decided(one, 0, "accepted")
        await other.press("j", "r")
        await decided(other, 1, "rejected")
        await other.press("k", "r")
        await decided(other, 0, "not kept: somebody decided on this meanwhile")
    assert {each["term"]: each["choice"] for each in kept(review)["terms"]} == {
        "arrived Sunday 18:00": "accepted",
        "the left hand was warm": "rejected",
    }


async def test_a_decision_that_was_not_kept_is_not_shown_as_made(chrome: Browser, review: Review) -> None:
    async with chrome.tab() as tab:
        async with served(review, by="ann") as address:
            await tab.open(f"{address}case/0")
        await tab.press("a")
        await decided(tab, 0, "not kept: safe review does not answer")


@pytest.mark.parametrize("dark", [False, True])
async def test_the_page_fits_a_phone_and_has_a_name_for_everything(
    chrome: Browser, review: Review, *, dark: bool
) -> None:
    async with served(review, by="ann") as address, chrome.tab(width=390, dark=dark) as tab:
        for page in ("", "case/0"):
            await tab.open(address + page)
            assert await tab.evaluate("document.documentElement.scrollWidth <= 390")
            unnamed = (
                "Array.from(document.querySelectorAll('input, textarea, select')).filter("
                "(each) => !each.labels.length).length"
            )
            assert await tab.evaluate(unnamed) == 0
            assert await tab.evaluate("document.documentElement.lang") == "en"
            assert await tab.evaluate("document.querySelectorAll('h1').length") == 1
            ground = "getComputedStyle(document.body).backgroundColor"
            assert await tab.evaluate(ground) == ("rgb(15, 19, 24)" if dark else "rgb(255, 255, 255)")
            assert await tab.evaluate(CONTRASTS) >= 4.5
        assert all(asked.startswith(address) for asked in tab.asked_for), "nothing is loaded from elsewhere"


# The least contrast of any text with the colour behind it, by the formula of WCAG 2.
CONTRASTS = """
(() => {
  const parts = (text) => (text.match(/[0-9.]+/g) ?? []).map(Number);
  const light = (rgb) => {
    const [r, g, b] = rgb.slice(0, 3).map((each) => {
      const share = each / 255;
      return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (node) => {
    for (let each = node; each; each = each.parentElement) {
      const colour = parts(getComputedStyle(each).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  let least = 21;
  for (const node of document.querySelectorAll("body *")) {
    const own = Array.from(node.childNodes).some((each) => each.nodeType === 3 && each.textContent.trim());
    if (!own || !node.offsetParent || node.disabled || node.matches("script, style")) continue;
    const pair = [light(parts(getComputedStyle(node).color)), light(behind(node))].sort((a, b) => b - a);
    least = Math.min(least, (pair[0] + 0.05) / (pair[1] + 0.05));
  }
  return least;
})()
"""
