"""The page of `safe review` in a real browser, by the keyboard alone."""

import hashlib
import json
import os
import shutil
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest

from consumer.files.outputs import open_all
from consumer.offline.review import Review
from consumer.offline.review_server import served
from consumer.offline.triage import TriageRequest
from safe_core import DEFAULT_POLICY
from tests.support.browser import Browser, Tab
from tests.support.case_files import a_case, answer, write_batch, write_report
from tests.support.node import node_project

ROOT = Path(__file__).parents[2]

NARRATIVE = "A girl arrived at the clinic at 18:00 on Sunday. The left hand was warm, and she could move it."
OUTPUT = {
    "signals": ["arrived at the clinic at 18:00 on Sunday"],
    "summary": "Warm left hand.",
    "followup_questions": [],
}


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
        await tab.until("document.querySelector('.item.current').dataset.item === '1'")  # accepting steps on
        await tab.press("c")
        await tab.write("as good as said")
        await tab.press("Escape", "p")
        await tab.until("document.querySelector('h1').textContent.includes('T2') && document.readyState === 'complete'")
        await tab.open(f"{address}case/0")
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
        await tab.until("document.querySelector('h1').textContent.includes('T2')")
        await tab.until(is_at.format(0))
        await tab.open(f"{address}case/0")
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
        await tab.open(f"{address}changes")
        assert await tab.text("#to-apply") == "1 accepted change"
        assert await tab.text(".changes del") == "arrived Sunday 18:00"
        await tab.evaluate("document.getElementById('apply').click()")
        await tab.until("document.getElementById('status').textContent.startsWith('Written: b1.json')")
        assert await tab.text("#to-apply") == "0 accepted changes"
    [first, _] = json.loads((review.folder / "b1.json").read_text(encoding="utf-8"))["test_cases"]
    signals = first["expectations"]["signal_generation"]["must_find_signals"]
    assert signals == ["arrived at the clinic", "at 18:00 on Sunday"]


async def test_what_was_applied_can_be_undone(chrome: Browser, review: Review) -> None:
    before = (review.folder / "b1.json").read_bytes()
    review.decide(0, 0, "accepted", by="ann", at="2026-01-02T03:04:05.678Z", seen="")
    async with served(review, by="ann") as address, chrome.tab() as tab:
        await tab.open(f"{address}changes")
        await tab.evaluate("document.getElementById('apply').click()")
        await tab.until("document.getElementById('undo') !== null")
        assert (review.folder / "b1.json").read_bytes() != before
        await tab.evaluate("document.getElementById('undo').click()")
        await tab.until("document.getElementById('status').textContent.startsWith('As before again: b1.json')")
        assert await tab.text("#to-apply") == "1 accepted change"
    assert (review.folder / "b1.json").read_bytes() == before


async def test_a_choice_of_cases_leads_from_the_list_through_its_cases(chrome: Browser, review: Review) -> None:
    async with served(review, by="ann") as address, chrome.tab() as tab:
        await tab.open(address)
        await tab.until("document.querySelector('#totals').textContent.includes('0 of 3 terms decided')")
        await tab.evaluate("document.querySelector('[name=search]').value = 'could move'")
        await tab.evaluate("document.querySelector('form button').click()")
        await tab.until("document.querySelectorAll('.cases a').length === 1 && document.readyState === 'complete'")
        await tab.press("n")
        await tab.until("document.querySelector('h1').textContent.includes('T2') && document.readyState === 'complete'")
        assert "1 of 1" in await tab.text("nav")


async def test_the_list_grows_while_cases_are_explained(chrome: Browser, review: Review) -> None:
    async with served(review, by="ann") as address, chrome.tab() as tab:
        await tab.open(address)
        await tab.until("document.getElementById('explaining') === null")
        await tab.until("document.querySelector('#totals').textContent.startsWith('0 of 3 terms decided')")


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
@pytest.mark.parametrize("width", [1280, 390])
async def test_each_page_fits_its_window_and_axe_finds_nothing(
    chrome: Browser, review: Review, width: int, *, dark: bool
) -> None:
    axe = (node_project(Path(__file__).parent / "axe") / "node_modules/axe-core/axe.min.js").read_text("utf-8")
    review.decide(0, 0, "accepted", by="ann", at="2026-01-02T03:04:05.678Z", seen="")
    async with served(review, by="ann") as address, chrome.tab(width=width, dark=dark) as tab:
        for page in ("", "?output_says=said", "case/0", "changes"):
            await tab.open(address + page)
            assert await tab.evaluate(f"document.documentElement.scrollWidth <= {width}")
            ground = "getComputedStyle(document.body).backgroundColor"
            assert await tab.evaluate(ground) == ("rgb(15, 19, 24)" if dark else "rgb(255, 255, 255)")
            await tab.evaluate(f"{axe}; 0")
            found = "axe.run().then((said) => said.violations.map(({ id, nodes }) => [id, nodes[0].html]))"
            assert await tab.evaluate(found) == []
            stretched = "Array.from(document.querySelectorAll('kbd')).filter((each) => each.offsetWidth > 100).length"
            assert await tab.evaluate(stretched) == 0, "a hint is no field"
        assert all(asked.startswith(address) for asked in tab.asked_for), "nothing is loaded from elsewhere"


async def test_the_picture_in_the_readme_shows_this_page(chrome: Browser, tmp_path: Path) -> None:
    """The picture holds a digest of what it shows: SAFE_TEST_UPDATE_GOLDEN=1 makes it again."""
    shutil.copytree(ROOT / "consumer" / "examples" / "story", tmp_path / "story")
    request = TriageRequest(tmp_path / "story" / "cases", "*")
    story = Review(DEFAULT_POLICY, request, open_all([tmp_path / "story" / "run_1.json"]))
    picture = ROOT / "docs" / "review.png"
    async with served(story, by="ann") as address, chrome.tab() as tab:
        await tab.open(f"{address}case/0")
        shown = await tab.evaluate("document.querySelector('style').textContent + document.body.innerText")
        digest = b"shown\0" + hashlib.sha256(shown.encode()).hexdigest().encode()
        if os.environ.get("SAFE_TEST_UPDATE_GOLDEN"):
            picture.write_bytes(with_text(await tab.picture(), digest))
    assert digest in picture.read_bytes()


def with_text(png: bytes, text: bytes) -> bytes:
    """Put a text chunk behind the header of a picture."""
    end = 8 + 25  # the signature, and the chunk IHDR
    chunk = b"tEXt" + text
    return png[:end] + struct.pack(">I", len(text)) + chunk + struct.pack(">I", zlib.crc32(chunk)) + png[end:]
