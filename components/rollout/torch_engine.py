"""The embedded engine: one prefill per group, then batched decode with a KV cache, in this process."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from transformers import DynamicCache

from components.config.rollout import TorchEngine as TorchEngineSettings
from components.policy import Policy
from components.policy.logprobs import position_ids
from components.policy.padding import pad
from components.rollout.base import Engine, Sampling
from components.types import Completion


class TorchEngine(Engine):
    """Decodes with `transformers` and its dynamic cache; finished rows leave the batch when half of it is done."""

    def __init__(self, policy: Policy, settings: TorchEngineSettings) -> None:
        self._policy = policy.frozen_copy()
        self._rows = settings.batch_rows

    def load_weights(self, weights: dict[str, Tensor]) -> None:
        self._policy.load_weights(weights)

    @torch.no_grad()
    def generate(self, prompts: Sequence[Sequence[int]], sampling: Sampling) -> list[tuple[Completion, ...]]:
        generator = torch.Generator().manual_seed(sampling.seed)
        per_batch = max(1, self._rows // sampling.n)
        groups: list[tuple[Completion, ...]] = []
        for start in range(0, len(prompts), per_batch):
            groups += self._decode(prompts[start : start + per_batch], sampling, generator)
        return groups

    def _decode(
        self, prompts: Sequence[Sequence[int]], sampling: Sampling, generator: torch.Generator
    ) -> list[tuple[Completion, ...]]:
        model, eos = self._policy.model, self._policy.eos_id
        input_ids, mask, _ = pad(prompts, [()] * len(prompts), self._policy.pad_id)
        cache = DynamicCache(config=model.config)
        logits = model(
            input_ids=input_ids,
            attention_mask=mask,
            position_ids=position_ids(mask),
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=1,
        ).logits[:, -1]
        if sampling.n > 1:
            cache.batch_repeat_interleave(sampling.n)
            logits = logits.repeat_interleave(sampling.n, dim=0)
            mask = mask.repeat_interleave(sampling.n, dim=0)

        rows = logits.shape[0]
        tokens = torch.full((rows, sampling.max_new_tokens), eos)
        logprobs = torch.zeros(rows, sampling.max_new_tokens)
        lengths = torch.full((rows,), sampling.max_new_tokens)
        live = torch.arange(rows)  # row of the output that each row of the batch writes to
        done = torch.zeros(rows, dtype=torch.bool)
        for t in range(sampling.max_new_tokens):
            chosen, logp = choose(logits, sampling.temperature, generator)
            open_rows = ~done
            tokens[live[open_rows], t] = chosen[open_rows]
            logprobs[live[open_rows], t] = logp[open_rows]
            finished = open_rows & (chosen == eos)
            lengths[live[finished]] = t + 1
            done |= finished
            if bool(done.all()) or t + 1 == sampling.max_new_tokens:
                break
            if int(done.sum()) * 2 > len(live):
                keep = (~done).nonzero().squeeze(-1)
                cache.batch_select_indices(keep)
                live, mask, chosen, done = live[keep], mask[keep], chosen[keep], done[keep]
            mask = torch.cat([mask, mask.new_ones(len(live), 1)], dim=1)
            logits = model(
                input_ids=chosen[:, None],
                attention_mask=mask,
                position_ids=position_ids(mask)[:, -1:],
                past_key_values=cache,
                use_cache=True,
            ).logits[:, -1]
        completions = self._completions(tokens, logprobs, lengths)
        return [tuple(completions[i : i + sampling.n]) for i in range(0, rows, sampling.n)]

    def _completions(self, tokens: Tensor, logprobs: Tensor, lengths: Tensor) -> list[Completion]:
        eos = self._policy.eos_id
        rows = zip(tokens.tolist(), logprobs.tolist(), lengths.tolist(), strict=True)
        completions = []
        for ids, logp, length in rows:
            written = tuple(ids[:length])
            stopped = written[-1] == eos
            text = self._policy.decode(written[:-1] if stopped else written)
            completions.append(Completion(written, tuple(logp[:length]), "stop" if stopped else "length", text))
        return completions


def choose(logits: Tensor, temperature: float, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Next token and its log-probability for each row of ``logits`` ``[B, V]``; temperature 0 takes the likeliest."""
    if temperature == 0:
        distribution = torch.log_softmax(logits.float(), dim=-1)
        logp, chosen = distribution.max(dim=-1)
        return chosen, logp
    distribution = torch.log_softmax(logits.float() / temperature, dim=-1)
    chosen = torch.multinomial(distribution.exp(), 1, generator=generator).squeeze(-1)
    return chosen, distribution.gather(-1, chosen[:, None]).squeeze(-1)
