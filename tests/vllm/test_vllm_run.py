"""The training loop with real servers, one of which dies on the way."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from components.data.prompts import read_prompts
from components.files import read_jsonl
from components.layout import Layout
from components.rollout import Engine
from components.rollout.servers import ServerEngine
from components.scheduling import Clusters, ranked_clusters
from components.training.assembly import assembled
from components.training.loop import train
from components.types import StepRecord
from tests.unit.factories import Judge, parity, settings, workspace
from tests.vllm.tiny import outliving, processes, servers, tiny

ENGINE = {"kind": "vllm", "processes": 2, "max_model_len": 64, "canary_every": 2.0, "canary_timeout": 60.0}
TRAIN = {"steps": 6, "prompts_per_step": 4, "eval_every": 3, "eval_prompts": 3, "eval_samples": 2}


class Deadly(Engine):
    """Kills the first server of an engine before a batch is sampled."""

    def __init__(self, engine: Engine, batch: int) -> None:
        assert isinstance(engine, ServerEngine)
        self.engine, self._left = engine, batch

    def generate(self, prompts: Any, sampling: Any) -> Any:
        self._left -= 1
        if self._left == 0:
            for process in processes(servers(self.engine)[0])[1:]:
                process.kill()
        return self.engine.generate(prompts, sampling)

    def load_weights(self, weights: Any) -> None:
        self.engine.load_weights(weights)


def prepared(root: Path) -> tuple[Layout, Clusters]:
    """What the stages before `train` leave, with a policy that vLLM takes."""
    layout = workspace(root)
    shutil.rmtree(layout.sft_checkpoint)
    layout.sft_checkpoint.mkdir(parents=True)
    tiny().save(layout.sft_checkpoint)
    return layout, ranked_clusters(read_prompts(layout.split("train")), layout)


def test_a_run_makes_all_its_steps_although_a_server_was_killed(tmp_path):
    """It forecasts which prompts carry a gradient, and ends groups after their first completions."""
    layout, clusters = prepared(tmp_path)
    records: list[StepRecord] = []
    rollout = {"engine": ENGINE, "max_new_tokens": 12, "two_stage": {"first": 2}, "dynamic_sampling": None}
    chosen = settings(schedule={"kind": "forecast"}, rollout=rollout, train=TRAIN, learner={"lr": 1e-3})
    with assembled(
        chosen, layout, clusters, wrap_engine=lambda e: Deadly(e, 4), wrap_scorer=lambda _: Judge(parity)
    ) as parts:
        deadly = parts.state.engine
        assert isinstance(deadly, Deadly)
        train(parts, records.append)
        running = [process for server in servers(deadly.engine) for process in processes(server)]

    assert [record.step for record in records] == list(range(6))
    assert "drained" in [row["event"] for row in read_jsonl(layout.logs / "rollout.jsonl")]
    assert any(record.signals["schedule_ended"] for record in records)
    gaps = [record.signals["mismatch_mean"] for record in records if "mismatch_mean" in record.signals]
    assert gaps and max(gaps) < 1e-4
    assert not outliving(running), "a server outlived its run"


def test_weights_may_be_handed_over_in_the_middle_of_completions(tmp_path):
    """Rollouts ahead of the learner: every token has the version that the server reports for it."""
    layout, clusters = prepared(tmp_path)
    records: list[StepRecord] = []
    rollout = {
        "engine": {**ENGINE, "processes": 1},
        "max_new_tokens": 40,
        "asynchrony": {"max_staleness": 2, "in_flight": True},
    }
    chosen = settings(rollout=rollout, train=TRAIN, learner={"lr": 1e-3})
    with assembled(chosen, layout, clusters, wrap_scorer=lambda _: Judge(parity)) as parts:
        train(parts, records.append)
    assert [record.step for record in records] == list(range(6))
    ages = [record.signals["staleness_max"] for record in records if "staleness_max" in record.signals]
    assert ages and max(ages) > 0
