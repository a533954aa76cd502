"""Turn prompts into scored groups; with dynamic sampling, go on until enough of them carry a gradient (2503.14476)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from typing import TYPE_CHECKING

from components.config.rollout import RolloutSettings
from components.errors import InputError
from components.policy import Policy
from components.rewards import Scorer
from components.rewards.scorer import settled
from components.rollout.base import Engine, Sampling
from components.rollout.turns import longest
from components.seeds import derive
from components.types import Completion, Group, Prompt, Score

if TYPE_CHECKING:
    from components.environments.episodes import Episodes, Played
    from components.scheduling import Schedule

Review = Callable[[Sequence[Group]], list[Group]]


@dataclass(frozen=True)
class Rollout:
    """What one step sampled and what of it is trained on. ``attempts`` counts the batches of prompts drawn;
    ``schedule`` is what the schedule had to report after them."""

    sampled: tuple[Group, ...]
    trained: tuple[Group, ...]
    attempts: int
    schedule: Mapping[str, float] = field(default_factory=dict)

    def numbered(self, versions: Callable[[Completion], tuple[int, ...]]) -> Rollout:
        """The same, with the version of the weights behind every token."""

        def number(group: Group) -> Group:
            return replace(group, completions=tuple(replace(c, versions=versions(c)) for c in group.completions))

        new = {id(group): number(group) for group in self.sampled}
        return replace(self, sampled=tuple(new.values()), trained=tuple(new[id(group)] for group in self.trained))


class Collector:
    """Samples and scores groups of completions."""

    def __init__(
        self,
        policy: Policy,
        engine: Engine,
        scorer: Scorer,
        settings: RolloutSettings,
        episodes: Episodes | None = None,
    ) -> None:
        self._policy, self._engine, self._scorer, self._settings = policy, engine, scorer, settings
        self._episodes = episodes
        self._shaping = 1.0
        self._review: Review = list

    def configure(self, settings: RolloutSettings, *, shaping: float = 1.0, review: Review = list) -> None:
        """Go on with other settings. ``shaping`` multiplies every part of a training step's reward but accuracy;
        ``review`` may take back scores, before anything is filtered."""
        self._settings, self._shaping, self._review = settings, shaping, review

    def reviewed(self, groups: Sequence[Group]) -> list[Group]:
        """The groups with the scores that stand."""
        return self._review(groups)

    def groups(self, prompts: Sequence[Prompt], sampling: Sampling, begun: Sequence[Group] = ()) -> list[Group]:
        """One scored group per prompt, in order; an environment plays and judges those that are its own. ``begun`` are
        the groups that they will be `joined` to."""
        if self._episodes is not None and self._episodes.of(prompts):
            return self._played(self._episodes.play(prompts, sampling, [g.prompt_ids for g in begun]), prompts)
        ids = [self._encode(prompt.id, prompt.text, sampling.max_new_tokens) for prompt in prompts]
        completions = self._engine.generate(ids, sampling)
        scores = self._scorer.score_groups(list(zip(prompts, completions, strict=True)))
        return [Group(*parts) for parts in zip(prompts, ids, completions, scores, strict=True)]

    def _played(self, played: Sequence[Played], prompts: Sequence[Prompt]) -> list[Group]:
        items = [(prompt, one.completions) for prompt, one in zip(prompts, played, strict=True)]
        scores = self._scorer.score_groups(items, [score for one in played for score in one.verdicts])
        return [
            Group(prompt, one.prompt_ids, one.completions, own)
            for prompt, one, own in zip(prompts, played, scores, strict=True)
        ]

    def scored(self, items: Sequence[tuple[Prompt, Sequence[Completion]]]) -> list[Score]:
        """The scores of completions that were sampled before, as the verifier gives them."""
        return [score for scores in self._scorer.score_groups(items) for score in scores] if items else []

    def texts(self, questions: Sequence[str], sampling: Sampling) -> list[str]:
        """The first completion of each question as text, in order; nothing is scored."""
        ids = [self._encode(question[:40], question, sampling.max_new_tokens) for question in questions]
        return [completions[0].text for completions in self._engine.generate(ids, sampling)]

    def check_lengths(self, questions: Sequence[str]) -> None:
        """Raise InputError where a question leaves no room for its answer."""
        for question in questions:
            self._encode(question[:40], question, self._settings.max_new_tokens)

    def _encode(self, name: str, text: str, new_tokens: int) -> tuple[int, ...]:
        ids, limit = self._policy.encode_prompt(text), longest(self._policy, self._engine)
        if limit is not None and len(ids) + new_tokens > limit:
            raise InputError(
                f"a prompt of {len(ids)} tokens and {new_tokens} new ones exceed the {limit} positions of the model or "
                "of its servers",
                where=f"prompt {name}",
                how="lower data.validation.max_question_chars or rollout.max_new_tokens, raise "
                "rollout.engine.max_model_len, or use a longer model",
            )
        return ids

    def step(self, schedule: Schedule, count: int, seed: int, barred: Container[str] = ()) -> Rollout:
        """The groups of one training step. Prompts whose id is ``barred`` are sampled and not trained on.

        Without dynamic sampling: the scheduled ``count``. With it: groups whose *raw* accuracy is constant are
        dropped and more are drawn through the schedule, until ``count`` are informative or the attempts are used up;
        a surplus is dropped in drawing order. The schedule observes every group, kept or not. With two stages a group
        that is dropped after the first has fewer completions.
        """
        dynamic = self._settings.dynamic_sampling
        sampled: list[Group] = []
        kept: list[Group] = []
        attempt = 0
        for attempt in range(1, (dynamic.max_attempts if dynamic else 1) + 1):
            sampling = replace(self.sampling(derive(seed, "rollout", attempt)), mixing=self._settings.mixing)
            size = refill(count, len(kept), len(sampled)) if dynamic and dynamic.sized else count
            scored = self.reviewed(self._draw(schedule, size, sampling))
            groups = [shaped(group, self._shaping) for group in scored]
            schedule.observe(groups)
            sampled += groups
            allowed = [group for group in groups if group.prompt.id not in barred]
            if self._settings.two_stage:
                allowed = [group for group in allowed if len(group.completions) == sampling.n]
            kept += [group for group in allowed if group.informative] if dynamic else allowed
            kept = without_repeats(kept, self._settings.max_repeats)
            if len(kept) >= count:
                break
        found = schedule.metrics()
        if self._settings.two_stage:
            found["ended"] = float(sum(len(group.completions) < self._settings.group_size for group in sampled))
        return Rollout(tuple(sampled), tuple(kept[:count]), attempt, found)

    def _draw(self, schedule: Schedule, count: int, sampling: Sampling) -> list[Group]:
        """Groups of the next ``count`` prompts; with two stages only those that are worth it are completed."""
        prompts, stage = schedule.next(count), self._settings.two_stage
        if stage is None:
            return self.groups(prompts, sampling)
        begun = self.groups(prompts, replace(sampling, n=stage.first))
        worth = schedule.worthwhile(begun, sampling.n)
        more = [group for group, chosen in zip(begun, worth, strict=True) if chosen]
        rest = replace(sampling, n=sampling.n - stage.first, seed=derive(sampling.seed, "second stage"))
        ends = iter(self.groups([group.prompt for group in more], rest, more) if more else [])
        return [joined(group, next(ends)) if chosen else group for group, chosen in zip(begun, worth, strict=True)]

    def sampling(self, seed: int, n: int | None = None, temperature: float | None = None) -> Sampling:
        """The training's sampling without its mixing, with another group size or temperature where given."""
        s = self._settings
        return Sampling(
            n=s.group_size if n is None else n,
            max_new_tokens=s.max_new_tokens,
            temperature=s.temperature if temperature is None else temperature,
            seed=seed,
        )


def joined(group: Group, more: Group) -> Group:
    """A group with further completions of the same prompt. A part of the reward that one of them has no value of takes
    the mean of all."""
    scores = tuple(settled([*group.scores, *more.scores]))
    return replace(group, completions=group.completions + more.completions, scores=scores)


def refill(count: int, kept: int, drawn: int) -> int:
    """Prompts to draw for the ``count - kept`` groups that a batch lacks, where ``kept`` of ``drawn`` were of use: as
    many as should do, at most ``count``."""
    return min(count, ceil((count - kept) * drawn / kept)) if kept else count


def shaped(group: Group, factor: float) -> Group:
    """The group with every part of its rewards but accuracy times ``factor``."""
    if factor == 1.0:
        return group
    scores = (replace(score, parts={k: factor * v for k, v in score.parts.items()}) for score in group.scores)
    return replace(group, scores=tuple(scores))


def without_repeats(groups: Sequence[Group], most: int | None) -> list[Group]:
    """The groups in order, with at most that many of one question. A question is its text, whatever the id."""
    if most is None:
        return list(groups)
    seen: Counter[str] = Counter()
    kept = []
    for group in groups:
        seen[group.prompt.text] += 1
        if seen[group.prompt.text] <= most:
            kept.append(group)
    return kept
