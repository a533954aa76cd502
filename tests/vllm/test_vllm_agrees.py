"""A real vLLM server samples from the policy's very distribution, before and after weights are handed over."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from time import sleep

import httpx
import pytest

from components.config.policy import TinyModel
from components.errors import InputError
from components.policy.weights import weights_of
from components.rollout import Sampling
from components.rollout.servers import ServerEngine
from tests.vllm.tiny import GREEDY, LONG, SAMPLED, SHAPE, embedded, engine_of, moved, prompts, servers, tiny


def ids(groups: object) -> list[list[tuple[int, ...]]]:
    return [[one.token_ids for one in group] for group in groups]


def test_greedy_completions_are_those_of_the_embedded_engine(tied):
    own = tiny()
    found, expected = tied.generate(prompts(own), GREEDY), embedded(own).generate(prompts(own), GREEDY)
    assert ids(found) == ids(expected)
    for (one,), (other,) in zip(found, expected, strict=True):
        assert one.logprobs == pytest.approx(other.logprobs, abs=1e-4)
        assert (one.text, one.finish_reason) == (other.text, other.finish_reason)


def test_sampled_ones_have_the_policys_own_log_probabilities(tied):
    (measured,) = tied.gaps().values()
    assert measured.mean < 1e-4
    assert measured.largest < 1e-3


def test_nothing_of_the_models_generation_config_cuts_the_distribution(tied):
    """It says top_k 1: every completion would be the greedy one."""
    own = tiny()
    (group,) = tied.generate(prompts(own, 1), Sampling(n=16, max_new_tokens=6, temperature=1.0, seed=2))
    assert len({one.token_ids for one in group}) > 8
    ((greedy,),) = tied.generate(prompts(own, 1), GREEDY)
    assert any(one.token_ids[0] != greedy.token_ids[0] for one in group)


def test_the_same_seed_gives_the_same_completions_and_another_one_others(tied):
    own = tiny()
    first = ids(tied.generate(prompts(own), SAMPLED))
    assert first == ids(tied.generate(prompts(own), SAMPLED))
    assert first != ids(tied.generate(prompts(own), Sampling(n=4, max_new_tokens=24, temperature=1.0, seed=6)))


def test_a_completion_ends_at_a_stop_token(tied):
    own = tiny()
    ((plain,),) = tied.generate(prompts(own, 1), GREEDY)
    stop = Sampling(n=1, max_new_tokens=24, temperature=0.0, seed=0, stop=(plain.token_ids[4],))
    ((stopped,),) = tied.generate(prompts(own, 1), stop)
    assert stopped.finish_reason == "stop_token"
    assert stopped.token_ids == plain.token_ids[: plain.token_ids.index(plain.token_ids[4]) + 1]


def test_what_does_not_fit_is_refused(tied):
    with pytest.raises(InputError, match="the servers have 256"):
        tied.generate(prompts(tiny(), 1), Sampling(n=1, max_new_tokens=300, temperature=1.0, seed=0))


def follows_every_hand_over(engine: ServerEngine, tied: bool) -> None:
    own = tiny(tied=tied)
    before = ids(engine.generate(prompts(own), GREEDY))
    other = tiny(tied=tied)
    other.load_weights(moved(own))
    engine.load_weights(weights_of(other))
    between = engine.generate(prompts(own), GREEDY)
    assert ids(between) == ids(embedded(other).generate(prompts(own), GREEDY)) != before
    assert {version for (one,) in between for version in one.versions} == {engine.version}
    engine.load_weights(weights_of(own))
    assert ids(engine.generate(prompts(own), GREEDY)) == before


def test_a_hand_over_changes_what_is_sampled_and_another_one_changes_it_back(tied):
    follows_every_hand_over(tied, tied=True)


def written(engine: ServerEngine) -> float:
    """Tokens that the server has written so far."""
    (server,) = servers(engine)
    text = httpx.get(f"{server.link.url}/metrics", timeout=60).text
    return float(next(line for line in text.splitlines() if line.startswith("vllm:generation_tokens_total")).split()[1])


def test_completions_in_flight_go_on_with_the_new_weights_and_say_so(tied):
    own = tiny()
    with ThreadPoolExecutor(1) as pool:
        before = written(tied)
        future = pool.submit(tied.generate, prompts(own, 64), LONG)
        while written(tied) == before and not future.done():
            sleep(0.01)
        tied.load_weights(weights_of(own))
        groups = future.result()
    mixed = [one.versions for group in groups for one in group if len(set(one.versions)) == 2]
    assert mixed, "no completion was in flight"
    assert all(list(versions) == sorted(versions) for versions in mixed)


def test_a_server_of_another_model_is_refused_with_both_values(tied, tmp_path):
    (server,) = servers(tied)
    wide = TinyModel.model_validate({**SHAPE.model_dump(), "hidden_size": 96, "layers": 3})
    other = engine_of(tiny(shape=wide), tmp_path, urls=[server.link.url])
    with pytest.raises(InputError, match="hidden_size is 64, not 96; num_hidden_layers is 2, not 3"):
        other.__enter__()


def test_a_server_of_another_tokenizer_is_refused(tied, tmp_path):
    (server,) = servers(tied)
    other = engine_of(tiny(texts="answer"), tmp_path, urls=[server.link.url])
    with pytest.raises(InputError, match=r"vocab_size is|another tokenizer"):
        other.__enter__()


def test_untied_embeddings_follow_every_hand_over_by_broadcast(tmp_path):
    with engine_of(tiny(tied=False), tmp_path, transfer="broadcast") as engine:
        follows_every_hand_over(engine, tied=False)


def test_tied_embeddings_follow_every_hand_over_by_broadcast_at_another_temperature(tmp_path):
    with engine_of(tiny(), tmp_path, temperature=0.7, transfer="broadcast", dtype="bfloat16") as engine:
        own = tiny()
        engine.load_weights(moved(own))
        (measured,) = engine.gaps().values()
    assert measured.mean < 0.05
