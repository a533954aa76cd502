"""Every kind that is held back changes something once it has begun, and nothing before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from factories import Judge, group, policy, prefer, prompts, settings
from safetensors.torch import load_file

from components.config.rollout import TorchEngine as TorchEngineSettings
from components.learner.batch import build_batch
from components.learner.build import build_learner
from components.policy import Policy
from components.rollout import Sampling
from components.rollout.torch_engine import TorchEngine
from components.scheduling import Uniform
from components.types import Completion, Prompt
from tests.benchmarks.health.faults.base import Fault
from tests.benchmarks.health.generated import MECHANISMS, Generated
from tests.benchmarks.health.generated.drawing import conditions, half_of
from tests.benchmarks.health.generated.forms import Form
from tests.benchmarks.health.restarts import Restarting

HELD_BACK = {name: kind for name, kind in MECHANISMS.items() if kind.held_back}
LATE = 1000
STEPS = 3


def split() -> list[Prompt]:
    """Labels of several digits, and demonstrations that are wrong."""
    return [replace(one, demonstration="#x", difficulty=float(n)) for n, one in enumerate(prompts(40))]


def draws(fault: Generated, at: Callable[[int], None]) -> object:
    schedule, found = fault.schedule(Uniform(split(), 0)), []
    for step in range(STEPS):
        at(step)
        found.append(schedule.next(16))
    return found


def answers(count: int) -> list[Completion]:
    """Of different lengths, two of each text's; half of them right."""
    texts = [f"{'1' * (n // 2)}#{n % 2}" for n in range(count)]
    return [Completion((n % 2,) * (n + 4), (-1.0,) * (n + 4), "stop", text) for n, text in enumerate(texts)]


def verdicts(fault: Generated, at: Callable[[int], None]) -> object:
    scorer, found = fault.scorer(Judge(lambda one: float(one.token_ids[0]))), []  # type: ignore[arg-type]
    asked = [*prompts(8), *(replace(one, id=f"dev-{one.id}") for one in prompts(8))]
    for step in range(STEPS):
        at(step)
        # Other completions in every step: what is kept of earlier ones is not what is asked about now.
        found.append(scorer.score_groups([(one, answers(8 + step)[step:]) for one in asked]))
    return found


def completions(fault: Generated, at: Callable[[int], None]) -> object:
    micro = policy()
    prefer(micro, micro.eos_id, 4.0)  # or nothing that is sampled here would end
    engine, found = fault.engine(TorchEngine(micro, TorchEngineSettings())), []
    stream, requests = torch.Generator().manual_seed(0), [[2, 20 + n, 21, 22, 3] for n in range(4)]
    for step in range(STEPS):
        at(step)
        found.append(engine.generate(requests, Sampling(n=2, max_new_tokens=6, temperature=1.0, seed=step)))
        weights = {name: w + 0.02 * torch.randn(w.shape, generator=stream) for name, w in micro.weights().items()}
        engine.load_weights(weights)
        sampling = Sampling(n=6, max_new_tokens=12, temperature=1.0, seed=step)
        found.append(engine.generate(requests, sampling))
    return found


def updates(fault: Generated, at: Callable[[int], None]) -> object:
    """Signals and weights of a learner that is real, and micro."""
    learner, micro = learning(fault)
    groups = [
        group([1.0, 0.0, 1.0], prompt_ids=(2, 20 + n, 3), tokens=[[30, 31, 32, 33][: g + 2] for g in range(3)])
        for n in range(3)
    ]
    batch = build_batch(groups, pad_id=0)
    scale = torch.linspace(-1.0, 1.5, len(batch))[:, None]
    batch = replace(batch, advantages=scale * batch.response_mask)
    found: list[Any] = []
    for step in range(STEPS):
        at(step)
        found += [learner.step(batch, step), {name: w.double().norm().item() for name, w in micro.weights().items()}]
    return found


