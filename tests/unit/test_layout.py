"""`dvc.yaml` and `params.yaml` say what the code says; the code that `dvc.yaml` lists: `test_stage_code`."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import yaml

from components.config import Settings, dump, load, pin_inputs
from components.config.judgement import JUDGED_BY, HealthSettings
from components.layout import Layout
from components.stages import STAGES
from tests.code_graph import ROOT

PIPELINE: dict[str, Any] = yaml.safe_load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"]
PARAMS: dict[str, Any] = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
LAYOUT = Layout()
OUTPUTS: dict[str, set[Path]] = {
    "data": {LAYOUT.data, LAYOUT.validation},
    "audit": {LAYOUT.audit, LAYOUT.audit_page},
    "sft": {LAYOUT.sft, LAYOUT.sft_metrics},
    "admission": {LAYOUT.admission, LAYOUT.admission_flags, LAYOUT.base_answers},
    "triage": {LAYOUT.triage},
    "clusters": {LAYOUT.clusters, LAYOUT.clusters_metrics},
    "train": {LAYOUT.train, LAYOUT.train_metrics, LAYOUT.curves},
    "evaluate": {LAYOUT.evaluation, LAYOUT.samples, LAYOUT.canaries},
    "gate": {LAYOUT.gate},
    "report": {LAYOUT.report, LAYOUT.verdict},
    "dpo": {LAYOUT.dpo, LAYOUT.dpo_metrics},
}


def paths(stage: str, *kinds: str) -> list[str]:
    entries = [entry for kind in kinds for entry in PIPELINE[stage].get(kind, [])]
    return [entry if isinstance(entry, str) else next(iter(entry)) for entry in entries]


def lookup(dotted: str) -> Any:
    value: Any = PARAMS
    for key in dotted.split("."):
        value = value[key]
    return value


def test_the_pipeline_has_the_stages_in_their_order() -> None:
    assert list(PIPELINE) == list(STAGES)


def test_params_yaml_is_the_resolved_demo() -> None:
    head, _, body = (ROOT / "params.yaml").read_text(encoding="utf-8").partition("\n")
    command = "evenkeel params --config configs/demo.yaml"
    assert body == dump(pin_inputs(load(ROOT / "configs/demo.yaml"))), f"out of date: {command} > params.yaml"
    assert command in head


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_is_its_plain_command(stage: str) -> None:
    assert PIPELINE[stage]["cmd"] == f"python -m components {stage} --config params.yaml"


@pytest.mark.parametrize("stage", STAGES)
def test_outputs_are_those_of_the_layout(stage: str) -> None:
    assert set(map(Path, paths(stage, "outs", "metrics", "plots"))) == OUTPUTS[stage]


def test_metrics_stay_out_of_the_cache_so_that_they_can_be_committed() -> None:
    for stage in STAGES:
        for entry in PIPELINE[stage].get("metrics", []):
            assert next(iter(entry.values())) == {"cache": False}


def test_resume_state_is_no_output() -> None:
    declared = [path for stage in STAGES for path in paths(stage, "outs", "metrics", "plots", "deps")]
    assert not [path for path in declared if LAYOUT.state.name in PurePosixPath(path).parts]


@pytest.mark.parametrize("stage", STAGES)
def test_what_a_stage_reads_is_written_by_an_earlier_one(stage: str) -> None:
    earlier = list(STAGES)[: list(STAGES).index(stage)]
    written = {path for name in earlier for path in OUTPUTS[name]}
    read = [Path(path) for path in paths(stage, "deps") if path.startswith("out/")]
    assert all(written & {path, *path.parents} for path in read)


@pytest.mark.parametrize("stage", STAGES)
def test_every_parameter_exists(stage: str) -> None:
    for name in PIPELINE[stage]["params"]:
        lookup(name)


def test_an_override_of_triage_does_not_run_triage_again() -> None:
    triage = {f"triage.{name}" for name in PARAMS["triage"]}
    assert triage - set(PIPELINE["triage"]["params"]) == {"triage.override"}
    assert "triage.override" in PIPELINE["train"]["params"]


@pytest.mark.parametrize("stage", ["train", "gate"])
def test_where_figures_are_shown_is_no_reason_to_train_or_judge_again(stage: str) -> None:
    """`train` reads health.prometheus, and no byte that it writes depends on it."""
    named = {name.removeprefix("health.") for name in PIPELINE[stage]["params"] if name.startswith("health")}
    assert named == JUDGED_BY
    assert set(HealthSettings.model_fields) - named == {"prometheus", "rules_file"}


def test_the_report_depends_on_every_setting_that_it_shows() -> None:
    assert set(PIPELINE["report"]["params"]) == set(Settings.model_fields) - {"sinks"}
