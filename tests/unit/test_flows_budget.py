"""How long a run will take, where that is known from, and that it ends when its budget is spent."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from components.config import load
from components.config.root import Settings
from components.errors import EXIT_BAD_INPUT, InputError
from components.files import append_line, read_json, read_jsonl, write_json
from components.processes.living import lives
from components.stages import STAGES, wanted
from flows.budget import costs, spending, work
from flows.budget.estimate import FIXED, begin, duration, estimate, line, markdown
from flows.budget.history import Executed, history, path_of, record_execution, result_keys, settings_keys
from flows.budget.spending import HOUR, BudgetSpent, attempt, close_killed_attempt, seconds_of, spent
from flows.budget.work import gpus_of, work_of
from flows.host import processes
from flows.host.dvc_process import one_process
from flows.host.git import git
from flows.run.stages import reproduce
from flows.run.workspace import Workspace, locate
from tests import fake_line
from tests.code_graph import ROOT
from tests.unit import flows_project

DEMO = Path("configs/demo.yaml")
SECONDS = 100.0


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fake_line.build(tmp_path_factory.mktemp("line"))


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Estimates are those of the CPU of `costs.RATES`, whatever this one is."""
    monkeypatch.setattr(costs, "machine", lambda: costs.Rate(1.0, 1.0))


