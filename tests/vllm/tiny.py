"""A policy that vLLM's attention on CPUs takes (heads of 32), and engines for it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import torch
from transformers import Qwen3ForCausalLM

from components.config.policy import TinyModel
from components.config.rollout import RolloutSettings
from components.policy import Policy
from components.policy.tiny import build_model, build_tokenizer
from components.policy.weights import Weights, weights_of
from components.processes.living import lives
from components.rollout import Sampling, build_engine
from components.rollout.servers import ServerEngine
from components.rollout.servers.local import Started
from components.rollout.servers.server import Server

SHAPE = TinyModel(
    hidden_size=64, layers=2, heads=2, kv_heads=1, head_dim=32, intermediate_size=96, vocab_size=300, max_positions=256
)
GREEDY = Sampling(n=1, max_new_tokens=24, temperature=0.0, seed=0)
SAMPLED = Sampling(n=4, max_new_tokens=24, temperature=1.0, seed=5)
LONG = Sampling(n=8, max_new_tokens=200, temperature=1.0, seed=1)


def tiny(*, tied: bool = True, shape: TinyModel = SHAPE, texts: str = "+=#") -> Policy:
    """Random weights, so large that the next token depends on the whole prompt."""
    tokenizer = build_tokenizer([f"{a}{texts}{a}" for a in range(40)], shape.vocab_size, shape.max_positions)
    model = build_model(shape, tokenizer, seed=0)
    if not tied:
        config = model.config.__class__(**{**model.config.to_dict(), "tie_word_embeddings": False})
        model = Qwen3ForCausalLM(config).float()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for matrix in (p for p in model.parameters() if p.dim() == 2):
            matrix.copy_(0.3 * torch.randn(matrix.shape, generator=generator))
    return Policy(model.eval(), tokenizer)


def moved(own: Policy, by: float = 0.05) -> Weights:
    """Other weights of the same policy."""
    generator, other = torch.Generator().manual_seed(1), own.frozen_copy()
    other.load_weights({n: w + by * torch.randn(w.shape, generator=generator) for n, w in own.weights().items()})
    return weights_of(other)


def prompts(own: Policy, count: int = 6) -> list[tuple[int, ...]]:
    return [own.encode_prompt(f"{i}+{i}=") for i in range(count)]


@contextlib.contextmanager
def engine_of(own: Policy, logs: Path, temperature: float = 1.0, **options: Any) -> Iterator[ServerEngine]:
    """An engine with real servers; nothing of it is left behind."""
    engine = {"kind": "vllm", "canary_timeout": 300.0, **options}
    if "urls" not in engine:
        engine = {"processes": 1, **engine}
    built = build_engine(own, RolloutSettings.model_validate({"temperature": temperature, "engine": engine}), logs)
    assert isinstance(built, ServerEngine)
    try:
        yield built
    finally:
        running = [process for server in servers(built) for process in processes(server)]
        built.close()
        assert not outliving(running), "processes were left behind"


def outliving(running: list[psutil.Process]) -> list[psutil.Process]:
    """Those of some processes that do not end by themselves: vLLM's tracker of shared memory ignores SIGTERM, and ends
    a moment after the processes that it tracks."""
    _, left = psutil.wait_procs(running, timeout=10)
    return [process for process in left if lives(process)]


def servers(engine: ServerEngine) -> list[Server]:
    return engine._fleet.servers


def processes(server: Server) -> list[psutil.Process]:
    """The guardian of a server and all that is below it."""
    origin = server.origin
    if not isinstance(origin, Started) or origin.child is None or not origin.alive():
        return []
    guardian = psutil.Process(origin.child.pid)
    return [guardian, *guardian.children(recursive=True)]


def embedded(own: Policy) -> Any:
    return build_engine(own, RolloutSettings())
