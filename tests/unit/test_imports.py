"""Imports run one way: flows -> launch -> components -> config, and never in a circle."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.code_graph import ROOT, circles, imports, imports_among, modules

COMPONENTS = modules("components")
FLOWS = modules("flows")


def importers(of: str, among: dict[str, Path]) -> set[str]:
    return {name for name, path in among.items() if any(f"{found}.".startswith(f"{of}.") for found in imports(path))}


def test_no_modules_import_each_other_in_a_circle() -> None:
    known = COMPONENTS | FLOWS
    assert circles({name: imports_among(path, known) - {name} for name, path in known.items()}) == []


def test_a_circle_is_found_also_where_a_function_or_a_type_checker_alone_would_follow_it(tmp_path: Path) -> None:
    for name, text in {
        "a": "from b import x",
        "b": "import c",
        "c": "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from a import y",
        "d": "def later():\n    import e",
        "e": "import d",
    }.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    graph = {name: imports_among(tmp_path / name, "abcde") for name in "abcde"}
    assert circles(graph) == [["a", "b", "c"], ["d", "e"]]


@pytest.mark.parametrize("forbidden", ["flows", "prefect", "dvc"])
def test_components_never_import(forbidden: str) -> None:
    assert importers(forbidden, COMPONENTS) == set()


def test_benchmarks_import_each_other_by_their_package() -> None:
    """Their folder is not on the path."""
    files = sorted((ROOT / "tests/benchmarks").glob("test_*.py"))
    assert files and [path.name for path in files if any(name.startswith("test_") for name in imports(path))] == []


def test_only_one_module_imports_kubernetes() -> None:
    assert importers("kubernetes", COMPONENTS | FLOWS) == {"components.launch.kubernetes.api.connection"}


def test_launch_is_used_only_by_the_command_line_and_by_flows() -> None:
    users = importers("components.launch", COMPONENTS)
    assert {name for name in users if not name.startswith("components.launch")} == {"components.command"}


def test_only_stages_and_their_launcher_import_stages() -> None:
    allowed = ("components.stages", "components.launch", "components.command")
    assert {name for name in importers("components.stages", COMPONENTS) if not name.startswith(allowed)} == set()


def test_config_imports_no_component_but_the_plain_helpers() -> None:
    plain = {
        "components",
        "components.code_digest",
        "components.errors",
        "components.files",
        "components.opening",
        "components.patterns",
        "components.printing",
        "components.types",
    }
    for name in COMPONENTS:
        if name.startswith("components.config"):
            used = {found for found in imports(COMPONENTS[name]) if found in COMPONENTS}
            assert {found for found in used if not found.startswith("components.config")} <= plain, name


@cache
def loaded_by(statement: str) -> set[str]:
    """Top-level packages that a fresh interpreter holds after ``statement``."""
    code = f"import sys\n{statement}\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_torch_is_loaded_by_none_of_what_does_without_it() -> None:
    parts = (
        "config",
        "health.monitor",
        "health.responses",
        "gate.candidate",
        "registry",
        "report",
        "launch",
        "stages",
        "command",
    )
    names = [*parts, *(f"stages.{name}" for name in ("data", "gate", "report"))]
    assert "torch" not in loaded_by("import " + ", ".join(f"components.{name}" for name in names))


BOTO3, SIGNING, KUBERNETES = {"boto3", "botocore"}, {"model_signing", "sigstore"}, {"kubernetes"}
"""Loaded only for a store on S3, to sign, and to reach a cluster."""


@pytest.mark.parametrize(
    ("modules", "unused"),
    [
        ("flows.cli", BOTO3 | SIGNING | KUBERNETES),
        ("components.registry, components.gate.candidate", BOTO3 | SIGNING | KUBERNETES),
        ("components.launch.kubernetes.launcher", SIGNING | KUBERNETES),
    ],
)
def test_large_libraries_are_loaded_only_where_they_are_used(modules: str, unused: set[str]) -> None:
    assert loaded_by(f"import {modules}") & unused == set()


def test_the_command_line_answers_without_loading_prefect_dvc_or_torch() -> None:
    assert loaded_by("import flows.cli") & {"prefect", "dvc", "torch", "transformers", "pandas"} == set()
