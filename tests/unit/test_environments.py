"""Environments as far as they need no library: batches, tokens, verdicts, and a process that does not do its part."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from factories import TINY, prompt, settings

from components.config.environments import EnvironmentVerifier, VerifiersSource
from components.config.reward import RewardSettings
from components.config.rollout import RolloutSettings, TwoStage
from components.environments import process as processes
from components.environments import table as tables
from components.environments.episodes import KIND, OPENING, Episodes, verdict
from components.environments.players import Conversation, Players, Rewritten, further_ids, opening_ids, tool_calls
from components.environments.process import Answer, EnvironmentProcess
from components.environments.prompts import prompts_of
from components.environments.table import Table
from components.errors import InputError
from components.policy import Policy
from components.policy.tiny import build_model, build_tokenizer
from components.rewards import Scorer
from components.rollout import Collector
from components.rollout.base import Engine, Sampling
from components.scheduling import Uniform
from components.types import Completion, Prompt

SOURCE = {"kind": "verifiers", "target": "tests.environments.higher_lower", "rows": 10}
VERIFIER = {"kind": "environment", "accuracy": "found", "rewards": ["early"]}
RUBRIC = EnvironmentVerifier.model_validate(VERIFIER)


def policy(*, chat: bool = True) -> Policy:
    tokenizer = build_tokenizer(["higher lower"], 280, 64)
    return Policy(build_model(TINY.model_copy(update={"vocab_size": 280}), tokenizer, seed=0), tokenizer, chat)


MICRO = policy()


# Tasks as prompts


class Tasks(EnvironmentProcess):
    """An environment whose tasks open with these texts."""

    openings = ("Guess.", "guess.  ", "", "Count.")

    def tasks(self, rows: int) -> list[dict[str, Any]]:
        return [{"opening": text, "hash": text, "answer": "1", "solution": ""} for text in self.openings[:rows]]


def test_tasks_with_the_same_opening_are_distinguished_by_their_number() -> None:
    source = VerifiersSource.model_validate(SOURCE)
    texts = [prompt.text for prompt in prompts_of(source, Tasks(source))]
    assert texts == ["Guess.\n[task 0]", "guess.  \n[task 1]", "[task 2]", "Count."]


# Who waits for whom


def test_requests_of_episodes_are_answered_together_in_their_order_however_long_they_take() -> None:
    async def episode(table: Table, number: int, turns: int) -> list[str]:
        said = []
        for turn in range(turns):
            await asyncio.sleep(0.01 * ((number * 7 + turn) % 3))
            said.append((await table.request(number, {"turn": turn}))["text"])
        return said

    async def run() -> tuple[list[list[int]], list[list[str]]]:
        table, batches = Table(), []

        async def exchange(requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
            batches.append([one["episode"] for one in requests])
            return [{"text": f"{one['episode']}.{one['turn']}"} for one in requests]

        running = {n: asyncio.create_task(episode(table, n, turns)) for n, turns in enumerate((1, 3, 2))}
        assert await table.serve(running, exchange, 60.0) == set()
        return batches, [task.result() for task in running.values()]

    batches, said = asyncio.run(run())
    assert batches == [[0, 1, 2], [1, 2], [1]]
    assert said == [["0.0"], ["1.0", "1.1", "1.2"], ["2.0", "2.1"]]


def test_an_episode_that_neither_asks_nor_ends_is_ended() -> None:
    async def run() -> set[int]:
        table = Table()

        async def exchange(requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
            return [{} for _ in requests]

        running = {0: asyncio.create_task(asyncio.sleep(600)), 1: asyncio.create_task(table.request(1, {}))}
        return await table.serve(running, exchange, 0.05)

    assert asyncio.run(run()) == {0}


def test_an_episode_that_resists_its_end_costs_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "GRACE", 0.05)

    async def stubborn() -> None:
        while True:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0.2)

    async def other(table: Table) -> str:
        return str((await table.request(1, {}))["text"])

    async def run() -> tuple[set[int], str]:
        table = Table()

        async def exchange(requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
            return [{"text": "7"} for _ in requests]

        running: dict[int, asyncio.Task[Any]] = {0: asyncio.create_task(stubborn())}
        running[1] = asyncio.create_task(other(table))
        found = await asyncio.wait_for(table.serve(running, exchange, 0.05), 10)
        return found, running[1].result()

    loop = asyncio.new_event_loop()  # `asyncio.run` would wait for the episode
    assert loop.run_until_complete(run()) == ({0}, "7")


# Tokens


def test_one_message_of_a_user_is_encoded_as_a_question_is() -> None:
    for own in (MICRO, policy(chat=False)):
        assert opening_ids(own, [{"role": "user", "content": "1+1="}], []) == own.encode_prompt("1+1=")


def test_what_follows_the_policys_end_token_is_what_the_template_puts_there() -> None:
    text = MICRO.tokenizer.decode(further_ids(MICRO, [{"role": "user", "content": "higher"}]))
    assert text == "<|user|>higher<|assistant|>"


def test_a_template_that_drops_what_the_assistant_said_is_refused() -> None:
    own = policy()
    own.tokenizer.chat_template = "{{ messages[-1]['content'] }}"
    with pytest.raises(InputError, match="drops what the assistant said"):
        further_ids(own, [{"role": "user", "content": "higher"}])


@pytest.mark.parametrize(
    "messages",
    [
        [{"role": "user", "content": "2"}, {"role": "assistant", "content": "x"}, {"role": "user", "content": "3"}],
        [{"role": "user", "content": "1"}, {"role": "assistant", "content": "y"}, {"role": "user", "content": "3"}],
        [{"role": "user", "content": "1"}],
    ],
    ids=["the opening", "what the policy said", "nothing new"],
)
def test_a_conversation_that_does_not_go_on_from_what_was_said_is_refused(messages: list[dict[str, str]]) -> None:
    talk = Conversation(MICRO, 40)
    talk.hear({"messages": [{"role": "user", "content": "1"}], "tools": []})
    talk.speak(Completion((*MICRO.encode_answer("x"),), (-1.0, -1.0), "stop", "x"))
    with pytest.raises(Rewritten, match="changed what was said before"):
        talk.hear({"messages": messages, "tools": []})


def test_a_turn_that_finds_no_room_is_seen_as_far_as_it_went() -> None:
    talk = Conversation(MICRO, 2)
    talk.hear({"messages": [{"role": "user", "content": "1"}], "tools": []})
    reply = talk.speak(Completion(MICRO.encode_answer("123"), (-1.0,) * 4, "stop", "123"))
    assert (reply["text"], reply["finish"]) == ("12", "length")
    assert talk.row.completion(MICRO).finish_reason == "length"


def test_tool_calls_are_read_as_hermes_and_qwen_write_them() -> None:
    call = '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>'
    assert tool_calls(f"so {call}{call}", 3) == (
        "so",
        [{"id": f"call-3-{i}", "name": "add", "arguments": '{"a": 1}'} for i in range(2)],
    )
    deep = f'<tool_call>{{"name": "add", "arguments": {"[" * 100_000}</tool_call>'
    for broken in (deep, "<tool_call>{</tool_call>", '<tool_call>{"arguments": 1}</tool_call>', "<tool_call>"):
        assert tool_calls(broken, 0) == (broken, [])


# Verdicts


def outcome(rewards: dict[str, list[float]], **metrics: float) -> dict[str, Any]:
    return {"rewards": rewards, "metrics": metrics}


def test_the_rubrics_weights_are_kept_and_a_weight_of_nothing_makes_a_metric() -> None:
    score = verdict(outcome({"found": [1.0, 2.0], "early": [0.5, -0.5]}, length=3.0), RUBRIC)
    assert (score.rewards, score.metrics) == ({"accuracy": 2.0, "early": -0.25}, {"length": 3.0})
    score = verdict(outcome({"found": [1.0, 1.0], "early": [0.5, 0.0]}), RUBRIC)
    assert (score.rewards, score.metrics) == ({"accuracy": 1.0}, {"early": 0.5})


@pytest.mark.parametrize(
    "given",
    [
        outcome({"found": [1.0, 1.0]}),
        outcome({"found": [1.5, 1.0], "early": [0.0, 1.0]}),
        outcome({"found": [1.0, 1.0], "early": [float("nan"), 1.0]}),
        outcome({"found": [1.0, -1.0], "early": [0.0, 1.0]}),
        outcome({"found": [1.0, 1.0], "early": [0.0, 1.0]}, length=float("inf")),
    ],
)
def test_figures_that_cannot_be_are_unscorable_and_not_wrong(given: dict[str, Any]) -> None:
    score = verdict(given, RUBRIC)
    assert score.accuracy is None
    assert str(score.unscorable).startswith("error: the rubric gives")


# The process

STUCK = """
import json, sys, time
print(json.dumps({"ready": True}), flush=True)
for line in sys.stdin:
    time.sleep(600)
