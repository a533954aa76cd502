"""Direct preference optimisation of a policy on pairs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from components.config.dpo import DpoSettings
from components.dpo.pairs import Answer, Pair
from components.learner.batch import Batch, batch_of_rows
from components.learner.cuts import runs
from components.learner.optimizer import warmup_then_cosine
from components.learner.supervised import Epochs, Supervision, Terms
from components.learner.supervised_leader import Build, alone
from components.objectives.dpo import Side, dpo
from components.policy import Policy


class Preference(Supervision[Pair]):
    """The DPO loss, a mean over the pairs of an update. An example makes two rows: the chosen, and the rejected.

    ``loss``; ``reward_accuracy``, the share of pairs whose margin is above 0 (an undecided pair is not right);
    ``margin`` and the implicit rewards behind it; and of both completions the *absolute* log-probability in nats and
    its change since the start. A margin can rise while both fall: likelihood displacement (2410.08847).
    """

    state, rows, unit, dropout = "dpo", 2, "pairs", False
    figures = (
        *("loss", "reward_accuracy", "margin", "chosen_reward", "rejected_reward"),
        *("chosen_logp", "rejected_logp", "chosen_change", "rejected_change"),
    )
    settings: DpoSettings

    def tokens(self, example: Pair) -> int:
        return example.length

    def size(self, examples: Sequence[Pair]) -> int:
        return len(examples)

    def passes(self, examples: Sequence[Pair]) -> list[list[int]]:
        ordered = sorted(range(len(examples)), key=lambda number: examples[number].length)
        most = self.settings.micro_batch_tokens
        return list(runs(ordered, lambda some: padded_tokens([examples[number] for number in some]), most))

    def batch(self, examples: Sequence[Pair]) -> Batch:
        answers = [pair.chosen for pair in examples] + [pair.rejected for pair in examples]
        prompts = [pair.prompt_ids for pair in examples] * 2
        rows = [(prompt, answer.token_ids) for prompt, answer in zip(prompts, answers, strict=True)]
        batch = batch_of_rows(rows, self.pad_id)
        mask = batch.response_mask & sampled_mask(answers, batch.responses)
        return replace(batch, response_mask=mask, group=torch.arange(len(examples)).repeat(2))

    def terms(self, logp: Tensor, batch: Batch, size: int) -> Terms:
        if batch.ref_logp is None:
            raise ValueError("the log-probabilities of the reference have not been set")
        both, count = (logp, batch.ref_logp, batch.response_mask), len(batch) // 2
        chosen, rejected = Side(*(rows[:count] for rows in both)), Side(*(rows[count:] for rows in both))
        weights = torch.full((count,), 1 / size, device=logp.device)
        terms = dpo(chosen, rejected, weights, self.settings)
        won, lost = terms.chosen, terms.rejected
        found = (
            *(terms.losses, (terms.margins > 0).float(), terms.margins, won.reward, lost.reward),
            *(won.logp, lost.logp, won.change, lost.change),
        )
        return Terms(terms.loss, torch.stack([values.detach().double().sum() for values in found]))


class DpoTrainer:
    """AdamW with linear warm-up and cosine decay; the batch of a step is a function of seed and step.

    The reference is the policy as it comes in. In one process it sees the very tensors that the policy sees, in the
    same precision, and neither has dropout: before the first update every margin is exactly 0 (with an adapter, but for
    rounding). Several ranks score it beforehand (`SupervisedLeader.reference`), and margins begin at 0 but for
    rounding.

    Args:
        held_out: Pairs that `measure` is called with, where they are not among ``pairs``.
    """

    def __init__(
        self,
        policy: Policy,
        pairs: Sequence[Pair],
        settings: DpoSettings,
        seed: int,
        held_out: Sequence[Pair] = (),
        *,
        build: Build = alone,
    ) -> None:
        self._pairs, self._settings, self._seed = pairs, settings, seed
        self._epochs = Epochs(len(pairs), settings.batch_size, seed, "dpo")
        self.learner = build(policy, Preference(settings, policy.pad_id))
        drawn = {i for step in range(settings.steps) for i in self._epochs.batch(step)}
        self._reference = self.learner.reference([*(pairs[i] for i in sorted(drawn)), *held_out])

    def step(self, step: int) -> dict[str, float]:
        """One update; ``step`` counts from 0. Returns the figures of the batch before it, see `Preference`.

        A non-finite gradient changes nothing; a figure that is not finite is left out.
        """
        batch = [self._pairs[i] for i in self._epochs.batch(step)]
        lr = self._settings.lr * warmup_then_cosine(step, self._settings.warmup, self._settings.steps)
        sums = self.learner.step(batch, lr, self._seed, self._reference(batch))
        norm = sums.pop("grad_norm")
        means = {name: total / len(batch) for name, total in sums.items()}
        row = {**means, "grad_norm": norm, "nonfinite": float(not math.isfinite(norm)), "lr": lr}
        return {name: value for name, value in row.items() if math.isfinite(value)}

    def measure(self, pairs: Sequence[Pair]) -> dict[str, float]:
        """The figures of some pairs under the present weights, without those that are not finite; empty where there is
        no pair."""
        if not pairs:
            return {}
        sums = self.learner.measure(pairs, self._reference(pairs))
        return {name: total / len(pairs) for name, total in sums.items() if math.isfinite(total)}

    def save(self, directory: Path) -> None:
        self.learner.save(directory)

    def load(self, directory: Path) -> None:
        self.learner.load(directory)


def padded_tokens(pairs: Sequence[Pair]) -> int:
    """Size of the rectangle that holds both completions of every pair."""
    prompt = max(len(pair.prompt_ids) for pair in pairs)
    answer = max(len(answer.token_ids) for pair in pairs for answer in (pair.chosen, pair.rejected))
    return 2 * len(pairs) * (prompt + answer)


def sampled_mask(answers: Sequence[Answer], width: int) -> Tensor:
    """``[len(answers), width]`` bool: False where a tool wrote the token, and True beyond the answer's end."""
    rows = [list(answer.sampled or ()) for answer in answers]
    return torch.tensor([row + [True] * (width - len(row)) for row in rows])
