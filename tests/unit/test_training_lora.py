"""Runs of the real loop with an adapter: what a checkpoint holds, responses, roll-backs; all to the same bytes."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from factories import LORA, policy, settings, with_adapter, workspace
from safetensors.torch import load_file
from test_policy_lora import learner
from test_training_responses import EVENTFUL, HALVE, LIKELY, at, did
from training_runs import EVERY_STEP, assert_goes_on_from, judged_by_parity, killed, outputs, records, train, watched

from components.config import Settings
from components.files import read_json
from components.layout import Layout
from components.learner.state import StoredWeights
from components.policy.lora import adapted
from components.stages import train as stage
from components.training import assembly
from components.training.update import hand_over
from tests.tiers import slow_but

__all__ = ["judged_by_parity"]  # of every test here

ADAPTER = ".lora_"
STATE = ("learner/shard-00001-of-00001.safetensors", "learner.json")


def chosen(**sections: Any) -> Settings:
    return settings(policy={"lora": LORA}, **sections)


def trained(state: Path) -> set[str]:
    """Names of the weights in a state."""
    return set(StoredWeights(state))


def test_a_run_with_an_adapter_is_another_run():
    one, other = settings(), chosen()
    assert one.policy != other.policy
    assert assembly.DEPENDS_ON["policy"] is True


# Responses

BACK = {"sick": at(3, "rollback", HALVE)}


def sampled_from(root: Path, rules: dict[str, Any], steps: int) -> tuple[list[dict[str, torch.Tensor]], list[Any]]:
    """Every set of weights that the sampler was given, and the records of the run."""
    given: list[dict[str, torch.Tensor]] = []

    def wrap(engine: Any) -> Any:
        load = engine.load_weights

        def noting(weights: dict[str, torch.Tensor]) -> None:
            given.append({name: weight.clone() for name, weight in weights.items()})
            load(weights)

        engine.load_weights = noting
        return engine

    _, found = watched(root, chosen(health={"rules": rules}, train={"steps": steps}), wrap_engine=wrap)
    return given, found


def test_a_roll_back_gives_learner_and_sampler_the_adapter_of_the_checkpoint(tmp_path):
    """Five steps of progress in seven: after step 3 the run goes back to the checkpoint after two, at half the rate."""
    given, found = sampled_from(tmp_path / "back", BACK, steps=5)
    never, _ = sampled_from(tmp_path / "never", {}, steps=2)
    assert [record.signals["progress"] for record in found] == [0, 1, 2, 3, 2, 3, 4]
    assert [record.signals["lr"] for record in found[3:]] == [1e-2, 5e-3, 5e-3, 5e-3]
    assert len(given) == 7 + 1  # after every step, and at the return
    after_two, left, returned = never[-1], given[3], given[4]
    assert all(torch.equal(weight, returned[name]) for name, weight in after_two.items())
    assert any(not torch.equal(weight, left[name]) for name, weight in after_two.items())
    here, there = (
        Layout(tmp_path / root).state / "train" / f"step-{step:06d}" for root, step in (("back", 4), ("never", 2))
    )
    assert [(here / name).read_bytes() for name in STATE] == [(there / name).read_bytes() for name in STATE]


def test_an_adapter_that_is_no_number_is_never_sampled_from():
    own = with_adapter(policy())
    next(p for name, p in own.trainable().items() if ".lora_B." in name).data[0, 0] = torch.nan
    given: list[Any] = []
    engine: Any = SimpleNamespace(load_weights=given.append)
    assert hand_over(learner(own), engine.load_weights) == {"nonfinite_weights": 1.0}
    assert not given


# Killed and started again


def eventful() -> Settings:
    """A rate that is halved, a roll-back, knobs; second opinions, and a probe set by likelihood."""
    second = {"second": {"kind": "exact", "marker": "#"}, "live_share": 1.0}
    health = {"rules": EVENTFUL, "responses": {"judge_after": 2}, "canaries": {"carries": LIKELY}}
    return chosen(audit=second, health=health, train={"steps": 5})


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> Layout:
    return train(tmp_path_factory.mktemp("whole"), eventful())


def test_the_uninterrupted_run_learns_is_put_right_and_leaves_a_merged_policy_with_its_adapter(uninterrupted):
    assert [rule for _, rule, _ in did(uninterrupted)] == ["slow", "sick", "late", "note"]
    signals = [row["signals"] for row in records(uninterrupted)]
    assert sum("grad_norm" in step for step in signals) > 1
    assert all(step.get("mismatch_max", 0) < 1e-4 for step in signals)
    assert all({"likelihood_carries", "second_disagreement"} <= step.keys() for step in signals)
    folder = uninterrupted.train_checkpoint
    assert (folder / "adapter" / "adapter_model.safetensors").exists()
    assert not any(ADAPTER in name for name in load_file(folder / "model.safetensors"))
    states = list((uninterrupted.state / "train").glob("step-*/learner"))
    assert states and all(ADAPTER in name for state in states for name in trained(state))


BOUNDARIES = [("checkpoint", 2, True), ("roll_back", 1, False), ("roll_back", 1, True), ("append", 5, True)]


@pytest.mark.parametrize(("method", "times", "after"), slow_but(BOUNDARIES, BOUNDARIES[0], BOUNDARIES[2]))
def test_a_run_that_is_killed_ends_with_the_bytes_of_one_that_is_not(uninterrupted, tmp_path, method, times, after):
    layout = workspace(tmp_path)
    with killed(method, times, after=after):
        stage.run(eventful(), layout)
    assert outputs(train(tmp_path, eventful())) == outputs(uninterrupted)


PARTS = {
    "ahead": {"rollout": {"asynchrony": {"max_staleness": 2}}},
    "ppo": {"objective": {"advantage": {"kind": "gae"}}, "rollout": {"dynamic_sampling": None}},
    "ppo, ahead": {
        "objective": {"advantage": {"kind": "gae"}},
        "rollout": {"dynamic_sampling": None, "asynchrony": {"max_staleness": 2}},
    },
}


@pytest.mark.parametrize("name", slow_but(PARTS, "ppo, ahead"))
@pytest.mark.slow
def test_from_the_checkpoint_of_any_step_a_run_goes_on_to_the_same_bytes(tmp_path, name):
    whole = assert_goes_on_from((1, 3), tmp_path, chosen(**PARTS[name], train=EVERY_STEP))
    assert sum("grad_norm" in row["signals"] for row in records(whole)) > 1


def test_ppo_trains_two_adapters_and_a_head_and_saves_no_more(tmp_path):
    layout = train(tmp_path, chosen(**PARTS["ppo"]))
    signals = [row["signals"] for row in records(layout)]
    assert ["grad_norm" in step for step in signals] == [False, True, True, True, True]  # the first is the critic's
    assert all(step["critic_grad_norm"] > 0 for step in signals)
    last = layout.state / "train" / "step-000005"
    head = {"head.weight", "head.bias"}
    critic, actor = trained(last / "critic"), trained(last / "learner")
    assert head < critic and all(ADAPTER in name for name in critic - head | actor)
    assert len(critic - head) == len(actor)
    assert read_json(last / "critic.json") == {"updates": 2 * len(signals)}
    fresh = adapted(policy(), settings(policy={"lora": LORA}).policy.lora, seed=0)
    assert set(fresh.trainable()) == actor
