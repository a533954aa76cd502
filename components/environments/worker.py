"""The environment's own process: the only one that imports the library `verifiers` and the environment's code.

Reads and writes JSON lines. The library drives every episode; its calls of the model reach an OpenAI endpoint on
the loopback interface of this process, and from there, a line for all episodes that wait, the process with the policy.
Standard output belongs to the protocol: what an environment prints goes nowhere.
"""

from __future__ import annotations

import asyncio
import importlib
import itertools
import json
import os
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import verifiers.v1 as vf
from aiohttp import web
from verifiers.v1.clients.client import SESSION_ID_HEADER
from verifiers.v1.configs.agent import agent_config_fields

from components.environments.table import Table

Message = dict[str, Any]
ALIAS = "evenkeel_environment"
"""The library takes names of top-level modules only; this one stands for the module that the settings name."""
MODEL = "policy"
TOKEN_LIMIT = "This model's maximum context length is reached"
REASON_CHARS = 300


def config_of(source: Mapping[str, Any]) -> vf.EnvConfig:
    """The library's configuration of the environment: its arguments, and what has to be said for every one."""
    sys.modules[ALIAS] = importlib.import_module(source["target"])
    raw: Message = dict(source["settings"])
    raw["taskset"] = {**raw.get("taskset", {}), "id": ALIAS}
    roles = agent_config_fields(vf.resolve_env_config(raw))
    for name, role in roles.items():
        given = dict(raw.get(name, {}))
        own = role.harness
        if "harness" not in given and (own is None or own.id == "null"):  # ours does the same, without a download
            given["harness"] = {**(own.model_dump(exclude_unset=True) if own else {}), "id": "evenkeel_chat"}
        given.setdefault("runtime", {"type": "subprocess"})
        given.setdefault("max_turns", role.max_turns or source["max_turns"])
        raw[name] = given
    return vf.resolve_env_config(raw)


class Server:
    """The environment, its tasks and the endpoint that its agents take for the model's."""

    def __init__(self, source: Mapping[str, Any]) -> None:
        self._timeout = float(source["timeout"])
        self._env = vf.load_environment(config_of(source))
        self._stream: Iterator[vf.Task] = iter(self._env.taskset)
        self._tasks: list[vf.Task] = []
        self._table = Table()
        self._episodes: dict[str, int] = {}

    async def open(self, stack: AsyncExitStack) -> None:
        """Start the endpoint and what the environment shares between episodes."""
        application = web.Application(client_max_size=2**30)
        application.router.add_post("/v1/chat/completions", self._answer)
        runner = web.AppRunner(application, access_log=None)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        timeout = {"read": None, "connect": None, "write": None, "pool": None}
        client = vf.EvalClientConfig(base_url=url, api_key_var="EVENKEEL_NO_KEY", timeout=timeout)
        self._context = vf.ModelContext(model=MODEL, client=client)
        await stack.enter_async_context(self._env.serving())

    def tasks(self, rows: int) -> list[Message]:
        """The first ``rows`` tasks, or all there are, as the records of prompts need them."""
        self._reach(rows)
        return [described(task) for task in self._tasks[:rows]]

    def _reach(self, rows: int) -> None:
        self._tasks += itertools.islice(self._stream, max(0, rows - len(self._tasks)))

    async def play(
        self, wanted: Sequence[Message], exchange: Callable[[list[Message]], Awaitable[list[Message]]]
    ) -> list[Message]:
        """One outcome per episode, in order. ``exchange`` has the policy answer all requests of one time."""
        self._episodes.clear()
        running = {number: asyncio.create_task(self._episode(number, one)) for number, one in enumerate(wanted)}
        late = await self._table.serve(running, exchange, self._timeout)
        outcomes = []
        for number, task in running.items():
            if number in late:
                reason = f"timeout: the environment did not go on within {self._timeout:g} s"
                outcomes.append({"unscorable": reason})
            elif (error := task.exception()) is not None:
                outcomes.append({"unscorable": f"error: {type(error).__name__}: {error}"[:REASON_CHARS]})
            else:
                outcomes.append(task.result())
        return outcomes

    async def _episode(self, number: int, wanted: Message) -> Message:
        self._reach(wanted["task"] + 1)
        task = self._tasks[wanted["task"]] if wanted["task"] < len(self._tasks) else None
        if task is None or task.hash != wanted["hash"]:
            raise LookupError(f"task {wanted['task']} of the environment is not the one that the data stage has read")

        def begun(trace: vf.Trace) -> None:
            self._episodes[trace.id] = number

        (slot,) = self._env.slots(task)
        return outcome(await self._env.run_slot(slot, self._context, on_trace=begun))

    async def _answer(self, request: web.Request) -> web.Response:
        """A model call of an agent: wait until the policy has answered it."""
        session, body = request.headers[SESSION_ID_HEADER], await request.json()
        message = {"session": session, "messages": body["messages"], "tools": body.get("tools") or []}
        reply = await self._table.request(self._episodes[session], message)
        if reply.get("full"):
            return web.json_response({"error": {"message": TOKEN_LIMIT}}, status=400)
        if "refused" in reply:
            return web.json_response({"error": {"message": reply["refused"]}}, status=422)
        return web.json_response(completion(reply))


