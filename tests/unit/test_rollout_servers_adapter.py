"""Servers that have the base and take the adapter alone; played by a fake, `tests/vllm` has the real one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from peft import PeftModel
from test_rollout_servers import GREEDY, prompts
from test_rollout_servers_sleep import Played

from components.config.rollout import RolloutSettings
from components.config.servers import VllmEngine
from components.errors import InputError
from components.policy import Policy
from components.policy.weights import Weights, weights_of
from components.rollout import build_engine
from components.rollout.servers import ServerEngine
from components.rollout.servers import engine as engines
from tests.unit.factories import policy, with_adapter
from tests.unit.fake_vllm import FakeVllm

ENGINE = {"kind": "vllm", "processes": 1, "transfer": "adapter", "check": {"samples": 4, "tokens": 6}}


class WithAdapter(FakeVllm):
    """As vLLM: the end of an update drops the adapter, and only requests that name it are computed with it."""

    def __init__(self, base: Policy, folder: Path) -> None:
        super().__init__(base, transfer="evenkeel_adapter")
        self._base = base
        self._load(folder)

    def _load(self, folder: Path | None) -> None:
        model = self._base.frozen_copy().model
        whole: Any = model if folder is None else PeftModel.from_pretrained(model, str(folder)).merge_and_unload()
        self.engine.load_weights(dict(whole.named_parameters()))

    def _collective_rpc(self, body: Any) -> Any:
        if body["method"] != "evenkeel_adapter":
            return super()._collective_rpc(body)
        return lambda: self._load(Path(body["args"][1]))

    def _update_weights(self, body: Any) -> Any:
        raise AssertionError("weights of the base travelled")

    def _finish_weight_update(self, body: Any) -> Any:
        self._load(None)
        return super()._finish_weight_update(body)

    def _generate(self, body: Any) -> Any:
        assert body["model"] == "evenkeel-adapter"
        return super()._generate(body)


class Started(Played):
    """A server that is started with what the run has written for it."""

    folder: Path

    def made(self) -> FakeVllm:
        return WithAdapter(self._own, self.folder / "rollout/model/adapter")


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServerEngine]:
    own, settings = policy(), RolloutSettings.model_validate({"temperature": 1.0, "engine": ENGINE})
    assert isinstance(settings.engine, VllmEngine)
    played = Started("rollout-0", own, settings.engine)
    played.folder = tmp_path
    monkeypatch.setattr(engines, "origins", lambda *_: [played])
    built = build_engine(own, settings, tmp_path, weights_of(with_adapter(own)))
    assert isinstance(built, ServerEngine)
    yield built
    built.close()


def greedy(engine: ServerEngine) -> list[tuple[int, ...]]:
    return [one.token_ids for (one,) in engine.generate(prompts(policy()), GREEDY)]


def test_every_hand_over_is_proved_and_what_is_sampled_follows_it(engine: ServerEngine) -> None:
    first = greedy(engine)
    engine.load_weights(weights_of(with_adapter(policy(), scale=0.5, seed=2)))
    assert greedy(engine) != first
    assert all(gap.mean < 1e-5 for gap in engine.gaps().values())
    engine.load_weights(weights_of(with_adapter(policy())))
    assert greedy(engine) == first


def test_what_is_kept_for_later_is_an_adapter_too(engine: ServerEngine) -> None:
    first, kept = greedy(engine), engine.keep(weights_of(with_adapter(policy())))
    engine.load_weights(weights_of(with_adapter(policy(), scale=0.5, seed=2)))
    engine.load_weights(kept)
    assert greedy(engine) == first


def test_a_server_that_has_lost_the_adapter_is_refused(engine: ServerEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WithAdapter, "_collective_rpc", lambda self, _: {"results": [self.facts]})
    with pytest.raises(InputError, match="does not sample from the policy's weights"):
        engine.load_weights(weights_of(with_adapter(policy(), scale=0.5, seed=2)))


@pytest.mark.parametrize("merged", [weights_of(policy()), policy().weights()], ids=["weights", "tensors"])
def test_merged_weights_are_refused_and_nothing_is_lost(engine: ServerEngine, merged: Weights) -> None:
    first = greedy(engine)
    with pytest.raises(TypeError, match="take an adapter alone"):
        engine.load_weights(merged)
    assert greedy(engine) == first


def test_a_stage_without_an_adapter_has_servers_that_take_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, settings = policy(), RolloutSettings.model_validate({"temperature": 1.0, "engine": ENGINE})
    assert isinstance(settings.engine, VllmEngine)
    monkeypatch.setattr(engines, "origins", lambda *_: [Played("rollout-0", own, settings.engine)])
    with_files = build_engine(own, settings, tmp_path)
    with_files.close()
