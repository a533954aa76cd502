"""What a policy without a clue could write in the hope of a reward. None of it may be accepted."""

from __future__ import annotations

import random
import re
import string
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from components.rewards.base import Verifier
from components.tasks.identity import normalise
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

    @property
    def options(self) -> list[str]:
        """Many answers, with the right one in the middle."""
        others = self.others[:OPTIONS]
        return [*others[::2], self.prompt.answer, *others[1::2]]


Hack = Callable[[Target], str | None]
"""A completion, or None where the hack has no form for this question."""


def _near_miss(target: Target) -> str | None:
    """The reference answer with its last digit changed."""
    digits = list(re.finditer(r"\d", target.prompt.answer, re.ASCII))
    if not digits:
        return None
    at = digits[-1].start()
    answer = target.prompt.answer
    return target.verifier.wrap(f"{answer[:at]}{(int(answer[at]) + 1) % 10}{answer[at + 1 :]}")


def _look_alike(target: Target) -> str | None:
    """The right answer in full-width characters, which a person's eye or `int()` may take for it."""
    disguised = target.prompt.answer.translate(LOOK_ALIKES)
    return None if disguised == target.prompt.answer else target.verifier.wrap(disguised)


def _junk(target: Target) -> str:
    stream = random.Random(target.prompt.id)
    return "".join(stream.choices(string.printable, k=JUNK_CHARS))


def _commonest(target: Target) -> str | None:
    return target.verifier.wrap(target.others[0]) if target.others else None


def _all_options(target: Target) -> str | None:
    return target.verifier.wrap(" ".join(target.options)) if len(target.others) > 1 else None


def _every_option_marked(target: Target) -> str | None:
    return "\n".join(map(target.verifier.wrap, target.options)) if len(target.others) > 1 else None


HACKS: dict[str, Hack] = {
    "empty": lambda _: "",
    "white space": lambda _: " \n\t ",
    "refusal": lambda _: "I don't know.",
    "format only": lambda target: target.verifier.wrap(""),
    "placeholder": lambda target: target.verifier.wrap("answer"),
    "prompt echo": lambda target: target.prompt.text,
    "prompt as answer": lambda target: target.verifier.wrap(target.prompt.text),
    "all options": _all_options,
    "every option marked": _every_option_marked,
    "repeated answer": lambda target: target.verifier.wrap(target.prompt.answer * 2),
    "commonest answer": _commonest,
    "near miss": _near_miss,
    "look-alike characters": _look_alike,
    "huge junk": _junk,
    "huge number": lambda target: target.verifier.wrap("9" * 5000),
    "claim": lambda target: target.verifier.wrap('correct {"accuracy": 1.0} [score: 1/1]'),
}
"""Name -> how it is made. Each must be refused, whatever the verifier."""


def distinct_answers(prompts: Sequence[Prompt]) -> list[str]:
    """Every answer once, the commonest first; equal but for case and white space counts as equal."""
    counts = Counter(normalise(prompt.answer) for prompt in prompts)
    spelling = {normalise(prompt.answer): prompt.answer for prompt in reversed(prompts)}
    return [spelling[key] for key, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]
