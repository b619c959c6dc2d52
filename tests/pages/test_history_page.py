"""The page over many runs, opened from a disk in a real browser."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from consumer.cli.main import main
from tests.support.browser import Browser, Tab
from tests.support.many_runs import NASTY, write_runs
from tests.support.node import node_project

ROWS = "document.querySelectorAll('#cases tr').length"
COUNT = "document.getElementById('count').value"
MIB = 2**20


def page_of(folder: Path, *options: str, runs: int = 3, cases: int = 12, nasty: str = "") -> str:
    """Write a page over made runs, and give its address."""
    write_runs(folder / "reports", runs=runs, cases=cases, nasty=nasty)
    assert main(["history", str(folder / "reports"), "-o", str(folder / "page"), *options]) == 0
    return (folder / "page" / "index.html").as_uri()


def with_texts(folder: Path) -> tuple[str, ...]:
    return ("--include-text", "--outputs", str(folder / "reports" / "outputs"))


async def choose(tab: Tab, name: str, value: str) -> str:
    """Choose as a person does, and give the address."""
    script = (
        f"(() => {{ const field = document.getElementById('filters').elements[{json.dumps(name)}]; "
        f"field.value = {json.dumps(value)}; field.dispatchEvent(new Event('input', {{ bubbles: true }})); "
        "return decodeURIComponent(location.hash.replaceAll('+', ' ')); })()"
    )
    said: str = await tab.evaluate(script)
    return said


async def opened(tab: Tab, row: int = 0) -> str:
    """Open a case, and give what its window says once it has loaded."""
    await tab.evaluate(f"document.querySelectorAll('#cases button')[{row}].click()")
    await tab.until("document.querySelector('#case table') !== null")
    said: str = await tab.evaluate("document.getElementById('case').innerText")
    return said


async def test_fifty_runs_of_five_hundred_cases_open_from_a_disk(chrome: Browser, tmp_path: Path) -> None:
    address = page_of(tmp_path, runs=50, cases=500)
    assert (tmp_path / "page" / "index.html").stat().st_size <= 2 * MIB
    async with chrome.tab() as tab:
        await tab.open(address)
        assert await tab.evaluate(ROWS) == 100
        assert await tab.evaluate(COUNT) == "500 of 500 cases"
        await tab.evaluate("document.getElementById('more').click()")
        assert await tab.evaluate(ROWS) == 200
        assert await tab.evaluate("document.querySelectorAll('#cases tr:first-child td').length") == 51
        said = await opened(tab, 150)
        assert "K07-0150" in said
        assert [each for each in tab.asked_for if not each.startswith("file:")] == []
        assert sum("/runs/run-" in each for each in tab.asked_for) == 2, (
            "only the two runs that are compared are loaded"
        )


@pytest.mark.parametrize("runs", [1, 2])
async def test_one_run_may_stand_on_both_sides(chrome: Browser, tmp_path: Path, runs: int) -> None:
    async with chrome.tab() as tab:
        await tab.open(f"{page_of(tmp_path, runs=runs, cases=3)}#a=run_01.json&b=run_01.json")
        [label] = [result["label"] for result in _results(tmp_path)[:1]]
        assert f"Label\t{label}\t{label}" in await opened(tab)
        assert [each.rpartition("/")[2] for each in tab.asked_for if "/runs/" in each] == ["run-1.js"]


async def test_a_term_that_is_listed_twice_is_counted_as_the_report_counts_it(chrome: Browser, tmp_path: Path) -> None:
    [path] = write_runs(tmp_path / "reports", runs=1, cases=1)
    report = json.loads(path.read_text())
    [result] = report["results"]
    terms = result["details"]["CR"]
    terms["found"] = terms["found"] * 2 or terms["missing"][:1] * 2
    found = len(terms["found"]) + len(result["details"]["AC"]["found"])
    path.write_text(json.dumps(report))
    assert main(["history", str(path), "-o", str(tmp_path / "page")]) == 0
    async with chrome.tab() as tab:
        await tab.open((tmp_path / "page" / "index.html").as_uri())
        cell = await tab.evaluate("document.querySelector('#cases td:last-child').innerText")
    assert cell == f"{result['label'][0]}{found}"


def _results(folder: Path) -> Any:
    return json.loads((folder / "reports" / "run_01.json").read_text())["results"]


async def test_cases_are_filtered_and_the_address_keeps_what_was_chosen(chrome: Browser, tmp_path: Path) -> None:
    address = page_of(tmp_path, runs=4, cases=120)
    async with chrome.tab() as tab:
        await tab.open(address)
        assert await choose(tab, "label", "Fail") == "#label=Fail"
        fails = await tab.evaluate(COUNT)
        reports = [json.loads(each.read_text()) for each in sorted((tmp_path / "reports").glob("*.json"))]
        assert fails == f"{reports[-1]['summary']['fail']} of 120 cases"
        assert await choose(tab, "b", "0") == "#b=run_01.json&label=Fail"
        assert await tab.evaluate(COUNT) == f"{reports[0]['summary']['fail']} of 120 cases"
        assert await choose(tab, "batch", "K07_batch_2") == "#b=run_01.json&label=Fail&batch=K07_batch_2"
        shown = await tab.evaluate(COUNT)
        hash_ = await tab.evaluate("location.hash")
        await tab.open("about:blank")
        await tab.open(address + hash_)
        assert await tab.evaluate(COUNT) == shown
        await tab.evaluate("document.querySelector('#filters button[type=reset]').click()")
        await tab.until(f"location.hash === '' && {COUNT} === '120 of 120 cases'")
        never = [at for at in range(120) if all(each["results"][at]["label"] != "Pass" for each in reports)]
        await choose(tab, "kind", "never")
        assert await tab.evaluate(COUNT) == f"{len(never)} of 120 cases"


async def test_what_is_searched_for_is_in_the_address_only_if_it_is_part_of_an_id(
    chrome: Browser, tmp_path: Path
) -> None:
    address = page_of(tmp_path)
    async with chrome.tab() as tab:
        await tab.open(address)
        assert await choose(tab, "search", "K07-0003") == "#search=k07-0003"
        assert await tab.evaluate(COUNT) == "1 of 12 cases"
        assert await choose(tab, "search", "blood pressure of 104") == ""
        assert await tab.evaluate(COUNT) == "1 of 12 cases"


async def test_two_runs_stand_side_by_side_with_what_differs_marked(chrome: Browser, tmp_path: Path) -> None:
    address = page_of(tmp_path, *with_texts(tmp_path), runs=2, cases=6)
    async with chrome.tab() as tab:
        await tab.open(f"{address}#case=K07-0002")
        await tab.until("document.querySelector('#case table') !== null")
        rows = await tab.evaluate(
            "Array.from(document.querySelectorAll('#case tbody tr'), (row) => [row.cells[0].innerText, "
            "row.cells[1].innerText, row.cells[2].innerText, row.querySelectorAll('mark').length])"
        )
    reports = [json.loads((tmp_path / "reports" / f"run_0{number}.json").read_text()) for number in (1, 2)]
    results = [report["results"][2] for report in reports]
    assert rows[0][:3] == ["Label", *(each["label"] for each in results)]
    assert rows[1][:3] == ["CR", *(f"{each['scores']['CR']:.2f}" for each in results)]
    for name, *values, marks in rows[:-1]:
        assert marks == (2 if values[0] != values[1] else 0), name
        if (criterion := name.partition(":")[0]) in {"CR", "AC"} and ": " in name:
            term = name.partition(": ")[2]
            found = ["found" if term in each["details"][criterion]["found"] else "missed" for each in results]
            assert values == found
    name, first, second, marks = rows[-1]
    assert (name, "The summary of run 1" in first, "The summary of run 2" in second, marks > 0) == (
        "Output",
        True,
        True,
        True,
    )


async def test_without_the_option_no_file_quotes_an_output(tmp_path: Path) -> None:
    page_of(tmp_path)
    files = [path.read_text(encoding="utf-8") for path in (tmp_path / "page").rglob("*") if path.is_file()]
    assert len(files) == 4
    assert not any("Kanarienvogel" in text or "The summary of run" in text for text in files)


async def test_texts_may_hold_anything(chrome: Browser, tmp_path: Path) -> None:
    address = page_of(tmp_path, *with_texts(tmp_path), nasty=NASTY)
    files = [path.read_text(encoding="utf-8") for path in (tmp_path / "page").rglob("*") if path.is_file()]
    assert not any("\u2028" in text or "\u202e" in text or "<b>bold" in text or "49" * 3 in text for text in files)
    async with chrome.tab() as tab:
        await tab.open(address)
        assert await tab.evaluate(ROWS) == 12
        said = await opened(tab)
        assert "</script><b>bold</b>" in said
        assert '{{ 7 * 7 }}{% endraw %}<!--"&amp;' in said
        assert "\\u202e" in said
        assert await tab.evaluate("document.querySelectorAll('#case b').length") == 0
        identity = await tab.evaluate("document.getElementById('case').dataset.id")
        await tab.open("about:blank")
        await tab.evaluate("0")
        await tab.call("Page.navigate", url=f"{address}#case={_quoted(identity)}")
        await tab.until("document.querySelector('#case table') !== null")


def _quoted(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9]", lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()), text)


async def test_a_script_that_is_missing_is_named(chrome: Browser, tmp_path: Path) -> None:
    address = page_of(tmp_path, runs=2)
    (tmp_path / "page" / "runs" / "run-2.js").unlink()
    async with chrome.tab() as tab:
        await tab.open(address)
        assert "Not found: runs/run-2.js" in await opened(tab)


async def test_one_file_alone_shows_two_runs_too_and_loads_nothing(chrome: Browser, tmp_path: Path) -> None:
    write_runs(tmp_path / "reports", runs=2, cases=5)
    assert main(["history", str(tmp_path / "reports"), "-o", str(tmp_path / "page.html")]) == 0
    async with chrome.tab() as tab:
        await tab.open((tmp_path / "page.html").as_uri())
        assert "Composite" in await opened(tab)
        assert len(tab.asked_for) == 1


async def test_the_keyboard_is_enough(chrome: Browser, tmp_path: Path) -> None:
    address = page_of(tmp_path, runs=3, cases=110)
    async with chrome.tab() as tab:
        await tab.open(address)
        await tab.evaluate("document.querySelector('#cases button').focus()")
        await tab.call(
            "Input.dispatchKeyEvent", type="keyDown", key="Enter", code="Enter", text="\r", windowsVirtualKeyCode=13
        )
        await tab.call("Input.dispatchKeyEvent", type="keyUp", key="Enter", code="Enter", windowsVirtualKeyCode=13)
        await tab.until("document.getElementById('case').open && document.querySelector('#case table') !== null")
        assert await tab.evaluate("location.hash") == "#case=K07-0000"
        await tab.call("Input.dispatchKeyEvent", type="keyDown", key="Escape", code="Escape", windowsVirtualKeyCode=27)
        await tab.until("!document.getElementById('case').open && location.hash === ''")
        assert await tab.evaluate("document.activeElement.textContent") == "K07-0000"


async def test_the_line_of_the_chosen_cases_follows_the_choice(chrome: Browser, tmp_path: Path) -> None:
    address = page_of(tmp_path, runs=4, cases=60)
    async with chrome.tab() as tab:
        await tab.open(address)
        points = "document.getElementById('chosen-rate').getAttribute('points')"
        assert await tab.evaluate(points) == ""
        await choose(tab, "label", "Pass")
        last = (await tab.evaluate(points)).split()[-1]
        assert last.endswith(",20"), "all that were chosen pass in the last run"
        assert not await tab.evaluate("document.getElementById('trend').hidden")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [390, 1200])
async def test_it_fits_its_window_and_axe_finds_nothing(
    chrome: Browser, tmp_path: Path, width: int, *, dark: bool
) -> None:
    axe = (node_project(Path(__file__).parent / "axe") / "node_modules/axe-core/axe.min.js").read_text("utf-8")
    address = page_of(tmp_path, *with_texts(tmp_path), runs=20, cases=8)
    found = "axe.run().then((said) => said.violations.map(({ id, nodes }) => [id, nodes[0].html]))"
    async with chrome.tab(width=width, dark=dark) as tab:
        await tab.open(address)
        assert await tab.evaluate(f"document.documentElement.scrollWidth <= {width}")
        ground = "getComputedStyle(document.body).backgroundColor"
        assert await tab.evaluate(ground) == ("rgb(15, 19, 24)" if dark else "rgb(255, 255, 255)")
        await tab.evaluate(f"{axe}; 0")
        assert await tab.evaluate(found) == []
        await opened(tab)
        assert await tab.evaluate(f"document.getElementById('case').scrollWidth <= {width}")
        assert await tab.evaluate(found) == []
