"""Environments run by the real library verifiers, offline, in processes of their own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch

from components.config.environments import EnvironmentVerifier, VerifiersSource
from components.config.policy import TinyModel
from components.config.rollout import RolloutSettings
from components.environments.episodes import Episodes
from components.environments.process import EnvironmentProcess
from components.environments.prompts import prompts_of
from components.policy import Policy
from components.policy.tiny import build_model, build_tokenizer
from components.rollout import build_engine
from components.rollout.base import Engine, Sampling
from components.types import Completion, Prompt

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "unit"))  # factories

SHAPE = TinyModel(
    hidden_size=32, layers=1, heads=2, kv_heads=1, head_dim=16, intermediate_size=32, vocab_size=280, max_positions=512
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    missing = (
        None
        if find_spec("verifiers")
        else "verifiers is not installed: pip install -c constraints.txt -e '.[verifiers]'"
    )
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.environments)
            if missing:
                item.add_marker(pytest.mark.skip(missing))


def source(name: str, rows: int = 6, **settings: Any) -> VerifiersSource:
    return VerifiersSource(kind="verifiers", target=f"tests.environments.{name}", rows=rows, **settings)


def rubric(accuracy: str, *rewards: str) -> EnvironmentVerifier:
    return EnvironmentVerifier(kind="environment", accuracy=accuracy, rewards=rewards)


def player(
    *, chat: bool = True, liked: str = "0123456789", by: float = 9.0, positions: int = SHAPE.max_positions
) -> Policy:
    """A policy with random weights that mostly writes a few digits and ends."""
    shape = SHAPE.model_copy(update={"max_positions": positions})
    tokenizer = build_tokenizer(["higher lower"], shape.vocab_size, positions)
    own = Policy(build_model(shape, tokenizer, seed=0), tokenizer, chat)
    bonus = torch.zeros(len(tokenizer))
    bonus[[tokenizer.encode(one, add_special_tokens=False)[0] for one in liked]] = by
    bonus[own.eos_id] = by + 1.5
    own.model.get_output_embeddings().register_forward_hook(lambda _m, _i, logits: logits + bonus)
    return own


class Scripted(Engine):
    """Writes what ``say`` gives for the text so far. A fake, for what a policy with random weights never writes."""

    def __init__(self, policy: Policy, say: Callable[[str], str]) -> None:
        self._policy, self._say = policy, say
        self.batches: list[int] = []

    def load_weights(self, weights: Mapping[str, Any]) -> None:
        raise NotImplementedError

    def generate(self, prompts: Sequence[Sequence[int]], sampling: Sampling) -> list[tuple[Completion, ...]]:
        self.batches.append(len(prompts) * sampling.n)
        return [(self._completion(ids, sampling.max_new_tokens),) * sampling.n for ids in prompts]

    def _completion(self, prompt: Sequence[int], limit: int) -> Completion:
        text = self._say(str(self._policy.tokenizer.decode(prompt)))
        ids = self._policy.encode_answer(text)
        whole = len(ids) <= limit
        return Completion(ids[:limit], (-1.0,) * len(ids[:limit]), "stop" if whole else "length", text)


class Table:
    """An environment whose process several tests share, and its prompts."""

    def __init__(self, chosen: VerifiersSource, judged: EnvironmentVerifier) -> None:
        self.source, self.rubric = chosen, judged
        self.process = EnvironmentProcess(chosen)
        self.prompts: list[Prompt] = prompts_of(chosen, self.process)

    def episodes(self, policy: Policy, engine: Engine | None = None) -> Episodes:
        return Episodes(self.process, self.rubric, policy, engine or build_engine(policy, RolloutSettings()))


@pytest.fixture(scope="session")
def game() -> Iterator[Table]:
    """A game of several turns."""
    table = Table(source("higher_lower", max_turns=6), rubric("found", "early", "legal"))
    with table.process:
        yield table


@pytest.fixture(scope="session")
def words() -> Iterator[Table]:
    """One turn."""
    table = Table(source("reversing"), rubric("right", "alike"))
    with table.process:
        yield table


@pytest.fixture(scope="session")
def sums() -> Iterator[Table]:
    """A tool, shared by all episodes."""
    table = Table(source("adding"), rubric("right"))
    with table.process:
        yield table
