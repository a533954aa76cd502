"""What all generated tasks have in common: distinct prompts, named by their content, in turns, the same for a seed."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from components.config.data import DataSettings
from components.content_id import content_id, normalise
from components.tasks import TASKS
from components.types import Prompt

ROWS = 1200
SETTINGS: dict[str, dict[str, Any]] = {
    "arithmetic": {"families": ["addition", "subtraction", "multiplication"], "carry_free": 1},
    "building_rules": {"levels": 4},
    "calculator": {},
    "countdown": {},
    "stereotypes": {"levels": 2},
}
TEACHER = {"arithmetic": "forget", "building_rules": "forget", "calculator": "guess", "countdown": "give_up"}
"""Task -> the setting that says how often its teacher is wrong."""

every = pytest.mark.parametrize("task", TASKS)


def made(task: str, rows: int = ROWS, seed: int = 3, **changes: Any) -> list[Prompt]:
    section = {"kind": "generated", "task": task, "rows": rows, **SETTINGS[task], **changes}
    return TASKS[task](DataSettings.model_validate({"source": section}).source, seed)


@every
def test_prompts_are_distinct_across_families_and_levels_and_ids_are_content_hashes(task):
    prompts = made(task)
    assert len({p.id for p in prompts}) == len({normalise(p.text) for p in prompts}) == ROWS
    assert all((p.id, p.task, p.source) == (content_id(task, p.text), task, "generated") for p in prompts)


@every
def test_families_and_levels_take_turns(task):
    sizes = Counter((p.family, p.difficulty) for p in made(task))
    assert max(sizes.values()) - min(sizes.values()) <= 1
    assert len(sizes) == len({family for family, _ in sizes}) * len({level for _, level in sizes}) > 3


@every
def test_the_same_seed_gives_the_same_prompts_another_seed_others_and_more_rows_extend_the_list(task):
    prompts = made(task)
    assert made(task) == prompts
    assert made(task, rows=300) == prompts[:300]
    assert made(task, rows=300, seed=4) != prompts[:300]


@pytest.mark.parametrize("task", TEACHER)
def test_what_the_teacher_does_wrong_changes_demonstrations_only(task):
    prompts, careful = made(task), made(task, **{TEACHER[task]: 0})
    assert [replace(p, demonstration="") for p in careful] == [replace(p, demonstration="") for p in prompts]
    assert all(p.demonstration == p.solution for p in careful)
    wrong = Counter(p.family for p in prompts if p.demonstration != p.solution)
    assert all(wrong[family] > 20 for family in {p.family for p in prompts})


@pytest.mark.parametrize("task", TEACHER)
@pytest.mark.parametrize("wrong", ["none", "twice", "teacher", "levels"])
def test_impossible_settings_are_refused(task, wrong):
    family = made(task, rows=16)[0].family
    changes = {"none": {"families": []}, "twice": {"families": [family] * 2}, "levels": {"levels": 6}}
    with pytest.raises(ValidationError):
        made(task, **changes.get(wrong, {TEACHER[task]: 1.1}))
