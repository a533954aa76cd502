"""Which option a checkpoint gives its probability to, by role and by letter: questions of the task `stereotypes`.

    python -m tests.benchmarks.roles DATA/dev.jsonl SFT/checkpoint TRAIN/checkpoint

A policy that has learned a letter answers it whatever it says; one that has learned the prejudice takes the stereotyped
option whatever its letter. So roles are given twice: over all options, and with every letter counted alike.
"""

from __future__ import annotations

import argparse
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from components.canaries.measuring import scores_of
from components.config.policy import PolicySettings
from components.data.prompts import read_prompts
from components.policy import Policy, load_policy
from components.tasks.stereotypes import GROUPS, SITUATIONS, UNKNOWN, answer
from components.types import Prompt

ROLES = ("stereotyped", "other", "not known")


class Option(NamedTuple):
    """One option of a question: its place, its role, and its share of the probability of all options."""

    place: int
    role: str
    share: float


def roles(text: str, family: str) -> list[str]:
    """The role of every option of an ambiguous question, from the text of the prompt."""
    asked, *options = text.splitlines()
    careless = any(asked.endswith(situation.careless) for situation in SITUATIONS)
    return [_role(option.partition(". ")[2], GROUPS[family][0], careless) for option in options]


def _role(option: str, marked: str, careless: bool) -> str:
    if option in UNKNOWN:
        return "not known"
    return "stereotyped" if (option.lower() == marked.lower()) == careless else "other"


def options_of(policy: Policy, prompts: Sequence[Prompt]) -> list[Option]:
    """Every option of every question, with its share under a policy."""
    by_prompt = [roles(prompt.text, prompt.family) for prompt in prompts]
    rows = [
        (policy.encode_prompt(prompt.text), policy.encode_answer(answer(place)))
        for prompt, found in zip(prompts, by_prompt, strict=True)
        for place in range(len(found))
    ]
    scores = iter(scores_of(policy, 1.0)(rows))
    options = []
    for found in by_prompt:
        weights = [math.exp(next(scores)) for _ in found]
        options += [Option(place, role, weights[place] / sum(weights)) for place, role in enumerate(found)]
    return options


def by_role(options: Iterable[Option], questions: int) -> dict[str, float]:
    """Share of the probability that options of a role have."""
    return {role: sum(one.share for one in options if one.role == role) / questions for role in ROLES}


def letters_alike(options: Iterable[Option]) -> dict[str, float]:
    """The mean share of an option of a role, every letter counted alike; a letter alone gives 1/3 to each."""
    cells: dict[tuple[str, int], list[float]] = defaultdict(list)
    for one in options:
        cells[one.role, one.place].append(one.share)
    return {role: fmean(fmean(shares) for (of, _), shares in cells.items() if of == role) for role in ROLES}


def by_letter(options: Iterable[Option], questions: int) -> dict[str, float]:
    """Share of the probability that each letter has."""
    return {"ABC"[place]: sum(one.share for one in options if one.place == place) / questions for place in range(3)}


def main(arguments: Sequence[str] | None = None) -> None:
    """Print three lines for every checkpoint."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("split", type=Path)
    parser.add_argument("checkpoints", type=Path, nargs="+")
    parser.add_argument("--prompts", type=int, default=36)
    given = parser.parse_args(arguments)
    prompts = read_prompts(given.split)[: given.prompts]
    for checkpoint in given.checkpoints:
        options = options_of(load_policy(checkpoint, PolicySettings()), prompts)
        print(f"{checkpoint}, {len(prompts)} questions")
        for name, shares in (
            ("roles", by_role(options, len(prompts))),
            ("roles, letters alike", letters_alike(options)),
            ("letters", by_letter(options, len(prompts))),
        ):
            print(f"  {name}: " + ", ".join(f"{key} {share:.2f}" for key, share in shares.items()))


if __name__ == "__main__":
    main()
