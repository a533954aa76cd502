"""Stage `evaluate`: which policies answer which prompts, and how the answers are compared."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field, field_validator

from components.config.base import Section, check_word, without_nulls
from components.config.data import NearDuplicateSettings
from components.config.extensions import PythonEntry
from components.config.identity import LOGISTICS, RUN
from components.config.reasoning_gym import ReasoningGymSource
from components.config.tasks import Generated
from components.config.verifiers import Verifier

TEST = "test"
"""The name of the run's own held-out prompts; suites have their own."""


class ChampionSettings(Section):
    """The checkpoint that a new one has to measure up to: a Hugging Face folder, such as the registry's champion."""

    path: Path = Field(description="The folder, relative to the folder where the command runs.")
    sha256: str | None = Field(None, description="Digest of the folder; filled in when the configuration is resolved.")


class SuiteSettings(Section):
    """What all suites have: how many of their prompts are used, and how they are judged if not as in the run."""

    prompts: int = Field(200, ge=2, description="Prompts at the most, drawn by the run's seed.")
    samples: int = Field(
        0, ge=0, description="Completions per prompt at the training temperature; 0: the greedy one alone."
    )
    max_new_tokens: int | None = Field(None, ge=1, description="null: rollout.max_new_tokens.")
    instruction: str | None = Field(None, description="Text put before every question; null: policy.instruction.")
    chat: bool | None = Field(None, description="Render with the chat template; null: policy.chat.")
    verifier: Verifier | None = Field(None, description="What is right; null: reward.verifier.")


class FileSuite(SuiteSettings):
    """A published set of problems, or one of your own, as JSON lines."""

    kind: Literal["file"]
    path: Path = Field(description="The file, relative to the folder where the command runs.")
    format: Literal["gsm8k", "math", "problem_answer", "question_answer", "prompts"] = Field(
        description="gsm8k: question, answer with ####. math: problem, solution with a box, level, subject or type. "
        "problem_answer: problem and answer, as AIME and AMC. question_answer: question and final answer, and if you "
        "like id, family, difficulty, source. prompts: a split as the data stage writes it."
    )
    sha256: str | None = Field(None, description="Digest of the file; filled in when the configuration is resolved.")


class GeneratedSuite(SuiteSettings):
    """Problems made on the spot: other ones than those of the run by their seed, harder ones by their levels."""

    kind: Literal["generated"]
    source: Generated = Field(description="The task, with its settings.")
    seed: int = Field(1, ge=0, description="Of the problems; the run's own are made with the run's seed.")
    min_difficulty: float = Field(0.0, description="Easier problems are left out.")


class ReasoningGymSuite(SuiteSettings):
    """The same with problems of the library reasoning-gym."""

    kind: Literal["reasoning_gym"]
    source: ReasoningGymSource
    seed: int = Field(1, ge=0, description="Of the problems; the run's own are made with the run's seed.")


class PythonSuite(PythonEntry, SuiteSettings):
    """Problems of a `SourceEntry` of `components.data` from outside the project."""

    group: ClassVar[str] = "evenkeel.sources"

    seed: int = Field(1, ge=0, description="Of the problems; the run's own are made with the run's seed.")


Suite = Annotated[FileSuite | GeneratedSuite | ReasoningGymSuite | PythonSuite, Field(discriminator="kind")]


class ContaminationSettings(Section):
    """When a test prompt counts as found in the training data. Equal but for case and space always does."""

    near_duplicates: NearDuplicateSettings = Field(
        NearDuplicateSettings(),
        description="`files`: not where both are generated, for those are distinct and alike on purpose.",
    )
    words: int = Field(
        13, ge=3, description="Of an n-gram that is looked for in training questions and solutions (2005.14165)."
    )
    overlap: float = Field(
        0.8,
        gt=0,
        le=1,
        description="Share of a prompt's n-grams from which on it was found (2307.09288); those that it has in common "
        "with another prompt of its suite, instructions that all repeat, do not count.",
    )


class EvaluationSettings(Section):
    """SFT checkpoint and trained policy on the same test prompts, and a champion if named."""

    prompts: Annotated[int, RUN] = Field(512, ge=2, description="Test prompts at the most.")
    samples: Annotated[int, RUN] = Field(4, ge=2, description="Completions per prompt at the training temperature.")
    ks: Annotated[tuple[Annotated[int, Field(ge=1)], ...], RUN] = Field(
        (), description="The k of pass@k and maj@k; empty: 1, 2, 4, ... and the number of samples."
    )
    bootstrap: Annotated[int, RUN] = Field(
        2000, ge=100, description="Resamples of the prompts for the confidence interval."
    )
    champion: Annotated[ChampionSettings | None, RUN] = Field(
        None, description="Judged on the same prompts with the same seeds. `evenkeel nightly` fills it in."
    )
    suites: Annotated[dict[str, Suite], RUN] = Field(
        default_factory=dict,
        description="Further prompts by name (a word): published sets, or generated ones. null takes one out that a "
        "file named under `extends` has.",
    )
    small: Annotated[int, RUN] = Field(30, ge=1, description="A slice or a bin of fewer than this is called small.")
    contamination: Annotated[ContaminationSettings, RUN] = ContaminationSettings()
    reuse: Annotated[bool, LOGISTICS] = Field(
        True,
        description="Take answers of the same checkpoint to the same prompts, settings and code from "
        ".state/evaluations of the project; they are the same to the byte. Those of servers are not kept, nor those "
        "with a verdict that failed for want of time or memory.",
    )

    _null_takes_out = field_validator("suites", mode="before")(without_nulls)

    @field_validator("suites")
    @classmethod
    def _names_are_words(cls, suites: dict[str, Suite]) -> dict[str, Suite]:
        for name in suites:
            check_word(name, "suite")
            if name == TEST:
                raise ValueError(f"a suite cannot be named {TEST!r}: so are the run's own held-out prompts")
        return suites

    def conflicts(self) -> Iterator[str]:
        if beyond := [k for k in self.ks if k > self.samples]:
            yield f"ks: pass@{beyond[0]} needs {beyond[0]} samples, and there are {self.samples} (samples)"

    def sizes(self, samples: int) -> tuple[int, ...]:
        """The k of pass@k and maj@k that can be estimated from so many samples, ascending."""
        wanted = self.ks or (*(2**i for i in range(samples.bit_length())), samples)
        return tuple(sorted({k for k in wanted if 0 < k <= samples}))
