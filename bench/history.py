"""How large the page of `safe history` over many runs is, and how soon its first 100 rows are there.

    python -m bench.history [--runs 50] [--cases 500] [--turns 5]

Writes the page over made reports, and opens it from the disk in Chromium, each time in a new tab. The times are the
browser's own, from when it was told to open the page: until the first rows were in the page, and until it was painted.
Needs Chromium (tests/pages/tools.sh).
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from pathlib import Path

from consumer.cli.main import main as safe
from tests.support.browser import browser
from tests.support.many_runs import write_runs

TIMES = (
    "(() => { const [{ domContentLoadedEventEnd }] = performance.getEntriesByType('navigation'); "
    "const [paint] = performance.getEntriesByName('first-contentful-paint'); "
    "return [document.querySelectorAll('#cases tr').length, domContentLoadedEventEnd, paint?.startTime ?? 0]; })()"
)


def main() -> None:
    """Write the page once, open it several times, and print what it took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--turns", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        reports, page = Path(folder) / "reports", Path(folder) / "page"
        write_runs(reports, runs=arguments.runs, cases=arguments.cases)
        begun = time.monotonic()
        safe(["history", str(reports), "-o", f"{page}"])
        written = time.monotonic() - begun
        index = page / "index.html"
        asyncio.run(_open(index, arguments.turns, Path(folder) / "profile"))
        scripts = [path.stat().st_size for path in (page / "runs").iterdir()]
        sizes = f"index {index.stat().st_size / 2**20:.2f} MiB, a run {statistics.mean(scripts) / 1024:.0f} KiB"
        print(f"{sizes}, written in {written:.1f} s")


async def _open(index: Path, turns: int, profile: Path) -> None:
    async with browser(profile) as chrome:
        for _ in range(turns):
            async with chrome.tab() as tab:
                await tab.open(index.as_uri())
                await tab.until("performance.getEntriesByName('first-contentful-paint').length")
                rows, loaded, painted = await tab.evaluate(TIMES)
                print(f"{rows} rows after {loaded:.0f} ms, painted after {painted:.0f} ms", flush=True)


if __name__ == "__main__":
    main()
