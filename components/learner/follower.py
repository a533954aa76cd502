"""What ranks 1 and up run: they build the same learner, and carry out what rank 0 says until it says that it ends.

They read nothing from disk: the policy and every checkpoint come from rank 0. A rank that fails ends, and with it the
run, which has its checkpoints.
"""

from __future__ import annotations

import os
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from accelerate import init_empty_weights
from transformers import AutoModelForCausalLM, PretrainedConfig, PreTrainedTokenizerBase
from transformers.initialization import no_init_weights

from components.config import Settings
from components.config.objective import ObjectiveSettings
from components.config.policy import LoraSettings
from components.config.training import LearnerSettings
from components.errors import EXIT_LOST, EvenkeelError
from components.learner.group import Group, is_lost, log_of
from components.learner.sharding import SHARDINGS, Source
from components.learner.torch_learner import TorchLearner
from components.policy import Policy
from components.policy.lora import adapted
from components.policy.policy import quiet
from components.seeds import derive

START, CLOSE = "start", "close"
COMMANDS = ("configure", "logprobs", "step", "learned", "snapshot", "load")
"""Methods of `TorchLearner` that all ranks call together."""
EXIT_BUG = 1


@dataclass(frozen=True)
class Start:
    """What a rank needs to build its learner, but for the weights."""

    config: PretrainedConfig
    tokenizer: PreTrainedTokenizerBase
    learner: LearnerSettings
    objective: ObjectiveSettings
    temperature: float
    threads: int
    lora: LoraSettings | None
    seed: int

    @classmethod
    def of(cls, policy: Policy, settings: Settings) -> Start:
        """The beginning of a run."""
        sections = settings.learner, settings.objective, settings.rollout.temperature, settings.threads
        adapter = settings.policy.lora, derive(settings.seed, "lora")
        return cls(policy.model.config, policy.tokenizer, *sections, *adapter)

    def policy(self) -> Policy:
        """A policy of the right shapes, with its adapter, whose parameters take no memory: they are on the meta
        device."""
        with quiet(), no_init_weights():
            with init_empty_weights(include_buffers=False):
                model = AutoModelForCausalLM.from_config(self.config, dtype=torch.float32)
            model.tie_weights()  # inside of the block above every tie would break
        return adapted(Policy(model.eval(), self.tokenizer), self.lora, self.seed)


def start(begin: Start, group: Group, policy: Policy | None = None) -> TorchLearner:
    """The learner of one rank; collective. All ranks take the weights that ``policy`` has on rank 0."""
    torch.set_num_threads(begin.threads)
    source = Source(group.ranks, group.ranks.device, policy.model.state_dict() if policy is not None else {})
    return TorchLearner(
        begin.policy(),
        begin.learner,
        begin.objective,
        begin.temperature,
        sharding=lambda policy, how: SHARDINGS[how.kind](policy, how, source),
        ranks=group.ranks,
    )


def carry_out(learner: TorchLearner, name: str, arguments: tuple[Any, ...]) -> Any:
    """One command, on every rank at the same time."""
    if name not in COMMANDS:
        raise ValueError(f"unknown command {name!r}; known are {', '.join(COMMANDS)}")
    return getattr(learner, name)(*arguments)


def follow(group: Group) -> None:
    """Carry out commands until rank 0 says that it ends."""
    name, *arguments = group.receive()
    learner: TorchLearner | None = None
    while name != CLOSE:
        if name == START:
            learner = start(arguments[0], group)
        elif learner is None:
            raise ValueError(f"{name!r} came before {START!r}")
        elif name == "learned":  # rank 0 alone keeps it
            for _ in learner.sharding.learned():
                pass
        else:
            carry_out(learner, name, tuple(arguments))
        group.report_done()
        name, *arguments = group.receive()


def main(settings: Settings) -> int:
    """Be one rank of a run with these settings; returns the exit code. SIGTERM must be blocked in every thread."""
    rank = int(os.environ["RANK"])
    if (log := log_of(os.environ, rank)) is not None:
        print_to(log)
    try:
        group = Group(settings.learner.ranks)
    except EvenkeelError as error:
        print(error, file=sys.stderr, flush=True)
        return error.exit_code
    group.pass_on_sigterm()
    print(f"rank {rank} of {group.ranks.size}, {group.ranks.device}: waits for rank 0", flush=True)
    try:
        follow(group)
    except Exception as error:
        traceback.print_exc()
        group.report_end(error)
        return EXIT_LOST if is_lost(error) else EXIT_BUG
    print("rank 0 has ended the run", flush=True)
    return 0


def print_to(path: Path) -> None:
    """Append everything that this process prints from now on to a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as log:
        for stream in (1, 2):
            os.dup2(log.fileno(), stream)
