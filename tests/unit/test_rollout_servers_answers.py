"""What a server's answer must be, line by line."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import pytest
import torch

from components.config.servers import CheckSettings
from components.errors import InputError
from components.policy.weights import weights_of
from components.rollout.servers.check import LIMITS, counted, gap, limits, refuse_gap, stale
from components.rollout.servers.client import Facts, Request, ServerFault, Written, checked
from components.rollout.servers.vllm import VllmClient
from tests.unit.factories import policy

REQUEST = Request(prompt=(5, 6), n=1, max_new_tokens=3, temperature=1.0, seed=0, stop=(1, 9))


@pytest.mark.parametrize(
    ("ids", "logprobs", "said"),
    [
        ([], [], "without token ids"),
        (None, [-0.1], "without token ids"),
        ([4, "5", 6], [-0.1] * 3, "without token ids"),
        ([4, 5, 6], [-0.1] * 2, "2 log-probabilities for 3 tokens"),
        ([4, 5, 6], None, "no log-probabilities for 3 tokens"),
        ([4, 5, 6], [-0.1, math.nan, -0.1], "not finite"),
        ([4, 5, 6], [-0.1, -math.inf, -0.1], "not finite"),
        ([4, 5, 6], [-0.1, 0.7, -0.1], "not finite"),
        ([4, 5, 6], [-0.1, None, -0.1], "not finite"),
        ([4, 5], [-0.1] * 2, "ended by 'abort', not at a stop token"),
        ([4, 1, 6], [-0.1] * 3, "goes on after its end"),
        ([4, 5, 6, 1], [-0.1] * 4, "goes on after its end"),
    ],
)
def test_an_answer_that_cannot_be_is_a_fault_of_the_server(ids, logprobs, said):
    labels = ["a"] * len(ids or [])
    with pytest.raises(ServerFault, match=said):
        checked(REQUEST, ids, logprobs, labels, "abort")


@pytest.mark.parametrize("ids", [[1], [4, 9], [4, 5, 6], [4, 5, 1]])
def test_a_completion_ends_at_a_stop_token_or_at_the_limit(ids):
    found = checked(REQUEST, ids, [-0.5] * len(ids), ["a"] * len(ids), "stop")
    assert found == Written(tuple(ids), (-0.5,) * len(ids), ("a",) * len(ids))


@pytest.mark.parametrize(
    "spans",
    [
        None,
        [{"version": "a", "start": 0, "end": 2}],
        [{"version": "a", "start": 1, "end": 3}],
        [{"version": "a", "start": 0, "end": 1}, {"version": "b", "start": 2, "end": 3}],
        ["a"],
    ],
)
def test_every_token_has_a_weight_version(spans: Any):
    with pytest.raises(ServerFault):
        ask({"weight_versions": spans})


def test_spans_of_weight_versions_become_one_label_for_each_token():
    spans = [{"version": "a", "start": 0, "end": 1}, {"version": "b", "start": 1, "end": 3}]
    assert ask({"weight_versions": spans}).labels == ("a", "b", "b")


def test_log_probabilities_of_other_tokens_than_those_written_are_noticed():
    with pytest.raises(ServerFault, match="other tokens"):
        ask({"token_ids": [4, 5, 7]})


def tensor(values: list[float]) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def ask(changes: dict[str, Any]) -> Written:
    """One request to a client whose server answers with a right choice, changed."""
    choice = {
        "index": 0,
        "token_ids": [4, 5, 6],
        "finish_reason": "length",
        "logprobs": {"content": [{"token_id": i, "logprob": -0.1} for i in (4, 5, 6)]},
        "weight_versions": [{"version": "a", "start": 0, "end": 3}],
        **changes,
    }

    async def answer(*_: Any, **__: Any) -> dict[str, Any]:
        return {"choices": [choice]}

    async def run() -> Written:
        client = VllmClient("rollout-0", "http://127.0.0.1:1")
        client.call = answer  # type: ignore[method-assign]
        (written,) = await client.generate(REQUEST, 1.0)
        await client.aclose()
        return written

    return asyncio.run(run())


class TestTheCheck:
    def test_measures_the_distance_of_each_token(self):
        own = policy()
        prompt = own.encode_prompt("1+1=")
        ids = (30, 31)
        with torch.no_grad():
            logits = own.model(torch.tensor([[*prompt, *ids]])).logits[0]
        right = torch.log_softmax(logits[len(prompt) - 1 : -1] / 0.5, -1).gather(1, torch.tensor([ids]).T)[:, 0]
        reported = torch.tensor([right[0].item() - 0.25, right[1].item()])
        found = gap(weights_of(own).scores([(prompt, ids)], 0.5).double() - reported.double())
        assert found.mean == pytest.approx(0.125, abs=1e-5)
        assert found.largest == pytest.approx(0.25, abs=1e-5)
        assert found.k3 == pytest.approx((math.exp(0.25) - 1 - 0.25) / 2, abs=1e-5)
        assert found.tokens == 2

    @pytest.mark.parametrize(
        ("new", "old", "said"),
        [
            ([0.2] * 16, None, r"off by 0.2 nats on average \(limit 0.1\)"),
            ([0.0] * 31 + [3.0], None, r"3 at most \(limit 1\)"),
            ([0.0] * 15 + [math.nan], None, "does not sample from"),
            ([0.09] * 32, [1e-3] * 32, "still samples from the weights before"),
        ],
    )
    def test_refuses_what_is_too_far_not_a_number_or_nearer_to_the_old_weights(self, new, old, said):
        with pytest.raises(InputError, match=said):
            refuse_gap("rollout-0", tensor(new), None if old is None else tensor(old), (0.1, 1.0))

    @pytest.mark.parametrize("seed", range(20))
    @pytest.mark.parametrize("step", [0.0, 1e-4, 1e-2, 1.0])
    def test_coarse_rounding_with_heavy_tails_is_never_taken_for_old_weights(self, seed, step):
        generator = torch.Generator().manual_seed(seed)
        rounding = 0.02 / torch.rand(64, generator=generator)
        new = rounding * torch.randn(64, generator=generator)
        old = new - step * torch.randn(64, generator=generator)
        assert not stale(old.double(), new.double())

    @pytest.mark.parametrize(("tokens", "moved"), [(64, 5.9e-8), (31, 1e-2)], ids=["rounding", "too few tokens"])
    def test_what_proves_nothing_is_never_taken_for_old_weights(self, tokens, moved):
        assert not stale(torch.zeros(tokens).double(), torch.full((tokens,), moved).double())

    def test_what_several_texts_begin_with_counts_once(self):
        texts = [((5, 6), ids) for ids in [(30, 31, 1), (30, 31, 1), (30, 32)]]
        assert counted(texts).tolist() == [True] * 3 + [False] * 3 + [False, True]

    @pytest.mark.parametrize("seed", range(20))
    def test_old_weights_are_recognised_where_an_update_is_larger_than_rounding(self, seed):
        generator = torch.Generator().manual_seed(seed)
        old = 1e-3 * torch.randn(64, generator=generator)
        new = old + 1e-2 * torch.randn(64, generator=generator)
        assert stale(old.double(), new.double())

    @pytest.mark.parametrize(
        ("facts", "expected"),
        [
            (Facts("0.32.0", dtype="float32", kv_cache_dtype="auto"), LIMITS["float32"]),
            (Facts("0.32.0", dtype="bfloat16", kv_cache_dtype="auto"), LIMITS["bfloat16"]),
            (Facts("0.32.0", dtype="bfloat16", kv_cache_dtype="fp8_e5m2"), LIMITS["fp8_e5m2"]),
        ],
    )
    def test_allows_what_the_coarsest_format_of_the_server_explains(self, facts, expected):
        assert limits(CheckSettings(), facts, facts.dtype) == expected
        assert limits(CheckSettings(mean_gap=0.5), facts, facts.dtype) == (0.5, expected[1])

    def test_allows_what_the_policys_own_precision_explains(self):
        facts = Facts("0.32.0", dtype="float32", kv_cache_dtype="auto")
        assert limits(CheckSettings(), facts, "float32", "bfloat16") == LIMITS["bfloat16"]
