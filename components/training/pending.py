"""Rollouts that have been sampled and not yet trained on, as JSON lines of a checkpoint. Nothing is rounded."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from components.rollout import Rollout
from components.types import Completion, Group, Mix, Prompt, Score

Row = dict[str, Any]


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
    return {
        "token_ids": one.token_ids,
        "logprobs": _numbers(one.logprobs),
        "finish_reason": one.finish_reason,
        "text": one.text,
        "mixes": [asdict(mix) for mix in one.mixes],
        "sampled": one.sampled,
        "routes": routes,
        "versions": one.versions,
        "server": one.server,
    }


def _read_completion(row: Row) -> Completion:
    routes = row["routes"]
    return Completion(
        tuple(row["token_ids"]),
        tuple(float(value) for value in row["logprobs"]),
        row["finish_reason"],
        row["text"],
        tuple(Mix(mix["position"], tuple(mix["token_ids"]), tuple(mix["weights"])) for mix in row["mixes"]),
        None if row["sampled"] is None else tuple(row["sampled"]),
        None if routes is None else np.array(routes["values"], routes["type"]),
        tuple(row["versions"]),
        row["server"],
    )


def _score(one: Score) -> Row:
    """Parts and metrics as pairs: sums over them depend on their order, which JSON with sorted keys would change."""
    return {
        "accuracy": one.accuracy,
        "parts": [[name, *_numbers([value])] for name, value in one.parts.items()],
        "unscorable": one.unscorable,
        "weight": one.weight,
        "metrics": [[name, *_numbers([value])] for name, value in one.metrics.items()],
    }


def _read_score(row: Row) -> Score:
    parts, metrics = ({name: float(value) for name, value in row[kind]} for kind in ("parts", "metrics"))
    return Score(row["accuracy"], parts, row["unscorable"], row["weight"], metrics)


def _numbers(values: Sequence[float]) -> list[float | str]:
    """JSON has no NaN and no infinity; they are written as text."""
    return [value if math.isfinite(value) else str(value) for value in values]