def described(task: vf.Task) -> Message:
    """A task as the record of its prompt has it."""
    data = task.data
    given = {name: getattr(data, name, None) for name in ("answer", "solution")}
    texts = {name: value if isinstance(value, str) else "" for name, value in given.items()}
    opening = "\n\n".join(text for text in (data.system_prompt, data.prompt_text) if text)
    return {"opening": opening, "name": data.name or "", "hash": task.hash, **texts, "rewards": rewards_of(task)}


def rewards_of(task: vf.Task) -> list[str]:
    """Names of the rewards that the task declares; those that give several under names of their own are among them."""
    return [fn.__name__ for fn in task.hooks("reward")] + [judge.reward_name for judge in task.plugged_judges()]


def outcome(episode: vf.Episode) -> Message:
    """What one episode came to: rewards with their weights, and metrics; or the reason why it has none."""
    late = next((one.stop_condition for one in episode.traces if one.is_timeout), None)
    if episode.is_timeout or late:
        return {"unscorable": f"timeout: the environment stopped with {late or 'its own time-out'}"}
    if not episode.ok:
        errors = [*episode.errors, *(error for one in episode.traces for error in one.errors)]
        reason = f"{errors[-1].type}: {errors[-1].message}" if errors else "the environment gives no reason"
        return {"unscorable": f"error: {reason}"[:REASON_CHARS]}
    trained = [trace for trace in episode.traces if trace.agent.trainable]
    if len(trained) != 1:
        return {"unscorable": f"refused: {len(trained)} agents of the episode are to be trained, and one can be"}
    (trace,) = trained
    return {
        "session": trace.id,
        "rewards": {name: [one.score, one.weight] for name, one in trace.rewards.items() if one is not None},
        "metrics": {name: value for name, value in trace.metrics.items() if value is not None},
        "stop": trace.stop_condition or "",
    }


def completion(reply: Message) -> Message:
    """An answer of the policy in the form of OpenAI's chat completions."""
    message: Message = {"role": "assistant", "content": reply["text"]}
    if reply["calls"]:
        message["tool_calls"] = [
            {"id": call["id"], "type": "function", "function": {"name": call["name"], "arguments": call["arguments"]}}
            for call in reply["calls"]
        ]
    read, written = reply["tokens"]
    return {
        "id": "policy",
        "object": "chat.completion",
        "created": 0,
        "model": MODEL,
        "choices": [{"index": 0, "message": message, "finish_reason": reply["finish"]}],
        "usage": {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written},
    }


async def serve(source: Mapping[str, Any], lines: asyncio.StreamReader, send: Callable[[Message], None]) -> None:
    """Answer requests until the parent closes the pipe."""

    async def exchange(requests: list[Message]) -> list[Message]:
        send({"requests": requests})
        answers: list[Message] = json.loads(await lines.readline())
        return answers

    async with AsyncExitStack() as stack:
        server = Server(source)
        await server.open(stack)
        send({"ready": True})
        while line := await lines.readline():
            request = json.loads(line)
            if "rows" in request:
                send({"tasks": server.tasks(request["rows"])})
            else:
                send({"outcomes": await server.play(request["play"], exchange)})


async def main() -> None:
    """Keep the pipes, hide them from the environment, and serve."""
    replies, requests = os.dup(1), os.dup(0)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    lines = asyncio.StreamReader(limit=2**30)
    pipe = os.fdopen(requests, "rb")
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), pipe)
    hello = json.loads(await lines.readline())
    sys.path[:0] = [str(Path(__file__).with_name("plugin")), hello["folder"]]
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)  # tool servers are processes of their own

    def send(message: Message) -> None:
        data = json.dumps(message).encode() + b"\n"
        while data:
            data = data[os.write(replies, data) :]

    await serve(hello["source"], lines, send)


if __name__ == "__main__":
    asyncio.run(main())
