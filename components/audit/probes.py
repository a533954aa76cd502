"""Answers that are known to be right or wrong."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from components.audit.grammar import CLASSES, ProbeClass
from components.audit.hacks import HACKS, Target, distinct_answers, same
from components.config.answers import AnswerKind
from components.rewards.base import Verifier
from components.types import Prompt

DRAWN, IN_ALL = 2, 100
"""Texts of a class that one prompt is tried with, at least; of few prompts each gets more, for so many in all."""
BOMBED = 2
"""Prompts that each bomb is tried on. Bombs cost time and depend little on the question."""


@dataclass(frozen=True, slots=True)
class Probe:
    """One text in answer to one prompt, and whether it must be accepted. ``kind`` groups probes of one sort.

    ``quick``: it must also be judged within the audit's limit of time. ``advice``: what to change in a verifier that
    judges it wrongly.
    """

    kind: str
    prompt: Prompt
    text: str
    right: bool
    quick: bool = False
    advice: str = ""


def make_probes(verifier: Verifier, prompts: Sequence[Prompt], answers: AnswerKind = "other") -> list[Probe]:
    """Every sort of probe for every prompt; the verifier itself states an answer in its form.

    Right: the reference solution, and the verifier's own equivalents of the answer. Wrong: the solution of another
    prompt with another answer, `HACKS` that do not happen to state the reference, and the verifier's own. Of each of
    `CLASSES` that apply to ``answers``, a few texts a prompt (`DRAWN`), drawn by the prompt's id, and every bomb
    on `BOMBED` prompts.
    """
    distinct, count = distinct_answers(prompts), max(DRAWN, -(-IN_ALL // max(1, len(prompts))))
    probes: list[Probe] = []
    for index, prompt in enumerate(prompts):
        probes.append(Probe("reference solution", prompt, prompt.solution, right=True))
        for name, text in verifier.equivalents(prompt).items():
            probes.append(Probe(f"form: {name}", prompt, text, right=True))
        if (other := _another(prompts, index)) is not None:
            probes.append(Probe("another's solution", prompt, other.solution, right=False))
        target = Target(prompt, verifier, [answer for answer in distinct if not same(answer, prompt.answer)], answers)
        probes += _hacked(target)
        for one in CLASSES:
            if one.must != "quick":
                probes += _drawn(one, target, count)
    return [*probes, *_bombs(verifier, prompts, answers)]


def _hacked(target: Target) -> Iterator[Probe]:
    for name, hack in HACKS.items():
        text = hack(target)
        if text is not None:
            yield Probe(f"hack: {name}", target.prompt, text, right=False)
    for name, text in target.verifier.hacks(target.prompt).items():
        yield Probe(f"hack: {name}", target.prompt, text, right=False)


def _drawn(one: ProbeClass, target: Target, count: int) -> Iterator[Probe]:
    texts = one.texts(target)
    stream = random.Random(f"{one.name} {target.prompt.id}")
    for text in stream.sample(texts, min(count, len(texts))):
        yield Probe(one.title, target.prompt, text, one.must == "accepted", advice=one.advice)


def _bombs(verifier: Verifier, prompts: Sequence[Prompt], answers: AnswerKind) -> Iterator[Probe]:
    """Every bomb of a class on the prompts whose turn it is."""
    for turn, one in enumerate(one for one in CLASSES if one.must == "quick"):
        for at in range(turn * BOMBED, turn * BOMBED + min(BOMBED, len(prompts))):
            prompt = prompts[at % len(prompts)]
            for text in one.texts(Target(prompt, verifier, [], answers)):
                yield Probe(one.title, prompt, text, right=False, quick=True, advice=one.advice)


def _another(prompts: Sequence[Prompt], index: int) -> Prompt | None:
    """The next prompt, round the corner, whose answer is another one."""
    rotated = [*prompts[index + 1 :], *prompts[:index]]
    return next((prompt for prompt in rotated if not same(prompt.answer, prompts[index].answer)), None)
