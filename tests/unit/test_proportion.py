"""How much the stages before training may ask of the policy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from components.config import Settings
from components.files import append_line
from components.kept_groups import read_groups, write_groups
from components.proportion import FEWEST, MOST, SampleSize, audit_sample, ranked_prompts, triage_sample
from components.rollout.collect import joined
from components.types import Completion, Group, Score
from tests.unit.factories import prompts


def of(steps: int, group_size: int = 8, **sections: Any) -> Settings:
    tree = {"train": {"steps": steps, "prompts_per_step": 8}, "rollout": {"group_size": group_size}, **sections}
    return Settings.model_validate(tree)


@pytest.mark.parametrize(("steps", "prompts"), [(1, FEWEST), (160, 64), (10_000, MOST)])
def test_triage_takes_a_twentieth_of_what_training_samples_between_two_limits(steps: int, prompts: int) -> None:
    assert triage_sample(of(steps)) == SampleSize(prompts, 8)


def test_a_longer_run_pays_for_a_larger_audit() -> None:
    assert [audit_sample(of(steps)).prompts for steps in (1, 160, 10_000)] == [FEWEST, 64, 4000]


def test_groups_of_triage_are_those_of_training_and_not_too_small() -> None:
    assert [triage_sample(of(40, group_size=size)).samples for size in (2, 8, 16)] == [8, 8, 16]


def test_the_audit_first_samples_what_serves_triage_and_never_more_than_it_may() -> None:
    assert audit_sample(of(40, admission={"samples": 4})).samples == 4
    assert audit_sample(of(40, group_size=16)).samples == 16


def test_numbers_are_taken_as_they_are() -> None:
    chosen = of(40, triage={"prompts": 5, "samples": 9}, admission={"prompts": 7})
    assert (triage_sample(chosen), audit_sample(chosen).prompts) == (SampleSize(5, 9), 7)


def test_only_ads_has_prompts_ranked_and_as_many_as_its_run_can_get_to() -> None:
    ads = {"kind": "ads", "window": 4, "active": 2}
    assert ranked_prompts(of(40)) is None
    assert ranked_prompts(of(40, schedule=ads, clusters={"k": 3})) == (40 + 4) * 3 * 4
    assert ranked_prompts(of(40, schedule=ads, clusters={"k": 3, "prompts": 99})) == 99


# Groups that one stage keeps for another


def group(number: int, samples: int) -> Group:
    completions = tuple(
        Completion((1, 2 + i), (-0.5, -0.25), "stop", "ab", sampled=(True, False)) for i in range(samples)
    )
    scores = (Score(1.0, {"format": 0.5}), *(Score(None, unscorable="timeout") for _ in range(samples - 1)))
    return Group(prompts(3)[number], (7, 8), completions, scores)


def test_groups_come_back_as_they_were_and_short_ones_are_left_out(tmp_path: Path) -> None:
    path, whole = tmp_path / "base.jsonl", group(0, 3)
    write_groups(path, [whole, group(1, 2)])
    assert read_groups(path, prompts(3), 3) == {"p000": whole}
    assert read_groups(path, prompts(3), 2)["p000"] == group(0, 2)
    assert read_groups(path, prompts(3)[1:], 2).keys() == {"p001"}


def test_two_groups_of_one_prompt_are_joined() -> None:
    both = joined(group(0, 1), group(0, 2))
    assert len(both.completions) == len(both.scores) == 3


def test_a_line_that_is_no_group_is_named(tmp_path: Path) -> None:
    append_line(tmp_path / "base.jsonl", {"id": "p000"})
    with pytest.raises(Exception, match=r"not a group: 'completions'\n.*base\.jsonl:1"):
        read_groups(tmp_path / "base.jsonl", prompts(3), 1)
