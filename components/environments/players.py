"""The policy's side of all episodes that are played at one time.

A conversation is token ids: what the policy has sampled stays as it is, and only what others wrote is encoded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from jinja2 import TemplateError

from components.errors import InputError
from components.policy import Policy
from components.rollout.base import Engine, Sampling
from components.rollout.turns import Row, batches, longest
from components.seeds import derive
from components.types import Completion

Message = dict[str, Any]
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
    return policy.encode_text(_rendered(policy, given, tools))


def further_ids(policy: Policy, messages: Sequence[Message]) -> tuple[int, ...]:
    """What stands between the end token of the policy's message and its next one: other messages.

    A chat template is rendered with and around them; without one they stand in lines of their own.
    """
    if not policy.chat:
        return policy.encode_text("".join(f"\n{text_of(message)}" for message in messages) + "\n")
    before = [{"role": "user", "content": "?"}, {"role": "assistant", "content": MARK}]
    rendered = _rendered(policy, [*before, *messages], ())
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


def _rendered(policy: Policy, messages: Sequence[Message], tools: Sequence[Message]) -> str:
    plain = [{**message, "content": text_of(message)} for message in messages]
    try:
        return str(
            policy.tokenizer.apply_chat_template(
                plain, tools=list(tools) or None, add_generation_prompt=True, tokenize=False
            )
        )
    except RENDERING as error:
        raise InputError(
            f"the chat template cannot render a conversation: {type(error).__name__}: {error}",
            where=f"the roles {', '.join(str(message['role']) for message in messages)}",
            how="use a policy whose template knows them, or set policy.chat to false for plain text",
        ) from error


@dataclass
class Conversation:
    """One agent of one episode: its tokens, and every message so far, the policy's own included."""

    policy: Policy
    limit: int
    row: Row = field(init=False)
    said: list[Message] = field(default_factory=list)
    tools: list[Message] = field(default_factory=list)
    turns: int = 0

    def hear(self, request: Mapping[str, Any]) -> Row:
        """Take in what was said since the policy wrote.

        Raises:
            Rewritten: the request leaves out or changes what was said before, or offers other tools.
        """
        messages, tools, known = list(request["messages"]), list(request["tools"]), len(self.said)
        if not known:
            self.row, self.tools = Row(opening_ids(self.policy, messages, tools), self.limit), tools
        elif len(messages) <= known or [*map(essence, messages[:known])] != [*map(essence, self.said)]:
            raise Rewritten("the environment changed what was said before, and one completion cannot be both")
        elif tools != self.tools:
            raise Rewritten("the environment changed the tools that it offers")
        elif self.row.room:
            ids = further_ids(self.policy, messages[known:])
            self.row.write(ids, [0.0] * len(ids), sampled=False)
        self.said = messages
        return self.row

    def speak(self, turn: Completion) -> Message:
        """Add what the policy wrote; returns what the environment gets to see of it."""
        read, room = len(self.row.prompt) + len(self.row.ids), self.row.room
        ended = self.row.take(turn)
        if ended:
            self.row.finish = turn.finish_reason
        fits = len(turn.token_ids) <= room
        text, calls = tool_calls(turn.text if fits else self.policy.decode(turn.token_ids[:room]), self.turns)
        self.said.append({"role": "assistant", "content": text, "tool_calls": [{"function": call} for call in calls]})
        self.turns += 1
        written = len(self.row.prompt) + len(self.row.ids) - read
        finish = ("tool_calls" if calls else "stop") if ended else "length"
        return {"text": text, "calls": calls if ended else [], "finish": finish, "tokens": [read, written]}


class Players:
    """Answers the requests of episodes, all that wait at one time; ``sampling.n`` episodes in a row are a group."""

    def __init__(self, policy: Policy, engine: Engine, sampling: Sampling) -> None:
        self._policy, self._engine, self._sampling = policy, engine, sampling
        self._conversations: dict[tuple[int, str], Conversation] = {}
        self.refused: dict[int, str] = {}
        """Why an episode cannot be trained on, by its number."""
        self._exchanges = 0

    def conversation(self, episode: int, session: str | None) -> Conversation | None:
        """That of one agent; of the episode's first agent where none is named."""
        own = [
            one for (number, name), one in self._conversations.items() if number == episode and session in (None, name)
        ]
        return own[0] if own else None

    def answer(self, requests: Sequence[Message]) -> list[Message]:
        """One answer per request, in order."""
        replies: list[Message] = [{} for _ in requests]
        going: list[tuple[int, Conversation]] = []
        for place, one in enumerate(requests):
            key = one["episode"], one["session"]
            own = self._conversations.setdefault(key, Conversation(self._policy, self._sampling.max_new_tokens))
            try:
                row = own.hear(one)
            except Rewritten as error:
                self.refused[one["episode"]] = f"refused: {error}"
                if not own.said:  # it has no tokens
                    del self._conversations[key]
                replies[place] = {"refused": str(error)}
                continue
            self._fit(row)
            if row.room:
                going.append((place, own))
            else:
                row.finish = "length"
                replies[place] = {"full": True}
        turns = self._turns([own.row for _, own in going])
        for (place, own), turn in zip(going, turns, strict=True):
            replies[place] = own.speak(turn)
        self._exchanges += 1
        return replies

    def _turns(self, rows: Sequence[Row]) -> list[Completion]:
        """What the policy writes next in every row."""
        if not rows:
            return []
        n = self._sampling.n
        groups = [rows[i : i + n] for i in range(0, len(rows), n)]
        fresh = not self._exchanges and all(not row.ids for row in rows)
        if fresh and all(len(group) == n and len({row.prompt for row in group}) == 1 for group in groups):
            first = self._engine.generate([group[0].prompt for group in groups], self._sampling)
            return [completion for group in first for completion in group]
        written: dict[int, Completion] = {}
        for part, batch in enumerate(batches(rows, longest(self._policy, self._engine))):
            seed = derive(self._sampling.seed, "turn", self._exchanges, part)
            once = replace(self._sampling, n=1, max_new_tokens=batch[0].room, seed=seed)
            made = self._engine.generate([(*row.prompt, *row.ids) for row in batch], once)
            written |= {id(row): turn for row, (turn,) in zip(batch, made, strict=True)}
        return [written[id(row)] for row in rows]

    def _fit(self, row: Row) -> None:
        """Lower the limit of a row to the positions that there are for it.

        Raises:
            InputError: they are too few for one of the first openings.
        """
        positions = longest(self._policy, self._engine)
        if positions is None or len(row.prompt) + row.limit <= positions:
            return
        if not self._exchanges:
            raise InputError(
                f"an opening of {len(row.prompt)} tokens and {row.limit} further ones exceed the {positions} positions "
                "of the model or of its servers",
                where="rollout.max_new_tokens",
                how="lower it, use a shorter opening, or a longer model",
            )
        row.limit = max(len(row.ids), positions - len(row.prompt))
