"""Answers that are known to be right or wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from components.audit.hacks import HACKS, Target, distinct_answers, same
from components.rewards.base import Verifier
from components.types import Prompt


@dataclass(frozen=True, slots=True)
class Probe:
    """One text in answer to one prompt, and whether it must be accepted. ``kind`` groups probes of one sort."""

    kind: str
    prompt: Prompt
    text: str
    right: bool


def make_probes(verifier: Verifier, prompts: Sequence[Prompt]) -> list[Probe]:
    """Every sort of probe for every prompt; the verifier itself states an answer in its form.

    Right: the reference solution, and the verifier's own equivalents of the answer. Wrong: the solution of another
    prompt with another answer, `HACKS` that do not happen to state the reference, and the verifier's own.
    """
    answers = distinct_answers(prompts)
    probes: list[Probe] = []
    for index, prompt in enumerate(prompts):
        probes.append(Probe("reference solution", prompt, prompt.solution, right=True))
        for name, text in verifier.equivalents(prompt).items():
            probes.append(Probe(f"form: {name}", prompt, text, right=True))
        if (other := _another(prompts, index)) is not None:
            probes.append(Probe("another's solution", prompt, other.solution, right=False))
        others = [answer for answer in answers if not same(answer, prompt.answer)]
        probes += _hacked(Target(prompt, verifier, others))
    return probes


def _hacked(target: Target) -> Iterator[Probe]:
    for name, hack in HACKS.items():
        text = hack(target)
        if text is not None:
            yield Probe(f"hack: {name}", target.prompt, text, right=False)
    for name, text in target.verifier.hacks(target.prompt).items():
        yield Probe(f"hack: {name}", target.prompt, text, right=False)


def _another(prompts: Sequence[Prompt], index: int) -> Prompt | None:
    """The next prompt, round the corner, whose answer is another one."""
    rotated = [*prompts[index + 1 :], *prompts[:index]]
    return next((prompt for prompt in rotated if not same(prompt.answer, prompts[index].answer)), None)
