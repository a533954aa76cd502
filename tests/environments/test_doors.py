"""The game of `make horizon`: five to seven turns, and a reward at the end alone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.benchmarks.horizon.doors import LEADS_ON, ROOMS, TURNS
from tests.environments.conftest import Scripted, Table, player, rubric, source
from tests.environments.test_episodes import GREEDY


def table(*, practice: bool) -> Table:
    taskset = {"practice": practice, "games": 40}
    of = source("higher_lower", rows=40, max_turns=TURNS, settings={"taskset": taskset})
    return Table(of.model_copy(update={"target": "tests.benchmarks.horizon.doors"}), rubric("found"))


@pytest.fixture(scope="module")
def doors() -> Iterator[Table]:
    own = table(practice=False)
    with own.process:
        yield own


def room(text: str) -> str:
    """The room that the game has named last."""
    return text.rstrip()[-2]


@pytest.mark.parametrize(("right", "turns"), [(True, ROOMS), (False, TURNS)])
def test_who_knows_the_doors_is_through_in_five_turns_and_who_does_not_has_seven(doors, right, turns):
    other = dict(zip("nesw", "eswn", strict=True))
    own = player(chat=False)
    engine = Scripted(own, lambda text: LEADS_ON[room(text)] if right else other[LEADS_ON[room(text)]])
    ((verdict,),) = [played.verdicts for played in doors.episodes(own, engine).play(doors.prompts[:1], GREEDY)]
    assert (verdict.accuracy, verdict.metrics["turns"]) == (float(right), turns)


def test_practice_is_made_of_positions_with_what_a_player_would_say_next():
    own = table(practice=True)
    with own.process:
        pass
    answers = [LEADS_ON[room(prompt.text)] == prompt.demonstration for prompt in own.prompts]
    assert 0.3 < sum(answers) / len(answers) < 0.8
    assert {prompt.text.count(":") for prompt in own.prompts} == set(range(1, TURNS + 1))
