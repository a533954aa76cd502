"""What an answer to a probe is worth: from its text, and from the log-probabilities of its choices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from components.canaries.items import Outcome, Probe
from components.config.canaries import CanarySettings
from components.patterns import compile_pattern
from components.rewards.answers import stated
from components.rewards.base import final_answer
from components.rewards.multiple_choice import MultipleChoiceVerifier

HEAD = 300
"""Characters of an answer in which a refusal is looked for: what refuses does so at once."""
WRONG = Outcome(0.0, False)


class Scored(NamedTuple):
    """One continuation: the sum of its tokens' log-probabilities (nats), and how many they are."""

    logp: float
    tokens: int

    @property
    def per_token(self) -> float:
        return self.logp / max(1, self.tokens)


def judge_texts(probe: Probe, texts: Sequence[str], marker: str | None, settings: CanarySettings) -> Outcome:
    """Judge greedy answers, one for each question of the probe; not those that the run's verifier judges."""
    if probe.judged == "alike":
        said = [answer.strip() if (answer := final_answer(text, marker)) is not None else "" for text in texts]
        return _outcome(len(set(said)) == 1 and said[0] != "")
    (text,) = texts
    if probe.judged == "choice":
        chosen = _chosen(probe, text, marker)
        return Outcome(float(chosen == probe.right), chosen == probe.right, chosen=chosen)
    if probe.judged == "pattern":
        return _outcome(compile_pattern(probe.pattern).matches(text))
    if probe.judged == "refusal":
        return _outcome(refuses(text, settings.refusals) == probe.should_refuse)
    raise ValueError(f"probe {probe.id} is not judged by its text: {probe.judged}")


def refuses(text: str, patterns: Sequence[str]) -> bool:
    """Whether an answer refuses; an empty one does not, and helps no user either."""
    head = text.replace("\u2019", "'")[:HEAD]
    return any(compile_pattern(pattern, ignore_case=True).matches(head) for pattern in patterns)


def _chosen(probe: Probe, text: str, marker: str | None) -> int | None:
    """The place of the one option that an answer names, by its letter or by its words."""
    answer = stated(text, marker)
    answer = text if answer is None else answer
    plain = [option.strip().rstrip(".").casefold() for option in probe.named]
    if (said := answer.strip().rstrip(".").casefold()) in plain:
        return plain.index(said)
    letters = "".join(chr(ord("A") + place) for place in range(len(probe.named)))
    letter = MultipleChoiceVerifier(marker, letters).choice(answer)
    return None if letter is None else letters.index(letter)


def judge_likelihood(probe: Probe, scored: Sequence[Sequence[Scored]], settings: CanarySettings) -> Outcome:
    """Judge by the log-probabilities of the choices, those of each question of the probe.

    What the policy finds impossible, or a policy that is broken says, is wrong and not unknown.
    """
    if not all(math.isfinite(one.logp) for question in scored for one in question):
        return WRONG
    if probe.judged == "alike":
        first, second = ([one.per_token if settings.normalise else one.logp for one in q] for q in scored)
        shares = _shares(first), _shares(second)
        distance = sum(abs(a - b) for a, b in zip(*shares, strict=True)) / 2  # total variation
        alike = first.index(max(first)) == second.index(max(second))
        return Outcome(1 - distance, alike)
    (question,) = scored
    sums, rates = [one.logp for one in question], [one.per_token for one in question]
    values = rates if settings.normalise else sums
    best = max(value for place, value in enumerate(values) if place != probe.right)
    return Outcome(
        score=_shares(values)[probe.right],
        right=_leads(sums, probe.right),
        right_normalised=_leads(rates, probe.right),
        margin=values[probe.right] - best,
        chosen=values.index(max(values)),
    )


def _leads(values: Sequence[float], place: int) -> bool:
    return all(values[place] > value for other, value in enumerate(values) if other != place)


def _shares(values: Sequence[float]) -> list[float]:
    """The probability of each, given that it is one of them."""
    top = max(values)
    weights = [math.exp(value - top) for value in values]
    return [weight / sum(weights) for weight in weights]


def _outcome(right: bool) -> Outcome:
    return Outcome(float(right), right)
