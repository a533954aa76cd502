"""The learner: exact gradients under any split into micro-batches and ranks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor
from transformers import PreTrainedModel

from components.config.objective import ObjectiveSettings
from components.config.training import LearnerSettings
from components.device import computes_in
from components.files import dump_json, read_json, write_json
from components.learner.activations import checkpoint_activations
from components.learner.base import IN_FORCE, Learner, settings_checksum
from components.learner.batch import Batch
from components.learner.objective import Controller, advantages_of, rows_with_gradient, token_inputs
from components.learner.optimizer import accepted, warmup_then_constant
from components.learner.ranks import ALONE, Ranks, Share, share_of
from components.learner.scoring import Pass, Scoring, score_all
from components.learner.sharding.base import Plain, ShardingOf
from components.learner.signals import TokenTotals, mismatch_signals, reference_signals
from components.learner.state import StoredWeights
from components.learner.weights import Changes, Live
from components.objectives.aggregation import AGGREGATIONS
from components.objectives.controllers import Coefficients
from components.objectives.exploration import SELECTIONS, SelectionInputs
from components.objectives.objective import objective
from components.policy import Policy, TokenStats
from components.policy.weights import Weights
from components.seeds import derive
from components.working import Work, working

WEIGHTS, COUNTERS = "learner", "learner.json"
"""What `TorchLearner.save` writes: a folder (`components.learner.state`), and a file."""


class Update(NamedTuple):
    """One optimizer step: its loss, the gradient's norm, and the log-probabilities ``[B, R]`` before it."""

    loss: float
    norm: float
    logp: Tensor


