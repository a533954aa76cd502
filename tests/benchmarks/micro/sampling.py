"""Ways of sampling a batch: the embedded engine, `transformers.generate`, TRL."""

from __future__ import annotations

import copy
import random
from collections.abc import Sequence

import torch
from transformers import GenerationConfig

from components.config.rollout import TorchEngine as TorchEngineSettings
from components.policy import Policy
from components.policy.padding import pad
from components.rollout.base import Sampling
from components.rollout.torch_engine import TorchEngine
from tests.benchmarks.micro.cases import Sampled
from tests.benchmarks.micro.rates import Way
from tests.benchmarks.micro.shapes import END, FIRST, policy_of

Prompts = Sequence[tuple[int, ...]]
SHORTEST, LONGEST = 8, 24
"""Tokens of a prompt."""


def prompts_of(case: Sampled) -> Prompts:
    draw = random.Random(0)
    lengths = [draw.randint(SHORTEST, LONGEST) for _ in range(case.prompts)]
    return [tuple(draw.randrange(FIRST, case.vocabulary) for _ in range(length)) for length in lengths]


def ends_of(case: Sampled) -> tuple[int, ...]:
    """Tokens that end a row. The weights are random, so that about one token in ``limit`` is one of them."""
    return () if case.endless else tuple(range(END, END + max(1, round(case.vocabulary / case.limit))))


def way_of(name: str, case: Sampled) -> Way:
    """One of the ways, with a model of its own; all of them have the same weights and prompts."""
    policy = policy_of(case.size, case.vocabulary, endless=case.endless)
    return WAYS[name](policy, prompts_of(case), ends_of(case), case)


def engine(policy: Policy, prompts: Prompts, ends: tuple[int, ...], case: Sampled) -> Way:
    """The embedded engine. It returns log-probabilities too, which the others do not."""
    built = TorchEngine(policy, TorchEngineSettings(precision="bfloat16" if case.precision == "bf16" else "policy"))

    def way(seed: int) -> int:
        found = built.generate(prompts, Sampling(case.group, case.limit, 1.0, seed, stop=ends))
        return sum(len(completion.token_ids) for group in found for completion in group)

    return way


def generate(policy: Policy, prompts: Prompts, ends: tuple[int, ...], case: Sampled) -> Way:
    """`transformers.generate` on the prompts, left-padded, with its own cache; no text is made of the tokens."""
    ids, mask, _ = pad(prompts, [()] * len(prompts), policy.pad_id).to(policy.model.device)
    policy.model.to(torch.bfloat16 if case.precision == "bf16" else torch.float32)
    how = GenerationConfig(
        do_sample=True,
        top_k=0,
        num_return_sequences=case.group,
        max_new_tokens=case.limit,
        pad_token_id=policy.pad_id,
        eos_token_id=list(ends) or policy.eos_id,
    )

    def way(seed: int) -> int:
        torch.manual_seed(seed)
        with torch.no_grad():
            found = policy.model.generate(input_ids=ids, attention_mask=mask, generation_config=how)[:, ids.shape[1] :]
        ended = torch.isin(found, torch.tensor(how.eos_token_id, device=found.device))
        return int(torch.where(ended.any(1), ended.int().argmax(1) + 1, found.shape[1]).sum())

    return way


def trl(policy: Policy, prompts: Prompts, ends: tuple[int, ...], case: Sampled) -> Way:
    """What TRL's `GRPOTrainer` does in a step: every prompt once for each of its completions, and the text of all."""
    from tests.benchmarks.micro.trl_trainer import sampler

    trainer = sampler(copy.deepcopy(policy.model), policy.tokenizer, ends, case.limit)

    def way(seed: int) -> int:
        torch.manual_seed(seed)
        return sum(len(completion) for completion in trainer.sample(prompts, case.group))

    return way


WAYS = {"engine": engine, "generate": generate, "trl": trl}
