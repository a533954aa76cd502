"""Learners in several real processes: the updates of one process, state to the bit, and what broken ranks lead to."""

from __future__ import annotations

import math
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from components.config import Settings
from components.errors import InputError
from components.learner import Batch, Learner, build_batch, build_learner
from components.processes import Child, free_port
from components.training.credit import Credit
from components.types import Group

sys.path.insert(0, str(Path(__file__).parents[1] / "unit"))
from factories import group, policy, settings, workspace
from training_runs import killed, outputs, train

pytestmark = [pytest.mark.integration, pytest.mark.slow]

ZERO_1, ZERO_2, ZERO_3 = ({"kind": "deepspeed", "zero": {"stage": stage}} for stage in (1, 2, 3))
FSDP2 = {"kind": "fsdp2"}
KINDS = {"zero-1": ZERO_1, "zero-2": ZERO_2, "zero-3": ZERO_3, "fsdp2": FSDP2}
KL = {"kl": {"kind": "k2", "beta": 0.1}}
OBJECTIVES: dict[str, dict[str, Any]] = {
    "token-mean": {"aggregation": {"kind": "token_mean"}, **KL},
    "sequence-mean": {"aggregation": {"kind": "sequence_mean"}, **KL},
}
ROWS = (8, 7, 5, 8, 1, 3, 8, 2)
"""Rows of the steps' batches: dynamic sampling leaves any number of them, fewer than there are ranks too."""


def how(*, objective: str = "token-mean", updates: int = 2, ranks: int = 2, **learner: Any) -> Settings:
    """Settings of a run; without a kind those of the learner in this process."""
    chosen = {"lr": 1e-3, "warmup": 3, "weight_decay": 0.1, "updates_per_step": updates, "micro_batch_tokens": 64}
    if "kind" in learner:
        chosen["ranks"] = {"processes": ranks, "start_timeout": 240, "reply_timeout": 60, **learner.pop("ranks_", {})}
    return settings(learner={**chosen, **learner}, objective=OBJECTIVES[objective])


def groups() -> list[Group]:
    """Eight completions of different lengths to two prompts."""
    tokens = [[[30, 1], [31, 32, 33, 1], [34] * 9, [1]], [[40, 41, 1], [42, 1], [43, 44] * 5 + [1], [45, 46, 47, 1]]]
    rewards = [[1.0, 0.0, 0.0, 1.0], [0.0, 1.0, 0.0, 0.0]]
    prompts = [(2, *range(20, 40), 3), (2, *range(20, 45), 3)]  # so long that a micro-batch holds one row
    return [group(r, prompt_ids=p, tokens=t) for r, p, t in zip(rewards, prompts, tokens, strict=True)]


def batch(step: int) -> Batch:
    """The batch of a step, with a reference that differs a little from the policy."""
    made = groups()
    whole = Credit(None, None, None, settings().objective).assign(build_batch(made, pad_id=0), made, step=0).batch
    generator = torch.Generator().manual_seed(step)
    order = torch.randperm(8, generator=generator)[: ROWS[step % len(ROWS)]].sort().values
    noise = torch.randn(whole.response_mask.shape, generator=generator)
    return Batch(**{**whole.__dict__, "ref_logp": -2 + 0.1 * noise}).rows(order)


def steps(learner: Learner, numbers: Sequence[int], limit: float = math.inf) -> list[dict[str, float]]:
    return [learner.step(batch(step), seed=step, norm_limit=limit) for step in numbers]


def near(one: Sequence[dict[str, float]], other: Sequence[dict[str, float]]) -> bool:
    """The same signals to 1e-5 (ratios of 1 and more: relative)."""
    return list(one) == [{k: pytest.approx(v, rel=1e-5, abs=1e-5) for k, v in row.items()} for row in other]


def difference(one: dict[str, Tensor], other: dict[str, Tensor]) -> float:
    assert one.keys() == other.keys()
    return max((one[name] - other[name]).abs().max().item() for name in one)


