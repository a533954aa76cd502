"""The base of every settings section."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from components.opening import impossible

Beta = Annotated[float, Field(ge=0, lt=1)]
"""A decay rate of AdamW."""
ComputeDtype = Literal["auto", "float32", "bfloat16"]
"""Precision of the matrix products of a forward and backward pass; auto: bfloat16 on a GPU, else float32."""
Device = Literal["auto", "cpu", "cuda"]
"""What a process computes on; auto: a GPU where there is one, else the CPU."""
NUMBERS: tuple[Any, ...] = (int, float, int | None, float | None)
PATHS: tuple[Any, ...] = (Path, Path | None)
LARGEST = 10**15
"""No setting that is a whole number is larger, with either sign: no run has as many steps, tokens or bytes."""
Fraction = Annotated[float, Field(ge=0, le=1)]


def without_nulls(given: Any) -> Any:
    """A mapping without its nulls, which take out what a file named under ``extends`` has; anything else as it is."""
    return {name: one for name, one in given.items() if one is not None} if isinstance(given, dict) else given


def check_word(name: str, what: str) -> None:
    """Raise ``ValueError`` unless it can be a part of a signal's name."""
    if not (name.isascii() and name.isidentifier()):
        raise ValueError(f"{name!r} is no name of a {what}: use letters, digits and _, a digit not first")


class Section(BaseModel):
    """A group of settings: frozen, unknown keys refused, no infinities, no truth value where a number must be, no
    whole number beyond any machine, no path that no file can have. What was refused is not repeated in a traceback,
    since it may be a password in the wrong place.
    """

    model_config = ConfigDict(
        extra="forbid", frozen=True, validate_default=True, allow_inf_nan=False, hide_input_in_errors=True
    )

    @model_validator(mode="before")
    @classmethod
    def _values_can_be_what_they_are_for(cls, given: Any) -> Any:
        for name, field in cls.model_fields.items():
            value = given.get(name) if isinstance(given, dict) else None
            if isinstance(value, bool) and field.annotation in NUMBERS:
                raise ValueError(f"{name}: write a number, not {str(value).lower()}")
            if isinstance(value, int) and abs(value) > LARGEST:
                raise ValueError(f"{name}: write a number of at most {LARGEST:,}")
            if field.annotation in PATHS and isinstance(value, str | Path) and (problem := impossible(Path(value))):
                raise ValueError(f"{name}: {problem}")
        return given

    def conflicts(self) -> Iterator[str]:
        """What is wrong with settings that are right one by one; the first is raised. A section that extends another
        one continues with the other's: ``yield from super().conflicts()``.
        """
        yield from ()

    @model_validator(mode="after")
    def _settings_go_together(self) -> Self:
        for conflict in self.conflicts():
            raise ValueError(conflict)
        return self


class AdamWSettings(Section):
    """An AdamW optimizer with gradient clipping and a learning rate that warms up linearly."""

    lr: float = Field(gt=0, le=1, description="Learning rate after the warm-up.")
    warmup: int = Field(10, ge=0, description="Updates of linear warm-up; the rate is constant after it.")
    betas: tuple[Beta, Beta] = Field(
        (0.9, 0.95), description="beta_1 and beta_2, decay rates of the averages of gradient and squared gradient."
    )
    weight_decay: float = Field(
        0.0, ge=0, description="Decoupled weight decay: an update shrinks each weight by lr times this."
    )
    grad_clip: float = Field(1.0, gt=0, description="Largest norm of a gradient.")
