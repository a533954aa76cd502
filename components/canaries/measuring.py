"""Scores of probe sets: by log-likelihood, the choices of every probe after its question, in a few forward passes,
nothing sampled; and by generation, greedy answers, judged by the run's verifier or as the probe defines."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from components.canaries.items import Measured, Outcome, Probe, ProbeSet
from components.canaries.judging import Scored, judge_likelihood, judge_texts
from components.config.canaries import CanarySettings
from components.device import autocast
from components.errors import InputError
from components.policy import Policy
from components.policy.weights import Text, text_logprobs
from components.rollout import Collector
from components.types import Prompt
from components.working import working

TOKENS = 8192
"""Padded tokens of a forward pass."""
Score = Callable[[Sequence[Text]], list[float]]
"""The sum of the log-probabilities of what follows, in nats, for every row."""


def measure_likelihood(probes: ProbeSet, settings: CanarySettings, policy: Policy, score: Score) -> Measured:
    """One set by likelihood. ``policy`` gives the tokenizer; ``score`` has the weights."""
    rows = [rows_of(probe, policy) for probe in probes.probes]
    sums = iter(score([row for questions in rows for question in questions for row in question]))
    outcomes = []
    for probe, questions in zip(probes.probes, rows, strict=True):
        scored = [[Scored(next(sums), len(row[1])) for row in question] for question in questions]
        outcomes.append(judge_likelihood(probe, scored, settings))
    return Measured(probes, "likelihood", tuple(outcomes))


def rows_of(probe: Probe, policy: Policy) -> list[list[Text]]:
    """For each question of a probe the rows of its choices.

    Raises:
        InputError: a row is longer than the model was made for.
    """
    choices = [_choice(one, probe, policy) for one in probe.choices]
    found = [[(_context(text, probe, policy), choice) for choice in choices] for text in probe.texts]
    limit = policy.max_positions
    longest = max((len(context) + len(choice) for rows in found for context, choice in rows), default=0)
    if limit is not None and longest > limit:
        raise InputError(
            f"a probe and its choice are {longest} tokens, the model has {limit} positions",
            where=f"probe {probe.id}",
            how="leave it out of the set, or use a longer model",
        )
    return found


def _context(text: str, probe: Probe, policy: Policy) -> tuple[int, ...]:
    if probe.judged != "sentences":
        return policy.encode_prompt(text)
    start = policy.tokenizer.bos_token_id
    return (policy.eos_id if start is None else int(start),)


def _choice(text: str, probe: Probe, policy: Policy) -> tuple[int, ...]:
    """A whole answer has its end token; a letter after a plain prompt has a space before it."""
    if probe.whole:
        return policy.encode_answer(text)
    spaced = text if policy.chat or probe.judged == "sentences" else f" {text}"
    return tuple(policy.tokenizer.encode(spaced, add_special_tokens=False))


def scores_of(policy: Policy, temperature: float, tokens: int = TOKENS) -> Score:
    """Scores under a policy in this process, in passes of at most so many padded tokens."""

    @torch.no_grad()
    def score(rows: Sequence[Text]) -> list[float]:
        found = [0.0] * len(rows)
        with working("scoring probes", len(rows), "rows") as work, autocast(policy.model):
            for places in _passes(rows, tokens):
                logp, _ = text_logprobs(policy, [rows[place] for place in places], temperature)
                for place, total in zip(places, logp.sum(1).tolist(), strict=True):
                    found[place] = total
                work.add(len(places))
        return found

    return score


def _passes(rows: Sequence[Text], tokens: int) -> list[list[int]]:
    """Places of rows of like length, so many together as fit."""
    order = sorted(range(len(rows)), key=lambda place: sum(map(len, rows[place])))
    passes: list[list[int]] = []
    width = 0
    for place in order:
        context, choice = rows[place]
        width = max(width, len(context) + len(choice))
        if not passes or (len(passes[-1]) + 1) * width > tokens:
            passes.append([])
            width = len(context) + len(choice)
        passes[-1].append(place)
    return passes


def measure_generation(
    probes: ProbeSet, settings: CanarySettings, collector: Collector, marker: str | None
) -> Measured:
    """One set by generation; ``marker`` is what the run's verifier reads an answer after, if it reads one."""
    sampling = collector.sampling(seed=0, n=1, temperature=0.0)
    if probes.probes[0].judged == "verifier":
        prompts = [
            Prompt(f"canary-{probe.id}", probe.texts[0], probe.answer, solution=probe.answer) for probe in probes.probes
        ]
        scores = (group.scores[0].accuracy for group in collector.groups(prompts, sampling))
        # Neither right nor wrong where the verifier could not judge.
        verified = (Outcome(accuracy, None if accuracy is None else accuracy == 1) for accuracy in scores)
        return Measured(probes, "generation", tuple(verified))
    texts = iter(collector.texts([text for probe in probes.probes for text in probe.texts], sampling))
    outcomes = (judge_texts(probe, [next(texts) for _ in probe.texts], marker, settings) for probe in probes.probes)
    return Measured(probes, "generation", tuple(outcomes))