"""
EMPTY = """
import sys
sys.exit("there is no such environment")
"""


def run_by(tmp_path: Path, code: str, monkeypatch: pytest.MonkeyPatch) -> EnvironmentProcess:
    monkeypatch.setattr(processes, "check_version", lambda *_: "0")
    monkeypatch.setattr(processes, "MARGIN", 1.0)
    (tmp_path / "fake.py").write_text(code)
    source = VerifiersSource.model_validate({**SOURCE, "timeout": 0.1})
    return EnvironmentProcess(source, (sys.executable, "-P", str(tmp_path / "fake.py")))


def test_a_process_that_is_stuck_is_ended_and_its_episodes_are_unscorable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with run_by(tmp_path, STUCK, monkeypatch) as process:
        found = process.play([{}, {}], lambda requests: [])
    assert [one["unscorable"].partition(":")[0] for one in found] == ["timeout", "timeout"]


def test_a_process_that_does_not_start_is_an_error_that_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        run_by(tmp_path, EMPTY, monkeypatch) as process,
        pytest.raises(Exception, match="there is no such environment"),
    ):
        process.tasks(1)


LEAVES_A_SERVER = """
import json, os, signal, subprocess, sys
print(json.dumps({"ready": True}), flush=True)
server = subprocess.Popen(["sleep", "600"], start_new_session=True, stdout=subprocess.DEVNULL)
with open(sys.argv[0] + ".pid", "w") as file:
    file.write(str(server.pid))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_process_that_has_died_had_started_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with run_by(tmp_path, LEAVES_A_SERVER, monkeypatch) as process:
        (found,) = process.play([{}], lambda requests: [])
    assert found["unscorable"].startswith("crash")
    server = int((tmp_path / "fake.py.pid").read_text())
    until = time.monotonic() + 10
    while psutil.pid_exists(server) and psutil.Process(server).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < until
        time.sleep(0.01)


