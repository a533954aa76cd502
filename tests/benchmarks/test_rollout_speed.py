"""Tokens a second that the embedded engine samples, beside `transformers.generate`: `pytest -s` on this file.

Same model, same prompts (64; 16 for the larger model), 8 samples of at most 40 tokens each, one thread; every way runs
in turn, several times, and a row shows medians of tokens a second of processor time. Only tokens up to the end token
are counted. What `generate` does not do is not asked of it: it returns no log-probabilities and decodes no
text, and the engine does both.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import pytest
import torch
from rich.console import Console
from rich.table import Table
from transformers import GenerationConfig

from components.config import load
from components.config.policy import PolicySettings, TinyModel
from components.config.rollout import TorchEngine as TorchEngineSettings
from components.data.prompts import read_prompts
from components.layout import Layout
from components.policy import Policy, load_policy
from components.policy.padding import pad
from components.policy.tiny import build_model
from components.rollout.base import Sampling
from components.rollout.torch_engine import TorchEngine
from components.stages import run_stage
from tests.recipes import CONFIGS

PROMPTS, SAMPLES, LIMIT, ROUNDS = 64, 8, 40, 5
PROMPTS_OF_THE_LARGER = 16
LARGER = TinyModel(hidden_size=512, layers=8, heads=8, kv_heads=4, head_dim=64, intermediate_size=1536)
Way = Callable[[int], int]
"""Samples with a seed, and says how many tokens count."""


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Policy, list[tuple[int, ...]]]]:
    """A policy of the demo's size that ends its answers where they end, and prompts for it; one thread."""
    folder, threads = tmp_path_factory.mktemp("rollout-speed"), torch.get_num_threads()
    torch.set_num_threads(1)
    settings, layout = load(CONFIGS / "demo.yaml", ["sft.steps=300"]), Layout(Path(folder))
    for stage in ("data", "sft"):
        run_stage(stage, settings, layout)
    policy = load_policy(layout.sft_checkpoint, PolicySettings())
    yield policy, [policy.encode_prompt(prompt.text) for prompt in list(read_prompts(layout.split("train")))[:PROMPTS]]
    torch.set_num_threads(threads)


def generate(policy: Policy, prompts: list[tuple[int, ...]], ends: list[int]) -> Way:
    """`transformers.generate` on the batch that the engine has, left-padded, with its own cache."""
    ids, mask, _ = pad(prompts, [()] * len(prompts), policy.pad_id)
    how = GenerationConfig(
        do_sample=True,
        top_k=0,
        num_return_sequences=SAMPLES,
        max_new_tokens=LIMIT,
        pad_token_id=policy.pad_id,
        eos_token_id=ends or len(policy.tokenizer),  # no token has that id
    )

    def way(seed: int) -> int:
        torch.manual_seed(seed)
        with torch.no_grad():
            found = policy.model.generate(input_ids=ids, attention_mask=mask, generation_config=how)[:, ids.shape[1] :]
        ended = torch.isin(found, torch.tensor(ends))
        return int(torch.where(ended.any(1), ended.int().argmax(1) + 1, found.shape[1]).sum())

    return way


def embedded(policy: Policy, prompts: list[tuple[int, ...]], ends: list[int], *, lean: bool) -> Way:
    """The engine, with the lean forward pass or with the model's own."""
    engine = TorchEngine(policy, TorchEngineSettings())
    assert engine._dense is not None
    engine._dense = engine._dense if lean else None
    if not ends:
        engine._policy = Endless(engine._policy.model, policy.tokenizer, policy.chat)

    def way(seed: int) -> int:
        found = engine.generate(prompts, Sampling(SAMPLES, LIMIT, 1.0, seed, stop=tuple(ends)))
        return sum(len(completion.token_ids) for group in found for completion in group)

    return way


class Endless(Policy):
    """A policy whose rows never end."""

    @property
    def eos_id(self) -> int:
        return len(self.tokenizer)  # no token has that id


def measured(ways: dict[str, Way]) -> dict[str, tuple[float, float]]:
    """Tokens a CPU second of each way, and tokens a round, both medians."""
    rates: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for seed in range(ROUNDS + 1):
        for name, way in ways.items():
            began = time.process_time()
            tokens = way(seed)
            if seed:  # the first round warms up
                rates[name].append((tokens / (time.process_time() - began), tokens))
    return {
        name: (median(rate for rate, _ in rows), median(count for _, count in rows)) for name, rows in rates.items()
    }


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("size", ["demo", "larger"])
@pytest.mark.parametrize("case", ["rows end", "all go to the limit"])
def test_tokens_a_second(trained: tuple[Policy, list[tuple[int, ...]]], size: str, case: str) -> None:
    policy, prompts = trained
    ends = [policy.eos_id]
    if size == "larger":
        policy = Policy(build_model(LARGER, policy.tokenizer, seed=0).eval(), policy.tokenizer)
        prompts = prompts[:PROMPTS_OF_THE_LARGER]
        ends = list(range(1, 1 + len(policy.tokenizer) // 20))  # untrained: one token in twenty ends a row
    ends = ends if case == "rows end" else []
    ways = {
        "transformers.generate": generate(policy, prompts, ends),
        "engine, the model's own pass": embedded(policy, prompts, ends, lean=False),
        "engine, lean pass": embedded(policy, prompts, ends, lean=True),
    }
    found = measured(ways)
    base = found["transformers.generate"][0]
    title = f"{policy.parameters / 1e6:.1f} M parameters, {case}"
    table = Table("", "tokens a round", "tokens/s", "ratio", title=title)
    for name, (rate, tokens) in found.items():
        table.add_row(name, f"{tokens:,.0f}", f"{rate:,.0f}", f"{rate / base:.2f}")
    Console().print(table)
    assert found["engine, lean pass"][0] > base
