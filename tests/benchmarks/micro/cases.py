"""What is measured: a base, and cases that differ from it in one thing each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

Size = Literal["toy", "demo", "25M", "real"]
"""``real`` is the model of `tests.benchmarks.real`, all others have random weights."""
Precision = Literal["fp32", "bf16"]


@dataclass(frozen=True)
class Sampled:
    """A batch that is sampled: ``prompts`` x ``group`` rows of at most ``limit`` new tokens."""

    name: str = "base"
    size: Size = "demo"
    prompts: int = 4
    group: int = 8
    limit: int = 32
    vocabulary: int = 384
    endless: bool = False
    """No row ends before the limit; otherwise one token in ``limit`` ends a row."""
    memory: bool = False
    """Peak memory is measured too."""
    precision: Precision = "fp32"
    """Of weights and products, on both sides."""

    @property
    def rows(self) -> int:
        return self.prompts * self.group


@dataclass(frozen=True)
class Updated:
    """A batch that is trained on: ``prompts`` x ``group`` rows of at most ``length`` tokens, prompt included."""

    name: str = "base"
    size: Size = "demo"
    prompts: int = 2
    group: int = 8
    length: int = 64
    prompt: int = 0
    """Tokens of the longest prompt; 0: a quarter of the length."""
    vocabulary: int = 384
    without_gradient: float = 0.0
    """Share of the groups whose completions all have the same reward."""
    pass_tokens: int = 4096
    """Padded tokens of one forward and backward pass at most, on both sides."""
    memory: bool = False
    precision: Precision = "fp32"
    """Of products; weights, moments and sums of gradients are in fp32 on both sides."""
    whole: bool = False
    """Ours is measured with its logits all at once too."""

    @property
    def rows(self) -> int:
        return self.prompts * self.group


def rows_at_once(rows: int, width: int, pass_tokens: int) -> int:
    """Rows of one pass: TRL wants the same number in all of them."""
    most = max(1, min(rows, pass_tokens // width))
    return next(number for number in range(most, 0, -1) if rows % number == 0)


Case = TypeVar("Case", Sampled, Updated)


def around(base: Case, *axes: Sequence[Case]) -> dict[str, Case]:
    """All cases by name, the base first.

    Raises:
        ValueError: Two of one name.
    """
    cases = [base, *(case for axis in axes for case in axis)]
    found = {case.name: case for case in cases}
    if len(found) != len(cases):
        raise ValueError(f"two cases of one name: {[case.name for case in cases]}")
    return found


SAMPLED = around(
    sampled := Sampled(memory=True),
    [replace(sampled, name="limit 128", limit=128, memory=False), replace(sampled, name="limit 512", limit=512)],
    [replace(sampled, name="group 1", group=1, memory=False), replace(sampled, name="group 32", group=32)],
    [
        replace(sampled, name="vocabulary 32k", vocabulary=32_000, memory=False),
        replace(sampled, name="vocabulary 152k", vocabulary=151_936),
    ],
    [replace(sampled, name="25M parameters", size="25M")],
    [replace(sampled, name="no row ends", endless=True, memory=False)],
    [replace(sampled, name="a step of the demo", prompts=32, limit=40, memory=False)],
)
UPDATED = around(
    updated := Updated(memory=True),
    [replace(updated, name="length 256", length=256, memory=False), replace(updated, name="length 1024", length=1024)],
    [
        replace(updated, name="group 2", group=2, memory=False),
        replace(updated, name="group 32", group=32, memory=False),
    ],
    [
        replace(updated, name="vocabulary 32k", vocabulary=32_000, memory=False),
        replace(updated, name="vocabulary 152k", vocabulary=151_936, whole=True),
    ],
    [replace(updated, name="25M parameters", size="25M")],
    [
        replace(updated, name="10 groups", prompts=10, memory=False),
        replace(updated, name="10 groups, 3 without gradient", prompts=10, without_gradient=0.3, memory=False),
    ],
)
TOY_SAMPLED = around(Sampled("toy", "toy", prompts=2, group=2, limit=4, vocabulary=32))
TOY_UPDATED = around(
    Updated("toy", "toy", prompts=2, group=2, length=16, vocabulary=32, without_gradient=0.5, memory=True, whole=True)
)
