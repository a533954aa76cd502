"""Direct preference optimisation of a policy on pairs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from torch import Tensor

from components.config.dpo import DpoSettings
from components.dpo.pairs import Answer, Pair
from components.learner.epochs import Epochs
from components.learner.optimizer import ClippedAdamW, warmup_then_cosine
from components.objectives.dpo import DpoTerms, Side, dpo
from components.policy import Policy, response_logprobs
from components.policy.padding import pad
from components.working import working


class DpoTrainer:
    """AdamW with linear warm-up and cosine decay; the batch of a step is a function of seed and step.

    The reference is the policy as it comes in. It sees the very tensors that the policy sees, in the same precision,
    and neither has dropout: before the first update every margin is exactly 0 (with an adapter, but for rounding).
    """

    def __init__(self, policy: Policy, pairs: Sequence[Pair], settings: DpoSettings, seed: int) -> None:
        self._policy, self._reference = policy, policy.reference()
        self._pairs, self._settings = pairs, settings
        self._epochs = Epochs(len(pairs), settings.batch_size, seed, "dpo")
        policy.model.eval()
        for parameter in policy.trainable().values():
            parameter.requires_grad_(True)
        self._optimizer = ClippedAdamW(policy.trainable(), settings)

    def step(self, step: int) -> dict[str, float]:
        """One update; ``step`` counts from 0. Returns the figures of the batch before it, see `Figures`.

        A non-finite gradient changes nothing; a figure that is not finite is left out.
        """
        batch, figures = [self._pairs[i] for i in self._epochs.batch(step)], Figures()
        self._optimizer.zero_grad()
        with working("updating", len(batch), "pairs") as work:
            for part in micro_batches(batch, self._settings.micro_batch_tokens):
                terms = self._terms(part, len(batch))
                terms.loss.backward()  # type: ignore[no-untyped-call]
                figures.add(terms)
                work.add(len(part))
            lr = self._settings.lr * warmup_then_cosine(step, self._settings.warmup, self._settings.steps)
            norm = self._optimizer.step(lr)
        row = {**figures.means(), "grad_norm": norm, "nonfinite": float(not math.isfinite(norm)), "lr": lr}
        return {name: value for name, value in row.items() if math.isfinite(value)}

    @torch.no_grad()
    def measure(self, pairs: Sequence[Pair]) -> dict[str, float]:
        """The figures of some pairs under the present weights."""
        figures = Figures()
        with working("measuring", len(pairs), "pairs") as work:
            for part in micro_batches(pairs, self._settings.micro_batch_tokens):
                figures.add(self._terms(part, len(pairs)))
                work.add(len(part))
        return figures.means()

    def _terms(self, pairs: Sequence[Pair], batch_size: int) -> DpoTerms:
        """The loss of some pairs of a batch: all chosen, then all rejected, in one pass."""
        answers = [pair.chosen for pair in pairs] + [pair.rejected for pair in pairs]
        prompts = [pair.prompt_ids for pair in pairs] * 2
        padded = pad(prompts, [answer.token_ids for answer in answers], self._policy.pad_id)
        mask = padded.response_mask & sampled_mask(answers, padded.response_mask.shape[1])
        group = torch.arange(len(pairs)).repeat(2)

        def score(policy: Policy) -> Tensor:
            ids, attention = padded.input_ids, padded.attention_mask
            return response_logprobs(policy.model, ids, attention, mask.shape[1], 1.0, mask=mask, group=group).logp

        with torch.no_grad():
            reference = score(self._reference)
        both, count = (score(self._policy), reference, mask), len(pairs)
        chosen, rejected = Side(*(rows[:count] for rows in both)), Side(*(rows[count:] for rows in both))
        return dpo(chosen, rejected, torch.full((count,), 1 / batch_size), self._settings)

    def save(self, directory: Path) -> None:
        self._optimizer.save(directory / "dpo.safetensors")

    def load(self, directory: Path) -> None:
        self._optimizer.load(directory / "dpo.safetensors")


class Figures:
    """Means over pairs, summed over micro-batches so that they do not depend on the split.

    ``loss``; ``reward_accuracy``, the share of pairs whose margin is above 0 (an undecided pair is not right);
    ``margin`` and the implicit rewards behind it; and of both completions the *absolute* log-probability in nats and
    its change since the start. A margin can rise while both fall: likelihood displacement (2410.08847).
    """

    def __init__(self) -> None:
        self._pairs, self._sums = 0, dict[str, float]()

    def add(self, terms: DpoTerms) -> None:
        """Count the pairs of one micro-batch."""
        found = {
            "loss": terms.losses,
            "reward_accuracy": (terms.margins > 0).float(),
            "margin": terms.margins,
            "chosen_reward": terms.chosen.reward,
            "rejected_reward": terms.rejected.reward,
            "chosen_logp": terms.chosen.logp,
            "rejected_logp": terms.rejected.logp,
            "chosen_change": terms.chosen.change,
            "rejected_change": terms.rejected.change,
        }
        self._pairs += len(terms.losses)
        for name, values in found.items():
            self._sums[name] = self._sums.get(name, 0.0) + values.detach().double().sum().item()

    def means(self) -> dict[str, float]:
        """One number each; empty when nothing was counted."""
        return {name: total / self._pairs for name, total in self._sums.items()}


def micro_batches(pairs: Sequence[Pair], max_tokens: int) -> Iterator[list[Pair]]:
    """Pairs of like length together, two rows each, in rectangles of at most ``max_tokens`` (one pair at least)."""
    ordered = sorted(pairs, key=lambda pair: pair.length)
    start = 0
    for end in range(1, len(ordered) + 1):
        if end == len(ordered) or padded_tokens(ordered[start : end + 1]) > max_tokens:
            yield ordered[start:end]
            start = end


def padded_tokens(pairs: Sequence[Pair]) -> int:
    """Size of the rectangle that holds both completions of every pair."""
    prompt = max(len(pair.prompt_ids) for pair in pairs)
    answer = max(len(answer.token_ids) for pair in pairs for answer in (pair.chosen, pair.rejected))
    return 2 * len(pairs) * (prompt + answer)


def sampled_mask(answers: Sequence[Answer], width: int) -> Tensor:
    """``[len(answers), width]`` bool: False where a tool wrote the token, and True beyond the answer's end."""
    rows = [list(answer.sampled or ()) for answer in answers]
    return torch.tensor([row + [True] * (width - len(row)) for row in rows])
