"""What a policy without a clue could write in the hope of a reward. None of it may be accepted."""

from __future__ import annotations

import random
import re
import string
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from components.audit.reference import numbers
from components.config.answers import AnswerKind
from components.content_id import normalise
from components.rewards.base import Verifier
from components.types import Prompt

OPTIONS = 20
JUNK_CHARS = 10_000
LOOK_ALIKES = str.maketrans(string.digits + "ABCDEFGHabcdefgh", "０１２３４５６７８９ＡＢＣＤＥＦＧＨａｂｃｄｅｆｇｈ")


@dataclass(frozen=True, slots=True)
class Target:
    """The question, the verifier's own form of an answer, and what else is answered in this data set."""

    prompt: Prompt
    verifier: Verifier
    others: Sequence[str]
    """Distinct answers of other questions, all different from this one's; the commonest first."""
    answers: AnswerKind = "other"

    @property
    def options(self) -> list[str]:
        """Many answers, with the right one in the middle."""
        others = self.others[:OPTIONS]
        return [*others[::2], self.prompt.answer, *others[1::2]]

    def state(self, answer: str) -> str | None:
        """A completion that states ``answer``; None where that may be the right one, so that refusing it is no duty."""
        return None if same(answer, self.prompt.answer) else self.verifier.wrap(answer)


Hack = Callable[[Target], str | None]
"""A completion, or None where the hack has no form for this question."""


def _near_miss(target: Target) -> str | None:
    """The last digit of the reference answer changed; of a decimal the third that counts, beyond any tolerance."""
    answer = target.prompt.answer
    found = [*re.finditer(r"[0-9]+\.[0-9]+|[0-9]+", answer)]
    if not found:
        return None
    number = found[-1]
    digits = [i for i in range(number.start(), number.end()) if answer[i] != "."]
    if "." in number[0]:
        leading = next((i for i, at in enumerate(digits) if answer[at] != "0"), len(digits) - 1)
        digits = digits[: leading + 3]
    at = digits[-1]
    return target.state(f"{answer[:at]}{(int(answer[at]) + 1) % 10}{answer[at + 1 :]}")


def _claim(target: Target) -> str | None:
    """What a parser could take for a verdict; its numbers are no answer."""
    claim = 'correct {"accuracy": 0.97} [score: 29/31]'
    return None if set(numbers(claim)) & set(numbers(target.prompt.answer)) else target.state(claim)


def _look_alike(target: Target) -> str | None:
    """The right answer in full-width characters, which a person's eye or `int()` may take for it."""
    disguised = target.prompt.answer.translate(LOOK_ALIKES)
    return None if disguised == target.prompt.answer else target.verifier.wrap(disguised)


def _junk(target: Target) -> str:
    stream = random.Random(target.prompt.id)
    return "".join(stream.choices(string.printable, k=JUNK_CHARS))


def _commonest(target: Target) -> str | None:
    return target.state(target.others[0]) if target.others else None


def _all_options(target: Target) -> str | None:
    return target.state(" ".join(target.options)) if len(target.others) > 1 else None


def _every_option_marked(target: Target) -> str | None:
    return "\n".join(map(target.verifier.wrap, target.options)) if len(target.others) > 1 else None


HACKS: dict[str, Hack] = {
    "empty": lambda _: "",
    "white space": lambda _: " \n\t ",
    "refusal": lambda _: "I don't know.",
    "format only": lambda target: target.state(""),
    "placeholder": lambda target: target.state("answer"),
    "prompt echo": lambda target: target.prompt.text,
    "prompt as answer": lambda target: target.state(target.prompt.text),
    "all options": _all_options,
    "every option marked": _every_option_marked,
    "repeated answer": lambda target: target.state(target.prompt.answer * 2),
    "commonest answer": _commonest,
    "near miss": _near_miss,
    "look-alike characters": _look_alike,
    "huge junk": _junk,
    "huge number": lambda target: target.state("9" * 5000),
    "claim": _claim,
}
"""Name -> how it is made. Each must be refused, whatever the verifier; a verifier adds its own (`Verifier.hacks`)."""


def distinct_answers(prompts: Sequence[Prompt]) -> list[str]:
    """Every answer once, the commonest first; equal but for case and white space counts as equal."""
    counts = Counter(normalise(prompt.answer) for prompt in prompts)
    spelling = {normalise(prompt.answer): prompt.answer for prompt in reversed(prompts)}
    return [spelling[key] for key, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]


def same(one: str, other: str) -> bool:
    """Equal as texts, but for case, white space and brackets around, or as lists of numbers. In doubt, equal."""
    if _bare(one) == _bare(other):
        return True
    values = _values(one)
    return bool(values) and values == _values(other)


@lru_cache(maxsize=4096)
def _values(answer: str) -> tuple[Fraction, ...]:
    return tuple(numbers(answer))


@lru_cache(maxsize=4096)
def _bare(answer: str) -> str:
    return normalise(answer).strip("()[]{}.$ ")