class TorchLearner(Learner):
    """AdamW with linear warm-up and gradient clipping on a model in this process, or on this process's share of it.

    With several ``ranks`` every one of them runs this with the whole batch, scores its share of the rows, and gets the
    same signals. ``sharding`` states how the weights lie; as a rule whole, here. ``reference`` is a policy of this
    process; ranks are given theirs by `refer_to`. The attribute ``sharding`` holds the weights, ``settings`` are those
    in force.
    """

    COMMANDS: ClassVar[tuple[str, ...]] = (
        "configure",
        "logprobs",
        "reference",
        "step",
        "whole",
        "broken",
        "rest",
        "save",
        "snapshot",
        "load",
    )

    def __init__(
        self,
        policy: Policy,
        settings: LearnerSettings,
        objective: ObjectiveSettings,
        temperature: float,
        *,
        sharding: ShardingOf = Plain,
        ranks: Ranks = ALONE,
        reference: Policy | None = None,
    ) -> None:
        self._reference: Policy | Scoring | None = reference
        self._policy, self.settings, self._objective = policy, settings, objective
        self._temperature, self._ranks = temperature, ranks
        for parameter in policy.trainable().values():
            parameter.requires_grad_(True)
        if settings.activation_checkpointing:
            checkpoint_activations(policy.model)
        self.sharding = sharding(policy, settings)
        self._updates, self._changes = 0, Changes()
        self._controller = Controller(objective)

    @property
    def coefficients(self) -> Coefficients:
        return self._controller.coefficients

    @property
    def model(self) -> PreTrainedModel:
        """The model whose weights are trained."""
        return self._policy.model

    def refer_to(self, score: Scoring) -> None:
        """Take what all ranks score together with as the reference."""
        self._reference = score

    def configure(self, settings: LearnerSettings, objective: ObjectiveSettings) -> None:
        self.settings, self._objective = settings, objective
        self._controller.configure(objective)

    def logprobs(self, batch: Batch, temperature: float | None = None) -> Tensor:
        return self._score_all(batch, self.sharding.score, temperature).logp

    def reference(self, batch: Batch) -> Tensor:
        if self._reference is None:
            raise ValueError("the learner was made without a reference")
        if isinstance(self._reference, Policy):
            how, model = self.settings, self._reference.model
            tokens, dtype = how.micro_batch_tokens, how.compute_dtype
            return score_all(model, batch, self._temperature, tokens, compute_dtype=dtype).logp
        return self._score_all(batch, self._reference).logp

    @torch.no_grad()
    def _score_all(self, batch: Batch, score: Scoring, temperature: float | None = None) -> TokenStats:
        """Log-probabilities and entropies of all rows, ``[B, R]``, on every rank."""
        share, how = self._share(batch), Pass.of(self.settings, temperature or self._temperature)
        stats = []
        with working("scoring", sum(map(len, share.parts)), "rows") as work:
            for part in share.parts:
                stats.append(score(part.to(self.sharding.device), how))
                work.add(len(part))
            for part in share.idle:
                score(part.to(self.sharding.device), how)
        shape = (batch.responses, len(batch), self._ranks)
        return TokenStats(
            *(share.whole(parts, *shape) for parts in ([s.logp for s in stats], [s.entropy for s in stats]))
        )

    def _share(self, batch: Batch, with_gradient: Tensor | None = None) -> Share:
        plain = batch.mix_ids is None and batch.routes is None
        return share_of(
            batch, self._ranks, self.settings.micro_batch_tokens, with_gradient, packed=plain and self.sharding.packs
        )

    def step(self, batch: Batch, seed: int, norm_limit: float = math.inf) -> dict[str, float]:
        torn = float(not batch.intact)
        if batch.refused:
            return {"batch_torn": 1.0, "updates_skipped": 1.0}
        totals = TokenTotals()
        batch = self._prepared(batch, seed)
        with working("updating", len(batch), "rows") as work:
            parts = [batch.rows(rows) for rows in self._mini_batches(len(batch), seed)]
            updates = [self._update(part, totals, norm_limit, work) for part in parts]
        totals.reduce(self._ranks)
        if batch.old_logp is None:
            # The forward pass of the only update saw the old weights: a pass of its own would give the same numbers.
            batch = replace(batch, old_logp=updates[0].logp)
        reference = reference_signals(batch)
        signals = {
            **mismatch_signals(batch, self._objective.correction),
            **reference,
            **totals.means(),
            **self._controller.signals(),
            "loss": sum(update.loss for update in updates) / len(updates),
            "grad_norm": max(update.norm for update in updates),
            "nonfinite": float(sum(not math.isfinite(update.norm) for update in updates)),
            "updates_skipped": float(sum(not accepted(update.norm, norm_limit) for update in updates)),
            "staleness": (len(updates) - 1) / 2,
            "lr": self._lr(self._updates),
            "optimizer_lag": self._updates - (self.sharding.steps or 0.0),
            **self.sharding.trace(),
            "batch_torn": torn,
            IN_FORCE: settings_checksum(self.settings, self._objective),
        }
        self._controller.observe_kl(reference.get("kl_ref"), len(batch))
        return signals

    def _prepared(self, batch: Batch, seed: int) -> Batch:
        """The batch with what has to be known before its first update; that takes a forward pass of its own."""
        several = self.settings.updates_per_step > 1
        if not (several or self._objective.selection or self._controller.needs_entropy):
            return batch
        stats = self._score_all(batch, self.sharding.score)
        mask = batch.response_mask
        self._controller.observe_entropy(stats.entropy[mask])
        batch = replace(batch, old_logp=stats.logp)
        if self._objective.selection is None:
            return batch
        generator = torch.Generator().manual_seed(derive(seed, "selection"))
        inputs = SelectionInputs(stats.logp, stats.entropy, advantages_of(batch), mask)
        chosen = SELECTIONS[self._objective.selection.kind](inputs, self._objective.selection, generator)
        return replace(batch, selected=chosen)

    def _mini_batches(self, rows: int, seed: int) -> list[Tensor]:
        """A seeded partition of the rows into ``updates_per_step`` optimizer batches."""
        order = torch.randperm(rows, generator=torch.Generator().manual_seed(seed))
        parts = order.tensor_split(min(rows, self.settings.updates_per_step))
        return [part.sort().values for part in parts]

    def _update(self, batch: Batch, totals: TokenTotals, norm_limit: float, work: Work) -> Update:
        """One optimizer step. ``old_logp`` that is not set is that of the present weights.

        A gradient that is not finite, or whose norm is above the limit, changes nothing.
        """
        aggregation = self._objective.aggregation
        weights = AGGREGATIONS[aggregation.kind](batch.response_mask, batch.group, aggregation)
        coefficients = self._controller.applied()
        share = self._share(replace(batch, weights=weights), rows_with_gradient(batch, self._objective, coefficients))
        self.sharding.zero_grad()
        how = Pass.of(self.settings, self._temperature, entropy_grad=bool(coefficients.entropy))
        passes = [*share.parts, *share.idle]
        learning = len(passes) - share.still
        loss, logps = 0.0, []
        for number, part in enumerate(passes, start=1):
            part = part.to(self.sharding.device)
            with torch.set_grad_enabled(number <= learning):
                stats = self.sharding.score(part, how)
            logps.append(stats.logp.detach())
            old = logps[-1] if part.old_logp is None else part.old_logp
            terms = objective(stats.logp, token_inputs(part, old), self._objective, coefficients, stats.entropy)
            if number <= learning:
                self.sharding.backward(terms.loss, last=number == learning)
            loss += terms.loss.item()
            totals.add(part.response_mask, stats.entropy, terms)
            totals.add_routing(part.response_mask, stats.routing)
            work.add(len(part))
        with self._changes.one():
            norm = self.sharding.step(self._lr(self._updates + 1), norm_limit)
        self._updates += accepted(norm, norm_limit)
        loss = self._ranks.total(torch.tensor(loss, dtype=torch.float64)).item()
        logp = share.whole(logps[: len(share.parts)], batch.responses, len(batch), self._ranks)
        return Update(loss, norm, logp)

    def _lr(self, update: int) -> float:
        """Learning rate of an update, counted from 1."""
        return self.settings.lr * warmup_then_constant(update, self.settings.warmup)

    def weights(self) -> Weights:
        """Of one process alone; of several ranks, `Leader` has them."""
        return Weights(Live(self._policy.weights(), self._changes), self.scores, self.dtype, self._policy.apart())

    @property
    def dtype(self) -> torch.dtype:
        """The precision of passes."""
        return computes_in(self.settings.compute_dtype, self.sharding.device)

    def whole(self, names: Sequence[str]) -> list[Tensor]:
        """The whole values of parameters of the model; collective."""
        return [self.sharding.whole(name) for name in names]

    def broken(self) -> int:
        return self.sharding.broken()

    def rest(self) -> None:
        self.sharding.rest()

    def weights_at(self, directory: Path) -> Weights:
        stored = StoredWeights(directory / WEIGHTS)
        return Weights(self._policy.weights_with(stored), None, self.dtype, self._policy.apart(stored))

    def save_policy(self, directory: Path) -> None:
        self._policy.save(directory)

    def save(self, directory: Path) -> None:
        self.sharding.state.save(directory / WEIGHTS)
        if self._ranks.rank == 0:
            write_json(directory / COUNTERS, self._counters())

    def snapshot(self, directory: Path) -> Callable[[], None]:
        counters = dump_json(self._counters())
        write_weights = self.sharding.state.snapshot(directory / WEIGHTS)

        def write() -> None:
            if self._ranks.rank == 0:
                (directory / COUNTERS).write_text(counters, "utf-8")
            write_weights()

        return write

    def _counters(self) -> dict[str, Any]:
        return {"updates": self._updates, **self._controller.state_dict()}

    def check(self, directory: Path) -> None:
        """Refuse what `load` could not read; not collective. Raises ValueError for another model's state."""
        self.sharding.state.check(directory / WEIGHTS)
        read_json(directory / COUNTERS)

    def load(self, directory: Path) -> None:
        with self._changes.one():
            self.sharding.load(directory / WEIGHTS)
        state = self._ranks.of_first(lambda: read_json(directory / COUNTERS))
        self._updates = int(state.pop("updates"))
        self._controller.load_state_dict(state)