@pytest.fixture
def project(built: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project without a history; the working folder."""
    path_of(built).unlink(missing_ok=True)
    monkeypatch.chdir(built)
    return built


@pytest.fixture(scope="module")
def two_stages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return flows_project.build(tmp_path_factory.mktemp("two stages") / "project")


@pytest.fixture
def small(two_stages: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same with few files and two stages, for tests that make workspaces of it."""
    path_of(two_stages).unlink(missing_ok=True)
    monkeypatch.chdir(two_stages)
    return two_stages


def at(project: Path, *overrides: str) -> Workspace:
    return locate(project, DEMO, overrides)


def remembered(workspace: Workspace, **seconds: float) -> None:
    """Enter executions of stages of this run."""
    same, results = settings_keys(workspace), result_keys(workspace)
    for stage, taken in seconds.items():
        found = work_of(workspace.settings, stage)
        machine = work.machinery(workspace.settings, stage)
        row = Executed(
            workspace.run_id, stage, taken, 0, machine, found.amount, found.unit, same[stage], results[stage], "",
            start=found.start,
        )  # fmt: skip
        append_line(path_of(workspace.project), asdict(row))


def basis(workspace: Workspace) -> dict[str, str]:
    return {stage.stage: stage.basis for stage in estimate(workspace).stages}


def of(workspace: Workspace, stage: str) -> Any:
    return next(one for one in estimate(workspace).stages if one.stage == stage)


# Estimates


def test_where_nothing_is_known_the_guess_says_so_and_its_range_is_wide(project: Path) -> None:
    found = estimate(at(project))
    assert set(basis(at(project)).values()) == {"rough guess"}
    assert found.low * 10 < found.high
    assert 60 < found.seconds < 900  # the demo takes minutes
    assert "10 rough guess" in line(at(project), found)


def test_a_stage_whose_result_is_known_costs_nothing(project: Path) -> None:
    remembered(at(project), data=9, sft=60)
    found = at(project)
    assert {stage for stage, known in basis(found).items() if known == "unchanged"} == {"data", "sft"}
    assert of(found, "sft").seconds == 0
    assert "nothing to do" not in line(found, estimate(found))


def test_fresh_executes_what_is_known_too(project: Path) -> None:
    remembered(at(project), sft=60)
    found = next(stage for stage in estimate(at(project), fresh=True).stages if stage.stage == "sft")
    assert (found.basis, found.seconds) == ("same settings", 60)


def test_what_comes_after_a_change_is_not_known_any_more(project: Path) -> None:
    remembered(at(project), **dict.fromkeys(wanted(at(project).settings), 5.0))
    found = basis(at(project, "learner.lr=0.0007"))
    assert [stage for stage, known in found.items() if known == "unchanged"] == [
        "data", "audit", "sft", "admission", "triage", "clusters",
    ]  # fmt: skip


def test_the_same_settings_on_other_data_take_as_long_as_before(project: Path) -> None:
    remembered(at(project, "seed=1", "data.source.levels=3"), train=SECONDS)
    remembered(at(project, "seed=1", "data.source.levels=1"), train=2 * SECONDS)
    found = of(at(project, "seed=1"), "train")
    assert (found.basis, found.seconds) == ("same settings", 1.5 * SECONDS)
    assert found.low < SECONDS < 2 * SECONDS < found.high


def test_more_work_takes_as_much_longer(project: Path) -> None:
    short = at(project, "train.steps=40")
    remembered(short, train=SECONDS)
    found, before = of(at(project, "train.steps=400"), "train"), FIXED + work_of(short.settings, "train").start
    assert found.basis == "scaled" and before > FIXED  # libraries and weights are loaded once
    assert found.seconds == pytest.approx(before + (SECONDS - before) * 10, rel=0.05)
    assert found.low < found.seconds / 2 < found.seconds * 2 < found.high


def test_the_nearest_amount_of_work_is_scaled_from(project: Path) -> None:
    remembered(at(project, "train.steps=4"), train=50)
    remembered(at(project, "train.steps=300"), train=SECONDS)
    remembered(at(project, "train.steps=2000"), train=9000)
    assert of(at(project, "train.steps=310"), "train").seconds == pytest.approx(SECONDS * 310 / 300, rel=0.05)


def test_a_time_on_other_machinery_says_nothing(project: Path) -> None:
    remembered(at(project), train=SECONDS, gate=4)
    served = at(project, "rollout.engine={kind: vllm, urls: ['http://127.0.0.1:1']}", "seed=5")
    assert of(served, "train").basis == "rough guess"
    assert of(served, "gate").basis != "rough guess"


def test_what_was_found_in_the_cache_says_nothing_of_its_time(project: Path) -> None:
    record_execution(at(project), "train", executed=False)
    record_execution(at(project), "train", executed=False)
    assert len(history(project)) == 1
    assert of(at(project), "train").basis == "unchanged"
    assert of(at(project, "train.steps=41"), "train").basis == "rough guess"


def test_a_line_of_the_history_that_cannot_be_read_is_left_out(project: Path) -> None:
    remembered(at(project), sft=60)
    with path_of(project).open("a", encoding="utf-8") as file:
        file.write('{"stage": "train"}\nnull\n{"run": "x", "st')
    assert [row.stage for row in history(project)] == ["sft"]


def test_every_stage_has_work_and_a_rate(project: Path) -> None:
    settings = at(project, "dpo.steps=3", "admission.label_audit=report", "schedule={kind: ads}").settings
    assert [stage for stage in STAGES if not work_of(settings, stage).seconds > 0] == []
    assert {one.stage for one in estimate(at(project, "dpo.steps=3")).stages} == set(STAGES)


def asked_of(*overrides: str) -> dict[str, float]:
    settings = load(ROOT / "configs/demo.yaml", overrides)
    return {stage: work_of(settings, stage).amount for stage in wanted(settings)}


def test_clusters_cost_nothing_where_no_schedule_reads_them() -> None:
    assert asked_of("schedule={kind: ads}")["clusters"] > 0
    assert asked_of()["clusters"] == 0
    assert asked_of("schedule={kind: difficulty_pools}")["clusters"] == 0


def test_no_label_audit_no_cost_and_its_answers_serve_triage() -> None:
    without, audited = asked_of(), asked_of("admission.label_audit=report")
    assert without["admission"] == 0 < audited["admission"]
    assert without["triage"] > audited["triage"] > 0


def test_stages_before_training_grow_with_it_and_not_with_the_data() -> None:
    """They may ask for a twentieth of its completions each, but for a floor of 32 prompts."""
    short, long = asked_of("train.steps=40", "schedule={kind: uniform}"), asked_of("train.steps=4000")
    rows = asked_of("data.source.rows=400000")
    assert rows["clusters"] / rows["train"] < 0.1
    for stage in ("admission", "triage", "clusters"):
        assert short[stage] < 0.1 * short["train"]
        assert long[stage] < 0.1 * long["train"]


def test_a_token_of_a_checkpoint_costs_by_its_matrices_and_a_tied_embedding_is_one(tmp_path: Path) -> None:
    def shape(head: bool) -> Any:
        folder = tmp_path / str(head)
        folder.mkdir()
        tensors = {"model.embed_tokens.weight": np.zeros((50, 8)), "model.layers.0.mlp.weight": np.zeros((8, 16))}
        save_file(tensors | ({"lm_head.weight": np.zeros((50, 8))} if head else {}), folder / "model.safetensors")
        write_json(folder / "config.json", {"num_hidden_layers": 3, "hidden_size": 8})
        return costs.shape_of(load(ROOT / "configs/demo.yaml", [f"policy.model={{kind: checkpoint, path: {folder}}}"]))

    assert shape(head=False) == shape(head=True) == costs.Shape(matrices=50 * 8 + 8 * 16, layers=3)


def test_a_slow_machine_is_measured_in_products_and_in_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    tiny, large = costs.Shape(6e5, 3), costs.Shape(7e9, 32)
    monkeypatch.setattr(costs, "machine", lambda: costs.Rate(products=1.0, rest=3.0))
    assert costs.slowness(tiny) > 2 and costs.slowness(large) == pytest.approx(1, abs=0.01)
    monkeypatch.setattr(costs, "machine", lambda: costs.Rate(products=2.0, rest=2.0))
    assert costs.slowness(tiny) == costs.slowness(large) == pytest.approx(2)


def test_a_rough_guess_follows_the_machine_and_a_measured_time_does_not(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remembered(at(project), sft=60)
    before = {stage.stage: stage.seconds for stage in estimate(at(project), fresh=True).stages}
    monkeypatch.setattr(costs, "machine", lambda: costs.Rate(2.0, 2.0))
    after = {stage.stage: stage.seconds for stage in estimate(at(project), fresh=True).stages}
    assert after == {stage: pytest.approx(before[stage] * (1 if stage == "sft" else 2)) for stage in before}


def test_the_probes_take_time_and_count_it() -> None:
    assert all(0 < probe() < 10 for probe in costs.PROBES)


def test_a_file_without_rows_stops_no_estimate(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").touch()
    source = {"kind": "jsonl", "path": str(tmp_path / "empty.jsonl")}
    assert work.lengths(Settings.model_validate({"data": {"source": source}})).solution > 0


def test_a_folder_that_is_not_there_has_no_shape_and_stops_no_estimate(tmp_path: Path) -> None:
    assert costs.tables(tmp_path / "none") == costs.Shape(1.0, 0.0)


@pytest.mark.parametrize(
    ("overrides", "stage", "gpus"),
    [
        ((), "train", 0),
        (("learner.kind=fsdp2", "learner.ranks.processes=4", "launch.kind=processes"), "train", 4),
        (("learner.kind=fsdp2", "learner.ranks.processes=4", "launch.kind=processes"), "evaluate", 0),
        (("rollout.engine={kind: vllm, processes: 2, tensor_parallel: 2}",), "evaluate", 4),
        (("rollout.engine={kind: vllm, urls: ['http://a:1', 'http://b:1']}",), "triage", 2),
        (("rollout.engine={kind: vllm, urls: ['http://a:1', 'http://b:1']}",), "sft", 0),
    ],
)
def test_gpus_are_those_of_ranks_and_servers(
    monkeypatch: pytest.MonkeyPatch, overrides: tuple[str, ...], stage: str, gpus: int
) -> None:
    settings = load(ROOT / "configs/demo.yaml", overrides)
    monkeypatch.setattr(work, "has_gpus", lambda: True)
    assert gpus_of(settings, stage) == gpus
    monkeypatch.setattr(work, "has_gpus", lambda: False)
    assert gpus_of(settings, stage) == (gpus if "urls" in str(overrides) else 0)


def test_gpu_hours_are_those_of_the_stages_that_use_them(project: Path) -> None:
    engine = "rollout.engine={kind: vllm, urls: ['http://127.0.0.1:1']}"
    for stage in ("triage", "train"):
        remembered(at(project, engine), **{stage: HOUR})
    found = estimate(at(project, engine), fresh=True)
    used = sum(stage.seconds for stage in found.stages if stage.gpus) / HOUR
    assert found.gpu_hours == pytest.approx(used)
    assert f"{found.gpu_hours:.2g} GPU-hours" in line(at(project, engine), found)


def test_the_same_is_shown_in_the_ui(project: Path) -> None:
    remembered(at(project), sft=60)
    shown = markdown(at(project, "budget.hours=2"), estimate(at(project, "budget.hours=2")))
    assert "| sft | 0 s | 0 s to 0 s | 0 | unchanged: demo-" in shown
    assert "Budget: 2 hours; spent so far: 0 hours" in shown


@pytest.mark.parametrize(("seconds", "text"), [(3, "3 s"), (150, "2 min"), (5000, "83 min"), (9000, "2.5 h")])
def test_a_duration_is_as_precise_as_an_estimate_is(seconds: float, text: str) -> None:
    assert duration(seconds) == text


# Limits


def test_a_run_that_is_known_to_take_longer_than_its_budget_is_refused(project: Path) -> None:
    remembered(at(project), train=2 * HOUR)
    limited = at(project, "budget.hours=1")
    with pytest.raises(InputError) as refused:
        begin(limited, fresh=True)
    assert "2 hours estimated, 1 allowed" in str(refused.value)
    assert "budget.hours=" in str(refused.value)
    said = line(limited, estimate(limited, fresh=True))
    assert "exceeds the budget: 2 hours estimated, 1 allowed; a run is refused" in said


def test_a_rough_guess_refuses_nothing_and_warns(project: Path) -> None:
    limited = at(project, "budget.hours=0.001")
    found = begin(limited)
    assert "may exceed the budget, by a rough guess" in line(limited, found)


def made(project: Path, *overrides: str) -> Workspace:
    """A new workspace."""
    workspace = at(project, *overrides)
    with workspace.lock():
        workspace.ensure(fresh=True)
    return workspace


def account(workspace: Workspace) -> list[Mapping[str, Any]]:
    return list(read_jsonl(workspace.layout.state / "spent.jsonl"))


def test_every_attempt_at_a_stage_counts(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = made(small, "seed=21")
    for taken, whole in ((10, False), (5, False), (7, True), (3, True)):
        spend(workspace, monkeypatch, "sft", taken, whole=whole)
    assert spent(workspace.layout).hours == pytest.approx(25 / HOUR)
    assert seconds_of(workspace, "sft") == pytest.approx(3)
    spend(workspace, monkeypatch, "sft", 4, whole=False)
    assert seconds_of(workspace, "sft", unfinished=True) == pytest.approx(4)


def spend(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, stage: str, seconds: float, *, whole: bool = True
) -> None:
    clock = iter([1000.0, 1000.0 + seconds])
    with monkeypatch.context() as patch:
        patch.setattr(spending.time, "monotonic", lambda: next(clock))
        with attempt(workspace, stage) as current:
            current.whole = whole


def test_what_a_crash_leaves_of_the_account_loses_and_doubles_nothing(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = made(small, "seed=25")
    opened = workspace.layout.state / "attempt.json"
    with attempt(workspace, "sft") as current:
        kept, current.whole = read_json(opened), True
    write_json(opened, kept)  # killed between the entry and the removal of this file
    spend(workspace, monkeypatch, "train", 5)
    assert [row["stage"] for row in account(workspace)] == ["sft", "train"]
    with (workspace.layout.state / "spent.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"stage": "tr')
    assert spent(workspace.layout).hours == pytest.approx(5 / HOUR, abs=1e-3)
    spend(workspace, monkeypatch, "train", 7)
    assert [row["seconds"] for row in account(workspace)][1:] == [5.0, 7.0]


def test_gpu_hours_count_each_stage_by_its_gpus(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = ("budget.gpu_hours=0.01", "rollout.engine={kind: vllm, urls: ['http://a:1', 'http://b:1']}")
    workspace = made(small, "seed=22", *limits)
    spend(workspace, monkeypatch, "data", 500)
    spend(workspace, monkeypatch, "triage", 10)
    assert spent(workspace.layout).gpu_hours == pytest.approx(20 / HOUR)
    with attempt(workspace, "train") as current:
        assert current.left == pytest.approx((36 - 20) / 2)
    with attempt(workspace, "gate") as current:
        assert current.left is None


def test_a_stage_is_not_begun_when_nothing_is_left(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = made(small, "seed=23", "budget.hours=0.001")
    spend(workspace, monkeypatch, "data", 4)
    with pytest.raises(BudgetSpent) as stopped, attempt(workspace, "sft"):
        raise AssertionError("it was begun")
    assert "0.00111 of 0.001 hours; stage sft was not begun" in str(stopped.value)
    assert stopped.value.exit_code == EXIT_BAD_INPUT


def test_an_attempt_that_was_killed_counts_until_its_last_sign_of_life(small: Path) -> None:
    workspace = made(small, "seed=24")
    log = workspace.log("train")
    log.parent.mkdir()
    log.touch()
    began = time.time() - 100
    os.utime(log, (began + 60, began + 60))
    write_json(workspace.layout.state / "attempt.json", {"stage": "train", "began": began, "gpus": 0})
    close_killed_attempt(workspace)
    close_killed_attempt(workspace)
    assert [(row["stage"], row["seconds"], row["whole"]) for row in account(workspace)] == [("train", 60.0, False)]


def test_a_second_start_of_a_living_run_leaves_its_account_alone(project: Path) -> None:
    workspace = made(project, "seed=24", "budget.hours=0.001")
    remembered(workspace, train=2 * HOUR)
    write_json(workspace.layout.state / "attempt.json", {"stage": "train", "began": time.time() - 9, "gpus": 0})
    with workspace.lock(), pytest.raises(InputError, match="in progress"):
        begin(workspace)
    assert (workspace.layout.state / "attempt.json").exists()
    assert not (workspace.layout.state / "spent.jsonl").exists()


def test_what_a_broken_attempt_has_done_is_not_estimated_again(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    remembered(at(project), train=SECONDS)
    workspace = made(project, "seed=25")
    before = of(workspace, "train").seconds
    spend(workspace, monkeypatch, "train", 40, whole=False)
    assert of(workspace, "train").seconds == pytest.approx(before - 40, abs=1)


def test_a_stage_that_reaches_the_limit_is_stopped_with_all_that_it_started(small: Path, tmp_path: Path) -> None:
    program = "import subprocess, time; print(subprocess.Popen(['sleep', '60']).pid, flush=True); time.sleep(60)"
    log = tmp_path / "log"
    workspace = made(small, "seed=26", f"budget.hours={2 / HOUR}")
    with pytest.raises(BudgetSpent, match="stage train was stopped"), attempt(workspace, "train") as current:
        processes.run([sys.executable, "-c", program], cwd=tmp_path, env=os.environ, log=log, timeout=current.left)
    child = int(log.read_text(encoding="utf-8"))
    assert not lives(child)
    assert account(workspace)[-1]["seconds"] == pytest.approx(2, abs=1)


def test_executed_stages_are_remembered_and_others_are_not(small: Path) -> None:
    workspace = made(small, "seed=27")
    with one_process(workspace.root):
        assert reproduce(workspace, "data").state == "done"
        assert reproduce(workspace, "data").state == "cached"
    (row,) = history(small)
    assert (row.run, row.stage, row.executed) == (workspace.run_id, "data", True)
    assert row.seconds > 0
    assert row.unit == "rows"
    assert git(small, "status", "--porcelain") == ""
