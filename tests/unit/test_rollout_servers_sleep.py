"""Servers that sleep while the learner updates: in which order they sleep and wake, and what happens to those that fail
in between. vLLM for CPUs does not sleep, so all of this is said of a fake server alone."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from test_rollout_servers import GREEDY, QUICK, hand_over, history, moved, prompts

from components.config.rollout import RolloutSettings
from components.config.servers import VllmEngine
from components.errors import InputError, PeerLost
from components.policy import Policy
from components.rollout import build_engine
from components.rollout.servers import engine as engines
from components.rollout.servers import fleet
from components.rollout.servers.client import ServerClient
from components.rollout.servers.local import Origin
from components.rollout.servers.vllm import VllmClient
from tests.unit.factories import policy
from tests.unit.fake_vllm import Drop, FakeVllm, Fault, Hang, Status, raising, until

GENERATE, SLEEP, WAKE = "/inference/v1/generate", "/sleep", "/wake_up"


class Played(Origin):
    """Processes that are fakes: one at a time, and a new one each time that it is opened."""

    def __init__(self, name: str, own: Policy, settings: VllmEngine) -> None:
        self.name, self._own, self._restarts = name, own, settings.restarts
        self.fakes: list[FakeVllm] = []
        self.may_start = threading.Event()
        self.may_start.set()

    @property
    def fake(self) -> FakeVllm:
        return self.fakes[-1]

    def may_open(self) -> bool:
        return len(self.fakes) <= self._restarts

    def alive(self) -> bool:
        return self.fake._server is not None

    async def open(self) -> ServerClient:
        await self.close()
        await asyncio.to_thread(self.may_start.wait)
        self.fakes.append(self.made().start())
        return VllmClient(self.name, self.fake.url)

    def made(self) -> FakeVllm:
        return FakeVllm(self._own)

    async def close(self) -> None:
        if self.fakes:
            self.fake.stop()


class Scene:
    """An engine with servers that it starts, which are played."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, count: int = 1, **options: Any) -> None:
        self.own, self.logs = policy(), folder
        engine = {"kind": "vllm", "processes": count, "sleep": True, **QUICK, **options}
        settings = RolloutSettings.model_validate({"temperature": 1.0, "engine": engine})
        assert isinstance(settings.engine, VllmEngine)
        self.origins = [Played(f"rollout-{i}", self.own, settings.engine) for i in range(count)]
        monkeypatch.setattr(engines, "origins", lambda *_: self.origins)
        self.engine = build_engine(self.own, settings, folder)

    @property
    def fake(self) -> FakeVllm:
        return self.origins[0].fake

    def hand_over(self, by: float = 0.1) -> None:
        hand_over(self.engine, self.own, moved(self.own, by))

    def versions(self) -> set[int]:
        groups = self.engine.generate(prompts(self.own), GREEDY)
        return {version for group in groups for one in group for version in one.versions}


Make = Callable[..., Scene]


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    monkeypatch.setattr(fleet, "PAUSE", 0.02)
    made: list[Scene] = []

    def make(count: int = 1, **options: Any) -> Scene:
        made.append(Scene(tmp_path, monkeypatch, count, **options))
        return made[-1]

    yield make
    for one in made:
        one.engine.close()


def steps(fake: FakeVllm, since: int) -> list[str]:
    """The calls to a server from a place on, those for a part of its memory with its name."""
    found = list(zip(fake.calls[since:], fake.bodies[since:], strict=True))
    return [f"{path} {body['tags']}" if path == WAKE else path for path, body in found]


def test_weights_wake_before_the_hand_over_and_the_cache_after_it(scene: Make) -> None:
    made = scene()
    since = len(made.fake.calls)
    assert made.engine.rest()
    made.hand_over()
    assert steps(made.fake, since) == [
        "/sleep",
        "/is_sleeping",
        "/wake_up weights",
        "/pause",
        "/start_weight_update",
        "/update_weights",
        "/finish_weight_update",
        "/reset_prefix_cache",
        "/wake_up kv_cache",
        "/resume",
        "/weight_info",
        GENERATE,  # the proof
    ]
    assert made.fake.bodies[since] == {"level": "2", "mode": "abort"}, "the hand-over replaces all weights"


def test_what_is_sampled_after_a_sleep_is_of_the_weights_that_were_handed_over(scene: Make) -> None:
    made = scene(2)
    assert made.versions() == {1}
    for number in (2, 3):
        made.engine.rest()
        made.hand_over(0.1 * number)
        assert made.versions() == {number}
    assert history(made.logs, "rollout-0") == ["serves"]


def test_a_hand_over_to_servers_that_did_not_sleep_wakes_none(scene: Make) -> None:
    made = scene()
    made.hand_over()
    assert not {SLEEP, WAKE} & set(made.fake.calls)


def test_without_the_setting_nothing_sleeps(scene: Make) -> None:
    made = scene(sleep=False)
    assert not made.engine.rest()
    assert SLEEP not in made.fake.calls
    assert made.versions() == {1}


def test_servers_that_sleep_are_not_put_to_sleep_again(scene: Make) -> None:
    made = scene()
    assert made.engine.rest() and made.engine.rest()
    assert made.fake.calls.count(SLEEP) == 1


def test_a_second_rest_does_not_wait_for_what_the_hand_over_will_replace(scene: Make) -> None:
    """As where a run goes back because of an update that was not handed over."""
    made = scene()
    made.fake.fail(SLEEP, raising(Status(500)))
    made.engine.rest()
    again = threading.Thread(target=made.engine.rest, daemon=True)
    again.start()
    again.join(10)
    assert not again.is_alive()
    made.hand_over()
    assert made.versions() == {2}


