"""A conversation as token ids: what the policy has sampled stays as it is, and only what others wrote is encoded."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from jinja2 import TemplateError

from components.errors import InputError
from components.policy import Policy

Message = Mapping[str, Any]
MARK = "\u2063policy\u2063"
"""Stands for what the policy wrote while a template is rendered; no template changes it."""
CALL = re.compile(r"<tool_call>\s*(\{.*?\})\s*</tool_call>", re.DOTALL)
"""How models of the Hermes and Qwen families call a tool (https://github.com/NousResearch/Hermes-Function-Calling)."""
RENDERING = (TemplateError, ArithmeticError, TypeError, ValueError, LookupError, RuntimeError)


class Rewritten(Exception):
    """A request does not go on from the conversation so far."""


def opening_ids(policy: Policy, messages: Sequence[Message], tools: Sequence[Message]) -> tuple[int, ...]:
    """The first request of a conversation, ready for the policy to write.

    One message of a user and no tools are encoded as `Policy.encode_prompt` encodes a question.
    """
    if not policy.chat:
        return policy.encode_prompt("\n".join(text_of(message) for message in messages))
    given = _instructed(messages, policy.instruction)
    return policy.encode_text(_rendered(policy, given, tools, generate=True))


def further_ids(policy: Policy, messages: Sequence[Message]) -> tuple[int, ...]:
    """What stands between the end token of the policy's message and its next one: other messages.

    A chat template is rendered with and around them; without one they stand in lines of their own.
    """
    if not policy.chat:
        return policy.encode_text("".join(f"\n{text_of(message)}" for message in messages) + "\n")
    before = [{"role": "user", "content": "?"}, {"role": "assistant", "content": MARK}]
    rendered = _rendered(policy, [*before, *messages], (), generate=True)
    _, found, rest = rendered.rpartition(MARK)
    if not found:
        raise InputError(
            "the chat template drops what the assistant said, so no conversation can go on",
            where="the chat template of the policy",
            how="use a policy whose template keeps earlier turns",
        )
    return policy.encode_text(rest.removeprefix(str(policy.tokenizer.eos_token)))


def tool_calls(text: str, number: int) -> tuple[str, list[dict[str, str]]]:
    """What the policy says besides, and its calls with an id of this message's ``number``; malformed ones are text."""
    calls: list[dict[str, str]] = []
    for match in CALL.finditer(text):
        try:
            call = json.loads(match[1])
            name, arguments = str(call["name"]), json.dumps(call.get("arguments", {}))
        except (ValueError, KeyError, TypeError, RecursionError):
            return text, []
        calls.append({"id": f"call-{number}-{len(calls)}", "name": name, "arguments": arguments})
    return (CALL.sub("", text).strip() if calls else text), calls


def text_of(message: Message) -> str:
    """The text of a message; parts that are no text are refused.

    Raises:
        Rewritten: it holds an image.
    """
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    if any(part.get("type") != "text" for part in content):
        raise Rewritten("a message holds more than text")
    return "\n".join(str(part["text"]) for part in content)


def essence(message: Message) -> tuple[Any, ...]:
    """What of a message is said, whichever way it is written down."""
    calls = [call["function"] for call in message.get("tool_calls") or []]
    named = [(call["name"], call["arguments"]) for call in calls]
    return message["role"], text_of(message), message.get("tool_call_id"), named


def _instructed(messages: Sequence[Message], instruction: str) -> list[Message]:
    """The messages with the policy's instruction before the first one of a user."""
    given = [{**message, "content": text_of(message)} for message in messages]
    first = next((message for message in given if message["role"] == "user"), None)
    if first is not None:
        first["content"] = instruction + first["content"]
    return list(given)


def _rendered(policy: Policy, messages: Sequence[Message], tools: Sequence[Message], *, generate: bool) -> str:
    plain = [{**message, "content": text_of(message)} for message in messages]
    try:
        return str(
            policy.tokenizer.apply_chat_template(
                plain, tools=list(tools) or None, add_generation_prompt=generate, tokenize=False
            )
        )
    except RENDERING as error:
        raise InputError(
            f"the chat template cannot render a conversation: {type(error).__name__}: {error}",
            where=f"the roles {', '.join(str(message['role']) for message in messages)}",
            how="use a policy whose template knows them, or set policy.chat to false for plain text",
        ) from error
