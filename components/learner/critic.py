"""The critic of PPO: what reward is still to come, before every token of a response."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from torch import Tensor, nn

from components.config.base import ComputeDtype
from components.config.ppo import CriticSettings
from components.config.training import LearnerSettings
from components.device import autocast
from components.files import dump_json, read_json, write_json
from components.learner.activations import checkpoint_activations
from components.learner.batch import Batch
from components.learner.optimizer import ClippedAdamW, warmup_then_constant
from components.learner.scoring import join
from components.objectives.gae import value_loss, value_weights
from components.policy import Policy
from components.policy.logprobs import position_ids
from components.policy.lora import AdaptedPolicy
from components.working import working


class ValueModel(nn.Module):
    """A language model's backbone with a scalar head. The head starts at 0, so an untrained critic is a constant.

    The backbone is a copy, all of which is trained; of a policy with an adapter it is the policy's own model, of which
    the adapter is trained and the base is shared with whoever else has it.
    """

    def __init__(self, policy: Policy, compute_dtype: ComputeDtype = "auto") -> None:
        super().__init__()
        self._compute_dtype: ComputeDtype = compute_dtype
        if isinstance(policy, AdaptedPolicy):
            self.backbone = policy.model.base_model
        else:
            self.backbone = policy.frozen_copy().model.base_model.requires_grad_(True)
        embeddings = self.backbone.get_input_embeddings().weight
        self.head = nn.Linear(embeddings.shape[1], 1, device=embeddings.device)  # fp32 whatever the backbone's dtype
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def trainable(self) -> dict[str, nn.Parameter]:
        """What the critic learns, by name."""
        return {name: parameter for name, parameter in self.named_parameters() if parameter.requires_grad}

    def forward(self, input_ids: Tensor, attention_mask: Tensor, responses: int) -> Tensor:
        """Values ``[B, responses]`` fp32 of the states *before* each of the last ``responses`` tokens."""
        with autocast(self.backbone, self._compute_dtype):
            hidden = self.backbone(
                input_ids=input_ids,
                attention_mask=attention_mask,
                position_ids=position_ids(attention_mask),
                use_cache=False,
            ).last_hidden_state
        values: Tensor = self.head(hidden[:, -responses - 1 : -1].float()).squeeze(-1)
        return values


class Critic:
    """A value model and its AdamW, with linear warm-up and gradient clipping.

    ``policy`` gives the backbone's first weights (the SFT checkpoint) and is not changed; its adapter, if any, becomes
    the critic's. Precision and memory of a pass are those of ``learner``: its ``micro_batch_tokens`` bound a pass, and
    the split changes neither values nor gradients.
    """

    def __init__(self, policy: Policy, settings: CriticSettings, learner: LearnerSettings) -> None:
        self._settings, self._tokens = settings, learner.micro_batch_tokens
        self._model = ValueModel(policy, learner.compute_dtype)
        if learner.activation_checkpointing:
            checkpoint_activations(self._model.backbone)
        self._optimizer = ClippedAdamW(self._model.trainable(), settings)
        self._updates = 0

    @torch.no_grad()
    def values(self, batch: Batch) -> Tensor:
        """Value of the state before each response token, ``[B, R]`` fp32; read those of sampled tokens only."""
        parts = [self._values(part) for part, _ in self._parts(batch)]
        return join(parts, batch.responses)

    def step(self, batch: Batch, returns: Tensor, old_values: Tensor) -> dict[str, float]:
        """``updates_per_step`` updates, each over the whole batch, towards ``returns`` ``[B, R]``.

        ``old_values`` ``[B, R]`` are those from before the first update; the clip, if any, is around them. A batch
        without a sampled token changes nothing, and neither does a non-finite gradient. The metrics are the loss
        before the first update and the largest gradient norm.
        """
        if not batch.response_mask.any():
            return {}
        updates = [self._update(batch, returns, old_values) for _ in range(self._settings.updates_per_step)]
        losses, norms = zip(*updates, strict=True)
        return {
            "value_loss": losses[0],
            "critic_grad_norm": max(norms),
            "critic_nonfinite": float(sum(not math.isfinite(norm) for norm in norms)),
        }

    def _update(self, batch: Batch, returns: Tensor, old_values: Tensor) -> tuple[float, float]:
        """One optimizer step: the loss before it, and the gradient's norm."""
        weights = value_weights(batch.response_mask)
        self._optimizer.zero_grad()
        total = 0.0
        for part, rows in self._parts(batch):
            device = part.input_ids.device
            target, old, weight = (x[rows, : part.responses].to(device) for x in (returns, old_values, weights))
            loss = value_loss(self._values(part), target, old, weight, self._settings.clip)
            loss.backward()  # type: ignore[no-untyped-call]
            total += loss.item()
        factor = warmup_then_constant(self._updates + 1, self._settings.warmup)
        norm = self._optimizer.step(self._settings.lr * factor)
        self._updates += math.isfinite(norm)
        return total, norm

    def _parts(self, batch: Batch) -> Iterator[tuple[Batch, slice]]:
        """Micro-batches where the model is, and which rows of the batch they are."""
        device = self._model.head.weight.device
        with working("updating the critic", len(batch), "rows") as work:
            for part in batch.micro_batches(self._tokens):
                yield part.to(device), slice(work.done, work.done + len(part))
                work.add(len(part))

    def _values(self, part: Batch) -> Tensor:
        values: Tensor = self._model(part.input_ids, part.attention_mask, part.responses)
        return values

    def save(self, directory: Path) -> None:
        """Write what is trained, optimizer and counter, bit-exact."""
        self._optimizer.state.save(directory / "critic")
        write_json(directory / "critic.json", {"updates": self._updates})

    def snapshot(self, directory: Path) -> Callable[[], None]:
        """Copy what `save` would write now; the call that is returned writes it."""
        (directory / "critic.json").write_text(dump_json({"updates": self._updates}), "utf-8")
        return self._optimizer.state.snapshot(directory / "critic")

    def load(self, directory: Path) -> None:
        """Continue exactly where `save` was called."""
        self._optimizer.load(directory / "critic")
        self._updates = int(read_json(directory / "critic.json")["updates"])
