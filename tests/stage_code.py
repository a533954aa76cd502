"""Which code can change a byte of a stage's outputs, found from the imports; `dvc.yaml` lists exactly that.

``python -m tests.stage_code`` writes the code into the deps of `dvc.yaml`; `tests/unit/test_stage_code.py` compares.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Set
from functools import cache
from pathlib import Path

from components.stages import STAGES
from tests.code_graph import ROOT, imports, modules

PIPELINE = ROOT / "dvc.yaml"
WITHOUT_EFFECT: dict[str, str] = {
    "components": "has no code of its own",
    "components.config": "what it computes is in params.yaml",
    "components.errors": "a stage that raises an error writes no output",
    "components.layout": "names of files, which dvc.yaml has too",
    "components.opening": "opens a file or refuses to",
    "components.processes": "starts, limits and stops processes; the code that runs in them is followed by its name",
    "components.progress": "prints to the terminal",
    "components.stages": "names the stages",
    "components.working": "prints to the terminal",
}
"""Modules and packages that cannot change a byte of an output, nor can what only they import; and the reason."""
ONLY_ITSELF = ("components", "components.stages")
"""Of these the package's own file, and not what is in the folder."""
SHOWN: dict[tuple[str, str], str] = {
    ("components.patterns", "components.printing"): "shortens a pattern that an error quotes",
    ("components.stages.train", "components.health.summaries"): "the line below the progress bar",
    ("components.stages.train", "components.sinks"): "figures for another program",
}
"""Module -> module or package: imports whose results are shown and not written; and the reason."""
STARTED: dict[str, str] = {"components.rollout.servers.local": "components.rollout.servers.plugin.evenkeel_vllm"}
"""Module -> module that it loads into another program, by a path."""


def without_effect(module: str) -> bool:
    """Whether `WITHOUT_EFFECT` has the module, or a package that it is in."""
    return module in WITHOUT_EFFECT or any(
        module.startswith(f"{name}.") for name in WITHOUT_EFFECT if name not in ONLY_ITSELF
    )


@cache
def used_by(module: str) -> frozenset[str]:
    """Modules of `components` that a module imports, starts as a process, or is a part of."""
    known = modules("components")
    path = known[module]
    named = imports(path) | _started(path) | {module.rpartition(".")[0], STARTED.get(module, "")}
    return frozenset(name for name in named if name in known and not _only_shown(module, name))


def _started(path: Path) -> set[str]:
    """Texts that are dotted names, such as those after ``python -m``."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    texts = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str))
    return {text for text in texts if text.startswith("components.")}


def _only_shown(importer: str, imported: str) -> bool:
    return any(importer == one and f"{imported}.".startswith(f"{other}.") for one, other in SHOWN)


def modules_of(stage: str) -> frozenset[str]:
    """Modules that can change a byte of what a stage writes."""
    return effective(STAGES[stage])


@cache
def effective(module: str) -> frozenset[str]:
    """Modules that can change a byte of what a module computes, itself included."""
    seen: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name not in seen and not without_effect(name):
            seen.add(name)
            waiting += used_by(name)
    return frozenset(seen)


@cache
def code_of(stage: str) -> frozenset[Path]:
    """The files of these modules, and the data files that they name."""
    python = {modules("components")[name] for name in modules_of(stage)}
    return frozenset(python | {file for file in files() if file.suffix != ".py" and owners(file) & python})


@cache
def files() -> frozenset[Path]:
    """Every file of `components`."""
    found = (path for path in (ROOT / "components").rglob("*") if path.is_file())
    return frozenset(path for path in found if "__pycache__" not in path.parts)


@cache
def owners(file: Path) -> frozenset[Path]:
    """Modules of the package of a data file that name it; all of them where none does."""
    package = next(folder for folder in file.parents if any(folder.glob("*.py")))
    around = frozenset(package.glob("*.py"))
    return frozenset(path for path in around if f'"{file.name}"' in path.read_text(encoding="utf-8")) or around


@cache
def is_docstring(file: Path) -> bool:
    """Whether a file is the docstring of a package and nothing else, so that no output depends on it."""
    if file.name != "__init__.py":
        return False
    body = ast.parse(file.read_text(encoding="utf-8")).body
    return all(isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant) for one in body)


def dependencies(stage: str) -> list[str]:
    """The code of a stage as `dvc.yaml` lists it: its own module, then folders of which all counts, and files."""
    own = modules("components")[STAGES[stage]]
    listed = sorted(_listed(ROOT / "components", code_of(stage) - {own}))
    return [path.relative_to(ROOT).as_posix() for path in [own, *listed]]


def _listed(folder: Path, code: Set[Path]) -> Iterator[Path]:
    """The fewest folders and files that hold ``code`` and nothing else that has an effect."""
    inside = {path for path in files() if path.is_relative_to(folder) and not is_docstring(path)}
    if inside and inside <= code:
        yield folder
        return
    for child in {folder / path.relative_to(folder).parts[0] for path in inside & code}:
        if child.is_dir():
            yield from _listed(child, code)
        else:
            yield child


def covers(dependency: str, name: str) -> bool:
    """Whether a change of the file ``name`` is a change of a dependency; both are relative to the project."""
    return f"{name}/".startswith(f"{dependency}/")


def with_code(text: str) -> str:
    """The text of `dvc.yaml` with the code that every stage depends on, and otherwise as it is."""
    return "".join(_stage_with_code(part) for part in re.split(r"(?m)^(?=  \w+:$)", text))


def _stage_with_code(part: str) -> str:
    name = part.strip().partition(":")[0]
    if name not in STAGES:
        return part
    lines = [line for line in part.split("\n") if not line.startswith("      - components/")]
    start = lines.index("    deps:") + 1
    end = next(i for i in range(start, len(lines)) if not lines[i].startswith("      - "))
    return "\n".join([*lines[:end], *(f"      - {one}" for one in dependencies(name)), *lines[end:]])


if __name__ == "__main__":
    PIPELINE.write_text(with_code(PIPELINE.read_text(encoding="utf-8")), encoding="utf-8")