# The policy's side

IMAGE = [{"type": "image_url", "image_url": {"url": "data:,"}}]
EIGHT = Sampling(n=1, max_new_tokens=8, temperature=1.0, seed=0)


class Fixed(Engine):
    """Writes a 7, on a server with few positions."""

    max_positions = 40

    def load_weights(self, weights: Mapping[str, Any]) -> None:
        raise NotImplementedError

    def generate(self, prompts: Sequence[Sequence[int]], sampling: Sampling) -> list[tuple[Completion, ...]]:
        assert prompts and max(map(len, prompts)) + sampling.max_new_tokens <= self.max_positions
        return [(Completion(MICRO.encode_answer("7"), (-1.0,) * 2, "stop", "7"),) * sampling.n for _ in prompts]


def opening(episode: int, content: Any, session: str = "a") -> dict[str, Any]:
    message = {"role": "user", "content": content}
    return {"episode": episode, "session": session, "messages": [message], "tools": []}


def test_an_opening_that_is_more_than_text_is_refused_and_the_others_are_answered() -> None:
    players = Players(MICRO, Fixed(), EIGHT)
    requests = [opening(0, IMAGE), opening(1, "1")]
    assert "refused" in players.answer(requests[:1])[0]
    refused, answered = players.answer(requests)
    assert "refused" in refused and answered["text"] == "7"
    assert players.conversation(0, None) is None and players.conversation(1, "a") is not None
    assert players.refused[0].startswith("refused: a message holds more than text")


