"""DVC repeats a stage after a change of the code that can change its bytes, and of no other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from components.stages import STAGES
from tests.code_graph import ROOT, imports, modules
from tests.stage_code import (
    PIPELINE,
    SHOWN,
    STARTED,
    WITHOUT_EFFECT,
    code_of,
    covers,
    files,
    is_docstring,
    modules_of,
    used_by,
    with_code,
    without_effect,
)

DEPENDENCIES: dict[str, list[str]] = {
    stage: [dep for dep in entry["deps"] if dep.startswith("components/")]
    for stage, entry in yaml.safe_load(PIPELINE.read_text(encoding="utf-8"))["stages"].items()
}
REPEATED: dict[str, tuple[str, ...]] = {
    "__main__.py": (),
    "command.py": (),
    "config": (),
    "errors.py": (),
    "launch": (),
    "layout.py": (),
    "models": (),
    "opening.py": (),
    "planning": (),
    "pods": (),
    "processes": (),
    "progress.py": (),
    "registry": (),
    "status.py": (),
    "working.py": (),
    "report": ("report",),
    "health/summaries": ("report",),
    "health/limits.py": ("report",),
    "health/readers": ("train",),  # where it takes over the log of another trainer
    "health/grafana.py": (),
    "sinks": (),
    "canaries/verdict.py": ("gate", "report"),  # sentences of the gate's checks, which gate.json holds
    "evaluation/sentences.py": ("evaluate",),  # sentences that evaluation.json holds
    "evaluation/against.py": (),
    "gate/checks": ("gate",),
    "gate/candidate.py": (),
    "printing.py": ("data", "audit", "report"),  # escapes what the pages of these stages quote
    "pages": ("data", "audit", "report"),
    "objectives/advantages": ("train",),
    "objectives/gae.py": ("train",),
    "training": ("train",),
    "clusters": ("clusters",),
    "scheduling": ("train",),
    "audit/verdict.py": ("audit",),
    "data/sources.py": ("data",),
    "poisoning": ("admission",),
    "tasks": ("data", "train", "evaluate", "dpo"),  # probe sets of train and evaluate, and suites
    "sft/trainer.py": ("sft", "dpo"),
    "dpo/trainer.py": ("dpo",),
}
"""File or folder of `components` -> the stages that a change of any of it repeats."""


def repeated(file: Path) -> set[str]:
    """The stages whose deps in `dvc.yaml` hold the file."""
    name = file.relative_to(ROOT).as_posix()
    return {stage for stage, deps in DEPENDENCIES.items() if any(covers(dep, name) for dep in deps)}


def test_a_change_of_any_file_repeats_the_stages_that_use_it() -> None:
    changed = [file for file in files() if not is_docstring(file)]
    assert len(changed) > 500
    dvc = {file.relative_to(ROOT): repeated(file) for file in changed}
    imported = {file.relative_to(ROOT): {stage for stage in STAGES if file in code_of(stage)} for file in changed}
    assert {file: stages for file, stages in dvc.items() if stages != imported[file]} == {}, (
        "out of date: python -m tests.stage_code"
    )


def test_the_code_in_dvc_yaml_is_what_the_command_writes() -> None:
    text = PIPELINE.read_text(encoding="utf-8")
    assert with_code(text) == text, "out of date: python -m tests.stage_code"


@pytest.mark.parametrize("place", REPEATED)
def test_a_change_repeats_these_stages(place: str) -> None:
    below = [file for file in files() if file.is_relative_to(ROOT / "components" / place) and not is_docstring(file)]
    assert below
    assert set().union(*map(repeated, below)) == set(REPEATED[place])


def test_a_docstring_of_a_package_is_listed_for_no_stage() -> None:
    listed = {ROOT / dep for deps in DEPENDENCIES.values() for dep in deps if dep.endswith(".py")}
    assert [file for file in listed if is_docstring(file)] == []


# What is followed, and what is not


def test_code_is_followed_into_functions_processes_and_data() -> None:
    train = {file.relative_to(ROOT / "components").as_posix() for file in code_of("train")}
    assert "learner/follower.py" in train
    assert "rewards/worker.py" in train  # python -m
    assert "rollout/servers/plugin/evenkeel_vllm.py" in train  # by the path of its folder
    admission = {file.relative_to(ROOT / "components").as_posix() for file in code_of("admission")}
    assert {"rollout/collect.py", "poisoning/sensitive.yaml"} <= admission  # imported in a function; read
    assert {"report/templates/report.jinja", "pages/base.jinja"} <= {
        file.relative_to(ROOT / "components").as_posix() for file in code_of("report")
    }


def test_what_has_no_effect_is_there_and_reached_by_a_stage() -> None:
    known = modules("components")
    assert set(WITHOUT_EFFECT) <= set(known)
    reached = {name for stage in STAGES for module in modules_of(stage) for name in used_by(module)}
    assert [name for name in WITHOUT_EFFECT if not any(f"{one}.".startswith(f"{name}.") for one in reached)] == []


def test_what_has_no_effect_uses_little_that_has_one() -> None:
    """What only such a module imports is not followed, so it may be plain helpers alone."""
    known = modules("components")
    used = {found for name in known if without_effect(name) for found in imports(known[name]) if found in known}
    plain = {"code_digest", "files", "loading", "patterns", "printing", "types"}
    assert {name for name in used if not without_effect(name)} == {f"components.{name}" for name in plain}


def test_imports_that_only_show_something_exist() -> None:
    known = modules("components")
    for importer, imported in SHOWN:
        assert any(f"{name}.".startswith(f"{imported}.") for name in imports(known[importer])), (importer, imported)
    assert set(STARTED) | set(STARTED.values()) <= set(known)


def test_every_exception_has_a_reason() -> None:
    reasons: dict[Any, str] = {**WITHOUT_EFFECT, **SHOWN}
    assert all(len(reason.split()) > 2 for reason in reasons.values())
