"""The shape of the code: who may import whom, and what no module does (so that nobody has to remember it)."""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import TypeVar

import pytest

from bench.house import ways
from tests.support.case_files import a_case, write_batch

ROOT = Path(__file__).parents[2]
PACKAGES = ("safe_core", "consumer", "safe_scorer")
EXAMPLES = ROOT / "consumer" / "examples"  # programs of others, which are copied out and never imported
FILES = sorted(
    path for package in PACKAGES for path in (ROOT / package).rglob("*.py") if not path.is_relative_to(EXAMPLES)
)

Function = ast.FunctionDef | ast.AsyncFunctionDef
T = TypeVar("T")


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path): path for path in FILES}


def imported(path: Path, *, at_load: bool = False) -> Iterator[str]:
    """Every module that a file imports; at_load leaves out what functions and type checkers alone import."""
    nodes = statements(tree(path).body) if at_load else ast.walk(tree(path))
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            base = node.module or ""
            # `from package import module` names the module, `from module import name` does not.
            yield from (f"{base}.{a.name}" if f"{base}.{a.name}" in MODULES else base for a in node.names)


def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """What runs when a module is loaded."""
    for node in body:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        yield node
        if isinstance(node, ast.If | ast.Try | ast.With):
            yield from statements([child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)])


def found_in(names: Iterable[str], look: Callable[[str], list[T]]) -> dict[str, list[T]]:
    """What is found in modules, without those in which there is nothing."""
    return {name: found for name in names if (found := look(name))}


def functions(path: Path) -> Iterator[Function]:
    return (node for node in ast.walk(tree(path)) if isinstance(node, Function))


