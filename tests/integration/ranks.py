"""Small runs of learners in several real processes."""

from __future__ import annotations

import importlib
import math
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch
from torch import Tensor

from components.config import Settings, dump
from components.files import write_text
from components.learner.base import IN_FORCE, Learner
from components.learner.batch import Batch, build_batch
from components.learner.build import build_learner
from components.learner.state import Piece
from components.learner.state.store import Reach, save
from components.policy import Policy
from components.processes import Child, free_port
from components.processes.environments import RANK_LOGS
from components.processes.living import lives
from components.processes.ranked import STARTED
from components.training.credit import Credit
from components.types import Group

sys.path.insert(0, str(Path(__file__).parents[1] / "unit"))
from factories import group, policy, settings

from tests.code_graph import ROOT

ZERO_1, ZERO_2, ZERO_3 = ({"kind": "deepspeed", "zero": {"stage": stage}} for stage in (1, 2, 3))
FSDP2 = {"kind": "fsdp2"}
KINDS = {"zero-1": ZERO_1, "zero-2": ZERO_2, "zero-3": ZERO_3, "fsdp2": FSDP2}
KL = {"kl": {"kind": "k2", "beta": 0.1}}
OBJECTIVES: dict[str, dict[str, Any]] = {
    "token-mean": {"aggregation": {"kind": "token_mean"}, **KL},
    "sequence-mean": {"aggregation": {"kind": "sequence_mean"}, **KL},
}
PPO = {"advantage": {"kind": "gae"}}
ROWS = (8, 7, 5, 8, 1, 3, 8, 2)
"""Rows of the steps' batches: dynamic sampling leaves any number of them, fewer than there are ranks too."""


def how(*, objective: str = "token-mean", updates: int = 2, ranks: int = 2, **learner: Any) -> Settings:
    """Settings of a run; without a kind those of the learner in this process."""
    launch, policy = {"kind": "inline"}, {"lora": learner.pop("lora", None)}
    rollout = {"group_size": 3} if ranks == 3 else {}  # the completions of an update divide into the ranks
    chosen: dict[str, Any] = {"lr": 1e-3, "warmup": 3, "weight_decay": 0.1, "updates_per_step": updates}
    chosen |= {"micro_batch_tokens": 64, "critic": {"pretrain_steps": 1}}
    if "kind" in learner:
        launch = {"kind": "processes"}
        chosen["ranks"] = {"processes": ranks, "start_timeout": 240, "reply_timeout": 60, **learner.pop("ranks_", {})}
    terms = PPO if objective == "ppo" else OBJECTIVES[objective]
    shared = {"launch": launch, "policy": policy, "rollout": rollout}
    return settings(learner={**chosen, **learner}, objective=terms, **shared)


@contextmanager
def following(chosen: Settings, folder: Path, cwd: Path | None = None) -> Iterator[list[Child]]:
    """Ranks 1 and up of a learner of which this process is rank 0, as torchrun would start them; in another working
    folder they do not see what rank 0 names by a relative path."""
    config, size = folder / "ranks.yaml", chosen.learner.ranks.processes
    write_text(config, dump(chosen))
    shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(size), "LOCAL_RANK": "0"}
    shared |= {STARTED: "test", RANK_LOGS: str(folder), "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "components", "train", "--config", str(config)]
    path = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), str(ROOT))))
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        for name, value in {**shared, "RANK": "0"}.items():
            patch.setenv(name, value)
        yield [
            stack.enter_context(
                Child(
                    f"learner-{rank}",
                    command,
                    log=folder / f"learner-{rank}.log",
                    env={**shared, "RANK": str(rank), "PYTHONPATH": path},
                    cwd=cwd,
                    grace=2,
                )
            )
            for rank, name in ((rank, f"learner-{rank}") for rank in range(1, size))
        ]


@contextmanager
def learning(
    chosen: Settings,
    folder: Path,
    begin: Policy | None = None,
    cwd: Path | None = None,
    weights: Mapping[str, torch.Tensor] | None = None,
    reference: bool = False,
) -> Iterator[Learner]:
    """A learner of several ranks, of which this process is rank 0, or of one. With ``weights`` apart from ``begin``,
    which is an outline then."""
    folder.mkdir(parents=True, exist_ok=True)
    forget_groups()
    with ExitStack() as stack:
        stack.enter_context(pytest.MonkeyPatch.context()).setenv("LOCAL_RANK", "0")
        if chosen.launch.kind == "processes" and chosen.learner.ranks.processes > 1:
            stack.enter_context(following(chosen, folder, cwd))
        apart = dict(weights) if weights is not None else None
        yield stack.enter_context(closing(build_learner(begin or policy(), chosen, apart, reference=reference)))


def forget_groups() -> None:
    """DeepSpeed keeps the groups of the first learner of a process, which in a run is the only one, and its numbers of
    modules and parameters go on from there, which the other ranks, in processes of their own, do not know."""
    if "deepspeed" in sys.modules:
        offload = sys.modules["deepspeed.runtime.zero.parameter_offload"].DeepSpeedZeRoOffload
        offload._register_deepspeed_module.__defaults__[0][0] = 0
        sys.modules["deepspeed.runtime.zero.partition_parameters"].Init.param_id = 0
        importlib.reload(sys.modules["deepspeed.utils.groups"])
        sys.modules["deepspeed.comm.comm"].cdb = None


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


OF_ONE = {
    *("weights_moved", "weights_still", "update_largest", "grad_clip"),
    *("beta_first", "beta_second", "weight_decay", IN_FORCE),
}
"""What `Sharding.trace` does not give where weights are spread, and the checksum of settings, which differ here."""


def near(one: Sequence[dict[str, float]], other: Sequence[dict[str, float]]) -> bool:
    """The same signals to 1e-5 (ratios of 1 and more: relative), but for those that only one process alone gives."""
    kept = [{k: v for k, v in row.items() if k not in OF_ONE} for row in one]
    return kept == [
        {k: pytest.approx(v, rel=1e-5, abs=1e-5) for k, v in row.items() if k not in OF_ONE} for row in other
    ]


def difference(one: dict[str, Tensor], other: dict[str, Tensor]) -> float:
    assert one.keys() == other.keys()
    return max((one[name] - other[name]).abs().max().item() for name in one)


def alone(**options: Any) -> Learner:
    """The learner in this process."""
    return build_learner(policy(), how(**options))


def saved(learner: Learner, folder: Path) -> Path:
    folder.mkdir()
    learner.save(folder)
    return folder


def written(folder: Path, tensors: Mapping[str, Tensor]) -> Path:
    """A learner's folder with a state of these tensors."""
    (folder / "learner").mkdir(parents=True)
    save({name: Piece.of(tensor) for name, tensor in tensors.items()}, Reach(folder / "learner"))
    return folder


def content(folder: Path) -> dict[str, bytes]:
    """All files below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


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
    return [process for process in processes if lives(process)]
