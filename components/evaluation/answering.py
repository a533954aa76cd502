"""Checkpoints answer suites: sampled at the training temperature, and once greedily."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Self

from components.config import Settings
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
from components.policy.loading import check_policy
from components.policy.weights import weights_of
from components.progress import Progress
from components.rewards import Scorer
from components.rewards.scorer import MISSING
from components.rollout import Collector, Engine, build_engine
from components.types import Group, Score, mean_by_name

BATCH = 128
LASTING = ("cpu", "error", "refused")
"""Codes of `components.rewards.worker` that an item has by itself. The others may be those of a busy machine."""
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

    Cached answers are taken from the cache. The others are made by a `KeptEngine`, and cached if they are repeatable:
    no server made them, and they are all settled.

    Args:
        consistency: weights of the embedded consistency classifier, where the settings use it.
        logs: the folder for what servers print.
        done: answers that the progress bar has counted before.

    Raises:
        InputError: a checkpoint is missing, incomplete or not safe to load, or a prompt is too long for it.
    """
    found: list[list[list[Answered]]] = []
    with KeptEngine(logs) as kept:
        for checkpoint in checkpoints:
            runner, digest = SuiteRunner(checkpoint, consistency, kept), sha256_tree(checkpoint)
            found.append([])
            for suite in suites:
                answers: list[Answered] = []
                usable = cache if suite.repeatable else Cache(None)
                for word, part in _cached_or_generated(runner, usable, digest, suite):
                    answers += part
                    done += len(part)
                    bar.advance(done, f"{suite.name}: {word}")
                found[-1].append(answers)
    return found


def _cached_or_generated(
    runner: SuiteRunner, cache: Cache, digest: str, suite: PromptSuite
) -> Iterator[tuple[str, list[Answered]]]:
    """The cached answers, or batches of new ones, which are cached at the end if all are settled."""
    key = key_of(digest, suite, runner.consistency)
    kept = cache.get(key, suite.prompts)
    if kept is not None:
        yield "cached", kept
        return
    made: list[Answered] = []
    for part in runner.answers(suite):
        made += part
        yield "generated", part
    if all(answer.settled for answer in made):
        cache.put(key, made)


class KeptEngine:
    """An engine for one checkpoint after the other. It is kept, and loads their weights, while they have one
    architecture and tokenizer: a server takes longer to start than to answer."""

    def __init__(self, logs: Path) -> None:
        self._logs, self._stack = logs, ExitStack()
        self._engine: Engine | None = None
        self._shape: list[bytes] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def load(self, checkpoint: Path, settings: Settings) -> tuple[Policy, Engine]:
        """The policy of a checkpoint, and the engine with its weights."""
        files = [checkpoint / name for name in ALIKE]
        shape = [path.read_bytes() for path in files if path.is_file()]
        if shape != self._shape or len(shape) < len(files):
            self._stack.close()
            self._engine = None
        policy, self._shape = load_policy(checkpoint, settings.policy), shape
        if self._engine is None:
            self._engine = build_engine(policy, settings.rollout.as_policy(), self._logs)
            self._stack.callback(self._engine.close)
        else:
            self._engine.load_weights(weights_of(policy))
        return policy, self._engine


class SuiteRunner:
    """What one checkpoint answers; it is loaded for the first suite that it has to answer."""

    def __init__(self, checkpoint: Path, consistency: Path, kept: KeptEngine) -> None:
        self.consistency, self._checkpoint, self._kept = consistency, checkpoint, kept
        self._loaded: tuple[Policy, Engine] | None = None

    def answers(self, suite: PromptSuite) -> Iterator[list[Answered]]:
        """A batch of prompts at a time."""
        settings, (policy, engine) = suite.settings, self._ready(suite)
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

    def _ready(self, suite: PromptSuite) -> tuple[Policy, Engine]:
        """The policy with the suite's prompt format, and the engine."""
        self._loaded = self._loaded or self._kept.load(self._checkpoint, suite.settings)
        policy, engine = self._loaded
        chosen = replace(policy, chat=suite.settings.policy.chat, instruction=suite.settings.policy.instruction)
        return check_policy(chosen, self._checkpoint), engine


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
