"""Building rules: sentence and expression say the same, and the forgetful teacher is wrong in one way only."""

from __future__ import annotations

import random
import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.config.tasks import BuildingRulesSource
from components.rewards.skeleton import Limits, Skeleton, parse
from components.tasks.building_rules import CONDITIONS, FAMILIES, SIZES, Phrase, Rule, draw, generate
from components.tasks.turns import careful, careless
from components.types import Prompt

LIMITS = Limits(chars=1000, nodes=100, depth=1)
CORRIDOR = Rule(
    "Every", "escape route", [Phrase("that serves more than 50 people", "people", ("over=50",))], "require",
    [Phrase("be at least 1.2 m wide", "width", ("min=1.2",), "m"), Phrase("have 2 lamps", "lamp", ("count=2",))],
)  # fmt: skip


def source(**settings: object) -> BuildingRulesSource:
    return BuildingRulesSource.model_validate({"task": "building_rules", **settings})


def read(expression: str) -> Skeleton:
    return parse(expression, LIMITS)


@pytest.fixture(scope="module")
def prompts() -> list[Prompt]:
    return generate(source(rows=3000, levels=4), seed=3)


def test_a_rule_is_a_sentence_and_an_expression():
    assert CORRIDOR.sentence == (
        "Every escape route that serves more than 50 people must be at least 1.2 m wide and must have 2 lamps."
    )
    assert CORRIDOR.expression(careful) == (
        "class EscapeRoute { if people(over=50) require width(min=1.2, unit=m) and lamp(count=2) }"
    )


def test_a_careless_writer_leaves_out_conditions_and_units_and_nothing_else():
    assert CORRIDOR.expression(careless) == "class EscapeRoute { require width(min=1.2) and lamp(count=2) }"
    ban = Rule("Any", "door", CORRIDOR.conditions, "forbid", [Phrase("be locked", "lock")])
    assert ban.expression(careless) == "class Door { forbid lock() }"


@given(st.sampled_from(list(FAMILIES)), st.sampled_from(list(SIZES)), st.integers(0, 2**20), st.floats(0, 1))
def test_whatever_is_forgotten_the_rest_is_right(family, level, seed, forget):
    rng, memory = random.Random(seed), random.Random(seed)
    rule = draw(rng, family, level)
    whole, rest = read(rule.expression(careful)), read(rule.expression(lambda: memory.random() < forget))
    assert rest.classes == whole.classes
    assert rest.functions <= whole.functions
    assert rest.parameters <= whole.parameters
    conditions = {phrase.name for phrase in rule.conditions}
    for forgotten in whole.parameters - rest.parameters:
        assert ".unit=" in forgotten or forgotten.partition(".")[0] in conditions


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("level", SIZES)
def test_a_level_is_a_number_of_conditions_and_requirements_with_names_of_their_own(family, level):
    for seed in range(40):
        rule = draw(random.Random(seed), family, level)
        conditions, requirements = SIZES[level]
        assert len(rule.conditions) == (max(1, conditions) if family == "ban" else conditions)
        assert len(rule.requirements) == requirements
        names = [phrase.name for phrase in (*rule.conditions, *rule.requirements)]
        assert len(set(names)) == len(names)


def test_every_number_and_unit_of_a_sentence_is_in_its_expression_and_the_other_way_round(prompts):
    for p in prompts:
        assert sorted(re.findall(r"\d+(?:\.\d+)?", p.text)) == sorted(re.findall(r"\d+(?:\.\d+)?", p.answer))
        for unit in re.findall(r"unit=(\w+)", p.answer):
            assert re.search(rf"\b{unit}\b", p.text)


def test_bounds_mean_what_they_say(prompts):
    for p in prompts:
        lower = len(re.findall("at least|no less than", p.text))
        assert (p.answer.count("min="), p.answer.count("max=")) == (
            lower,
            len(re.findall("at most|no more than", p.text)),
        )


def test_a_ban_is_forbidden_and_everything_else_required(prompts):
    for p in prompts:
        words = ("must not", "forbid", "require") if p.family == "ban" else ("must ", "require", "forbid")
        assert words[0] in p.text and f" {words[1]} " in p.answer and words[2] not in p.answer


def test_every_expression_is_a_skeleton_and_every_condition_and_requirement_occurs(prompts):
    seen = Counter(name for p in prompts for name in read(p.answer).functions)
    assert {draw.__name__ for draw in CONDITIONS} <= set(seen)
    assert min(seen.values()) > 10
