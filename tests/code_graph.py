"""Who imports whom, read from the source: imports inside functions count too."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent


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
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped = {node for block in ast.walk(tree) if _types_only(block) for node in ast.walk(block)}
    names: set[str] = set()
    for node in ast.walk(tree):
        if node in skipped:
            continue
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(names)


def _types_only(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def reachable(start: str) -> set[str]:
    """Modules of `components` that importing and running ``start`` can load, itself and parent packages included."""
    known = modules("components")
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        name = waiting.pop()
        if name in seen or name not in known:
            continue
        seen.add(name)
        waiting += imports(known[name])
        waiting += [name.rpartition(".")[0]]
    return seen
