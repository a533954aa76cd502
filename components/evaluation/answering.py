"""Checkpoints answer suites: sampled at the training temperature, and once greedily."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Self

from components.config.evaluation import TEST
from components.config.verifiers import Verifier
from components.environments.episodes import opened
from components.errors import InputError
from components.evaluation.answers import final_answer
from components.evaluation.cache import Cache, key_of
from components.evaluation.results import Answered, PromptResult
from components.evaluation.suites import PromptSuite
from components.files import sha256_tree
from components.policy import Policy, load_policy
from components.policy.checking import check_policy
from components.policy.weights import weights_of
from components.progress import Progress
from components.rewards import Scorer
from components.rewards.scorer import MISSING
from components.rollout import Collector, Engine, build_engine
from components.types import Group, Score, mean_by_name

BATCH = 128
LASTING = ("cpu", "error", "refused")
"""Codes of `components.rewards.fence` that an item has by itself. The others may be those of a busy machine."""
ALIKE = ("config.json", "tokenizer.json")
"""Files of a checkpoint that must be equal for one engine to take both."""


def answer_suites(
    checkpoints: Sequence[Path],
    suites: Sequence[PromptSuite],
    *,
    consistency: Path,
    logs: Path,
    cache: Cache,
    bar: Progress,
    done: int = 0,
) -> list[list[list[Answered]]]:
    """What every checkpoint answers to every suite: ``[checkpoint][suite][prompt]``. All get the same seeds.

    Cached answers are taken from the cache. The others are made by one engine for all checkpoints of one architecture
    and tokenizer, which loads their weights one after the other: a server takes longer to start than to answer. They
    are cached if they are repeatable: no server made them, and they are all settled.

    Args:
        consistency: weights of the embedded consistency classifier, where the settings use it.
        logs: the folder for what servers print.
        done: answers that the progress bar has counted before.

    Raises:
        InputError: a checkpoint is missing, incomplete or not safe to load, or a prompt is too long for it.
    """
    found: list[list[list[Answered]]] = [[] for _ in checkpoints]
    for line in compatible_groups(checkpoints):
        with SuiteRunner(consistency, logs) as runner:
            for n in line:
                digest = sha256_tree(checkpoints[n])
                for suite in suites:
                    answers: list[Answered] = []
                    kept = cache if suite.repeatable else Cache(None)
                    for word, part in _cached_or_generated(runner, kept, checkpoints[n], digest, suite):
                        answers += part
                        done += len(part)
                        bar.advance(done, f"{suite.name}: {word}")
                    found[n].append(answers)
    return found


def _cached_or_generated(
    runner: SuiteRunner, cache: Cache, checkpoint: Path, digest: str, suite: PromptSuite
) -> Iterator[tuple[str, list[Answered]]]:
    """The cached answers, or batches of new ones, which are cached at the end if all are settled."""
    key = key_of(digest, suite, runner.consistency)
    kept = cache.get(key, suite.prompts)
    if kept is not None:
        yield "cached", kept
        return
    made: list[Answered] = []
    for part in runner.answers(checkpoint, suite):
        made += part
        yield "generated", part
    if all(answer.settled for answer in made):
        cache.put(key, made)


def compatible_groups(checkpoints: Sequence[Path]) -> list[list[int]]:
    """Numbers of the checkpoints that one engine can take one after the other; in order of their first."""
    groups: list[list[int]] = []
    for n, checkpoint in enumerate(checkpoints):
        group = next((group for group in groups if _alike(checkpoints[group[0]], checkpoint)), None)
        if group is None:
            groups.append([n])
        else:
            group.append(n)
    return groups


def _alike(one: Path, other: Path) -> bool:
    pairs = [(one / name, other / name) for name in ALIKE]
    return all(a.is_file() and b.is_file() and a.read_bytes() == b.read_bytes() for a, b in pairs)


class SuiteRunner:
    """One engine and the checkpoints that it takes, one after the other; built for the first that has to answer."""

    def __init__(self, consistency: Path, logs: Path) -> None:
        self.consistency, self._logs = consistency, logs
        self._stack = ExitStack()
        self._engine: Engine | None = None
        self._loaded: tuple[Path, Policy] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def answers(self, checkpoint: Path, suite: PromptSuite) -> Iterator[list[Answered]]:
        """A batch of prompts at a time."""
        settings, (policy, engine) = suite.settings, self._ready(checkpoint, suite)
        with (
            Scorer(settings.reward, self.consistency) as scorer,
            opened(settings.data.source, settings.reward, policy, engine) as episodes,
        ):
            collector = Collector(policy, engine, scorer, settings.rollout, episodes)
            for start in range(0, len(suite.prompts), BATCH):
                batch, seed = suite.prompts[start : start + BATCH], suite.seed(start)
                with _named(suite):
                    greedy = collector.groups(batch, collector.sampling(seed, n=1, temperature=0.0))
                if suite.samples:
                    sampled = collector.groups(batch, collector.sampling(seed, n=suite.samples))
                else:
                    sampled = [replace(group, completions=(), scores=()) for group in greedy]
                yield [answered(*pair, settings.reward.verifier) for pair in zip(sampled, greedy, strict=True)]

    def _ready(self, checkpoint: Path, suite: PromptSuite) -> tuple[Policy, Engine]:
        """The checkpoint's policy with the suite's prompt format, and the engine with its weights."""
        settings = suite.settings
        if self._loaded is None or self._loaded[0] != checkpoint:
            policy = load_policy(checkpoint, settings.policy)
            if self._engine is not None:
                self._engine.load_weights(weights_of(policy))
            self._loaded = checkpoint, policy
        policy = self._loaded[1]
        if self._engine is None:
            self._engine = build_engine(policy, settings.rollout.as_policy(), self._logs)
            self._stack.callback(self._engine.close)
        chosen = replace(policy, chat=settings.policy.chat, instruction=settings.policy.instruction)
        return check_policy(chosen, checkpoint), self._engine


@contextmanager
def _named(suite: PromptSuite) -> Iterator[None]:
    """Name the suite in the error of a prompt that cannot be sampled for."""
    try:
        yield
    except InputError as error:
        if suite.name == TEST:
            raise
        section = f"evaluation.suites.{suite.name}"
        how = f"lower {section}.max_new_tokens, take the prompt out of the suite, or use a longer model"
        raise InputError(error.what, where=f"{section}, {error.where}", how=how) from error


def answered(sampled: Group, greedy: Group, verifier: Verifier) -> Answered:
    """What one prompt came to, as the verifier that these settings name has judged it."""
    prompt, completions = sampled.prompt, sampled.completions
    scorable = [score for score in sampled.scores if score.accuracy is not None]
    last = greedy.completions[0]
    result = PromptResult(
        id=prompt.id,
        family=prompt.family,
        difficulty=prompt.difficulty,
        accuracies=tuple(score.accuracy for score in sampled.scores),
        greedy=greedy.scores[0].accuracy,
        lengths=tuple(len(c.token_ids) for c in completions),
        truncated=tuple(c.finish_reason == "length" for c in completions),
        reward=fmean(score.reward for score in scorable) if scorable else None,
        parts=mean_by_name(score.parts for score in scorable),
        metrics=mean_by_name(score.metrics for score in scorable),
        answers=tuple(final_answer(c.text, verifier) for c in completions),
        source=prompt.source,
        prompt_tokens=len(greedy.prompt_ids),
        greedy_length=len(last.token_ids),
        greedy_truncated=last.finish_reason == "length",
    )
    return Answered(prompt, result, last.text, all(map(_settled, (*sampled.scores, *greedy.scores))))


def _settled(score: Score) -> bool:
    """Whether its verdict would be the same again, or there would be none again."""
    if score.unscorable is None:
        return not score.metrics.get(MISSING)
    return score.unscorable.partition(":")[0] in LASTING
