"""Who imports whom, read from the source: imports inside functions count too."""

from __future__ import annotations

import ast
from collections.abc import Collection
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent


@cache
def modules(package: str) -> dict[str, Path]:
    """Dotted name -> file of every module below a top-level package."""
    found = {}
    for path in sorted((ROOT / package).rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def imports(path: Path) -> frozenset[str]:
    """Dotted names that a file imports, those for type checkers left out; ``from a import b`` gives a and a.b."""
    names: set[str] = set()
    for node, types_only in _statements(path):
        if types_only:
            continue
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(names)


@cache
def _statements(path: Path) -> tuple[tuple[ast.Import | ast.ImportFrom, bool], ...]:
    """The imports of a file, each with whether it is for type checkers alone. To read all files takes seconds."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    for_types = {id(node) for block in nodes if _types_only(block) for node in ast.walk(block)}
    return tuple((node, id(node) in for_types) for node in nodes if isinstance(node, ast.Import | ast.ImportFrom))


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Groups of nodes of which each can reach every other one; a graph without circles has none."""
    reach = {name: _reach(graph, name) for name in graph}
    found = {tuple(sorted({name} | {one for one in reach[name] if name in reach[one]})) for name in graph}
    return [list(group) for group in sorted(found) if len(group) > 1]


def _reach(graph: dict[str, set[str]], start: str) -> set[str]:
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        found = graph.get(waiting.pop(), set()) - seen
        seen |= found
        waiting += found
    return seen


def imports_among(path: Path, known: Collection[str]) -> set[str]:
    """Modules among ``known`` that a file imports, inside of functions and for type checkers as well."""
    names: set[str] = set()
    for node, _ in _statements(path):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif node.module:
            # `from package import module` imports the module, and not what else the package's own file holds.
            full = {f"{node.module}.{alias.name}" for alias in node.names}
            names |= full if full <= set(known) else full | {node.module}
    return names & set(known)


def _types_only(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
