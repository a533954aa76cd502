"""Supervised learning in this process, or in every one of several ranks: a loss over texts that are given."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import ClassVar, Generic, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor

from components.config.dpo import DpoSettings
from components.config.policy import SftSettings
from components.config.training import LearnerSettings
from components.device import autocast
from components.learner.activations import checkpoint_activations
from components.learner.batch import Batch
from components.learner.ranks import ALONE, Ranks, idle_pass, split_rows
from components.learner.scoring import Pass, score
from components.learner.sharding.base import Plain, ShardingOf
from components.policy import Policy
from components.seeds import derive
from components.working import Work, working

T = TypeVar("T", bound=Hashable)
Score = Callable[[Batch], Tensor]
"""Log-probabilities ``[B, R]`` of the tokens that count, fp32 nats, 0 elsewhere."""


class Epochs:
    """Batches of row numbers, as a function of seed and step alone: nothing to save for a resumption."""

    def __init__(self, rows: int, batch_size: int, seed: int, purpose: str) -> None:
        self._rows, self._batch_size, self._seed, self._purpose = rows, batch_size, seed, purpose

    def batch(self, step: int) -> list[int]:
        """Row numbers of a step: consecutive slices of one permutation per epoch."""
        start = step * self._batch_size
        positions = range(start, start + self._batch_size)
        return [self._order(position // self._rows)[position % self._rows] for position in positions]

    @lru_cache(maxsize=2)  # noqa: B019 - two epochs of one trainer, dropped with it
    def _order(self, epoch: int) -> list[int]:
        order = np.random.default_rng(derive(self._seed, self._purpose, epoch)).permutation(self._rows)
        return [int(i) for i in order]


class Terms(NamedTuple):
    """The scalar to minimise, and figures ``[F]`` in float64; those of all passes add up."""

    loss: Tensor
    figures: Tensor


class Supervision(ABC, Generic[T]):
    """What is learned, from examples of type ``T``. Every rank has a copy, so an instance must be picklable."""

    state: ClassVar[str]
    """Name of the folder that holds weights and optimizer state (`components.learner.state`)."""
    figures: ClassVar[tuple[str, ...]]
    """Names of `Terms.figures`."""
    rows: ClassVar[int]
    """Rows of one example in a pass."""
    dropout: ClassVar[bool]
    """Whether the model has its dropout while it learns."""
    unit: ClassVar[str]

    def __init__(self, settings: SftSettings | DpoSettings, pad_id: int) -> None:
        self.settings, self.pad_id = settings, pad_id

    @abstractmethod
    def tokens(self, example: T) -> int:
        """Tokens that an example takes in a pass."""

    @abstractmethod
    def size(self, examples: Sequence[T]) -> int:
        """What the loss is a mean over, of all examples of an update."""

    @abstractmethod
    def passes(self, examples: Sequence[T]) -> list[list[int]]:
        """Numbers of the examples of each forward and backward pass of one rank; none for no example."""

    @abstractmethod
    def batch(self, examples: Sequence[T]) -> Batch:
        """One pass over N examples, ``[rows * N, T]``: the first row of each, then the second of each."""

    @abstractmethod
    def terms(self, logp: Tensor, batch: Batch, size: int) -> Terms:
        """The part that a pass has in the loss of an update of this `size`; ``logp`` is ``[rows * N, R]``."""


class Supervised(ABC, Generic[T]):
    """A supervised learner as a trainer sees it, whatever its weights are spread over."""

    @abstractmethod
    def step(self, examples: Sequence[T], lr: float, seed: int, reference: Tensor | None = None) -> dict[str, float]:
        """One update. Returns the sums of `Supervision.figures` before it, and ``grad_norm``.

        A gradient that is not finite changes nothing.

        Args:
            seed: Of the dropout.
            reference: ``[N, rows, R]``, what `reference` gave for these examples.
        """

    @abstractmethod
    def measure(self, examples: Sequence[T], reference: Tensor | None = None) -> dict[str, float]:
        """The sums of `Supervision.figures` under the present weights."""

    @abstractmethod
    def reference(self, examples: Sequence[T]) -> Callable[[Sequence[T]], Tensor]:
        """Remember the present weights; returns log-probabilities ``[N, rows, R]`` under them of some of ``examples``.
        Called before the first update, and before `load`."""

    @abstractmethod
    def save(self, directory: Path) -> None:
        """Write weights and optimizer state into an empty folder, bit-exact."""

    @abstractmethod
    def load(self, directory: Path) -> None:
        """Continue exactly where `save` was called."""

    @abstractmethod
    def save_policy(self, directory: Path) -> None:
        """Write the policy as a checkpoint folder for others to load."""

    def close(self) -> None:
        """Let go of processes and connections; nothing is learned after it."""


class SupervisedLearner(Supervised[T]):
    """AdamW on a model in this process, or on this process's share of it.

    Every rank gets all examples of an update and scores its share of them. Dropout masks are drawn by every rank for
    its own rows: with dropout, the losses of several ranks are not those of one.
    """

    COMMANDS: ClassVar[tuple[str, ...]] = ("step", "measure", "logprobs", "whole", "save", "snapshot", "load")

    def __init__(
        self,
        policy: Policy,
        supervision: Supervision[T],
        settings: LearnerSettings,
        *,
        sharding: ShardingOf = Plain,
        ranks: Ranks = ALONE,
    ) -> None:
        self._policy, self._supervision, self._ranks = policy, supervision, ranks
        self._settings, self._how = settings, Pass.of(settings, temperature=1.0)
        policy.model.train(supervision.dropout)
        if settings.activation_checkpointing:
            checkpoint_activations(policy.model)
        for parameter in policy.trainable().values():
            parameter.requires_grad_(True)
        self.sharding = sharding(policy, settings)

    def step(self, examples: Sequence[T], lr: float, seed: int, reference: Tensor | None = None) -> dict[str, float]:
        if self._supervision.dropout:
            torch.manual_seed(derive(seed, self._ranks.rank) if self._ranks.rank else seed)
        self.sharding.zero_grad()
        with working("updating", len(examples), self._supervision.unit) as work:
            figures = self._figures(examples, reference, work, learn=True)
            norm = self.sharding.step(lr, math.inf)
        return {**figures, "grad_norm": norm}

    @torch.no_grad()
    def measure(self, examples: Sequence[T], reference: Tensor | None = None) -> dict[str, float]:
        with working("measuring", len(examples), self._supervision.unit) as work:
            return self._figures(examples, reference, work, learn=False)

    def _figures(self, examples: Sequence[T], reference: Tensor | None, work: Work, learn: bool) -> dict[str, float]:
        passes, size = self._passes(examples, reference), self._supervision.size(examples)
        sums = torch.zeros(len(self._supervision.figures), dtype=torch.float64)
        for number, (rows, batch) in enumerate(passes, start=1):
            logp = self._score(batch)
            loss = logp.sum()  # of an idle pass: 0, and so is its gradient
            if rows:
                loss, figures = self._supervision.terms(logp, batch, size)
                sums += figures.cpu()
            if learn:
                self.sharding.backward(loss, last=number == len(passes))
            work.add(len(rows))
        return dict(zip(self._supervision.figures, self._ranks.total(sums).tolist(), strict=True))

    def _passes(self, examples: Sequence[T], reference: Tensor | None = None) -> list[tuple[list[int], Batch]]:
        """This rank's passes and the numbers of their examples; behind them idle ones, which have none: all ranks make
        as many, because weights that are spread are gathered for every pass."""
        shared = split_rows([self._supervision.tokens(example) for example in examples], self._ranks.size)
        cut = [self._cut(examples, own.tolist()) for own in shared]
        own = cut[self._ranks.rank]
        found = [(numbers, self._batch(examples, numbers, reference)) for numbers in own]
        for _ in range(max(map(len, cut)) - len(own)):
            idle = idle_pass(self._supervision.batch(examples[:1]))
            found.append(([], idle.to(self.sharding.device)))
        return found

    def _cut(self, examples: Sequence[T], own: Sequence[int]) -> list[list[int]]:
        parts = self._supervision.passes([examples[number] for number in own])
        return [[own[place] for place in part] for part in parts]

    def _batch(self, examples: Sequence[T], numbers: list[int], reference: Tensor | None) -> Batch:
        batch = self._supervision.batch([examples[number] for number in numbers])
        if reference is not None:
            rows = reference[numbers, :, : batch.responses].transpose(0, 1).flatten(0, 1)
            batch = replace(batch, ref_logp=rows)
        return batch.to(self.sharding.device)

    def _score(self, batch: Batch) -> Tensor:
        return self.sharding.score(batch, self._how).logp

    def logprobs(self, examples: Sequence[T]) -> Tensor:
        """Log-probabilities under the present weights, ``[N, rows, R]``, on every rank."""
        return self._logprobs(examples, self._score)

    @torch.no_grad()
    def _logprobs(self, examples: Sequence[T], score_of: Score) -> Tensor:
        parts = [(numbers, score_of(batch).cpu()) for numbers, batch in self._passes(examples)]
        width = int(self._ranks.largest(torch.tensor(max(logp.shape[1] for _, logp in parts))))
        found = torch.zeros(len(examples), self._supervision.rows, width)
        for numbers, logp in parts:
            if numbers:
                found[numbers, :, : logp.shape[1]] = logp.view(-1, len(numbers), logp.shape[1]).transpose(0, 1)
        return self._ranks.total(found)

    def reference(self, examples: Sequence[T]) -> Callable[[Sequence[T]], Tensor]:
        """A copy of the policy, or the base where there is an adapter, sees the very tensors that the policy sees."""
        model = self._policy.reference().model

        def frozen(batch: Batch) -> Tensor:
            with autocast(model, self._settings.compute_dtype):
                return score(model, batch, self._how).logp

        return lambda some: self._logprobs(some, frozen)

    def whole(self, names: Sequence[str]) -> list[Tensor]:
        """The whole values of parameters of the model; collective."""
        return [self.sharding.whole(name) for name in names]

    def save_policy(self, directory: Path) -> None:
        self._policy.save(directory)

    def save(self, directory: Path) -> None:
        self.sharding.state.save(directory / self._supervision.state)

    def snapshot(self, directory: Path) -> Callable[[], None]:
        """Copy what `save` would write now; the call that is returned writes it."""
        return self.sharding.state.snapshot(directory / self._supervision.state)

    def check(self, directory: Path) -> None:
        """Refuse what `load` could not read; not collective. Raises ValueError for another model's state."""
        self.sharding.state.check(directory / self._supervision.state)

    def load(self, directory: Path) -> None:
        self.sharding.load(directory / self._supervision.state)
