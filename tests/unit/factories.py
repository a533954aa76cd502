"""Small things that the tests of several components are made of: prompts, groups, a micro policy and a micro run."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor
from transformers import GPT2Config, GPT2LMHeadModel

from components.config import Settings
from components.config.policy import LoraSettings, TinyModel
from components.config.reading import merge
from components.files import write_json, write_jsonl
from components.layout import Layout
from components.policy import Policy
from components.policy.lora import AdaptedPolicy, adapted
from components.policy.tiny import build_model, build_tokenizer
from components.types import Completion, Group, Prompt, Score

TINY = TinyModel(
    hidden_size=32, layers=1, heads=2, kv_heads=1, head_dim=16, intermediate_size=32, vocab_size=272, max_positions=64
)
MICRO: dict[str, Any] = {
    "name": "micro",
    "threads": 1,
    "policy": {"model": TINY.model_dump()},
    "sft": {"steps": 4, "batch_size": 4, "warmup": 1, "checkpoint_every": 2},
    "admission": {"min_distinct": 4},
    "triage": {"prompts": 4, "samples": 4},
    "clusters": {"k": 3, "components": 4},
    "schedule": {"kind": "ads", "window": 2, "active": 2},
    "rollout": {"group_size": 4, "max_new_tokens": 4, "dynamic_sampling": {"max_attempts": 2}},
    "reward": {"verifier": {"kind": "exact", "marker": "#"}, "sandbox": {"workers": 1}},
    "learner": {
        "lr": 1e-2,
        "warmup": 2,
        "updates_per_step": 2,
        "micro_batch_tokens": 128,
        "critic": {"pretrain_steps": 1},
    },
    "train": {
        "steps": 5,
        "prompts_per_step": 4,
        "eval_every": 3,
        "eval_prompts": 3,
        "eval_samples": 2,
        "checkpoint_every": 2,
    },
    "evaluation": {"prompts": 4, "samples": 2, "bootstrap": 100},
}
"""Sections of a run that takes a second: ADS, dynamic sampling and two updates a step are on."""


def settings(**sections: Any) -> Settings:
    """Micro settings with some sections changed. No health rules unless given."""
    return Settings.model_validate(merge(MICRO, sections))


def prompts(count: int) -> list[Prompt]:
    """Sums of different lengths, in two families."""
    return [prompt(i) for i in range(count)]


def prompt(i: int) -> Prompt:
    a, b = 37 * i, i % 7
    return Prompt(
        id=f"p{i:03d}",
        text=f"{a}+{b}=",
        answer=str(a + b),
        solution=f"{a}+{b}={a + b}#{a + b}",
        demonstration=f"#{a + b}",
        task="arithmetic",
        family=("even", "odd")[i % 2],
        difficulty=float(len(str(a))),
    )


@cache
def _base_policy() -> Policy:
    texts = [text for p in prompts(20) for text in (p.text, p.solution)]
    tokenizer = build_tokenizer(texts, TINY.vocab_size, TINY.max_positions)
    model = build_model(TINY, tokenizer, seed=0)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():  # so large that the next token depends on the whole prompt
        for matrix in (p for p in model.parameters() if p.dim() == 2):
            matrix.copy_(0.3 * torch.randn(matrix.shape, generator=generator))
    return Policy(model, tokenizer)


def policy() -> Policy:
    """The micro policy with its initial random weights; every caller gets its own copy."""
    base = _base_policy()
    return Policy(copy.deepcopy(base.model), base.tokenizer)


def same(one: Mapping[str, Tensor], other: Mapping[str, Tensor]) -> bool:
    """Whether two policies have the same weights, to the bit."""
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def gpt2() -> Policy:
    """Another architecture: learned positions instead of relative ones, and dropout while it trains."""
    config = GPT2Config(vocab_size=272, n_positions=64, n_embd=32, n_layer=1, n_head=2, eos_token_id=1, bos_token_id=1)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return Policy(GPT2LMHeadModel(config).eval(), _base_policy().tokenizer)


def prefer(policy: Policy, token: int, bonus: float) -> Policy:
    """Add ``bonus`` to the logit of one token, in this policy and in every copy that is made of it."""

    def raise_logit(_module: torch.nn.Module, _inputs: object, logits: torch.Tensor) -> torch.Tensor:
        return logits + bonus * torch.nn.functional.one_hot(torch.tensor(token), logits.shape[-1])

    policy.model.get_output_embeddings().register_forward_hook(raise_logit)
    return policy


def score(accuracy: float | None, **parts: float) -> Score:
    """A score; None is unscorable."""
    return Score(accuracy, parts, "timeout" if accuracy is None else None)


def group(
    accuracies: Sequence[float | None],
    *,
    prompt: Prompt | None = None,
    prompt_ids: Sequence[int] = (2, 20, 3),
    tokens: Sequence[Sequence[int]] | None = None,
    logp: float = -1.0,
) -> Group:
    """One group; the i-th completion has i + 1 tokens unless ``tokens`` says otherwise."""
    tokens = tokens or [[30 + i] * (i + 1) for i in range(len(accuracies))]
    completions = tuple(Completion(tuple(ids), (logp,) * len(ids), "stop", "") for ids in tokens)
    scores = tuple(score(accuracy) for accuracy in accuracies)
    return Group(prompt or _ANY, tuple(prompt_ids), completions, scores)


_ANY = prompt(1)


class Judge:
    """Stands in for `Scorer`: accuracy from the completion alone, without a process of its own."""

    def __init__(self, accuracy: Callable[[Completion], float | None]) -> None:
        self._accuracy = accuracy

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to close."""

    def score_groups(self, items: Sequence[tuple[Prompt, Sequence[Completion]]]) -> list[tuple[Score, ...]]:
        return [tuple(score(self._accuracy(c)) for c in completions) for _, completions in items]


