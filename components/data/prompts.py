"""Reading back the prompts that the data stage wrote."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from components.errors import InputError
from components.files import read_numbered_jsonl
from components.seeds import derive
from components.types import Prompt


def read_prompts(path: Path) -> list[Prompt]:
    """All prompts of one split file, in the order of the file.

    Raises:
        InputError: the file is missing, or a line is not a prompt (the line number is named).
    """
    prompts = []
    for number, row in read_numbered_jsonl(path, how="run the data stage again"):
        try:
            prompts.append(Prompt(**row))
        except TypeError as error:
            raise InputError(
                f"not a prompt: {error}", where=f"{path}:{number}", how="run the data stage again"
            ) from error
    return prompts


def read_admitted(split: Path, flags: Path) -> list[Prompt]:
    """The prompts of a split without those that the admission stage withholds.

    Raises:
        InputError: either file is missing or is not what its stage writes.
    """
    how = "run the admission stage again"
    withheld = {row["id"] for _, row in read_numbered_jsonl(flags, how=how) if row["withheld"]}
    return [prompt for prompt in read_prompts(split) if prompt.id not in withheld]


def nested(prompts: Sequence[Prompt], count: int, seed: int) -> list[Prompt]:
    """At most ``count`` of the prompts, drawn by seed and kept in their order; of fewer, or of some of them, it draws
    the same ones as far as they are there. So two stages with one seed look at the same prompts where they can."""
    if count >= len(prompts):
        return list(prompts)
    order = sorted(range(len(prompts)), key=lambda place: derive(seed, prompts[place].id))
    return [prompts[place] for place in sorted(order[:count])]


def subset(prompts: Sequence[Prompt], count: int, seed: int) -> list[Prompt]:
    """At most ``count`` of the prompts, drawn by seed and kept in their order."""
    if count >= len(prompts):
        return list(prompts)
    chosen = np.random.default_rng(seed).choice(len(prompts), size=count, replace=False)
    return [prompts[int(i)] for i in np.sort(chosen)]
