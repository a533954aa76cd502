"""Plain functions from outside the project whose values are parts of the reward."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from components.config.base import Section
from components.config.extensions import PythonEntry

Conversational = Annotated[
    bool, Field(description="A plain function gets prompts and completions as lists of messages instead of texts.")
]


class RewardFunction(PythonEntry):
    """A function with TRL's signature; it gets ``settings`` as further arguments."""

    group: ClassVar[str] = "evenkeel.rewards"

    kind: Literal["python"] = "python"
    weight: float = Field(1.0, description="What one unit is worth; negative: a penalty; 0: it is only measured.")
    conversational: Conversational = False


Functions = dict[Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=60)], RewardFunction]


class FunctionSet(Section):
    """The settings of a worker process for reward functions."""

    kind: Literal["functions"] = "functions"
    functions: Functions = Field(description="The functions by the name of their part of the reward.")
