"""Groups on disk: what one stage sampled from the base policy, and another need not sample again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from components.errors import InputError
from components.files import read_numbered_jsonl, write_jsonl
from components.types import Completion, Group, Prompt, Score

COMPLETION = ("token_ids", "logprobs", "finish_reason", "text", "sampled", "versions")


def write_groups(path: Path, groups: Iterable[Group]) -> None:
    """One line a group: the prompt's id and tokens, the completions with the sampler's log-probabilities, the scores.

    Routes of experts are left out: these groups are not trained on.
    """
    write_jsonl(path, map(_row, groups))


def read_groups(path: Path, prompts: Sequence[Prompt], samples: int) -> dict[str, Group]:
    """Id -> the first ``samples`` completions of each of the ``prompts`` that has as many.

    Raises:
        InputError: the file is missing, or a line is no group (the line number is named).
    """
    by_id = {prompt.id: prompt for prompt in prompts}
    how = "run the admission stage again"
    found: dict[str, Group] = {}
    for number, row in read_numbered_jsonl(path, how=how):
        try:
            if row["id"] in by_id and len(row["completions"]) >= samples:
                found[row["id"]] = _group(row, by_id[row["id"]], samples)
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"not a group: {error}", where=f"{path}:{number}", how=how) from error
    return found


def _row(group: Group) -> dict[str, Any]:
    return {
        "id": group.prompt.id,
        "prompt_ids": group.prompt_ids,
        "completions": [{name: getattr(one, name) for name in COMPLETION} for one in group.completions],
        "scores": [
            {
                "accuracy": score.accuracy,
                "parts": dict(score.parts),
                "unscorable": score.unscorable,
                "weight": score.weight,
                "metrics": dict(score.metrics),
            }
            for score in group.scores
        ],
    }


def _group(row: Mapping[str, Any], prompt: Prompt, samples: int) -> Group:
    return Group(
        prompt,
        tuple(row["prompt_ids"]),
        tuple(_completion(one) for one in row["completions"][:samples]),
        tuple(Score(**one) for one in row["scores"][:samples]),
    )


def _completion(row: Mapping[str, Any]) -> Completion:
    sampled = None if row["sampled"] is None else tuple(row["sampled"])
    tokens = {name: tuple(row[name]) for name in ("token_ids", "logprobs", "versions")}
    return Completion(**{**row, **tokens, "sampled": sampled})
