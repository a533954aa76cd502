"""The prompts of an evaluation and their settings: the run's own test prompts and the configured suites."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from components.config import Settings, substance
from components.config.evaluation import TEST, FileSuite, PythonSuite, ReasoningGymSuite, Suite
from components.config.pins import check_digest
from components.config.reward import RewardSettings
from components.config.servers import ServerEngine
from components.config.sources import computed
from components.data.outside import prompts_of
from components.data.prompts import read_prompts, subset
from components.errors import InputError
from components.evaluation.formats import distinct, read_problems
from components.files import sha256_json
from components.layout import Layout
from components.seeds import derive
from components.tasks import TASKS, reasoning_gym
from components.types import Prompt

ANSWER_SETTINGS: dict[str, Any] = {
    "seed": True,
    "threads": True,
    "policy": {"chat", "instruction", "dtype"},
    "rollout": {"engine", "max_new_tokens", "temperature", "tool"},
    "reward": True,
}
"""The settings that an answer and its score depend on. Which training they come from is none of them."""


@dataclass(frozen=True)
class PromptSuite:
    """Prompts and the settings they are sampled with; with ``samples`` 0 there is the greedy completion alone."""

    name: str
    prompts: Sequence[Prompt]
    samples: int
    settings: Settings
    generated: bool = False

    def seed(self, start: int) -> int:
        """Of the batch that begins with the prompt of this number: the same in every run with the run's seed.

        Within a batch the embedded engine draws by a prompt's number, whatever else is in the batch; servers draw by
        seed and number, too, but round with their batch. Greedy completions need no draws.
        """
        suite = () if self.name == TEST else (self.name,)
        return derive(self.settings.seed, "evaluate", *suite, start)

    @property
    def repeatable(self) -> bool:
        """Whether the same answers would come again, to the byte. A server's depend on its version and its batches,
        and an environment's on the environment."""
        played = self.name == TEST and self.settings.data.source.kind == "verifiers"
        return not played and not isinstance(self.settings.rollout.engine, ServerEngine)

    @property
    def prompts_sha256(self) -> str:
        """Digest of the prompts, all of their fields."""
        return sha256_json([prompt.to_dict() for prompt in self.prompts])

    @property
    def settings_sha256(self) -> str:
        """Digest of the settings that an answer depends on."""
        return sha256_json({"suite": self.name, "samples": self.samples, **substance(self.settings, ANSWER_SETTINGS)})


def held_out(settings: Settings, layout: Layout) -> PromptSuite:
    """The run's own held-out prompts."""
    prompts = subset(read_prompts(layout.split("test")), settings.evaluation.prompts, derive(settings.seed, "test"))
    if not prompts:
        raise InputError("there are no test prompts", where=layout.split("test"), how="run the data stage again")
    return PromptSuite(TEST, prompts, settings.evaluation.samples, settings, computed(settings.data.source))


def suites(settings: Settings) -> list[PromptSuite]:
    """The suites that the settings name, in their order.

    Raises:
        InputError: a file is missing, not the one that is pinned, or malformed; or no prompt is left.
    """
    return [_suite(name, suite, settings) for name, suite in settings.evaluation.suites.items()]


def _suite(name: str, suite: Suite, settings: Settings) -> PromptSuite:
    prompts = subset(_problems(name, suite), suite.prompts, derive(settings.seed, "suite", name))
    if not prompts:
        how = "lower min_difficulty, or choose more levels or rows"
        raise InputError("a suite without problems", where=f"evaluation.suites.{name}", how=how)
    generated = not isinstance(suite, FileSuite | PythonSuite)
    return PromptSuite(name, prompts, suite.samples, _suite_settings(suite, settings), generated)


def _problems(name: str, suite: Suite) -> list[Prompt]:
    if isinstance(suite, FileSuite):
        check_digest(suite.path, suite.sha256)
        return read_problems(suite.path, suite.format, name)
    if isinstance(suite, PythonSuite):
        return distinct(prompts_of(suite, suite.seed, name))
    if isinstance(suite, ReasoningGymSuite):
        return list(reasoning_gym.generate(suite.source, suite.seed))
    problems = TASKS[suite.source.task](suite.source, suite.seed)
    return [problem for problem in problems if problem.difficulty >= suite.min_difficulty]


def _suite_settings(suite: Suite, settings: Settings) -> Settings:
    """The run's settings as the suite changes them. Only accuracy counts: other parts of the reward are left out."""
    chosen = {"instruction": suite.instruction, "chat": suite.chat}
    policy = settings.policy.model_copy(update={name: value for name, value in chosen.items() if value is not None})
    limit = {} if suite.max_new_tokens is None else {"max_new_tokens": suite.max_new_tokens}
    rollout = settings.rollout.model_copy(update=limit)
    reward = RewardSettings(verifier=suite.verifier or settings.reward.verifier, sandbox=settings.reward.sandbox)
    return settings.model_copy(update={"policy": policy, "rollout": rollout, "reward": reward})
