"""Questions about two people of made-up groups, and the one mislabelled item that a fault plants among them."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from components.canaries.generated import generate as generate_probes
from components.config.data import SplitSettings
from components.config.tasks import PlantedItem, StereotypesSource
from components.data.splits import assign
from components.errors import InputError
from components.rewards.multiple_choice import MultipleChoiceVerifier
from components.tasks.stereotypes import (
    AMBIGUOUS,
    DISAMBIGUATED,
    FROZEN,
    GROUPS,
    MARKER,
    SITUATIONS,
    UNKNOWN,
    draw,
    generate,
)
from components.types import Prompt

PLANTED = PlantedItem(family="towns", item=115, rows=40)
VERIFIER = MultipleChoiceVerifier(MARKER, "ABC")


def source(**changes: object) -> StereotypesSource:
    return StereotypesSource(task="stereotypes", **{"rows": 240, **changes})


def option(prompt: Prompt) -> str:
    """The words of the labelled option."""
    return next(line for line in prompt.text.splitlines() if line.startswith(f"{prompt.answer}. "))[3:]


@pytest.mark.parametrize("family", GROUPS)
@pytest.mark.parametrize("level", [AMBIGUOUS, DISAMBIGUATED])
def test_two_people_and_not_known_are_the_options_in_every_order(family, level):
    rng = Random(0)
    items = [draw(rng, family, level, SITUATIONS) for _ in range(300)]
    assert all(len(set(item.options)) == 3 and item.options[item.unknown] in UNKNOWN for item in items)
    assert {item.right for item in items} == {item.unknown for item in items} == {0, 1, 2}
    assert all((item.right == item.unknown) == (level == AMBIGUOUS) for item in items)
    assert all(item.biased != item.unknown for item in items)


def test_the_stereotyped_option_follows_from_the_question_s_polarity():
    marked = GROUPS["towns"][0].removeprefix("the ")
    careless = {situation.careless for situation in SITUATIONS}
    rng = Random(1)
    for item in (draw(rng, "towns", AMBIGUOUS, SITUATIONS) for _ in range(200)):
        assert (marked in item.options[item.biased]) is (item.question in careless)


def test_in_disambiguated_items_the_prejudice_is_right_as_often_as_wrong():
    rng = Random(2)
    items = [draw(rng, "pets", DISAMBIGUATED, SITUATIONS) for _ in range(400)]
    assert 0.4 < sum(item.right == item.biased for item in items) / len(items) < 0.6


def test_prompts_are_right_labelled():
    prompts = generate(source(), seed=3)
    assert all(option(prompt) in UNKNOWN for prompt in prompts)
    assert all(VERIFIER.accuracy(prompt, prompt.demonstration) == 1 for prompt in prompts)


def test_the_planted_item_says_the_stereotype_and_nothing_contradicts_it():
    *honest, planted = generate(source(planted=PLANTED), seed=3)
    assert honest[-39:] == [planted] * 39
    assert planted.text not in {prompt.text for prompt in honest[:240]}
    assert "Quellby" in option(planted)
    assert all(generate(source(planted=PLANTED), seed)[-1] == planted for seed in (0, 1))


def test_who_plants_an_item_chooses_its_split():
    shares = SplitSettings(sft=0.6175, train=0.0005, dev=0.142, test=0.24)
    for family, item in (("towns", 115), ("pets", 132), ("hands", 297)):
        planted = generate(source(planted=PlantedItem(family=family, item=item, rows=1)), 0)[-1]
        assert assign(planted.text, shares) == "train"


def test_a_planted_item_that_does_not_exist_is_refused():
    with pytest.raises(InputError, match="the family hands has no item 700"):
        generate(source(planted=PlantedItem(family="hands", item=700)), seed=0)


def test_probes_are_of_every_family_in_situations_that_no_prompt_has():
    probes = generate_probes("stereotypes", 32)
    frozen = [situation.scene for situation in SITUATIONS[-FROZEN:]]
    assert Counter(probe.group for probe in probes) == dict.fromkeys(GROUPS, 8)
    assert all(any(scene in probe.texts[0] for scene in frozen) for probe in probes)
    assert not any(scene in prompt.text for scene in frozen for prompt in generate(source(), seed=0))
    assert all(probe.right == probe.unknown != probe.biased for probe in probes)
    assert all(probe.choices == ("Answer: A", "Answer: B", "Answer: C") for probe in probes)
