"""Code from outside the project, named by a setting: ``kind: python``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, JsonValue

from components.config.base import Section

MODULE = r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*"


class PythonEntry(Section):
    """An entry of a registry that is imported instead of built in. Loading a configuration imports nothing."""

    group: ClassVar[str]
    """Group of the entry points that installed packages declare for this registry."""
    counts: ClassVar[bool] = True
    """Whether a byte of the run depends on the code: it is digested then, and must be there in every stage."""
    whole_module: ClassVar[bool] = False
    """Whether the target is a module by itself instead of something in it."""

    kind: Literal["python"]
    target: str = Field(
        pattern=rf"^({MODULE}:[A-Za-z_][A-Za-z0-9_]*|[A-Za-z0-9][A-Za-z0-9_.-]*)$",
        max_length=200,
        description="package.module:attribute, importable from the folder where the command runs or installed; or the "
        "name of an entry point of an installed package.",
    )
    settings: dict[str, JsonValue] = Field(
        default_factory=dict, description="The entry's own settings, validated by its model when a stage loads it."
    )
    sha256: str | None = Field(
        None, description="Digest of its module or package; filled in when the configuration is resolved."
    )


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


def python_entries(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], PythonEntry]]:
    """Every such entry in settings, with the names that lead to it."""
    if isinstance(value, PythonEntry):
        yield path, value
    elif isinstance(value, Section):
        for name in type(value).model_fields:
            yield from python_entries(getattr(value, name), (*path, name))
    elif isinstance(value, Mapping):
        for name, member in value.items():
            yield from python_entries(member, (*path, str(name)))