def test_nothing_is_sampled_from_servers_that_sleep(scene: Make) -> None:
    made = scene()
    made.engine.rest()
    with pytest.raises(PeerLost, match="sleep"):
        made.engine.generate(prompts(made.own), GREEDY)


def test_a_sleeping_server_is_neither_sung_to_nor_taken_for_a_dead_one(scene: Make) -> None:
    made = scene(canary_every=0.01)
    made.engine.rest()
    since = len(made.fake.calls)
    time.sleep(0.2)  # many looks
    assert made.fake.calls[since:] == []
    made.hand_over()
    assert history(made.logs, "rollout-0") == ["serves"]


@pytest.mark.parametrize(
    ("path", "fault"),
    [
        pytest.param(SLEEP, raising(Status(500)), id="an error"),
        pytest.param(SLEEP, raising(Drop()), id="a connection that breaks"),
        pytest.param(SLEEP, raising(Hang()), id="no answer"),
        pytest.param("/is_sleeping", lambda *_: {"is_sleeping": False}, id="awake, as vLLM for CPUs"),
    ],
)
def test_a_server_that_does_not_go_to_sleep_is_ended_and_replaced_after_the_hand_over(
    scene: Make, path: str, fault: Fault
) -> None:
    made = scene(sync_timeout=0.5)
    (origin,) = made.origins
    made.fake.fail(path, fault)
    assert made.engine.rest()
    assert not origin.alive(), "the memory is the learner's now"
    time.sleep(0.1)  # longer than a pause between two attempts
    assert len(origin.fakes) == 1, "a new one would start in the memory of the learner"
    made.hand_over()
    assert len(origin.fakes) == 2 and made.versions() == {2}
    assert history(made.logs, "rollout-0") == ["serves", "drained", "serves"]


def test_a_server_that_dies_asleep_is_replaced_after_the_hand_over(scene: Make) -> None:
    made = scene(canary_every=0.01)
    (origin,) = made.origins
    made.engine.rest()
    made.fake.stop()
    until(lambda: "drained" in history(made.logs, "rollout-0"))
    time.sleep(0.1)
    assert len(origin.fakes) == 1
    made.hand_over()
    assert len(origin.fakes) == 2 and made.versions() == {2}


def waking(tag: str, otherwise: Fault) -> Callable[[FakeVllm], None]:
    """A fault of the call that wakes one part of the memory."""
    return lambda fake: fake.fail(WAKE, lambda body, answer: otherwise(body, answer) if body["tags"] == tag else answer)


@pytest.mark.parametrize(
    "breaks",
    [
        pytest.param(FakeVllm.stop, id="dead, and that was not noticed before"),
        pytest.param(waking("weights", raising(Status(500, "out of memory"))), id="no memory for the weights"),
        pytest.param(waking("kv_cache", raising(Status(500, "out of memory"))), id="no memory for the cache"),
        pytest.param(waking("kv_cache", lambda *_: {"status": "sleeping"}), id="a part that goes on sleeping"),
    ],
)
def test_a_server_that_does_not_wake_up_is_replaced(scene: Make, breaks: Callable[[FakeVllm], None]) -> None:
    made = scene()
    made.engine.rest()
    breaks(made.fake)
    made.hand_over()
    assert made.versions() == {2}
    assert history(made.logs, "rollout-0") == ["serves", "drained", "serves"]


def test_the_others_go_on_where_one_of_several_does_not_wake_up(scene: Make) -> None:
    made = scene(2)
    made.engine.rest()
    made.fake.fail(WAKE, raising(Status(500)))
    made.hand_over()
    assert made.versions() == {2}
    assert history(made.logs, "rollout-1") == ["serves"]


def test_a_run_whose_servers_all_died_asleep_and_may_not_be_replaced_ends(scene: Make) -> None:
    made = scene(restarts=0)
    made.engine.rest()
    made.fake.stop()
    with pytest.raises(PeerLost, match="no inference server is left"):
        made.hand_over()


def test_a_server_of_other_weights_after_its_sleep_ends_the_run(scene: Make) -> None:
    made = scene()
    made.engine.rest()
    made.fake.fail("/update_weights", lambda *_: {})  # it takes nothing in, and has what the sleep has left
    made.fake.policy = made.own  # values that are numbers
    made.fake.engine._policy = made.own
    with pytest.raises(InputError, match="does not sample from the policy's weights"):
        made.hand_over(1.0)


def test_a_server_that_is_being_replaced_is_waited_for(scene: Make) -> None:
    """It could not start while its memory is lent, and would hold what it has of it."""
    made = scene(2, canary_every=0.01)
    first, second = made.origins
    first.may_start.clear()
    first.fake.stop()
    until(lambda: "drained" in history(made.logs, "rollout-0"))
    resting = threading.Thread(target=made.engine.rest)
    resting.start()
    time.sleep(0.1)
    assert SLEEP not in second.fake.calls
    first.may_start.set()
    resting.join(10)
    assert first.fake.asleep and second.fake.asleep and len(first.fakes) == 2


def test_a_server_that_was_excluded_gives_its_memory_up(scene: Make) -> None:
    made = scene(2)
    assert made.engine.exclude(0)
    made.engine.rest()
    assert not made.origins[0].alive()
    made.hand_over()
    assert made.versions() == {2}


def test_an_engine_that_is_closed_while_its_servers_sleep_ends_them(scene: Make) -> None:
    made = scene()
    made.engine.rest()
    made.engine.close()
    assert not made.origins[0].alive()
