"""Environments of the library verifiers: where the prompts come from, and who judges (https://pypi.org/project/verifiers)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import Field, JsonValue, field_validator

from components.config.answers import AnswerKind, AnswerVerifier
from components.config.extensions import MODULE, PythonEntry
from components.files import sha256_json

Name = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class VerifiersSource(PythonEntry):
    """Tasks of an environment of the library verifiers, which also runs every episode and judges it."""

    group: ClassVar[str] = "evenkeel.environments"
    whole_module: ClassVar[bool] = True

    kind: Literal["verifiers"]  # type: ignore[assignment]
    target: str = Field(
        pattern=rf"^{MODULE}$",
        max_length=200,
        description="The module that has the task set and, where it is more than one agent with one prompt, the "
        "environment; importable from the folder where the command runs, or installed.",
    )
    settings: dict[str, JsonValue] = Field(
        default_factory=dict,
        description="The library's own configuration of the environment, such as {taskset: {...}, agent: {...}}.",
    )
    rows: int = Field(ge=1, description="Tasks to take from the beginning; all of them where there are fewer.")
    max_turns: int = Field(
        16, ge=1, description="Model calls of an agent in one episode, where `settings` has no limit of its own."
    )
    timeout: float = Field(
        60.0,
        gt=0,
        description="Seconds that an environment may take between two answers of the policy. An episode that takes "
        "longer is unscorable.",
    )

    version: str | None = Field(None, description="Of the library; filled in when the configuration is resolved.")

    @property
    def digest(self) -> str:
        """Of everything that an episode depends on besides its task; part of every prompt, so that stages which read
        prompts depend on it."""
        return sha256_json(self.model_dump(mode="json", exclude={"rows"}))

    @field_validator("settings")
    @classmethod
    def _the_target_names_the_tasks(cls, settings: dict[str, JsonValue]) -> dict[str, JsonValue]:
        tasks = settings.get("taskset")
        if isinstance(tasks, dict) and "id" in tasks:
            raise ValueError("taskset.id is what `target` names; leave it out")
        return settings


class EnvironmentVerifier(AnswerVerifier):
    """The rubric of the environment in which the completion was written."""

    kind: Literal["environment"]
    answers: ClassVar[AnswerKind] = "other"
    marker: ClassVar[str | None] = None
    accuracy: Name = Field(description="The reward of the rubric that says in [0, 1] whether the task is solved.")
    rewards: tuple[Name, ...] = Field(
        (), description="Names of its other rewards, which become parts of the reward with the rubric's own weights."
    )

    @property
    def parts(self) -> tuple[str, ...]:
        return self.rewards

    def conflicts(self) -> Iterator[str]:
        if len({self.accuracy, *self.rewards}) <= len(self.rewards):
            yield "a reward is named twice: `accuracy` and `rewards` have each name once"
