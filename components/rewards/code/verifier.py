"""Right when the tests of the reference answer hold of the completion's code."""

from __future__ import annotations

import ast
import re
import secrets
from typing import Any, NamedTuple

from components.rewards.base import Judgement, JudgingVerifier, Refused, final_answer
from components.rewards.code.child import Limits
from components.rewards.code.template import Template
from components.rewards.code.tests import Tests, exploits, read_tests
from components.types import Prompt

PYTHON = {"python", "python3", "py", "py3"}
_LINE_END = re.compile(r"\r\n|\n|\r")
_OPENING = re.compile(r"([ \t]*)(`{3,}|~{3,})([^`]*)")
_OPENING_AFTER_WORDS = re.compile(r"().*?(?<!`)(`{3,}+)[ \t]*((?:python|py)3?\b[^`]*)", re.IGNORECASE)
_WORD = re.compile(r"[\s{.]*([\w+-]*)")
VALUE_CHARS = 100_000
"""A longer value equals nothing."""


class Block(NamedTuple):
    """``language`` is the first word after the opening fence, in small letters; empty where none is."""

    language: str
    code: str


def blocks(text: str) -> list[Block]:
    """Fenced blocks in order, read line by line (https://spec.commonmark.org, 4.5). A fence is closed by one of its
    kind that is as long or longer and has nothing after it; one that is never closed reaches to the end. Code that is
    indented like its fence is moved to the left.
    """
    found: list[Block] = []
    lines = iter(_LINE_END.split(text))
    for line in lines:
        opening = _OPENING.fullmatch(line) or _OPENING_AFTER_WORDS.fullmatch(line)
        if opening is None:
            continue
        indentation, fence, info = opening.groups()
        body = []
        for inner in lines:
            if _closes(inner.strip(" \t"), fence):
                break
            body.append(inner)
        else:
            body = _without_trailing(fence, body)
        word = _WORD.match(info)
        found.append(Block(word[1].lower() if word else "", "\n".join(_moved_left(len(indentation), body))))
    return found


def _closes(line: str, fence: str) -> bool:
    return len(line) >= len(fence) and not line.strip(fence[0])


def _moved_left(columns: int, body: list[str]) -> list[str]:
    """Without the opening's indentation, where all of the lines have it: the words before it may be cut off."""
    common = min((len(line) - len(line.lstrip(" \t")) for line in body if line.strip()), default=0)
    return [line[min(columns, common) :] for line in body]


def _without_trailing(fence: str, body: list[str]) -> list[str]:
    """A fence behind the last line of code, at the very end of the text, closes the block too."""
    text = "\n".join(body).rstrip()
    return text.removesuffix(fence).split("\n") if text.endswith(fence) else body


def code_block(text: str) -> str | None:
    """The last block that says it is Python, or else the last that does not say what it is."""
    found = blocks(text)
    python = [block.code for block in found if block.language in PYTHON]
    unnamed = [block.code for block in found if not block.language]
    return python[-1] if python else unnamed[-1] if unnamed else None


class CodeVerifier(JudgingVerifier):
    """The accuracy is 1 where every test holds; with ``score`` share it is the share of those that do.

    The code is the last fenced block that says it is Python, or else the last that does not say what it is; of what
    follows the last ``marker``, where there is a marker, and all of that where it has no such block. Code that runs out
    of time or memory, or ends its process, fails the tests that come after: it is wrong, not unscorable.

    Metrics: ``tests_passed``, a share.
    """

    def __init__(self, marker: str | None, score: str, seconds: float, memory_mb: int, max_chars: int) -> None:
        self.marker, self._score, self._max_chars = marker, score, max_chars
        self._limits = Limits(seconds, memory_mb)
        self._template: Template | None = None

    def prepare(self) -> None:
        self._template = Template(self._limits)

    def judge(self, prompt: Prompt, text: str) -> Judgement:
        """Raises Refused when the reference holds no tests: nothing could be right then."""
        try:
            reference = read_tests(prompt.answer)
        except ValueError as error:
            raise Refused(str(error)) from error
        source = self._code(text)
        passed = 0.0 if source is None else self._passed(source, reference) / len(reference.tests)
        return Judgement(passed if self._score == "share" else float(passed == 1), metrics={"tests_passed": passed})

    def wrap(self, answer: str) -> str:
        return f"{self.marker or ''}\n```python\n{answer}\n```\n"

    def hacks(self, prompt: Prompt) -> dict[str, str]:
        return {name: self.wrap(source) for name, source in exploits(prompt.answer).items()}

    def _code(self, text: str) -> str | None:
        answer = final_answer(text, self.marker)
        if answer is None:
            return None
        source = code_block(answer)
        if source is None and self.marker:
            source = answer
        return None if source is None or len(source) > self._max_chars or not source.strip() else source

    def _passed(self, source: str, reference: Tests) -> int:
        if self._template is None:
            self.prepare()
        assert self._template is not None
        secret = secrets.token_hex(16)
        expressions = [test.expression for test in reference.tests]
        try:
            lines = self._template.run(source, [secret, reference.setup, *expressions])
        except (OSError, RuntimeError):
            self._template.close()
            self._template = None  # the next item starts another
            raise
        values = dict(read for line in lines if (read := _value(line, secret)) is not None)
        return sum(
            number in values and bool(values[number] == test.wanted) for number, test in enumerate(reference.tests)
        )


def _value(line: str, secret: str) -> tuple[int, Any] | None:
    """Number and value of a line that a child reported, or None for what is no such line."""
    said, _, rest = line.partition(" ")
    number, _, value = rest.partition(" ")
    if not secrets.compare_digest(said.encode(), secret.encode()) or len(value) > VALUE_CHARS:
        return None
    try:
        return int(number), ast.literal_eval(value)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return None
