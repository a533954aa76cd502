"""What ranks 1 and up run: they build the same learner, and carry out what rank 0 says until it says that it ends.

They need no files of rank 0: the policy comes from it, and so does their part of a checkpoint where they do not see its
folder (`components.learner.state`). A rank that fails ends, and with it the
run, which has its checkpoints.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import torch
from torch import Tensor
from transformers import PretrainedConfig, PreTrainedTokenizerBase

from components.config import Settings
from components.config.policy import LoraSettings
from components.errors import EXIT_LOST, EXIT_STOPPED, EvenkeelError
from components.learner.group import Dismissed, Group, is_lost, log_of, on_sigterm
from components.learner.ranks import Ranks
from components.learner.sharding import Sharding, ShardingOf, Source, build_sharding
from components.policy import Policy
from components.policy.lora import AdaptedPolicy, adapted
from components.policy.outline import empty_model
from components.seeds import derive

START, CLOSE = "start", "close"
EXIT_BUG = 1


class RankLearner(Protocol):
    """What every rank builds: its share of a learner."""

    COMMANDS: ClassVar[tuple[str, ...]]
    """Methods that all ranks call together; ``whole``, ``save``, ``snapshot`` and ``load`` are among them."""

    @property
    def sharding(self) -> Sharding:
        """What holds the weights."""

    def check(self, directory: Path) -> None:
        """Refuse what ``load`` could not read; not collective. Raises ValueError for another model's state."""


R = TypeVar("R", bound=RankLearner)
R_co = TypeVar("R_co", bound=RankLearner, covariant=True)
R_contra = TypeVar("R_contra", bound=RankLearner, contravariant=True)


class Make(Protocol[R_co]):
    """Builds the learner of one rank. It is sent to the ranks: a class of this code, or a `partial` of one."""

    def __call__(self, policy: Policy, *, sharding: ShardingOf, ranks: Ranks) -> R_co: ...


class Then(Protocol[R_contra]):
    """What a rank does once it has its learner; collective. It is sent to the ranks, too."""

    def __call__(self, learner: R_contra, begin: Start[Any], source: Source) -> None: ...


@dataclass(frozen=True)
class Start(Generic[R]):
    """What a rank needs to build its learner, but for the weights."""

    make: Make[R]
    config: PretrainedConfig
    tokenizer: PreTrainedTokenizerBase
    threads: int
    lora: LoraSettings | None
    seed: int
    then: Then[R] | None = None

    @classmethod
    def of(cls, make: Make[R], policy: Policy, settings: Settings, then: Then[R] | None = None) -> Start[R]:
        """The beginning of a stage."""
        lora = settings.policy.lora if isinstance(policy, AdaptedPolicy) else None
        seed = derive(settings.seed, "lora")
        return cls(make, policy.model.config, policy.tokenizer, settings.threads, lora, seed, then)

    def policy(self) -> Policy:
        """A policy of the right shapes, with its adapter, whose parameters take no memory: they are on the meta
        device."""
        return adapted(self.base(), self.lora, self.seed)

    def base(self) -> Policy:
        """The same without an adapter."""
        return Policy(empty_model(self.config, torch.float32), self.tokenizer)


def start(begin: Start[R], group: Group, state: Mapping[str, Tensor] | None = None) -> R:
    """The learner of one rank; collective. All ranks take the weights that ``state`` has on rank 0."""
    torch.set_num_threads(begin.threads)
    source = Source(group.ranks, group.ranks.device, state or {})
    learner = begin.make(
        begin.policy(),
        sharding=lambda policy, how: build_sharding(policy, how, source),
        ranks=group.ranks,
    )
    if begin.then is not None:
        begin.then(learner, begin, source)
    return learner


def carry_out(learner: RankLearner, name: str, arguments: tuple[Any, ...]) -> Any:
    """One command, on every rank at the same time."""
    if name not in learner.COMMANDS:
        raise ValueError(f"unknown command {name!r}; known are {', '.join(learner.COMMANDS)}")
    return getattr(learner, name)(*arguments)


def follow(group: Group) -> None:
    """Carry out commands until rank 0 says that it ends."""
    name, *arguments = group.receive()
    learner: RankLearner | None = None
    while name != CLOSE:
        if name == START:
            learner = start(arguments[0], group)
        elif learner is None:
            raise ValueError(f"{name!r} came before {START!r}")
        else:
            carry_out(learner, name, tuple(arguments))
        group.report_done()
        name, *arguments = group.receive()
    if learner is not None:
        learner.sharding.state.close()


def main(settings: Settings) -> int:
    """Be one rank of a run with these settings; returns the exit code. SIGTERM must be blocked in every thread."""
    rank = int(os.environ["RANK"])
    if (log := log_of(os.environ, rank)) is not None:
        print_to(log)
    group: Group | None = None

    def stop() -> None:
        if group is None:
            os._exit(EXIT_STOPPED)  # rank 0 has nothing to save yet
        group.report_sigterm()

    on_sigterm(stop)
    try:
        group = Group(settings.learner.ranks)
    except Dismissed:
        print("rank 0 has ended the stage: there was nothing to learn", flush=True)
        return 0
    except EvenkeelError as error:
        print(error, file=sys.stderr, flush=True)
        return error.exit_code
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
