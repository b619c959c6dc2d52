"""The report as a page, in a real browser: what is chosen on it is in its address."""

import shutil
from pathlib import Path

import consumer
from consumer.cli.main import main
from tests.support.browser import Browser

STORY = Path(consumer.__file__).parent / "examples" / "story"
CHOOSE = (
    "(() => {{ const field = document.querySelector('select[name={name}]'); field.value = '{value}'; "
    "field.dispatchEvent(new Event('input', {{ bubbles: true }})); return location.hash; }})()"
)
SHOWN = "document.getElementById('count').value"


def report_of_the_story(folder: Path) -> str:
    """The address of a report on three cases to review and three that fail."""
    shutil.copytree(STORY, folder / "story")
    given = ["-i", str(folder / "story" / "run_1.json"), "-t", str(folder / "story" / "cases")]
    assert main(["score", "-c", "STROKE", "-b", "*", *given, "--explain", "-o", str(folder / "page.html")]) == 1
    return (folder / "page.html").as_uri()


async def test_filters_are_in_the_address_and_come_back_with_it(chrome: Browser, tmp_path: Path) -> None:
    address = report_of_the_story(tmp_path)
    async with chrome.tab() as tab:
        await tab.open(address)
        assert await tab.evaluate(SHOWN) == "6 of 6 cases shown"
        assert await tab.evaluate(CHOOSE.format(name="label", value="Review")) == "#label=Review"
        assert await tab.evaluate(CHOOSE.format(name="missed", value="AC")) == "#label=Review&missed=AC"
        shown = await tab.evaluate(SHOWN)
        await tab.open("about:blank")
        await tab.open(f"{address}#label=Review&missed=AC")
        assert await tab.evaluate(SHOWN) == shown != "6 of 6 cases shown"
        await tab.evaluate("document.querySelector('button[type=reset]').click()")
        await tab.until(f"location.hash === '' && {SHOWN} === '6 of 6 cases shown'")


async def test_the_address_of_a_case_opens_it_and_stays(chrome: Browser, tmp_path: Path) -> None:
    address = report_of_the_story(tmp_path)
    async with chrome.tab() as tab:
        await tab.open(f"{address}#label=Review")
        await tab.evaluate("location.hash = document.querySelector('[data-label=Fail]').id")
        await tab.until("document.querySelector('[data-label=Fail]').open")
        assert await tab.evaluate("location.hash.startsWith('#case-')")
        assert await tab.evaluate(SHOWN) == "6 of 6 cases shown"
