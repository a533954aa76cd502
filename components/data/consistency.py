"""Makes the embedded classifier from solutions. Only the data stage imports this: scikit-learn takes a second."""

from __future__ import annotations

import string
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from random import Random
from statistics import fmean
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from components.config.consistency import EmbeddedConsistency
from components.errors import InputError
from components.rewards.alignment import FEATURES, features
from components.rewards.consistency import EmbeddedVerifier, Weights
from components.seeds import derive
from components.types import Prompt

SOLUTIONS = 1000
"""Solutions looked at, at the most; more do not move a dozen coefficients."""
FEWEST = 20
HELD_OUT = 0.25
"""Share of the solutions that the classifier is measured on and never sees."""
DECIMALS = 6


@dataclass(frozen=True, slots=True)
class Solution:
    """A reference solution in its parts."""

    question: str
    thinking: str
    answer: str


@dataclass(frozen=True, slots=True)
class Pair(Solution):
    """Premise (question and thinking) and answer, how they were made, and whether they belong together."""

    kind: str

    @property
    def consistent(self) -> bool:
        return self.kind == "own"


def train(prompts: Sequence[Prompt], settings: EmbeddedConsistency, seed: int) -> tuple[Weights, dict[str, Any]]:
    """Weights, and what they are worth on solutions that were held out.

    Returns:
        The weights, and a mapping with ``solutions``, ``accuracy`` and ``auc`` over all held-out pairs, and
        ``means``, the mean P(consistent) of each kind of pair (see `pairs`).

    Raises:
        InputError: too few solutions have thinking, marker and answer, or nothing can be learned from them.
    """
    solutions = _chosen(prompts, settings.marker, seed)
    cut = round(len(solutions) * HELD_OUT)
    held_out, seen = (
        list(chain.from_iterable(pairs(part, derive(seed, "consistency", name))))
        for name, part in (("held out", solutions[:cut]), ("seen", solutions[cut:]))
    )
    weights = _fit(seen)
    verifier = EmbeddedVerifier(settings.marker, weights.model_dump())
    judged = [(pair, verifier.probability(pair.question, pair.thinking, pair.answer)) for pair in held_out]
    kinds = dict.fromkeys(pair.kind for pair in held_out)
    auc = float(roc_auc_score([pair.consistent for pair, _ in judged], [p for _, p in judged]))
    if auc < settings.min_auc:
        raise InputError(
            f"the consistency classifier hardly separates matching from mismatched pairs (AUC {auc:.2f} on held-out "
            f"solutions, reward.consistency.min_auc is {settings.min_auc:g}); as a reward it would be noise",
            where="reward.consistency",
            how="use it for work with numbers and equations, or a classifier of kind nli",
        )
    return weights, {
        "solutions": len(solutions),
        "accuracy": fmean((p > 0.5) == pair.consistent for pair, p in judged),
        "auc": auc,
        "means": {kind: round(fmean(p for pair, p in judged if pair.kind == kind), DECIMALS) for kind in kinds},
    }


def pairs(solutions: Sequence[Solution], seed: int) -> Iterable[list[Pair]]:
    """For each solution one consistent pair and every kind of inconsistent one.

    - ``own``: as it is
    - ``other answer``, ``other premise``, ``other thinking``: one of its parts is another solution's
    - ``wrong answer``, ``wrong thinking``: one character of it is changed
    - ``restated``: another solution's thinking with the answer written at its end, as a number or as ``0 + answer``
    """
    rng = Random(seed)
    for own in solutions:
        other = _other(own, solutions, rng)
        restated = rng.choice([f" {own.answer}", f" {own.answer}+0={own.answer}"])
        yield [
            Pair(own.question, own.thinking, own.answer, "own"),
            Pair(own.question, own.thinking, other.answer, "other answer"),
            Pair(other.question, other.thinking, own.answer, "other premise"),
            Pair(own.question, other.thinking, own.answer, "other thinking"),
            Pair(own.question, own.thinking, changed(own.answer, rng), "wrong answer"),
            Pair(own.question, changed(own.thinking, rng), own.answer, "wrong thinking"),
            Pair(own.question, other.thinking + restated, own.answer, "restated"),
        ]


def changed(text: str, rng: Random) -> str:
    """The text with one digit replaced by another, or one character by a letter where it has no digit."""
    digits = [place for place, character in enumerate(text) if character in string.digits]
    place = rng.choice(digits or range(len(text)))
    choices = string.digits if digits else string.ascii_lowercase
    return text[:place] + rng.choice(choices.replace(text[place], "")) + text[place + 1 :]


def _chosen(prompts: Sequence[Prompt], marker: str, seed: int) -> list[Solution]:
    """Solutions with thinking and an answer, in a seeded order."""
    found = []
    for prompt in prompts:
        thinking, _, answer = (part.strip() for part in prompt.solution.rpartition(marker))
        if thinking and answer:
            found.append(Solution(prompt.text, thinking, answer))
    if len(found) < FEWEST or len({solution.answer for solution in found}) < 2:
        raise InputError(
            f"{len(found)} solutions of the SFT split have thinking before {marker!r} and an answer after it; the "
            f"consistency classifier needs {FEWEST}, with different answers",
            where="reward.consistency",
            how="correct its marker, give data.splits.sft a share, or use a classifier of kind nli",
        )
    return Random(derive(seed, "consistency", "order")).sample(found, min(len(found), SOLUTIONS))


def _other(own: Solution, solutions: Sequence[Solution], rng: Random) -> Solution:
    """Another solution, if possible with another answer."""
    for _ in range(SOLUTIONS):
        other = rng.choice(solutions)
        if other.answer != own.answer:
            return other
    return other


def _fit(seen: Sequence[Pair]) -> Weights:
    inputs = np.array([features(pair.question, pair.thinking, pair.answer) for pair in seen])
    fitted = LogisticRegression(class_weight="balanced", max_iter=1000).fit(inputs, [p.consistent for p in seen])
    return Weights(
        intercept=round(float(fitted.intercept_[0]), DECIMALS),
        coefficients=dict(zip(FEATURES, np.round(fitted.coef_[0], DECIMALS).tolist(), strict=True)),
    )
