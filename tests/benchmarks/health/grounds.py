"""What the trial runs on: a model, a task, the length of a run, and which faults make sense there.

Faults, arms, store and judging are the same on every ground. `TOY` is the demo's model made short; `LLM` is a real
language model (`make model`) on the short problems of `llm.yaml`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from components.errors import InputError
from tests.benchmarks.health.faults import FAULTS, Fault
from tests.benchmarks.health.faults.base import LATE
from tests.benchmarks.health.faults.hot_rate import HotRate
from tests.benchmarks.health.generated.base import ONSETS
from tests.benchmarks.health.generated.forms import RISE
from tests.benchmarks.health.generated.verifiers import SHORT
from tests.benchmarks.health.healthy import BASE, EVAL_EVERY, HEALTHY, LR, Healthy

Planted = Mapping[str, Callable[[int], Fault]]
"""A name -> what makes the fault of a seed."""


@dataclass(frozen=True)
class Ground:
    """A place for the trial.

    ``settings`` are over those of ``config`` and below fault and arm; ``preparing`` are for the stages before training,
    whose results all runs of an SFT seed share. The checkpoint of a run is that of its seed modulo the number of
    ``sft_seeds``, or what ``own_checkpoints`` says of its condition.

    The first of ``healthy`` is what faults are planted in. ``left_out`` are beginnings of the names of faults that make
    no sense here, with the reason. A fault begins in one of ``onsets``, a planted one that is late in one of ``late``;
    a drifting one grows for ``rise`` steps. ``room`` are the new tokens of a completion; ``short`` is the length below
    which a verifier by length accepts.

    The true accuracy is that of ``test_samples`` answers to each of the first ``test_prompts``, at the end of
    ``final_samples`` to ``final_prompts``; ``shuffled`` first, where the source gives one family after the other.
    """

    name: str
    config: Path
    settings: Mapping[str, Any]
    preparing: Mapping[str, Any]
    eval_every: int
    lr: float
    room: int
    sft_seeds: tuple[int, ...]
    own_checkpoints: Mapping[str, int]
    healthy: Mapping[str, Healthy]
    faults: Planted
    seeds: Mapping[str, int]
    other_seeds: int
    fault_seeds: int
    onsets: range
    late: range
    rise: int
    short: int
    test_prompts: int
    test_samples: int
    final_prompts: int
    final_samples: int
    shuffled: bool = False
    left_out: Mapping[str, str] = field(default_factory=dict)

    def why_left_out(self, condition: str) -> str:
        """The reason why a fault is not run here; "" where it is."""
        return next((why for start, why in self.left_out.items() if condition.startswith(start)), "")

    def check(self, condition: str) -> None:
        """Raises InputError for a condition that is left out."""
        if why := self.why_left_out(condition):
            raise InputError(f"{condition} is not run on the ground {self.name}: {why}")


UNTRIAGED = {"triage": {"override": "every run of the trial starts from the same checkpoint"}}
CONFIGS = Path(__file__).parents[3] / "configs"

TOY = Ground(
    name="toy",
    config=CONFIGS / "demo.yaml",
    settings=BASE,
    preparing=UNTRIAGED,
    eval_every=EVAL_EVERY,
    lr=LR,
    room=40,
    # Checkpoints that the recipes bring from about a third to two thirds; that of seed 1 stays at a half whatever the
    # schedule, so it has a condition of its own.
    sft_seeds=(0, 2, 4),
    own_checkpoints={"dapo_plateau": 1},
    healthy=HEALTHY,
    faults=FAULTS,
    seeds={"dapo_uniform": 10},
    other_seeds=4,
    fault_seeds=10,
    onsets=ONSETS,
    late=LATE,
    rise=RISE,
    short=SHORT,
    test_prompts=64,
    test_samples=2,
    final_prompts=160,
    final_samples=8,
)

LLM_HEALTHY = ("dapo_uniform", "dapo_forecast", "dapo_dynamic", "grpo", "gspo")
LLM_LEFT_OUT = {
    "too_easy": "its prompts are comparisons in the demo's notation, which this model was never taught",
    "hackable_verifier": "it accepts by the carries of the demo's written steps, which answers here do not have",
    "one_biased": "it needs the wrong answers of the demo's forgetful teacher; the teacher here is right",
}
LLM_SETTINGS: Mapping[str, Any] = {
    "schedule": {"kind": "uniform"},
    "admission": {"min_distinct": 6},
    "rollout": {"dynamic_sampling": None},
    "train": {
        "steps": 20,
        "prompts_per_step": 6,
        "eval_every": 4,
        "eval_prompts": 24,
        "eval_samples": 4,
        "checkpoint_every": 4,
        "keep_pairs": 0,
    },
    "health": {"enabled": False, "responses": {"enabled": False}},
}

LLM = Ground(
    name="llm",
    config=Path(__file__).with_name("llm.yaml"),
    settings=LLM_SETTINGS,
    preparing=UNTRIAGED,
    eval_every=4,
    lr=2e-5,
    room=8,
    sft_seeds=(0, 1, 2),
    own_checkpoints={},
    healthy={name: HEALTHY[name] for name in LLM_HEALTHY},
    faults={"hot_rate": HotRate} | {name: made for name, made in FAULTS.items() if name not in LLM_LEFT_OUT},
    seeds={"dapo_uniform": 6},
    other_seeds=3,
    fault_seeds=3,
    onsets=range(3, 9),
    late=range(3, 9),
    rise=5,
    short=4,
    test_prompts=48,
    test_samples=2,
    final_prompts=96,
    final_samples=4,
    shuffled=True,
    left_out=LLM_LEFT_OUT,
)
"""Twenty steps: two to three minutes of a core."""

GROUNDS = {ground.name: ground for ground in (TOY, LLM)}