def learning(fault: Generated | None = None) -> tuple[Any, Policy]:
    micro = policy()
    chosen = settings(learner={"lr": 1e-3, "warmup": 2, "updates_per_step": 1})
    inner = build_learner(micro, chosen)
    learner = inner if fault is None else fault.learner(inner)
    learner.configure(chosen.learner, chosen.objective)
    return learner, micro


PARTS: dict[str, Callable[[Generated, Callable[[int], None]], object]] = {
    "schedule": draws,
    "scorer": verdicts,
    "engine": completions,
    "learner": updates,
}
"""What a fault may wrap -> what that does."""


def behaviours(name: str, begun: int) -> dict[str, str]:
    """What the parts that a fault wraps do under it; it begins after that many of the steps here."""
    kind = HELD_BACK[name]
    found = {}
    for part, seen in PARTS.items():
        if getattr(kind, part) is getattr(Fault, part):
            continue
        fault = kind(3, Form("constant", kind.scopes[0]), max(kind.sizes))
        fault.prompts(prompts(20))

        def at(step: int, fault: Generated = fault) -> None:
            fault.clock.step = LATE if step >= begun else 0

        found[part] = str(seen(fault, at))
    return found


@pytest.fixture(scope="module")
def sound() -> dict[str, str]:
    """What all parts do without one."""
    return {part: str(seen(Generated(3, Form("constant", "all"), 1.0), lambda _: None)) for part, seen in PARTS.items()}


@pytest.mark.parametrize("name", [name for name, kind in HELD_BACK.items() if not issubclass(kind, Restarting)])
def test_a_kind_changes_something_once_it_has_begun_and_nothing_before(name: str, sound: dict[str, str]) -> None:
    before = behaviours(name, STEPS)
    assert before and before.items() <= sound.items()
    begun = behaviours(name, 1)
    assert all(begun[part] != sound[part] for part in before)


@pytest.mark.parametrize("name", [name for name, kind in HELD_BACK.items() if issubclass(kind, Restarting)])
def test_a_kind_that_stops_the_run_changes_its_newest_checkpoint_alone(name: str, tmp_path: Path) -> None:
    learner, _ = learning()
    for step in (0, 10):
        folder = tmp_path / f"step-{step:06d}"
        folder.mkdir()
        updates_with(learner)
        learner.save(folder)
        (folder / "state.json").write_text('{"schedule": {"drawn": 7}}')
    before = contents(tmp_path)
    kind = HELD_BACK[name]
    fault = kind(3, Form("constant", "all"), max(kind.sizes))
    assert isinstance(fault, Restarting) and fault.stops_at == fault.begins
    fault.altered(tmp_path)
    after = contents(tmp_path)
    changed = {path.relative_to(tmp_path).parts[0] for path in after if after[path] != before.get(path)}
    assert changed == {"step-000010"} and after.keys() == before.keys()


def updates_with(learner: Any) -> None:
    batch = build_batch([group([1.0, 0.0])], pad_id=0)
    advantages = torch.tensor([[1.0], [-1.0]]) * batch.response_mask
    learner.step(replace(batch, advantages=advantages), 0)


def contents(folder: Path) -> dict[Path, str]:
    return {
        path: str({name: t.tolist() for name, t in load_file(path).items()})
        if path.suffix == ".safetensors"
        else path.read_text()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_held_back_kinds_are_never_among_those_that_rules_are_designed_on() -> None:
    assert len(HELD_BACK) >= 20
    assert {half_of(name) for name in HELD_BACK} == {"unseen"}
    assert not {name.split("-")[0] for name in conditions("seen")} & set(HELD_BACK)
    assert {name.split("-")[0] for name in conditions("unseen")} >= set(HELD_BACK)


def test_a_kind_has_no_other_times_than_its_own() -> None:
    for name in conditions("unseen"):
        kind, time, *_ = name.split("-")
        assert time in MECHANISMS[kind].times