@dataclass
class Started:
    """Ranks that several tests share; each begins by loading what they were started with."""

    learner: Learner
    begin: Path
    settings: Settings

    def afresh(self, chosen: Settings | None = None) -> Learner:
        chosen = chosen or self.settings
        self.learner.configure(
            self.settings.learner.model_copy(update={"updates_per_step": chosen.learner.updates_per_step}),
            chosen.objective,
        )
        self.learner.load(self.begin)
        return self.learner


@pytest.fixture(scope="module", params=KINDS)
def started(request, tmp_path_factory) -> Iterator[Started]:
    folder = tmp_path_factory.mktemp(request.param)
    chosen = how(**KINDS[request.param])
    learner = build_learner(policy(), chosen, folder / "logs")
    (folder / "begin").mkdir()
    learner.save(folder / "begin")
    yield Started(learner, folder / "begin", chosen)
    learner.close()


def alone(**options: Any) -> Learner:
    """The learner in this process."""
    return build_learner(policy(), how(**options))


def saved(learner: Learner, folder: Path) -> Path:
    folder.mkdir()
    learner.save(folder)
    return folder


# The same updates


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("updates", [1, 2])
def test_two_ranks_follow_the_loss_curve_of_one_process_to_1e_5(started, objective, updates):
    options = {"objective": objective, "updates": updates}
    one, two = alone(**options), started.afresh(how(**options))
    assert near(steps(two, range(8)), steps(one, range(8)))
    assert difference(two.weights(), one.weights()) < 1e-5


def test_log_probabilities_come_back_in_the_order_of_the_rows(started):
    two, one = started.afresh(), alone()
    mask = batch(0).response_mask
    assert torch.allclose(two.logprobs(batch(0))[mask], one.logprobs(batch(0))[mask], atol=1e-5)


def test_an_update_above_the_limit_of_the_norm_changes_neither_weights_nor_moments(started):
    learner = started.afresh()
    steps(learner, [0])
    before = learner.weights()
    skipped = steps(learner, [1], limit=1e-6)[0]
    assert (skipped["updates_skipped"], skipped["nonfinite"]) == (2, 0)
    assert difference(learner.weights(), before) == 0
    after, weights = steps(learner, [2, 3]), learner.weights()
    again = started.afresh()
    steps(again, [0])
    assert steps(again, [2, 3]) == after
    assert difference(again.weights(), weights) == 0


def test_a_gradient_that_is_not_a_number_changes_nothing_and_is_counted(started, tmp_path):
    learner, broken = started.afresh(), tmp_path / "broken"
    saved(learner, broken)
    tensors = load_file(broken / "learner.safetensors")
    tensors["weight/model.norm.weight"][0] = math.nan
    save_file(tensors, broken / "learner.safetensors")
    learner.load(broken)
    before = saved(learner, tmp_path / "before") / "learner.safetensors"
    signals = steps(learner, [0])[0]
    assert signals["updates_skipped"] == signals["nonfinite"] == 2
    assert (saved(learner, tmp_path / "after") / "learner.safetensors").read_bytes() == before.read_bytes()


def test_another_learning_rate_reaches_the_ranks(started):
    learner = started.afresh()
    learner.configure(started.settings.learner.model_copy(update={"lr": 1e-5}), started.settings.objective)
    assert steps(learner, [0])[0]["lr"] == pytest.approx(1e-5 * 2 / 3)


# State


def test_continuing_from_a_saved_state_equals_not_stopping_to_the_bit(started, tmp_path):
    learner = started.afresh()
    steps(learner, [0, 1])
    folder = saved(learner, tmp_path / "saved")
    expected, weights = steps(learner, [2, 3]), learner.weights()
    learner.load(folder)
    assert steps(learner, [2, 3]) == expected
    assert difference(learner.weights(), weights) == 0


