"""The rule book computes and does nothing else: no clock, no files, no environment, and of libraries one at most."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import safe_core

FOLDER = Path(safe_core.__file__).parent
FORBIDDEN = {
    "asyncio",
    "datetime",
    "io",
    "logging",
    "os",
    "pathlib",
    "random",
    "socket",
    "subprocess",
    "sys",
    "threading",
    "time",
}
MODULES = sorted(FOLDER.rglob("*.py"))
SEARCH = "rapidfuzz"  # how alike two texts are; only the diagnosis asks


def named(module: Path) -> str:
    return ".".join(module.relative_to(FOLDER).with_suffix("").parts)


def imported(module: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or ".").split(".")[0]


def test_a_module_imports_the_standard_library_and_safe_core_alone() -> None:
    for module in MODULES:
        allowed = {"safe_core", SEARCH} if FOLDER / "diagnosis" in module.parents else {"safe_core"}
        outside = set(imported(module)) - allowed
        assert outside <= sys.stdlib_module_names, named(module)
        assert not outside & FORBIDDEN, named(module)


def test_no_module_opens_or_prints_anything() -> None:
    for module in MODULES:
        nodes = ast.walk(ast.parse(module.read_text(encoding="utf-8")))
        names = {node.id for node in nodes if isinstance(node, ast.Name)}
        assert not names & {"open", "print", "input", "exec", "eval", "__import__"}, named(module)


def test_everything_public_is_there_and_listed_in_order() -> None:
    assert all(hasattr(safe_core, name) for name in safe_core.__all__)
    assert safe_core.__all__ == sorted(
        safe_core.__all__, key=lambda name: (not name.isupper(), name[0].islower(), name)
    )
    assert (FOLDER / "py.typed").is_file()
