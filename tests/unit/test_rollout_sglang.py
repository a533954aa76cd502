"""The SGLang dialect, against an exchange written from SGLang's documentation (0.5)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from components.config.rollout import RolloutSettings
from components.errors import InputError, PeerLost
from components.rollout import build_engine
from tests.unit.factories import policy
from tests.unit.fake_sglang import FakeSglang
from tests.unit.fake_vllm import Drop, raising, serving
from tests.unit.test_rollout_servers import (
    GREEDY,
    SAMPLED,
    Running,
    assert_refused,
    hand_over,
    moved,
    prompts,
    started,
)


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    """As that of vLLM."""
    with started(tmp_path, kind="sglang", fake=FakeSglang) as start:
        yield start


def test_completions_are_those_of_the_embedded_engine(running):
    own, _, tested = running()
    found = tested.generate(prompts(own), GREEDY)
    expected = build_engine(own, RolloutSettings()).generate(prompts(own), GREEDY)
    assert [(one.token_ids, one.text, one.finish_reason) for (one,) in found] == [
        (one.token_ids, one.text, one.finish_reason) for (one,) in expected
    ]


def test_a_request_says_everything_that_the_distribution_depends_on(running):
    own, (server,), tested = running()
    tested.generate(prompts(own, 1), SAMPLED)
    body = server.bodies[-1]
    assert body["return_logprob"] is True
    assert len(body["input_ids"]) == len(body["sampling_params"]) == 3
    assert len({params["sampling_seed"] for params in body["sampling_params"]}) == 3, "samples must differ"
    for params in body["sampling_params"]:
        assert (params["top_p"], params["top_k"], params["min_p"], params["repetition_penalty"]) == (1.0, -1, 0.0, 1.0)
        assert params["stop_token_ids"] == [own.eos_id]


def test_weights_are_read_from_disk_under_a_version_that_completions_report(running):
    own, (server,), tested = running()
    ((before,),) = tested.generate(prompts(own, 1), GREEDY)
    hand_over(tested, own, moved(own))
    ((after,),) = tested.generate(prompts(own, 1), GREEDY)
    steps = [call for call in server.calls if call not in ("/generate", "/tokenize", "/get_server_info")][-6:]
    assert set(before.versions) == {1} and set(after.versions) == {2}
    assert steps == [
        "/get_model_info",
        "/pause_generation",
        "/update_weights_from_disk",
        "/update_weight_version",
        "/continue_generation",
        "/get_model_info",
    ]


def test_an_update_that_the_server_declines_is_an_error_with_its_message(running):
    own, (server,), tested = running()
    server.fail("/update_weights_from_disk", lambda *_: {"success": False, "message": "shape mismatch"})
    with pytest.raises(PeerLost, match="shape mismatch"):
        hand_over(tested, own, moved(own))


def test_a_server_that_keeps_its_old_weights_is_noticed(running):
    own, (server,), tested = running()
    old = own.weights()
    server.fail("/update_weights_from_disk", lambda _body, answer: (server.engine.load_weights(old), answer)[1])
    with pytest.raises(InputError, match="does not sample from the policy's weights"):
        hand_over(tested, own, moved(own))


def test_a_request_that_fails_is_repeated_on_another_server(running):
    own, servers, tested = running(2)
    expected = tested.generate(prompts(own), SAMPLED)
    servers[0].fail("/generate", raising(Drop()), times=3)
    assert tested.generate(prompts(own), SAMPLED) == expected


@pytest.mark.parametrize(
    ("facts", "said"),
    [({"version": "0.4.1"}, r"version is 0\.4\.1, not 0\.5\.x"), ({"dtype": "bfloat16"}, "dtype is bfloat16, not")],
)
def test_another_version_or_precision_is_refused(facts, said, tmp_path):
    with serving(policy(), kind=FakeSglang, **facts) as servers:
        assert_refused(said, servers, tmp_path, kind="sglang")


def test_a_server_without_log_probabilities_is_refused(tmp_path):
    def without(_body: Any, answer: Any) -> Any:
        for one in answer:
            del one["meta_info"]["output_token_logprobs"]
        return answer

    with serving(policy(), kind=FakeSglang) as (server,):
        server.fail("/generate", without)
        assert_refused("no log-probabilities", [server], tmp_path, kind="sglang")
