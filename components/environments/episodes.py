"""Groups of completions that are written in an environment, with its verdict on each."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

from components.config.environments import EnvironmentVerifier
from components.config.reward import RewardSettings
from components.config.sources import Source
from components.environments.players import Conversation, Players
from components.environments.process import EnvironmentProcess
from components.policy import Policy
from components.rollout.base import Engine, Sampling
from components.types import Completion, Prompt, Score

KIND = "verifiers"
"""`Prompt.source` of what an environment plays."""
OPENING = "refused: the environment did not call the policy, or opened one task in different ways"
Ids = tuple[int, ...]


class Played(NamedTuple):
    """One prompt: what the policy has read first, what was written then, and what it is worth."""

    prompt_ids: Ids
    completions: tuple[Completion, ...]
    verdicts: tuple[Score, ...]


class Episodes:
    """Plays the prompts of one environment with one policy."""

    def __init__(
        self, process: EnvironmentProcess, verifier: EnvironmentVerifier, policy: Policy, engine: Engine
    ) -> None:
        self._process, self._verifier, self._policy, self._engine = process, verifier, policy, engine

    @staticmethod
    def of(prompts: Sequence[Prompt]) -> bool:
        """Whether these prompts are an environment's."""
        return bool(prompts) and all(prompt.source == KIND for prompt in prompts)

    def play(self, prompts: Sequence[Prompt], sampling: Sampling, openings: Sequence[Ids] = ()) -> list[Played]:
        """``sampling.n`` episodes of each prompt. The same seed gives the same, if the environment does.

        Args:
            openings: what the policy has to read first, by prompt, where its group has other episodes already. One that
                is opened in another way counts for nothing.
        """
        players = Players(self._policy, self._engine, sampling)
        wanted = [self._process.wanted(prompt) for prompt in prompts for _ in range(sampling.n)]
        outcomes = self._process.play(wanted, players.answer)
        found = []
        for number, prompt in enumerate(prompts):
            own = range(number * sampling.n, (number + 1) * sampling.n)
            opening = openings[number] if openings else ()
            found.append(self._group(prompt, {i: outcomes[i] for i in own}, players, opening))
        return found

    def _group(
        self, prompt: Prompt, outcomes: Mapping[int, Mapping[str, Any]], players: Players, opening: Ids
    ) -> Played:
        said = {i: players.conversation(i, outcome.get("session")) for i, outcome in outcomes.items()}
        first = opening or next((own.row.prompt for own in said.values() if own is not None), ())
        first = first or self._policy.encode_prompt(prompt.text)
        judged = [self._one(outcomes[i], own, first, players.refused.get(i)) for i, own in said.items()]
        return Played(first, tuple(completion for completion, _ in judged), tuple(score for _, score in judged))

    def _one(
        self, outcome: Mapping[str, Any], own: Conversation | None, first: Ids, refused: str | None
    ) -> tuple[Completion, Score]:
        score = verdict(outcome, self._verifier)
        if own is None or own.row.prompt != first or not own.row.ids:
            completion = Completion((self._policy.eos_id,), (0.0,), "stop", "", sampled=(False,))  # counts for nothing
            refused = refused or score.unscorable or OPENING
        else:
            completion = own.row.completion(self._policy)
            score = replace(score, metrics={"turns": float(own.turns), **score.metrics})
        return completion, Score(None, unscorable=refused) if refused else score


def verdict(outcome: Mapping[str, Any], verifier: EnvironmentVerifier) -> Score:
    """What the environment's rubric says of one episode, with its own weights; a weight of 0 makes a metric."""
    if "unscorable" in outcome:
        return Score(None, unscorable=outcome["unscorable"])
    rewards, metrics = dict(outcome["rewards"]), dict(outcome["metrics"])
    if rewards.keys() != {verifier.accuracy, *verifier.rewards}:
        named = f"`accuracy` and `rewards` name {', '.join(sorted({verifier.accuracy, *verifier.rewards}))}"
        return Score(None, unscorable=f"error: the rubric gives {', '.join(sorted(rewards)) or 'nothing'}, and {named}")
    figures = [*metrics.values(), *(value for pair in rewards.values() for value in pair)]
    accuracy, weight = rewards.pop(verifier.accuracy)
    if not all(map(math.isfinite, figures)) or not 0 <= accuracy <= 1 or weight < 0:
        return Score(
            None,
            unscorable=f"error: the rubric gives {verifier.accuracy} {accuracy:g} of weight {weight:g}, "
            "which must be in [0, 1] and not negative, or another figure that is not finite",
        )
    parts = {name: weight * value for name, (value, weight) in rewards.items() if weight}
    metrics |= {name: value for name, (value, weight) in rewards.items() if not weight}
    return Score(accuracy, parts, weight=weight, metrics=metrics)


@contextmanager
def opened(source: Source, reward: RewardSettings, policy: Policy, engine: Engine) -> Iterator[Episodes | None]:
    """The episodes of the settings' environment, whose process ends with the context; None where there is none."""
    if source.kind != "verifiers" or reward.verifier.kind != "environment":
        yield None
        return
    with EnvironmentProcess(source) as process:
        yield Episodes(process, reward.verifier, policy, engine)
