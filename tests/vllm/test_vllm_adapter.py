"""A real vLLM server that was started with the base, and takes the adapter alone."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import sleep

import pytest

from components.config.rollout import RolloutSettings
from components.policy import Policy
from components.policy.weights import weights_of
from components.rollout import build_engine
from components.rollout.servers import ServerEngine
from tests.unit.factories import with_adapter
from tests.vllm.tiny import GREEDY, LONG, embedded, prompts, tiny

ENGINE = {"kind": "vllm", "processes": 1, "canary_timeout": 300.0, "transfer": "adapter"}
BEGUN = {"scale": 0.1, "seed": 1}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerEngine]:
    own, settings = tiny(), RolloutSettings.model_validate({"temperature": 1.0, "engine": ENGINE})
    logs = tmp_path_factory.mktemp("adapter")
    built = build_engine(own, settings, logs, weights_of(with_adapter(own, **BEGUN)))
    assert isinstance(built, ServerEngine)
    yield built
    built.close()


def greedy(engine: ServerEngine | Policy) -> list[tuple[int, ...]]:
    found = embedded(engine.frozen_copy()) if isinstance(engine, Policy) else engine
    return [one.token_ids for (one,) in found.generate(prompts(tiny()), GREEDY)]


def test_the_server_begins_with_the_adapter_that_the_run_has(engine):
    own = tiny()
    assert greedy(engine) == greedy(with_adapter(own, **BEGUN)) != greedy(own)
    (measured,) = engine.gaps().values()
    assert measured.mean < 1e-4


@pytest.mark.parametrize("seed", [2, 3])
def test_every_hand_over_is_followed_and_brings_the_adapter_alone(engine, seed):
    other = with_adapter(tiny(), seed=seed)
    engine.load_weights(weights_of(other))
    assert greedy(engine) == greedy(other) != greedy(with_adapter(tiny(), **BEGUN))
    (measured,) = engine.gaps().values()
    assert measured.mean < 1e-4
    files = {path.name for path in Path(engine._folder).glob("weights-*/*")}
    assert files == {"adapter_config.json", "adapter_model.safetensors"}


def test_an_adapter_that_has_learned_nothing_leaves_the_base(engine):
    engine.load_weights(weights_of(with_adapter(tiny(), scale=0)))
    assert greedy(engine) == greedy(tiny())


def test_weights_that_were_kept_are_those_of_that_moment(engine):
    first, second = with_adapter(tiny(), seed=4), with_adapter(tiny(), seed=5)
    kept = engine.keep(weights_of(first))
    engine.load_weights(weights_of(second))
    assert greedy(engine) == greedy(second)
    engine.load_weights(kept)
    assert greedy(engine) == greedy(first)


def test_completions_in_flight_go_on_with_the_new_adapter_and_say_so(engine):
    own = tiny()
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(engine.generate, prompts(own, 64), LONG)
        sleep(1)
        engine.load_weights(weights_of(with_adapter(own, seed=6)))
        groups = future.result()
    mixed = [one.versions for group in groups for one in group if len(set(one.versions)) == 2]
    assert mixed, "no completion was in flight"


def test_merged_weights_are_refused(engine):
    with pytest.raises(TypeError, match="take an adapter alone"):
        engine.load_weights(weights_of(tiny()))
