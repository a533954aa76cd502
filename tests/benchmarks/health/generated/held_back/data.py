"""Labels and questions that were damaged on their way into the split."""

from __future__ import annotations

from dataclasses import replace

from components.types import Prompt
from tests.benchmarks.health.generated.data import Altered
from tests.benchmarks.health.generated.held_back.base import HeldBack

Others = tuple[Prompt, ...]
MARKER = "#"
FULL_WIDTH = str.maketrans("0123456789", "０１２３４５６７８９")


class Rewritten(HeldBack, Altered):
    """Some of the prompts that are drawn are rewritten, each by itself."""

    sizes = (0.2, 0.5, 1.0)


class Decimals(Rewritten):
    """Labels went through a column of floats: 12 became 12.0."""

    def altered(self, prompt: Prompt, others: Others) -> Prompt:
        return replace(prompt, answer=f"{prompt.answer}.0")


class NarrowColumn(Rewritten):
    """Labels lost their last character, where they have more than one."""

    def altered(self, prompt: Prompt, others: Others) -> Prompt:
        return replace(prompt, answer=prompt.answer[: max(1, len(prompt.answer) - 1)])


class TeachersAnswers(Rewritten):
    """Labels are what the teacher of the demonstrations wrote, errors included."""

    def altered(self, prompt: Prompt, others: Others) -> Prompt:
        answer = prompt.demonstration.rpartition(MARKER)[2].strip()
        return replace(prompt, answer=answer or prompt.answer)


class Leaked(Rewritten):
    """The answer stands in the question."""

    def altered(self, prompt: Prompt, others: Others) -> Prompt:
        return replace(prompt, text=f"{prompt.text}{prompt.answer}{MARKER}")


class Unnormalised(Rewritten):
    """Digits of the question are full-width characters."""

    def altered(self, prompt: Prompt, others: Others) -> Prompt:
        return replace(prompt, text=prompt.text.translate(FULL_WIDTH))


class TwiceTemplated(Rewritten):
    """The question holds the marks of another template."""

    def altered(self, prompt: Prompt, others: Others) -> Prompt:
        return replace(prompt, text=f"<user>{prompt.text}</user>")


class OffByOne(Rewritten):
    """Whole numbers among the labels are one too high, as of a counter that began at another place."""

    def altered(self, prompt: Prompt, others: Others) -> Prompt:
        digits = prompt.answer.removeprefix("-").isdecimal()
        return replace(prompt, answer=str(int(prompt.answer) + 1) if digits else prompt.answer)


DATA = (Decimals, NarrowColumn, TeachersAnswers, Leaked, Unnormalised, TwiceTemplated, OffByOne)
