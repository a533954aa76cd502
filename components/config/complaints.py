"""What pydantic finds wrong with settings, in the terms of whoever wrote them."""

from __future__ import annotations

from typing import Any

from components.printing import shortened

RANK_0 = "rank 0 of the learner runs the loop"
REMOVED = {
    "launch.kubernetes.driver": f"{RANK_0} now: give launch.kubernetes.learner the resources of both",
    "launch.kubernetes.images.driver": f"{RANK_0} now: name the image in launch.kubernetes.images.learner",
    "learner.ranks.address": f"{RANK_0} now, and the others meet it by torchrun: remove it, and set launch.kind to "
    "processes (this machine) or kubernetes (launch.kubernetes.learner)",
    "learner.ranks.shared_folder": "ranks get policy, batches and checkpoints from rank 0 and need no common folder: "
    "remove it",
}
"""Settings that are gone, and what replaces each of them."""
LONGEST = 200
"""Characters of a value that an error shows."""
NO_LIST = {"tuple_type", "list_type", "set_type", "frozen_set_type"}
BY_KIND = {"model_attributes_type", "union_tag_not_found"}
NO_SECTION = {"model_type", "dict_type", *BY_KIND}
"""What pydantic calls the errors of a value where a list, one of several kinds of section, or any section must be."""


def complaint(error: Any) -> str:
    """One error of pydantic, as a person reads it: the setting, what is wrong, and what was given."""
    key, given, kind = ".".join(str(part) for part in error["loc"]) or "combination", error["input"], error["type"]
    if kind == "extra_forbidden":
        return f"{key}: {REMOVED.get(key, 'unknown setting')}"
    if kind == "union_tag_invalid":
        name = error["ctx"]["discriminator"].strip("'_()")  # 'kind' in quotes, or the function _kind()
        return f"{key}.{name}: {_quoted(error['ctx']['tag'])} is not one of {error['ctx']['expected_tags']}"
    if kind == "union_tag_not_found" and isinstance(given, dict):
        return f"{key}: name its `kind`"
    if kind in NO_LIST:
        return f"{key}: write a list" + ("" if isinstance(given, dict) else f", such as [{given}]")
    if kind in NO_SECTION:
        by_kind = isinstance(given, str) and kind in BY_KIND
        one, many = (f"kind={given}", f"{{kind: {given}}}") if by_kind else ("NAME=VALUE", "{NAME: VALUE}")
        got = "" if by_kind or isinstance(given, list) else f" (got {_quoted(given)})"
        return f"{key}: a section of settings, not a value; write {key}.{one}, or {many}{got}"
    shown = "" if isinstance(given, (dict, list)) else f" (got {_quoted(given)})"
    return f"{key}: {error['msg'].removeprefix('Value error, ')}{shown if key != 'combination' else ''}"


def _quoted(value: object) -> str:
    return shortened(repr(value), LONGEST)
