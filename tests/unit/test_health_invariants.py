"""What holds in every step of a sound run: exactly that passes, and anything else is named with its part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from factories import group, settings

from components.health.invariants import INVARIANTS, broken, broken_signals
from components.health.sampling_rules import Facts
from components.health.signals import find_signal
from components.types import Completion, Group, Prompt

END = 9
WELL = [[5, 6, 7, 8], [5, END], [END], [5, 6, 7, END]]
"""Four completions of at most four tokens."""


def sampled(ids: Any = WELL, **changes: Any) -> Group:
    found = group([1, 0, 1, 0][: len(ids)], tokens=ids)
    completions = [
        Completion(one, (-1.0,) * len(one), "stop" if one[-1] == END else "length", "") for one in map(tuple, ids)
    ]
    return Group(found.prompt, found.prompt_ids, tuple(completions), found.scores)


def wrong(signals: Mapping[str, float] | None = None, groups: Any = None, **sections: Any) -> dict[str, str]:
    facts = Facts(settings(**sections), signals or {}, groups or [sampled()], {END})
    return {one.name: one.found for one in broken(facts)}


@pytest.mark.parametrize("lr", [1e-2, 0.5e-2])
def test_a_rate_is_the_configured_one_or_a_share_of_it_while_it_warms_up(lr: float) -> None:
    assert wrong({"lr": lr}) == {}  # two updates of warm-up


@pytest.mark.parametrize("lr", [8e-2, 0.7e-2, 1.001e-2, 0.0])
def test_any_other_rate_is_named(lr: float) -> None:
    assert list(wrong({"lr": lr})) == ["learning_rate"]


def test_a_step_without_an_update_has_no_rate_to_check() -> None:
    assert wrong({}) == {}


@pytest.mark.parametrize(
    ("objective", "signals", "names"),
    [
        ({"kl": {"kind": "k2", "beta": 0.01}}, {"kl_beta": 0.01}, []),
        ({"kl": {"kind": "k2", "beta": 0.01}}, {"kl_beta": 0.1}, ["coefficients"]),
        ({"kl": {"kind": "k2", "beta": 0.01, "target": {"value": 0.1}}}, {"kl_beta": 0.1}, []),
        ({"entropy": {"coef": 0.01}}, {"entropy_coef": 0.0}, ["coefficients"]),
        ({"entropy": {"coef": 0.01, "target": {"value": 0.2}}}, {"entropy_coef": 0.0}, []),
    ],
)
def test_coefficients_are_the_configured_ones_unless_they_follow_a_measurement(
    objective: dict[str, Any], signals: dict[str, float], names: list[str]
) -> None:
    assert list(wrong(signals, objective=objective)) == names


def test_completions_end_by_an_end_token_or_at_the_limit() -> None:
    assert wrong() == {}
    cut = sampled()
    short = Completion((5, 6), (-1.0, -1.0), "length", "")
    silent = Completion((5, 6), (-1.0, -1.0), "stop", "")
    long = Completion((5,) * 5, (-1.0,) * 5, "length", "")
    for bad in (short, silent, long):
        one = Group(cut.prompt, cut.prompt_ids, (bad, *cut.completions[1:]), cut.scores)
        assert wrong(groups=[one])["ends"].startswith("1 of 4 completions end otherwise")


def test_log_probabilities_are_as_many_as_tokens_and_not_above_0() -> None:
    good = sampled()
    for bad in (Completion((END,), (-1.0, -1.0), "stop", ""), Completion((END,), (0.5,), "stop", "")):
        one = Group(good.prompt, good.prompt_ids, (bad, *good.completions[1:]), good.scores)
        assert list(wrong(groups=[one])) == ["logprobs"]


def test_a_group_has_as_many_completions_as_the_settings_say() -> None:
    assert wrong(groups=[sampled(WELL[:3])]) == {"group_sizes": "a group has 3 completions; rollout.group_size is 4"}


def test_every_part_has_a_signal_that_is_0_where_all_holds() -> None:
    parts = {part for part, _ in INVARIANTS.values()}
    found = broken_signals([])
    assert found == {f"broken_{part}": 0.0 for part in parts}
    assert all(find_signal(name) is not None for name in found)


def test_prompts_that_are_trained_on_are_those_of_the_split() -> None:
    good = sampled()
    known = {good.prompt.id: good.prompt}
    other = replace(good, prompt=replace(good.prompt, answer="7"))

    def found(trained: Group, prompts: Mapping[str, Prompt]) -> list[str]:
        return [one.name for one in broken(Facts(settings(), {}, [good], {END}, trained=[trained], prompts=prompts))]

    assert found(good, known) == [] and found(other, {}) == []
    assert found(other, known) == ["prompts"] and found(good, {"another": good.prompt}) == ["prompts"]


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"rejudged": [("p1", 1.0, 1.0), ("p2", 0.0, 0.0)]}, {}),
        ({"rejudged": [("p1", 1.0, 1.0), ("p2", 0.0, 1.0)]}, {"verdicts": "verifier"}),
        ({"agreement": {"even": 2.0, "odd": 0.0}}, {}),
        ({"agreement": {"even": 2.0, "odd": -0.5}}, {"advantages": "learner"}),
        ({"signals": {"optimizer_lag": 0.0}}, {}),
        ({"signals": {"optimizer_lag": 3.0}}, {"optimizer_steps": "learner"}),
    ],
)
def test_verdicts_advantages_and_moments_are_what_they_must_be(changes: dict[str, Any], named: dict[str, str]) -> None:
    facts = replace(Facts(settings(), {}, [sampled()], {END}), **changes)
    assert {one.name: one.part for one in broken(facts)} == named
