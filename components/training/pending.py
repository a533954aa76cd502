"""Rollouts that have been sampled and not yet trained on, as JSON lines of a checkpoint. Nothing is rounded."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any

import numpy as np

from components.rollout import Rollout
from components.types import Completion, Group, Mix, Prompt, Score

Row = dict[str, Any]
PAIRS = ("parts", "metrics")


def to_row(rollout: Rollout) -> Row:
    """The rollout as plain JSON; prompts are named by their ids."""
    places = {id(group): place for place, group in enumerate(rollout.sampled)}
    return {
        "sampled": [_group(group) for group in rollout.sampled],
        "trained": [places[id(group)] for group in rollout.trained],
        "attempts": rollout.attempts,
        "schedule": dict(rollout.schedule),
    }


def from_row(row: Row, prompts: Mapping[str, Prompt]) -> Rollout:
    """What `to_row` has written; ``prompts`` by their ids."""
    sampled = tuple(_read_group(one, prompts) for one in row["sampled"])
    return Rollout(sampled, tuple(sampled[place] for place in row["trained"]), row["attempts"], row["schedule"])


def _group(group: Group) -> Row:
    return {
        "prompt": group.prompt.id,
        "prompt_ids": group.prompt_ids,
        "completions": [_completion(one) for one in group.completions],
        "scores": [_score(one) for one in group.scores],
    }


def _read_group(row: Row, prompts: Mapping[str, Prompt]) -> Group:
    completions = tuple(_read_completion(one) for one in row["completions"])
    scores = tuple(_read_score(one) for one in row["scores"])
    return Group(prompts[row["prompt"]], tuple(row["prompt_ids"]), completions, scores)


def _completion(one: Completion) -> Row:
    routes = None if one.routes is None else {"type": str(one.routes.dtype), "values": one.routes.tolist()}
    row = {field.name: getattr(one, field.name) for field in fields(one)}
    return row | {"logprobs": _numbers(one.logprobs), "mixes": [asdict(mix) for mix in one.mixes], "routes": routes}


def _read_completion(row: Row) -> Completion:
    routes, mixes = row["routes"], tuple(Mix(**_as_tuples(mix)) for mix in row["mixes"])
    read = {
        "logprobs": tuple(map(float, row["logprobs"])),
        "mixes": mixes,
        "routes": None if routes is None else np.array(routes["values"], routes["type"]),
    }
    return Completion(**_as_tuples(row) | read)


def _score(one: Score) -> Row:
    """Parts and metrics as pairs: sums over them depend on their order, which JSON with sorted keys would change."""
    row = {field.name: getattr(one, field.name) for field in fields(one)}
    return row | {kind: [[name, *_numbers([value])] for name, value in row[kind].items()] for kind in PAIRS}


def _read_score(row: Row) -> Score:
    return Score(**row | {kind: {name: float(value) for name, value in row[kind]} for kind in PAIRS})


def _numbers(values: Sequence[float]) -> list[float | str]:
    """JSON has no NaN and no infinity; they are written as text."""
    return [value if math.isfinite(value) else str(value) for value in values]


def _as_tuples(row: Row) -> Row:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in row.items()}