def test_the_state_is_that_of_the_learner_in_one_process_and_goes_both_ways(started, tmp_path):
    one, two = alone(), started.afresh()
    steps(one, [0, 1]), steps(two, [0, 1])
    of_one, of_two = saved(one, tmp_path / "one"), saved(two, tmp_path / "two")
    assert sorted(p.name for p in of_two.iterdir()) == ["learner.json", "learner.safetensors"]
    tensors = load_file(of_two / "learner.safetensors")
    assert difference(tensors, load_file(of_one / "learner.safetensors")) < 1e-5
    one.load(of_two)
    expected = steps(two, [2, 3])
    two.load(of_two)
    assert near(steps(one, [2, 3]), expected)
    two.load(of_one)
    assert near(steps(two, [2, 3]), expected)


def test_a_saved_policy_is_a_checkpoint_of_the_present_weights(started, tmp_path):
    learner = started.afresh()
    steps(learner, [0])
    learner.save_policy(tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    assert difference(learner.weights(), weights) == 0


@pytest.mark.parametrize("kind", ["zero-2", "zero-3", "fsdp2"])
def test_a_run_goes_on_with_another_number_of_ranks(kind, tmp_path):
    def ranks(count: int) -> Learner:
        of_two = how(**KINDS[kind])
        spread = of_two.learner.ranks.model_copy(update={"processes": count})
        learner = of_two.learner.model_copy(update={"ranks": spread})
        return build_learner(policy(), of_two.model_copy(update={"learner": learner}), tmp_path / f"{count}" / "logs")

    one = alone()
    curve, folder = [], None
    for count, numbers in ((2, [0, 1]), (1, [2, 3]), (3, [4, 5])):
        learner = ranks(count)
        if folder is not None:
            learner.load(folder)
        curve += steps(learner, numbers)
        folder = saved(learner, tmp_path / f"state-{count}")
        weights = learner.weights()
        learner.close()
    assert near(curve, steps(one, range(6)))
    assert difference(weights, one.weights()) < 1e-5


# Broken ranks


def family() -> list[psutil.Process]:
    """All ranks below this process, each after its guardian."""
    found = [p for p in psutil.Process().children(recursive=True) if "RANK" in environment(p)]
    return sorted(found, key=lambda p: p.create_time())


def environment(process: psutil.Process) -> dict[str, str]:
    try:
        return process.environ()
    except psutil.Error:
        return {}


def running(processes: Sequence[psutil.Process]) -> list[psutil.Process]:
    return [p for p in processes if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]


@pytest.fixture
def broken(tmp_path) -> Iterator[Learner]:
    chosen = how(**FSDP2, ranks_={"reply_timeout": 3})
    learner = build_learner(policy(), chosen, tmp_path / "logs")
    steps(learner, [0])
    yield learner
    learner.close()


@pytest.mark.parametrize(("how_", "number"), [("SIGKILL", 1), ("SIGKILL", 0), ("SIGSTOP", 1)])
def test_a_rank_that_is_lost_is_named_and_all_others_end(broken, how_, number):
    everyone = family()
    victim = [p for p in everyone if environment(p)["RANK"] == str(number)][-1]
    victim.send_signal(signal.Signals[how_])
    begun = time.monotonic()
    with pytest.raises(InputError) as caught:
        steps(broken, [1])
    assert time.monotonic() - begun < 30
    assert f"learner-{number}" in str(caught.value)
    assert how_ in str(caught.value)
    assert not running(everyone)
    with pytest.raises(InputError, match="ended"):
        broken.weights()


def test_closing_leaves_no_process_and_no_socket(tmp_path):
    learner = build_learner(policy(), how(**FSDP2), tmp_path / "logs")
    everyone = family()
    assert len(everyone) >= 4  # two ranks, each under its guardian
    learner.close()
    learner.close()
    assert not running(everyone)


def test_an_error_of_a_rank_says_what_and_where(tmp_path):
    learner = build_learner(policy(), how(**FSDP2), tmp_path / "logs")
    (tmp_path / "other").mkdir()
    save_file({"weight/other": torch.zeros(1)}, tmp_path / "other" / "learner.safetensors")
    with pytest.raises(InputError, match="belongs to another model"):
        learner.load(tmp_path / "other")


# The loop


@pytest.mark.parametrize("kind", ["zero-2", "fsdp2"])
def test_a_run_that_is_killed_ends_with_the_bytes_of_one_that_is_not(kind, tmp_path, monkeypatch):
    chosen = how(**KINDS[kind])
    expected = outputs(train(tmp_path / "whole", chosen))
    workspace(tmp_path / "killed")
    with killed(monkeypatch, "checkpoint", 2, after=True):
        train(tmp_path / "killed", chosen)
    assert outputs(train(tmp_path / "killed", chosen)) == expected
    assert not running(family())


# Settings of the ranks


@pytest.mark.parametrize("kind", KINDS)
def test_bfloat16_passes_keep_float32_state_and_go_on_to_the_bit(kind, tmp_path):
    chosen = how(**KINDS[kind], compute_dtype="bfloat16", activation_checkpointing=True)
    learner = build_learner(policy(), chosen, tmp_path / "logs")
    exact = steps(alone(), range(4))
    curve = steps(learner, [0, 1])
    folder = saved(learner, tmp_path / "saved")
    curve += steps(learner, [2, 3])
    weights = learner.weights()
    assert [s["loss"] for s in curve] == pytest.approx([s["loss"] for s in exact], rel=0.05)
    assert [s["grad_norm"] for s in curve] == pytest.approx([s["grad_norm"] for s in exact], rel=0.1)
    state = load_file(folder / "learner.safetensors")
    assert {tensor.dtype for tensor in state.values()} == {torch.float32}
    assert any(not torch.equal(w, w.bfloat16().float()) for w in state.values())  # finer than what the passes read
    assert steps(learner, [5], limit=1e-6)[0]["updates_skipped"] == 2
    assert difference(learner.weights(), weights) == 0
    learner.load(folder)
    assert steps(learner, [2, 3]) == curve[2:]
    assert difference(learner.weights(), weights) == 0
    learner.close()


def test_ranks_that_something_else_has_started_serve_a_run_that_knows_the_key(tmp_path, monkeypatch):
    """As on a cluster: torchrun starts the ranks, the run finds them under an address."""
    address = f"127.0.0.1:{free_port()}"
    env = {"EVENKEEL_LEARNER_LISTEN": address, "EVENKEEL_LEARNER_KEY": "secret", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    with Child(
        "torchrun", [*command, "-m", "components.learner.worker"], log=tmp_path / "torchrun.log", env=env
    ) as child:
        chosen = how(**FSDP2, ranks_={"address": address, "start_timeout": 120})
        monkeypatch.setenv("EVENKEEL_LEARNER_KEY", "guess")
        with pytest.raises(InputError, match="have another key"):
            build_learner(policy(), chosen, tmp_path / "logs")
        monkeypatch.setenv("EVENKEEL_LEARNER_KEY", "secret")
        learner = build_learner(policy(), chosen, tmp_path / "logs")
        assert near(steps(learner, [0, 1]), steps(alone(), [0, 1]))
        learner.close()
        begun = time.monotonic()
        while child.alive and time.monotonic() - begun < 30:
            time.sleep(0.1)
        assert child.exit_code == 0


def test_another_number_of_ranks_than_the_settings_say_is_refused_with_both(tmp_path, monkeypatch):
    address = f"127.0.0.1:{free_port()}"
    env = {"EVENKEEL_LEARNER_LISTEN": address, "EVENKEEL_LEARNER_KEY": "secret", "RANK": "0", "WORLD_SIZE": "1"}
    env |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    monkeypatch.setenv("EVENKEEL_LEARNER_KEY", "secret")
    command = [sys.executable, "-m", "components.learner.worker"]
    why = "another number of ranks: 2 in the run, 1 in its ranks"
    with Child("learner", command, log=tmp_path / "learner.log", env=env), pytest.raises(InputError, match=why):
        build_learner(policy(), how(**FSDP2, ranks_={"address": address}), tmp_path / "logs")
