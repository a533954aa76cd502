"""Right when the tests of the reference answer hold of the completion's code."""

from __future__ import annotations

import ast
import secrets
from typing import Any

from components.rewards.base import Judgement, JudgingVerifier, Refused
from components.rewards.code.blocks import code_block
from components.rewards.code.child import Limits
from components.rewards.code.hacks import exploits
from components.rewards.code.template import Template
from components.rewards.code.tests import Tests, read_tests
from components.types import Prompt

VALUE_CHARS = 100_000
"""A longer value equals nothing."""


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
        if self.marker:
            _, found, text = text.rpartition(self.marker)
            if not found:
                return None
        source = code_block(text)
        if source is None and self.marker:
            source = text
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
