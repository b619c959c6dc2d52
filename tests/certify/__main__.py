"""`python -m tests.certify`: run the scenarios, keep what was found, print the table."""

import argparse
import faulthandler
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.certify.load import DELIVERIES
from tests.certify.mutants import MUTANTS, copied, named
from tests.certify.results import Results, breaches, code_of, commit_of, table
from tests.certify.run import Order, carry_out
from tests.certify.scenarios import SCENARIOS
from tests.support.guardian import leave_nothing
from tests.support.kafka_broker import PROJECT, BrokerUnavailableError

SEED = 20260302


def main(arguments: Sequence[str]) -> int:
    """Return 0 if nothing was broken, 1 if something was, 3 where no cluster can be had."""
    options = _options(arguments)
    leave_nothing()
    with tempfile.TemporaryDirectory(prefix="safe-without-") as name:
        if options.without:
            options.checkout = copied(Path(name), named(options.without))
        return _certify(options)


def _certify(options: argparse.Namespace) -> int:
    orders = list(_orders(options))
    if options.list:
        for order in orders:
            print(f"{order.name}: {order.rounds} rounds, about {_minutes(order):.0f} minutes")
        return 0
    results, code = Results(options.results), code_of(options.checkout)
    if options.fresh:
        options.results.unlink(missing_ok=True)
    signal.signal(signal.SIGTERM, _stop)
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1)  # what it waits for, if somebody wonders
    try:
        for order in orders:
            _do(order, results, code)
    except BrokerUnavailableError as error:
        print(f"no cluster: {error}", file=sys.stderr)
        return 3
    lines = [line for line in results.lines() if line["code"] == code and line["seed"] == options.seed]
    print(*table(lines), sep="\n")
    return 1 if any(map(breaches, lines)) else 0


def _stop(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.certify", description=__doc__)
    parser.add_argument("--list", action="store_true", help="list the runs and how long they take, and do nothing")
    parser.add_argument("--only", action="append", metavar="NAME", help="only this scenario; may be repeated")
    parser.add_argument("--delivery", choices=DELIVERIES, help="only this mode")
    parser.add_argument("--runs", type=int, metavar="N", help="at most so many runs of each scenario")
    parser.add_argument("--rounds", type=int, metavar="N", help="at most so many rounds in each run")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--checkout", type=Path, default=PROJECT, help="run the workers of another checkout")
    parser.add_argument(
        "--without",
        action="append",
        metavar="GUARD",
        choices=[mutant.name for mutant in MUTANTS],
        help="run the workers without this guard (python -m tests.certify.mutants --list): it must go red",
    )
    parser.add_argument("--results", type=Path, default=PROJECT / ".cache" / "certify" / "results.jsonl")
    parser.add_argument("--fresh", action="store_true", help="forget what was found before")
    options = parser.parse_args(arguments)
    unknown = set(options.only or ()) - {scenario.name for scenario in SCENARIOS}
    if unknown:
        parser.error(
            f"no scenario {', '.join(sorted(unknown))}; there are {', '.join(each.name for each in SCENARIOS)}"
        )
    options.checkout = options.checkout.resolve()
    return options


def _orders(options: argparse.Namespace) -> Iterator[Order]:
    for delivery in DELIVERIES if options.delivery is None else (options.delivery,):
        for scenario in SCENARIOS:
            if options.only and scenario.name not in options.only:
                continue
            for number, rounds in list(scenario.runs_in(delivery))[: options.runs]:
                yield Order(
                    scenario, delivery, number, min(rounds, options.rounds or rounds), options.seed, options.checkout
                )


def _minutes(order: Order) -> float:
    return (60.0 + order.rounds * order.scenario.round_seconds) / 60.0


def _do(order: Order, results: Results, code: str) -> None:
    if results.has(order, code):
        print(f"{order.name}: done before")
        return
    begun = time.monotonic()

    def say(text: str) -> None:
        print(f"  {time.monotonic() - begun:6.1f} s  {text}", flush=True)

    print(f"{order.name}: {order.rounds} rounds", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="safe-certify-"))
    line = carry_out(order, folder, say) | {"code": code, "commit": commit_of(order.checkout)}
    results.add(line)
    broken = breaches(line)
    print(f"{order.name}: {broken} breaches, {line.get('inputs')} inputs, {line.get('results')} results", flush=True)
    for problem in line["problems"]:
        print(f"  {problem[:400]}")
    for death in line.get("deaths", []):
        print(f"  {death['worker']} ended by itself ({death['exit_code']}): {death['last_words'][:400]}")
    if broken:
        print(f"  what the workers and brokers wrote is kept in {folder}")
    else:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