def within(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


GROUND = ("errors", "dead_letter_reasons", "exit_codes", "backoff", "text", "terminal", "loop_budget")

# From the command line down to the ports: each may import what stands further down, and nothing above it.
LAYERS: list[set[str]] = [
    {"safe_scorer"},
    {"consumer.cli"},
    {
        "consumer.worker",
        "consumer.offline",
        "consumer.judging",
        "consumer.dead_letters",
        "consumer.offsets",
        "consumer.demo",
        "consumer.results",
        "consumer.alerts",
    },
    {"consumer.files"},
    {"consumer.case_sources", "consumer.kafka"},
    {"consumer.wire"},
    {"consumer.settings", "consumer.telemetry"},
    {"consumer", *(f"consumer.{name}" for name in GROUND)},
    {"safe_core"},
]


def depth(module: str) -> int | None:
    """How far down a module stands; None for one that is not in the table."""
    for level, packages in enumerate(LAYERS):
        if any(module == package if package == "consumer" else within(module, package) for package in packages):
            return level
    return None


PLACED = [name for name in MODULES if depth(name) is not None]


def upwards(name: str) -> list[str]:
    own = depth(name)
    assert own is not None
    return [module for module in imported(MODULES[name]) if (level := depth(module)) is not None and level < own]


def test_imports_run_one_way_from_the_command_line_down_to_the_ports() -> None:
    assert found_in(PLACED, upwards) == {}


def test_an_output_goes_through_ten_modules_at_most_until_it_is_scored(tmp_path: Path) -> None:
    """Of those outside `safe_core`; `python -m bench.house` lists them."""
    write_batch(tmp_path / "cases", "asthma_1", a_case("A-1"))
    _, scoring = ways(tmp_path)
    assert len(scoring) <= 10, sorted(scoring)


CORE_OF_THE_WORKER = [
    *(f"worker.{name}" for name in ("scorer", "aggregator", "poll_loop", "partition_loop")),
    "worker.repeated_fences",
    *(f"wire.{name}" for name in ("input_event", "headers", "keys", "changelog", "dead_letter", "scored_record")),
    "worker.aggregator_state", "worker.buffer", "worker.role", "telemetry.metrics", "case_sources.source", "errors",
]  # fmt: skip


@pytest.mark.parametrize("name", CORE_OF_THE_WORKER)
def test_the_work_itself_knows_neither_settings_nor_who_put_it_together(name: str) -> None:
    forbidden = {
        "consumer.settings",
        "consumer.cli.main",
        "consumer.worker.main",
        "consumer.telemetry.logs",
        "consumer.files.publish_outputs",
    }
    assert not forbidden & set(imported(MODULES[f"consumer.{name}"]))


def test_no_module_imports_itself_over_others() -> None:
    edges = {name: {m for m in imported(path, at_load=True) if m in MODULES} for name, path in MODULES.items()}
    assert not list(cycles(edges))


def cycles(edges: dict[str, set[str]]) -> Iterator[str]:
    """Each way from a module back to itself, `a > b > a`, as a depth-first search meets it."""
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> Iterator[str]:
        if name in path:
            yield " > ".join((*path[path.index(name) :], name))
        elif name not in done:
            for other in sorted(edges[name]):
                yield from visit(other, (*path, name))
            done.add(name)

    for start in sorted(edges):
        yield from visit(start, ())


def test_the_search_for_cycles_finds_one() -> None:
    assert list(cycles({"a": {"b"}, "b": {"c"}, "c": {"b"}})) == ["b > c > b"]


def test_only_one_door_leads_to_kafka() -> None:
    others = [name for name in MODULES if not within(name, "consumer.kafka")]
    assert found_in(others, lambda name: [each for each in imported(MODULES[name]) if within(each, "aiokafka")]) == {}


def reads_environment(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr in {"environ", "environb", "getenv", "putenv"}
    return isinstance(node, ast.ImportFrom) and node.module == "os" and any("env" in a.name for a in node.names)


def test_only_the_settings_read_the_environment() -> None:
    # The demo starts a broker of its own, which needs an environment to run in. A shell that completes asks through the
    # environment, at every key, and must not wait for the settings to be imported.
    may = ("consumer.settings", "consumer.demo", "consumer.cli.completion")
    others = [name for name in MODULES if not any(within(name, each) for each in may)]
    reading = found_in(others, lambda name: [node for node in ast.walk(tree(MODULES[name])) if reads_environment(node)])
    assert reading == {}


EVERYTHING = {"Exception", "BaseException"}


def catches_everything(handler: ast.ExceptHandler) -> bool:
    """Also among others; a handler that always raises again, having tidied up, catches nothing."""
    named = {node.id for node in ast.walk(handler.type) if isinstance(node, ast.Name)} if handler.type else EVERYTHING
    last = handler.body[-1]
    return bool(named & EVERYTHING) and not (isinstance(last, ast.Raise) and last.exc is None)


def caught_without_reason(name: str) -> list[int]:
    lines = MODULES[name].read_text(encoding="utf-8").splitlines()
    handlers = [node for node in ast.walk(tree(MODULES[name])) if isinstance(node, ast.ExceptHandler)]
    return [each.lineno for each in handlers if catches_everything(each) and not reason(lines[each.lineno - 1])]


def test_whoever_catches_everything_says_why() -> None:
    assert found_in(MODULES, caught_without_reason) == {}


def reason(line: str) -> str:
    """The words of a comment beside a line of code, the linter's own ones taken off."""
    _, _, comment = line.partition("#")
    return re.sub(r"noqa: [A-Z0-9, ]+", "", comment).strip(" -–#:")


def long(path: Path) -> Iterator[str]:
    for function in functions(path):
        assert function.end_lineno is not None
        lines = function.end_lineno - function.body[0].lineno + 1
        if lines > 50:
            yield f"{function.name}: {lines}"


def test_no_body_of_a_function_is_longer_than_fifty_lines() -> None:
    assert found_in(MODULES, lambda name: list(long(MODULES[name]))) == {}


def test_every_name_of_a_layer_is_a_module() -> None:
    assert not {name for layer in LAYERS for name in layer} - set(MODULES)


def test_every_module_has_its_layer() -> None:
    assert not set(MODULES) - set(PLACED)


def test_the_worker_explains_nothing() -> None:
    """Explanations are for people with files: no score, and no event, may wait for one."""
    kept_out = "{'safe_core.diagnosis', 'safe_core.lint_rules', 'rapidfuzz', 'jinja2'}"
    program = f"import sys, consumer.worker.main; print({kept_out} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "set()\n"


CONTRACT = (ROOT / "docs" / "contract.md").read_text(encoding="utf-8")
HEADINGS = set(re.findall(r"^#+ (.+)$", CONTRACT, re.MULTILINE))


def pointing_nowhere(name: str) -> list[str]:
    text = re.sub(r"\s+#?\s*", " ", MODULES[name].read_text(encoding="utf-8"))
    named = re.findall(r'contract\.md,((?: and|,? "[^"]+")+)', text)
    nowhere = [heading for each in named for heading in re.findall(r'"([^"]+)"', each) if heading not in HEADINGS]
    return nowhere + re.findall(r"\b(?:rulings?|specification|contract, sections?) [0-9]", text)


def test_what_points_to_the_contract_names_a_heading_of_it() -> None:
    assert found_in(MODULES, pointing_nowhere) == {}