class Opens:
    """An environment that opens a task in another way from its third episode on."""

    def __init__(self) -> None:
        self.played = 0

    def wanted(self, prompt: Prompt) -> dict[str, Any]:
        return {}

    def play(self, episodes: Sequence[Any], answer: Answer) -> list[dict[str, Any]]:
        answer([opening(i, "1" if self.played + i < 2 else "22") for i in range(len(episodes))])
        self.played += len(episodes)
        return [
            {"rewards": {"found": (i % 2, 1.0), "early": (0.0, 1.0)}, "metrics": {}} for i, _ in enumerate(episodes)
        ]


def test_in_two_stages_both_have_one_opening() -> None:
    episodes = Episodes(Opens(), RUBRIC, MICRO, Fixed())  # type: ignore[arg-type]
    verifier = {"verifier": {**VERIFIER, "rewards": ["early"]}}
    chosen = RolloutSettings(group_size=4, max_new_tokens=8, two_stage=TwoStage(first=2), dynamic_sampling=None)
    with Scorer(RewardSettings.model_validate(verifier)) as scorer:
        collector = Collector(MICRO, Fixed(), scorer, chosen, episodes)
        (group,) = collector.step(Uniform([replace(prompt(0), source=KIND)], seed=0), 1, 0).trained
    assert [score.unscorable for score in group.scores] == [None, None, OPENING, OPENING]
    assert [completion.sampled for completion in group.completions] == [None, None, (False,), (False,)]


def test_an_agent_that_comes_later_ends_where_there_are_no_more_positions() -> None:
    players = Players(MICRO, Fixed(), EIGHT)
    with pytest.raises(InputError, match="exceed the 40 positions of the model or of its servers"):
        players.answer([opening(0, "1" * 35)])
    players = Players(MICRO, Fixed(), EIGHT)
    players.answer([opening(0, "1"), opening(1, "1")])
    long, full = players.answer([opening(0, "1" * 35, "later"), opening(1, "1" * 60, "later")])
    assert long["text"] == "7" and full == {"full": True}
    late = players.conversation(0, "later")
    assert late is not None and len(late.row.prompt) + late.row.limit == 40


# Settings


@pytest.mark.parametrize(
    ("sections", "said"),
    [
        ({"data": {"source": SOURCE}}, "go together"),
        ({"reward": {"verifier": VERIFIER}}, "go together"),
        (
            {"data": {"source": SOURCE}, "reward": {"verifier": VERIFIER}, "rollout": {"tool": {"kind": "calculator"}}},
            "the environment has its own tools",
        ),
        (
            {"data": {"source": SOURCE}, "reward": {"verifier": VERIFIER}, "audit": {"second": {"kind": "exact"}}},
            "audit.second judges texts",
        ),
        ({"data": {"source": {**SOURCE, "settings": {"taskset": {"id": "x"}}}}}, "taskset.id is what `target` names"),
        ({"reward": {"verifier": {**VERIFIER, "rewards": ["found"]}}}, "a reward is named twice"),
    ],
)
def test_what_does_not_go_with_an_environment_is_refused(sections: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        settings(**sections)
