"""How a stage gets a supervised learner: in its own process, or over the ranks that `learner.kind` names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Protocol

from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from components.config import Settings
from components.config.base import AdamWSettings
from components.config.dpo import DpoSettings
from components.config.policy import SftSettings
from components.config.training import LearnerSettings
from components.learner.follower import Start
from components.learner.group import Group
from components.learner.leader import Leading
from components.learner.supervised import Supervised, SupervisedLearner, Supervision, T
from components.policy import Policy
from components.processes.stopping import STOPPING

MEMORY = ("activation_checkpointing", "logits_at_once")
"""Settings of section `learner` that bound the memory of a pass, in the supervised stages too."""
SHARED = {"kind", *MEMORY}
"""Settings of that section on which what stage `sft` computes depends; stage `dpo` depends on its precision, too."""
AT_ONCE = 64
"""Examples of one command that scores the reference: what comes back is ``[64, rows, R]``."""


class Build(Protocol):
    """Builds the learner of a stage. It takes ``policy`` over, and may change its weights."""

    def __call__(self, policy: Policy, supervision: Supervision[T]) -> Supervised[T]: ...


class SupervisedLeader(Leading[SupervisedLearner[T]], Supervised[T]):
    """Rank 0 of a supervised learner. Errors are those of `Leading`."""

    def step(self, examples: Sequence[T], lr: float, seed: int, reference: Tensor | None = None) -> dict[str, float]:
        figures: dict[str, float] = self._call("step", examples, lr, seed, reference)
        return figures

    def measure(self, examples: Sequence[T], reference: Tensor | None = None) -> dict[str, float]:
        figures: dict[str, float] = self._call("measure", examples, reference)
        return figures

    def reference(self, examples: Sequence[T]) -> Callable[[Sequence[T]], Tensor]:
        """Scores all ``examples`` now and keeps the log-probabilities in the memory of rank 0: one forward pass over
        each of them, at a resumption too, and 4 bytes a token. No second copy of the weights is spread."""
        known: dict[T, Tensor] = {}
        for start in range(0, len(examples), AT_ONCE):
            some = examples[start : start + AT_ONCE]
            known.update(zip(some, self._call("logprobs", some), strict=True))
        return partial(_looked_up, known)


def _looked_up(known: dict[T, Tensor], examples: Sequence[T]) -> Tensor:
    """``[N, rows, R]`` of ``[rows, R]`` each."""
    found = [known[example].transpose(0, 1) for example in examples]
    return pad_sequence(found, batch_first=True).transpose(1, 2)


def alone(policy: Policy, supervision: Supervision[T], learner: LearnerSettings | None = None) -> Supervised[T]:
    """A learner in this process; it takes the memory of a pass, and for DPO its precision, from ``learner``."""
    given = learner or LearnerSettings()
    here = LearnerSettings(**{name: getattr(given, name) for name in MEMORY})
    if not isinstance(supervision.settings, SftSettings):
        here = here.model_copy(update={"compute_dtype": given.compute_dtype})
    return SupervisedLearner(policy, supervision, learner_settings(here, supervision.settings))


def has_ranks(settings: Settings) -> bool:
    """Whether a supervised stage with these settings is learned over ranks.

    With ``launch.kind`` kubernetes, a stage that is not sent to the cluster has one process, this one: the ranks are
    pods, whose own ``launch.kind`` is another.
    """
    return settings.learner.kind != "torch" and settings.launch.kind != "kubernetes"


def builder_of(settings: Settings, weights: Mapping[str, Tensor] | None = None) -> Build:
    """What builds the learner of a stage with these settings, in this process or over ranks.

    Args:
        weights: what ranks begin with where the policy is an `outline`.
    """
    if not has_ranks(settings):
        return partial(alone, learner=settings.learner)

    def over_ranks(policy: Policy, supervision: Supervision[T]) -> Supervised[T]:
        how = learner_settings(settings.learner, supervision.settings)
        make = partial(SupervisedLearner, supervision=supervision, settings=how)
        learner = SupervisedLeader(policy, Start.of(make, policy, settings), Group(settings.learner.ranks), weights)
        learner.on_stop_request(STOPPING.request)
        return learner

    return over_ranks


def learner_settings(spread: LearnerSettings, settings: SftSettings | DpoSettings) -> LearnerSettings:
    """The optimizer and precision of a supervised stage, with ranks and memory as the learner of stage `train` has
    them."""
    own = {name: getattr(settings, name) for name in AdamWSettings.model_fields}
    precision = settings if isinstance(settings, SftSettings) else spread
    own["compute_dtype"] = precision.compute_dtype
    shared = {name: getattr(spread, name) for name in ("kind", "ranks", "zero", *MEMORY)}
    return LearnerSettings(**shared, **own)
