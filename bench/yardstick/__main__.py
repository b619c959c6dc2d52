"""Measure the diagnosis against every bound that it must keep, and print what is wrong.

make yardstick                                           the whole table
python -m bench.yardstick --set mirrors --set twins      only these sets
python -m bench.yardstick --wrong "contradictions"       each wrong case of the bounds whose names begin so, in full
python -m bench.yardstick --json now.json                write the figures; later, --before now.json names what changed
python -m bench.yardstick --engine today                 by verdicts alone, as releases without both answers give them
python -m bench.yardstick --deleted 50                   how many of 50 lines of the lexicon are missed, taken away
python -m bench.yardstick --idle                         the lines and rows that change no labelled verdict (slow)
python -m bench.yardstick --rooms                        how much code it is, and how much of it one verdict runs
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.yardstick import cases, deleted, idle, negations, rooms
from bench.yardstick.bounds import Bound
from bench.yardstick.cases import ENGINES, Engine
from bench.yardstick.sets import SETS, NotHere


def measured(engine: Engine, names: Sequence[str]) -> list[Bound]:
    """Measure the sets one after the other; say loudly which cannot be measured here."""
    found: list[Bound] = []
    for name in names:
        try:
            found += SETS[name](engine)
        except NotHere as error:
            print(f"NOT MEASURED: {name}: {error}", file=sys.stderr)
            found.append(Bound(f"{name}: not measured", (), (), least=1))
    return found


def table(found: Sequence[Bound]) -> str:
    width = max(len(each.name) for each in found)
    return "\n".join(line_of(each, width) for each in found)


def line_of(each: Bound, width: int) -> str:
    """Print the share and count of what is right, the bound, and whether it is kept."""
    share = "–" if each.share is None else f"{each.share:.3f}"
    asked = f"≥ {each.least:.3f}" if each.least is not None else ""
    asked = f"≤ {each.most_wrong:.3g} wrong" if each.most_wrong is not None else asked
    right = f"{len(each.of) - len(each.wrong)} of {len(each.of)}"
    return f"{each.name:{width}}  {share:>5}  {right:>14}  {asked:>12}  {each.verdict}".rstrip()


def document(found: Sequence[Bound]) -> list[dict[str, Any]]:
    return [
        {
            "name": each.name,
            "share": each.share,
            "of": len(each.of),
            "wrong": [name_of(one) for one in each.wrong],
            "least": each.least,
            "most_wrong": each.most_wrong,
            "verdict": each.verdict,
        }
        for each in found
    ]


def name_of(one: Any) -> str:  # noqa: ANN401 – a judged case or a sentence about a denial
    return one.case.name if isinstance(one, cases.Judged) else f"{one.term} in {one.text}"


def print_changes(found: Sequence[Bound], before: Sequence[dict[str, Any]]) -> None:
    """Print, for each line of the table, what has become wrong and what has become right."""
    was = {each["name"]: set(each["wrong"]) for each in before}
    for each in found:
        now = {name_of(one) for one in each.wrong}
        if each.name in was and now != was[each.name]:
            print(f"\n{each.name}")
            for name in sorted(now ^ was[each.name]):
                print(f"  {'WRONG now' if name in now else 'right now'}  {name}")


def print_wrong(found: Sequence[Bound], beginning: str, *, in_full: bool) -> None:
    for each in found:
        if each.name.startswith(beginning) and each.wrong:
            print(f"\n═══ {each.name}: {len(each.wrong)} of {len(each.of)} wrong")
            for one in each.wrong:
                print(cases.shown(one, in_full=in_full) if isinstance(one, cases.Judged) else negations.shown(one))


def print_idle(engine: str, beginning: str) -> None:
    """Print what hardly changes anything as soon as it is known: thousands of lines take an hour."""
    for each in idle.idle(engine, beginning):
        print(f"{each.changed} changed without {each.name}", flush=True)


def print_deleted(engine: str, many: int) -> None:
    """Print each line of the lexicon that nothing misses, and how many of them something does."""
    missed = 0
    for each in deleted.deleted(engine, many):
        missed += bool(each.missed_by)
        print(f"{each.missed_by or 'NOT MISSED':15}  {each.line}", flush=True)
    print(f"{missed} of {many} lines are missed")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", choices=ENGINES, default="diagnosis")
    parser.add_argument("--set", dest="sets", action="append", choices=SETS, help="measure only this one")
    parser.add_argument("--wrong", metavar="NAME", help="print the wrong cases of the bounds whose names begin so")
    parser.add_argument("--full", action="store_true", help="with --wrong: all lines of long texts")
    parser.add_argument("--before", type=Path, metavar="FILE", help="name what is wrong now and was not in this --json")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures and the names of the wrong cases")
    parser.add_argument(
        "--idle", nargs="?", const="", metavar="FILE", help="what changes hardly anything, perhaps of one file alone"
    )
    parser.add_argument(
        "--deleted", type=int, metavar="MANY", help="take this many lines of the lexicon away, one at a time"
    )
    parser.add_argument("--rooms", action="store_true", help="count the lines, and what one verdict enters")
    asked = parser.parse_args()
    if asked.rooms:
        rooms.print_rooms()
        return
    if asked.deleted:
        print_deleted(asked.engine, asked.deleted)
        return
    if asked.idle is not None:
        print_idle(asked.engine, asked.idle)
        return
    started = time.perf_counter()
    before = json.loads(asked.before.read_text(encoding="utf-8")) if asked.before else None
    found = measured(ENGINES[asked.engine], asked.sets or sets_for(asked.wrong))
    print(table(found))
    print(f"{sum(each.verdict == 'short' for each in found)} bounds short; {time.perf_counter() - started:.0f} s")
    if asked.json:
        asked.json.write_text(json.dumps(document(found), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    if asked.wrong is not None:
        print_wrong(found, asked.wrong, in_full=asked.full)
    if before is not None:
        print_changes(found, before)


def sets_for(wrong: str | None) -> list[str]:
    """Measure only the set that a name of a bound begins with, where it names one."""
    named = [name for name in SETS if wrong and wrong.split(":")[0] == name]
    return named or list(SETS)


if __name__ == "__main__":
    main()