def parity(completion: Completion) -> float:
    """A reward that a random policy gets half of the time: the token ids add up to an odd number."""
    return float(sum(completion.token_ids) % 2)


def workspace(root: Path, *, train: int = 12, verdict: str = "accept") -> Layout:
    """What the stages before `train` leave: splits, an untrained checkpoint, nothing withheld, three clusters, and
    triage's verdict."""
    layout = Layout(root)
    for split, count in (("sft", 6), ("train", train), ("dev", 4), ("test", 6)):
        write_jsonl(layout.split(split), (p.to_dict() for p in prompts(count)))  # type: ignore[arg-type]
    write_jsonl(layout.admission_flags, [])
    write_jsonl(layout.base_answers, [])
    policy().save(layout.sft_checkpoint)
    rows = [{"id": p.id, "cluster": i % 3, "rank": i // 3, "nll": 1.0} for i, p in enumerate(prompts(train))]
    write_jsonl(layout.clusters, rows)
    write_json(layout.audit, {"verdict": "pass", "reasons": []})
    reasons = ["no entropy", "no gap"] if verdict == "refuse" else []
    success = {p.id: i / train for i, p in enumerate(prompts(train))}
    write_json(layout.triage, {"verdict": verdict, "reasons": reasons, "success": success})
    return layout


def assert_resumes_to_the_bit(
    trainer: Callable[[Policy], Any], run: Callable[..., list[Any]], directory: Path, stop: int
) -> None:
    """Five steps of a trainer, saved and loaded into another one after ``stop`` of them, leave the log and weights of
    five steps in one go. ``run`` takes a trainer and the numbers of the steps."""
    whole, first, second = policy(), policy(), policy()
    log = run(trainer(whole), *range(5))
    begun = trainer(first)
    run(begun, *range(stop))
    begun.save(directory)
    resumed = trainer(second)
    resumed.load(directory)
    assert run(resumed, *range(stop, 5)) == log[stop:]
    weights = whole.weights()
    assert all(torch.equal(weight, weights[name]) for name, weight in second.weights().items())


LORA: dict[str, Any] = {"rank": 4, "alpha": 8}


def with_adapter(base: Policy, scale: float = 0.1, seed: int = 1, **changed: Any) -> AdaptedPolicy:
    """A policy whose adapter has learned something."""
    found = adapted(base, LoraSettings(**{**LORA, **changed}), seed=0)
    assert isinstance(found, AdaptedPolicy)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in found.trainable().values() if scale else ():
            parameter.copy_(scale * torch.randn(parameter.shape, generator=generator))
    return found
