"""Completions from servers: what is requested, what is checked, and what happens to a server that fails."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import errno
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import CancelledError, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch

from components.config.rollout import RolloutSettings
from components.errors import EXIT_LOST, CorrectableError, InputError, MachineError, PeerLost
from components.files import read_jsonl, write_text
from components.policy import Policy, stored
from components.policy.weights import Weights, weights_of
from components.rollout import Engine, Sampling, build_engine
from components.rollout.servers import ServerEngine, fleet, local
from components.rollout.servers.check import LIMITS
from tests.unit.factories import policy
from tests.unit.fake_vllm import Drop, FakeVllm, Hang, Raw, Status, raising, serving, until

GENERATE = "/inference/v1/generate"
QUICK = {
    "request_timeout": 5,
    "canary_every": 60,
    "canary_timeout": 0.5,
    "start_timeout": 2,
    "sync_timeout": 2,
    "recovery_timeout": 2,
    "check": {"samples": 4, "tokens": 6},
}
GREEDY = Sampling(n=1, max_new_tokens=6, temperature=0.0, seed=3)
SAMPLED = Sampling(n=3, max_new_tokens=6, temperature=1.0, seed=3)


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet, "PAUSE", 0.05)
    monkeypatch.setattr(local, "POLL", 0.02)


@contextlib.contextmanager
def engine_of(servers: list[FakeVllm], tmp_path: Path, own: Policy | None = None, **options: Any) -> Iterator[Any]:
    settings = RolloutSettings.model_validate(
        {
            "temperature": options.pop("temperature", 1.0),
            "tool": options.pop("tool", None),
            "engine": {
                "kind": options.pop("kind", "vllm"),
                "urls": [server.url for server in servers],
                **QUICK,
                **options,
            },
        }
    )
    tested = build_engine(own or policy(), settings, tmp_path)
    try:
        yield tested
    finally:
        tested.close()


Running = Callable[..., tuple[Policy, list[FakeVllm], Any]]


@contextlib.contextmanager
def started(tmp_path: Path, kind: str = "vllm", fake: type[FakeVllm] = FakeVllm) -> Iterator[Running]:
    """Starts servers of a policy and an engine of them, which end with the context."""
    with contextlib.ExitStack() as stack:

        def start(
            count: int = 1, *, facts: Mapping[str, Any] | None = None, **options: Any
        ) -> tuple[Policy, list[FakeVllm], Any]:
            own = policy()
            servers = stack.enter_context(serving(own, count, fake, **(facts or {})))
            return own, servers, stack.enter_context(engine_of(servers, tmp_path, kind=kind, **options))

        yield start


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    with started(tmp_path) as start:
        yield start


def assert_refused(
    said: str, servers: list[FakeVllm], tmp_path: Path, own: Policy | None = None, **options: Any
) -> None:
    """No engine can be made of these servers, and the error says why."""
    tested = engine_of(servers, tmp_path, own, **options)
    with pytest.raises(CorrectableError, match=said):
        tested.__enter__()


def prompts(own: Policy, count: int = 4) -> list[tuple[int, ...]]:
    return [own.encode_prompt(f"{i}+{i}=") for i in range(count)]


def history(logs: Path, server: str) -> list[str]:
    """What happened to a server, but for single requests."""
    rows = [row for row in read_jsonl(logs / "rollout.jsonl") if row["server"] == server]
    return [row["event"] for row in rows if row["event"] != "failed"]


def hand_over(engine: Engine, own: Policy, weights: dict[str, torch.Tensor]) -> None:
    """Other weights of a policy, and what they make of a text."""
    other = own.frozen_copy()
    other.load_weights(weights)
    engine.load_weights(weights_of(other))


def has_ipv6() -> bool:
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET6) as probe:
        probe.bind(("::1", 0))
        return True
    return False


def moved(own: Policy, by: float = 0.1) -> dict[str, torch.Tensor]:
    """Other weights of the same policy."""
    generator = torch.Generator().manual_seed(1)
    return {name: w + by * torch.randn(w.shape, generator=generator) for name, w in own.weights().items()}


class TestCompletions:
    def test_are_those_of_the_embedded_engine_token_for_token(self, running):
        own, _, tested = running()
        groups = tested.generate(prompts(own), GREEDY)
        expected = build_engine(own, RolloutSettings()).generate(prompts(own), GREEDY)
        for (one,), (other,) in zip(groups, expected, strict=True):
            assert (one.token_ids, one.text, one.finish_reason) == (other.token_ids, other.text, other.finish_reason)
            assert one.logprobs == pytest.approx(other.logprobs, abs=1e-5)

    def test_come_in_the_order_of_the_prompts_with_n_of_each(self, running):
        own, _, tested = running(2)
        together = tested.generate(prompts(own), SAMPLED)
        assert [len(group) for group in together] == [3] * 4
        assert tested.generate(prompts(own), SAMPLED) == together, "the same seed gives the same completions"
        assert tested.generate([], SAMPLED) == []

    def test_say_which_hand_over_each_token_was_sampled_under(self, running):
        own, _, tested = running()
        ((first,),) = tested.generate(prompts(own, 1), GREEDY)
        hand_over(tested, own, moved(own))
        ((second,),) = tested.generate(prompts(own, 1), GREEDY)
        assert first.versions == (1,) * len(first.token_ids)
        assert second.versions == (2,) * len(second.token_ids)

    def test_end_at_the_end_token_at_a_stop_token_or_at_the_limit(self, running):
        own, _, tested = running()
        ((plain,),) = tested.generate(prompts(own, 1), GREEDY)
        stop = Sampling(n=1, max_new_tokens=6, temperature=0.0, seed=3, stop=(plain.token_ids[2],))
        ((stopped,),) = tested.generate(prompts(own, 1), stop)
        assert stopped.finish_reason == "stop_token"
        assert stopped.token_ids == plain.token_ids[: len(stopped.token_ids)]
        assert stopped.text == own.decode(stopped.token_ids[:-1])

    def test_are_of_the_whole_distribution_whatever_a_generation_config_says(self, running):
        own, (server,), tested = running()
        tested.generate(prompts(own, 1), SAMPLED)
        params = server.bodies[-1]["sampling_params"]
        assert {name: params[name] for name in ("top_p", "top_k", "min_p")} == {"top_p": 1.0, "top_k": 0, "min_p": 0.0}
        assert params["repetition_penalty"] == 1.0
        assert params["presence_penalty"] == params["frequency_penalty"] == 0.0

    def test_are_spread_over_the_servers(self, running):
        own, servers, tested = running(2)
        before = [server.calls.count(GENERATE) for server in servers]
        tested.generate(prompts(own, 20), GREEDY)
        counts = [server.calls.count(GENERATE) - b for server, b in zip(servers, before, strict=True)]
        assert sum(counts) == 20
        assert min(counts) >= 5

    def test_longer_than_the_servers_have_room_for_are_refused_instead_of_cut_short(self, running):
        long = Sampling(n=1, max_new_tokens=20, temperature=1.0, seed=0)
        own, _, tested = running(facts={"max_model_len": 16})
        with pytest.raises(InputError, match=r"may take 2[0-9] positions, the servers have 16"):
            tested.generate(prompts(own, 1), long)
        assert tested.max_positions == 16


class TestAtTheStart:
    @pytest.mark.parametrize(
        ("facts", "said"),
        [
            ({"model_type": "llama"}, "model type is llama, not qwen3"),
            ({"shape": {"vocab_size": 999}}, "vocab_size is 999, not 260"),
            ({"shape": {"hidden_size": 64}}, "hidden_size is 64, not 32"),
            ({"dtype": "bfloat16"}, "dtype is bfloat16, not float32"),
            ({"logprobs_mode": "raw_logprobs"}, "logprobs mode is raw_logprobs, not processed_logprobs"),
            ({"kv_cache_dtype": "fp8_e5m2"}, "KV cache is fp8_e5m2, not auto"),
            ({"transfer": "nccl"}, "weight transfer is nccl, not evenkeel_files"),
        ],
    )
    def test_a_server_for_something_else_is_refused_with_both_values(self, facts, said, tmp_path):
        with serving(policy(), **facts) as servers:
            assert_refused(said, servers, tmp_path)

    def test_another_version_is_refused(self, tmp_path):
        with serving(policy()) as (server,):
            server.version = "0.9.1"
            assert_refused(r"version is 0\.9\.1, not 0\.32\.x", [server], tmp_path)

    def test_another_tokenizer_is_refused(self, tmp_path):
        with serving(policy()) as (server,):
            server.fail("/tokenize", lambda _body, answer: {"tokens": [*answer["tokens"], 7]})
            assert_refused("another tokenizer: '1\\+1='", [server], tmp_path)

    def test_a_server_without_log_probabilities_is_refused(self, tmp_path):
        def without(_body: Any, answer: Any) -> Any:
            return {"choices": [{**choice, "logprobs": None} for choice in answer["choices"]]}

        with serving(policy()) as (server,):
            server.fail(GENERATE, without)
            assert_refused("0 log-probabilities for", [server], tmp_path)

    def test_a_server_that_is_not_there_is_named(self, tmp_path):
        dead = FakeVllm(policy())
        dead.port = 1
        assert_refused("rollout-0 did not start: no connection", [dead], tmp_path, start_timeout=0.2)

    def test_one_environment_that_is_missing_says_how_to_build_it(self, tmp_path):
        settings = RolloutSettings.model_validate(
            {"engine": {"kind": "vllm", "processes": 1, "python": str(tmp_path / "python")}}
        )
        with pytest.raises(InputError, match="no environment with vLLM") as caught:
            build_engine(policy(), settings, tmp_path)
        assert "make vllm-env" in str(caught.value)


class TestWeights:
    def test_are_sampled_from_after_a_hand_over_and_back_again(self, running):
        own, _, tested = running(2)
        before = tested.generate(prompts(own), GREEDY)
        hand_over(tested, own, moved(own))
        between = tested.generate(prompts(own), GREEDY)
        hand_over(tested, own, own.weights())
        after = tested.generate(prompts(own), GREEDY)
        ids = [[group[0].token_ids for group in groups] for groups in (before, between, after)]
        assert ids[0] != ids[1]
        assert ids[0] == ids[2]

    def test_of_another_model_are_refused(self, running):
        _, _, tested = running()
        with pytest.raises(ValueError, match="do not fit the model"):
            tested.load_weights({"other": torch.zeros(1)})

    def test_that_a_server_only_pretends_to_take_are_noticed(self, running):
        """The label is new and the weights are old: what a checksum of the wrong tensors would let pass."""
        own, (server,), tested = running()
        server.fail("/update_weights", lambda _body, _answer: {})
        with pytest.raises(InputError, match="rollout-0 does not sample from the policy's weights"):
            hand_over(tested, own, moved(own))
        with pytest.raises(InputError, match="torn"):
            tested.generate(prompts(own, 1), GREEDY)

    def test_that_hardly_differ_from_the_old_ones_are_distinguished_too(self, running):
        """A gap within the limits is an error all the same where it is the gap to the old weights."""
        own, (server,), tested = running(check={})
        server.fail("/update_weights", lambda _body, _answer: {})
        with pytest.raises(InputError, match="still samples from the weights before the last update"):
            hand_over(tested, own, moved(own, by=1e-5))

    def test_that_a_server_garbles_are_an_error_with_gap_and_limit(self, running):
        own, (server,), tested = running()
        server.fail("/update_weights", lambda *_: lambda: server.engine.load_weights(moved(own, by=0.5)))
        with pytest.raises(InputError, match=r"nats on average \(limit 0.001\)"):
            hand_over(tested, own, moved(own))

    def test_without_finite_log_probabilities_never_pass(self, running):

        def nan(_body: Any, answer: Any) -> Any:
            for entry in answer.get("prompt_logprobs", [])[1:]:
                for value in entry.values():
                    value["logprob"] = -9999.0  # what vLLM makes of NaN
            return answer

        own, (server,), tested = running()
        server.fail(GENERATE, nan)
        with pytest.raises(PeerLost, match="no inference server is left") as caught:
            hand_over(tested, own, moved(own))
        assert "not finite" in str(caught.value)

    @pytest.mark.parametrize("step", ["/start_weight_update", "/update_weights", "/finish_weight_update", "/resume"])
    def test_torn_at_any_step_bring_the_server_to_the_present_ones_before_it_serves(self, step, running):
        own, servers, tested = running(2)
        servers[0].fail(step, raising(Drop()), times=1)
        hand_over(tested, own, moved(own))
        until(lambda: servers[0].label == servers[1].label)
        groups = tested.generate(prompts(own, 20), GREEDY)
        assert {version for (one,) in groups for version in one.versions} == {2}

    def test_torn_on_the_only_server_wait_until_it_recovers(self, running):
        own, (server,), tested = running()
        server.fail("/update_weights", raising(Status(500)), times=1)
        hand_over(tested, own, moved(own))
        ((one,),) = tested.generate(prompts(own, 1), GREEDY)
        assert set(one.versions) == {2}

    def test_that_no_server_takes_end_the_run_with_what_each_said(self, running):
        own, servers, tested = running(2, recovery_timeout=0.5)
        for server in servers:
            server.fail("/update_weights", raising(Status(500, "no memory")))
        with pytest.raises(PeerLost, match="no inference server is left") as caught:
            hand_over(tested, own, moved(own))
        assert caught.value.exit_code == EXIT_LOST
        assert "rollout-0: " in str(caught.value) and "rollout-1: " in str(caught.value)
        assert "no memory" in str(caught.value)

    def test_left_half_way_by_a_run_that_died_are_replaced(self, tmp_path):
        own = policy()
        with serving(own) as (server,):
            server.fail("/start_weight_update", raising(Status(500, "an update is already active")), times=1)
            with engine_of([server], tmp_path) as tested:
                assert tested.generate(prompts(own, 1), GREEDY)
            begun = server.calls.index("/start_weight_update")
            update = ["/start_weight_update", "/finish_weight_update", "/start_weight_update"]
            assert server.calls[begun : begun + 3] == update

    def test_are_written_whole_before_a_server_hears_of_them_and_old_ones_go(self, running, tmp_path):
        own, _, tested = running()
        hand_over(tested, own, moved(own))
        hand_over(tested, own, own.weights())
        assert [folder.name for folder in (tmp_path / "rollout").glob("weights-*")] == ["weights-3"]

    def test_go_with_the_engine_and_other_peoples_files_stay(self, running, tmp_path):
        folder = tmp_path / "shared"
        for name in ("model/x", "weights-of-last-year/x"):
            write_text(folder / name, "somebody else's")
        mine = set(folder.iterdir())
        own, _, tested = running(folder=str(folder))
        hand_over(tested, own, moved(own))
        (ours,) = set(folder.iterdir()) - mine
        assert sorted(path.name for path in ours.iterdir()) == ["model", "owner.json", "weights-2"]
        tested.close()
        assert set(folder.iterdir()) == mine and (folder / "weights-of-last-year/x").exists()

    def test_that_cannot_be_written_end_the_run_before_any_server_hears_of_them(self, running, monkeypatch):

        def full(*_: Any, **__: Any) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        own, (server,), tested = running()
        before = len(server.calls)
        monkeypatch.setattr(stored, "save_file", full)
        with pytest.raises(MachineError, match="No space left"):
            hand_over(tested, own, moved(own))
        assert len(server.calls) == before
        with pytest.raises(InputError, match="torn"):
            tested.generate(prompts(own, 1), GREEDY)

    def test_that_are_kept_are_loaded_later_also_where_a_killed_run_has_left_some(self, running, tmp_path):
        left = tmp_path / "rollout" / "kept-1"
        left.mkdir(parents=True)
        own, (server,), tested = running()
        other = own.frozen_copy()
        other.load_weights(moved(own))
        kept = tested.keep(weights_of(other))
        other.load_weights(own.weights())  # whoever owns them goes on
        assert (left / "bucket-00001.safetensors").exists()
        tested.load_weights(kept)
        assert all(torch.equal(w, server.policy.weights()[name]) for name, w in moved(own).items())
        tested.load_weights(weights_of(other))
        del kept
        assert not left.exists(), "nothing can load them any more"

    def test_are_judged_by_the_precision_that_the_policy_is_scored_in(self, running):
        own, _, tested = running()
        rounded = own.frozen_copy()
        rounded.load_weights({name: w.bfloat16().float() for name, w in own.weights().items()})
        coarse = Weights(own.weights(), weights_of(rounded).scores, torch.bfloat16)
        exact = Weights(own.weights(), weights_of(rounded).scores, torch.float32)
        tested.load_weights(coarse)
        with pytest.raises(InputError, match="does not sample from the policy's weights"):
            tested.load_weights(exact)

    def test_may_be_handed_over_while_completions_are_written(self, running):
        own, (server,), tested = running(concurrency=2)
        slow = threading.Event()
        server.fail(GENERATE, lambda _body, answer: (slow.wait(0.05), answer)[1])
        with ThreadPoolExecutor(1) as pool:
            future = pool.submit(tested.generate, prompts(own, 20), GREEDY)
            time.sleep(0.2)
            hand_over(tested, own, moved(own))
            groups = future.result()
        versions = [version for (one,) in groups for version in one.versions]
        assert set(versions) == {1, 2}

    def test_from_before_a_request_are_refused_in_its_answer(self, running):

        def stale(_body: Any, answer: Any) -> Any:
            for choice in answer["choices"]:
                choice["weight_versions"][0]["version"] = "another"
            return answer

        own, servers, tested = running(2)
        servers[0].fail(GENERATE, stale, times=1)
        groups = tested.generate(prompts(own, 8), GREEDY)
        assert {version for (one,) in groups for version in one.versions} == {1}


class TestFaults:
    @pytest.mark.parametrize(
        "fault",
        [raising(Status(500)), raising(Drop()), lambda *_: Raw(b"<html>"), lambda *_: [], lambda *_: {"choices": []}],
        ids=["500", "dropped connection", "garbage", "a list", "no choices"],
    )
    def test_a_request_that_fails_on_one_server_is_repeated_on_another(self, fault, running):
        own, servers, tested = running(2)
        expected = tested.generate(prompts(own), SAMPLED)
        servers[0].fail(GENERATE, fault, times=3)
        assert tested.generate(prompts(own), SAMPLED) == expected

    def test_a_server_that_is_gone_loses_nothing_and_comes_back(self, running, tmp_path):
        own, servers, tested = running(2)
        expected = tested.generate(prompts(own, 12), SAMPLED)
        servers[0].stop()
        assert tested.generate(prompts(own, 12), SAMPLED) == expected
        hand_over(tested, own, moved(own))
        servers[0].start()
        until(lambda: history(tmp_path, "rollout-0") == ["serves", "drained", "serves"])
        hand_over(tested, own, own.weights())
        assert [[c.token_ids for c in g] for g in tested.generate(prompts(own, 12), SAMPLED)] == [
            [c.token_ids for c in g] for g in expected
        ]
        assert history(tmp_path, "rollout-1") == ["serves"]

    def test_a_server_that_is_excluded_samples_no_more_and_the_last_one_cannot_be(self, running, tmp_path):
        own, _, tested = running(2)
        expected = tested.generate(prompts(own, 12), SAMPLED)
        assert {one.server for group in expected for one in group} == {0, 1}
        assert tested.exclude(0) and not tested.exclude(1)
        again = tested.generate(prompts(own, 12), SAMPLED)
        assert again == expected and {one.server for group in again for one in group} == {1}
        hand_over(tested, own, moved(own))
        assert history(tmp_path, "rollout-0") == ["serves", "excluded"]

    def test_a_server_that_hangs_is_found_by_its_canary_long_before_the_request_times_out(self, running):
        own, servers, tested = running(2, request_timeout=60, canary_every=0.1)
        servers[0].fail(GENERATE, raising(Hang()))
        begin = time.monotonic()
        assert len(tested.generate(prompts(own, 12), SAMPLED)) == 12
        assert time.monotonic() - begin < 10

    def test_what_a_server_refuses_is_an_error_at_once(self, running):
        own, servers, tested = running(2)
        for server in servers:
            server.fail(GENERATE, raising(Status(400, "n is too large")), times=1)
        before = sum(server.calls.count(GENERATE) for server in servers)
        with pytest.raises(InputError, match=r"refused /inference/v1/generate with 400.*n is too large"):
            tested.generate(prompts(own, 1), SAMPLED)
        assert sum(server.calls.count(GENERATE) for server in servers) == before + 1

    def test_a_prompt_that_no_server_can_complete_ends_the_run_with_every_attempt(self, running):

        def only_prompts(body: Any, answer: Any) -> Any:
            if body["sampling_params"]["max_tokens"] > 1:
                raise Status(500, "out of luck")
            return answer

        own, servers, tested = running(2)
        for server in servers:
            server.fail(GENERATE, only_prompts)
        with pytest.raises(PeerLost, match="no server could complete a prompt in 3 attempts") as caught:
            tested.generate(prompts(own, 1), SAMPLED)
        assert str(caught.value).count("out of luck") == 3

    def test_when_all_servers_are_gone_the_run_ends_with_what_each_said(self, running):
        own, servers, tested = running(2, recovery_timeout=0.5)
        for server in servers:
            server.stop()
        with pytest.raises(PeerLost, match=r"no inference server is left|no server could complete") as caught:
            tested.generate(prompts(own, 1), SAMPLED)
        assert "rollout-0" in str(caught.value)
        assert caught.value.exit_code == EXIT_LOST

    def test_a_closed_engine_samples_nothing(self, running):
        own, _, tested = running()
        tested.close()
        with pytest.raises(RuntimeError, match="closed"):
            tested.generate(prompts(own, 1), SAMPLED)


def test_the_check_is_made_at_the_temperature_of_the_run(tmp_path):
    """A server that reports log-probabilities of temperature 1 is wrong by nats at 0.5."""
    own = policy()

    def untempered(body: Any, answer: Any) -> Any:
        for choice in answer["choices"]:
            for entry in choice["logprobs"]["content"]:
                entry["logprob"] *= 0.5
        return answer

    with serving(own) as (server,):
        with engine_of([server], tmp_path, temperature=0.5) as tested:
            assert isinstance(tested, ServerEngine)
            assert tested.gaps()["rollout-0"].mean < 1e-4
        server.fail(GENERATE, untempered)
        assert_refused("does not sample from the policy's weights", [server], tmp_path, temperature=0.5)


def test_a_policy_of_half_the_servers_precision_is_taken_for_what_it_is(tmp_path):
    exact = policy()
    exact.load_weights({name: weight.bfloat16().float() for name, weight in exact.weights().items()})
    coarse = dataclasses.replace(exact, model=copy.deepcopy(exact.model).bfloat16())
    with serving(exact) as servers, engine_of(servers, tmp_path, coarse, dtype="float32") as tested:
        assert tested.gaps()["rollout-0"].mean > LIMITS["float32"][0], "or this shows nothing"


def test_a_policy_is_not_changed_by_its_engine(running):
    own, _, tested = running()
    before = copy.deepcopy(own.weights())
    hand_over(tested, own, moved(own))
    assert all(torch.equal(before[name], value) for name, value in own.weights().items())


class TestCancelling:
    """The run is about to end: waiting calls are cancelled, and no server is used again."""

    @pytest.mark.parametrize("path", [GENERATE, "/update_weights"])
    @pytest.mark.parametrize("tool", [None, {"kind": "calculator"}])
    def test_ends_what_another_thread_waits_for(self, path, tool, running):
        slow = {"request_timeout": 60, "sync_timeout": 60, "recovery_timeout": 60}
        own, (server,), tested = running(tool=tool, **slow)
        server.fail(path, raising(Hang()))
        before = server.calls.count(path)
        with ThreadPoolExecutor(1) as pool:
            if path == GENERATE:
                future = pool.submit(tested.generate, prompts(own), SAMPLED)
            else:
                future = pool.submit(hand_over, tested, own, moved(own))
            until(lambda: server.calls.count(path) > before)
            tested.cancel()
            assert isinstance(future.exception(timeout=10), CancelledError | PeerLost)

    def test_lets_no_server_be_used_any_more(self, running):
        own, _, tested = running(recovery_timeout=60)
        tested.cancel()
        for use in (lambda: tested.generate(prompts(own), SAMPLED), lambda: hand_over(tested, own, moved(own))):
            with pytest.raises(PeerLost, match="cancelled"):
                use()


class TestBroadcast:
    """Weights from this process's memory, over gloo."""

    def test_brings_every_server_to_the_weights(self, running, tmp_path):
        own, _, tested = running(2, facts={"transfer": "evenkeel_broadcast"}, transfer="broadcast")
        hand_over(tested, own, moved(own))
        groups = tested.generate(prompts(own, 8), GREEDY)
        assert {version for (one,) in groups for version in one.versions} == {2}
        assert not list((tmp_path / "rollout").glob("weights-*")), "nothing is written to the disk"
        assert all(found.mean < 1e-4 for found in tested.gaps().values())

    def test_reaches_a_server_that_is_made_sound_in_the_middle_of_it_too(self, running):
        own, servers, tested = running(
            2, facts={"transfer": "evenkeel_broadcast"}, transfer="broadcast", sync_timeout=10.0
        )
        servers[0].fail("/update_weights", raising(Status(500, "hiccup")), times=1)
        servers[1].fail("/finish_weight_update", lambda _body, answer: (time.sleep(2.0), answer)[1], times=1)
        new = moved(own)
        hand_over(tested, own, new)
        until(lambda: len(tested._fleet.serving) == 2, 20)
        for server in servers:
            held = server.policy.weights()
            assert all(torch.equal(held[name], new[name]) for name in new)

    def test_goes_over_ipv6_too(self, tmp_path):
        if not has_ipv6():
            pytest.skip("this machine has no IPv6")
        own = policy()
        with serving(own, transfer="evenkeel_broadcast") as (server,):
            server.stop()
            server.host = "::1"
            server.start()
            with engine_of([server], tmp_path, transfer="broadcast") as tested:
                hand_over(tested, own, moved(own))
                assert tested.gaps()["rollout-0"].mean < 1e-4

    def test_to_a_server_that_does_not_listen_ends_with_its_time_and_the_server_is_brought_back(
        self, running, tmp_path
    ):
        own, servers, tested = running(
            2, facts={"transfer": "evenkeel_broadcast"}, transfer="broadcast", sync_timeout=1.0
        )
        servers[0].deaf.add("/update_weights")
        begin = time.monotonic()
        hand_over(tested, own, moved(own))
        assert time.monotonic() - begin < 20
        servers[0].deaf.clear()
        until(lambda: history(tmp_path, "rollout-0")[-1] == "serves", 20)
        assert all(found.mean < 1e-4 for found in tested.gaps().values())
        assert set(tested.gaps()) == {"rollout-0", "rollout-1"}

    def test_that_one_server_refuses_at_once_holds_up_neither_the_others_nor_the_end_of_the_run(self, tmp_path):
        own, already = policy(), set(threading.enumerate())

        def refuse(_: Any) -> Any:
            raise Status(500, "no such device")

        with (
            serving(own, 2, transfer="evenkeel_broadcast") as servers,
            engine_of(servers, tmp_path, transfer="broadcast", sync_timeout=5.0) as tested,
        ):
            servers[0]._init_weight_transfer_engine = refuse
            servers[0].fail("/update_weights", raising(Status(500, "gone")), times=1)
            hand_over(tested, own, moved(own))
            until(lambda: servers[0].calls.count("/init_weight_transfer_engine") > 10)
            begin = time.monotonic()
            hand_over(tested, own, own.weights())
            assert time.monotonic() - begin < 3
        left = set(threading.enumerate()) - already
        assert all(thread.daemon for thread in left), "Python would wait for them when the run ends"
