"""Settings of a run by which its checks pass or fail, and how far a run may loosen each: that is for the policy.

A run that searches less, or judges more kindly, leaves better figures. The limits of the gate itself and its health
rules are the policy's own; what is here decides figures that these limits are held against.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel, Field

from components.config.base import Section


class Bound(Section):
    """What a setting of a run must keep to."""

    at_least: float | None = Field(None, description="The smallest value.")
    at_most: float | None = Field(None, description="The largest value.")
    one_of: tuple[str, ...] = Field((), description="The values of a setting that is text.")

    def conflicts(self) -> Iterator[str]:
        if self.at_least is None and self.at_most is None and not self.one_of:
            yield "give at_least, at_most or one_of"

    def allows(self, value: Any) -> bool:
        """Whether a setting may have this value."""
        if self.one_of:
            return str(value) in self.one_of
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return False
        low, high = (-float("inf") if self.at_least is None else self.at_least), self.at_most
        return low <= value and (high is None or value <= high)

    def __str__(self) -> str:
        parts = [f"at least {self.at_least:g}"] if self.at_least is not None else []
        parts += [f"at most {self.at_most:g}"] if self.at_most is not None else []
        return " and ".join(parts) or f"one of {', '.join(self.one_of)}"


def at_least(value: float) -> Bound:
    return Bound(at_least=value)


def at_most(value: float) -> Bound:
    return Bound(at_most=value)


GOVERNED: Mapping[str, Bound] = {
    "admission.label_audit": Bound(one_of=("auto", "withhold")),
    "admission.max_label_rate": at_least(0.02),
    "admission.max_prompt_share": at_most(0.05),
    "admission.min_alternative_rate": at_most(0.8),
    "admission.min_distinct": at_least(8),
    "admission.samples": at_least(16),
    "audit.quick_seconds": at_most(10.0),
    "audit.repeats": at_least(2),
    "evaluation.bootstrap": at_least(1000),
    "evaluation.contamination.near_duplicates.check": Bound(one_of=("files", "all")),
    "evaluation.contamination.near_duplicates.threshold": at_most(0.9),
    "evaluation.contamination.overlap": at_most(0.8),
    "evaluation.contamination.words": at_most(13),
    "triage.min_entropy": at_least(0.18),
    "triage.min_headroom": at_least(0.05),
    "triage.min_passk_gap": at_least(0.1),
    "triage.min_teaching": at_least(1.0),
}
"""What every policy requires by default: the defaults of the settings, or what is stricter."""


def value_at(settings: BaseModel, path: str) -> Any:
    """A setting by its dotted path.

    Raises:
        LookupError: there is no such setting.
    """
    value: Any = settings
    for name in path.split("."):
        if isinstance(value, BaseModel) and name in type(value).model_fields:
            value = getattr(value, name)
        elif isinstance(value, Mapping) and name in value:
            value = value[name]
        else:
            raise LookupError(f"there is no setting {path}")
    return value


def loosened(settings: BaseModel, bounds: Mapping[str, Bound]) -> Iterator[str]:
    """Each setting that does not keep to its bound, with its value and the bound."""
    for path, bound in bounds.items():
        value = value_at(settings, path)
        if not bound.allows(value):
            yield f"{path} is {value}, and must be {bound}"
