"""Golden items: what is kept, when it is shown again, and what of it differs."""

from __future__ import annotations

from dataclasses import replace

from factories import group, prompts, score

from components.training.golden import FAMILIES, SHOWN, Golden, rejudged


def learned(count: int = 8) -> Golden:
    golden = Golden()
    golden.learn([group([1, 1, 0, 0, None], prompt=one) for one in prompts(count)])
    return golden


def test_each_family_has_two_right_and_two_wrong_items_of_different_prompts() -> None:
    items = learned().items
    assert [(item.prompt.id, item.accuracy) for item in items] == [
        (name, accuracy) for name in ("p000", "p001", "p002", "p003") for accuracy in (1, 0)
    ]


def test_of_many_families_the_first_have_items() -> None:
    golden = Golden()
    several = [replace(one, family=one.id) for one in prompts(FAMILIES + 3)]
    golden.learn([group([1, 0], prompt=one) for one in several])
    assert len({item.prompt.family for item in golden.items}) == FAMILIES


def test_every_item_has_its_turn() -> None:
    golden = Golden()
    golden.learn([group([1, 0], prompt=replace(one, family=one.id)) for one in prompts(SHOWN)])
    shown = [item for step in range(2) for item in golden.due(step)]
    assert len(golden.due(0)) == SHOWN and shown == golden.items
    assert Golden().due(3) == []


def test_an_item_differs_where_its_accuracy_is_another_and_is_left_out_where_there_is_none() -> None:
    items = learned().items[:3]
    found = rejudged(items, [score(1), score(1), score(None)])
    assert [(one.item.accuracy, one.accuracy, one.differs) for one in found] == [(1, 1, False), (0, 1, True)]


def test_items_outlive_a_restart() -> None:
    golden, again = learned(), Golden()
    again.load_state_dict(golden.state_dict())
    assert again.items == golden.items and again.items[0].judged[1][0].token_ids == (30,)
