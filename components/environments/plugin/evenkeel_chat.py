"""A harness of the library `verifiers` that runs in the environment's own process.

The library's harnesses are programs, each of which a runtime installs and starts once an episode. The loop here is that
of its chat program, without a process: call the model, then the tools that it calls, until it calls none. The
library finds a harness by the name of a top-level module, so this folder is put on the path of that process.
"""

from __future__ import annotations

import json
from contextlib import AsyncExitStack
from typing import Any

import httpx
from verifiers.v1.clients import ModelContext
from verifiers.v1.configs.harness import HarnessConfig
from verifiers.v1.dialects.chat import message_to_wire
from verifiers.v1.harness import Harness
from verifiers.v1.harnesses.utils.mcp import call_mcp, connect_mcp
from verifiers.v1.runtimes import ProgramResult, Runtime
from verifiers.v1.task import TaskData
from verifiers.v1.trace import Trace
from verifiers.v1.types import Messages

__all__ = ["ChatHarness"]

DONE = ProgramResult(0, "", "")
NO_ROOM = 400
"""Status of a call that finds no room for another token: the segment ends there, and what there is is judged."""


class ChatConfig(HarnessConfig):
    """Nothing but what every harness has."""


class ChatHarness(Harness[ChatConfig]):
    """Model and tools take turns; a message without calls ends the segment."""

    APPENDS_SYSTEM_PROMPT = True
    SUPPORTS_MCP = True
    SUPPORTS_RESUME = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(
        self,
        ctx: ModelContext,
        trace: Trace,
        runtime: Runtime,
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],
        data: TaskData,
    ) -> ProgramResult:
        servers = {name: {"url": url, "timeout": self.config.tool_timeout} for name, url in mcp_urls.items()}
        async with AsyncExitStack() as stack:
            schemas, dispatch, connections = await connect_mcp({"mcpServers": servers}, stack)
            # Plain HTTP on the loopback interface; loading certificates would take longer than the rest of a turn.
            client = await stack.enter_async_context(httpx.AsyncClient(timeout=None, trust_env=False, verify=False))
            body: dict[str, Any] = {"model": ctx.model, "messages": opening(*self.resolve_prompt(data))}
            if schemas:
                body["tools"] = schemas
            while True:
                reply = await client.post(
                    f"{endpoint}/chat/completions", json=body, headers={"Authorization": f"Bearer {secret}"}
                )
                if reply.status_code == NO_ROOM:
                    return DONE
                if reply.is_error:
                    return ProgramResult(1, "", f"the model answered {reply.status_code}: {reply.text}")
                message = reply.json()["choices"][0]["message"]
                body["messages"].append(message)
                if not message.get("tool_calls"):
                    return DONE
                for call in message["tool_calls"]:
                    content = await called(call["function"], dispatch, connections)
                    body["messages"].append({"role": "tool", "tool_call_id": call["id"], "content": content})


def opening(system: str | None, prompt: str | Messages | None) -> list[dict[str, Any]]:
    """The messages that a segment begins with."""
    first = [{"role": "system", "content": system}] if system else []
    if isinstance(prompt, str):
        return [*first, {"role": "user", "content": prompt}]
    return [*first, *(message_to_wire(message) for message in prompt or [])]


async def called(function: dict[str, str], dispatch: dict[str, Any], connections: dict[str, Any]) -> Any:
    """What a tool answers. A call that makes no sense is answered, too; a tool server that is gone is an error."""
    name = function["name"]
    if name not in dispatch:
        return f"error: there is no tool {name!r}"
    try:
        arguments = json.loads(function["arguments"])
    except (ValueError, RecursionError) as error:
        return f"error: the arguments are not JSON: {error}"
    if not isinstance(arguments, dict):
        return "error: the arguments are no JSON object"
    return await call_mcp(connections, dispatch, name, arguments)
