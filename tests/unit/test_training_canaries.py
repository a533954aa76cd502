"""Probe sets that are due, and those that a jump forces."""

from __future__ import annotations

import pytest
from factories import Judge, policy, settings

from components.config.judgement import CanarySettings
from components.files import write_jsonl
from components.rollout import Collector, build_engine
from components.training.canaries import JUMP, Canaries
from components.types import Completion


@pytest.fixture
def build(tmp_path):
    def canaries(accuracy, **every: int) -> Canaries:
        write_jsonl(tmp_path / "probe.jsonl", [{"question": f"{i}+1=", "answer": "2"} for i in range(4)])
        micro = policy()
        tested = Collector(micro, build_engine(micro, settings().rollout), Judge(accuracy), settings().rollout)
        return Canaries(
            tested, {name: CanarySettings(path=tmp_path / "probe.jsonl", every=n) for name, n in every.items()}
        )

    return canaries


@pytest.mark.parametrize(
    ("progress", "jump", "due"),
    [
        (0, 0.0, {"often", "seldom"}),
        (1, 0.0, set()),
        (2, 0.0, {"often"}),
        (6, 0.0, {"often", "seldom"}),
        (1, JUMP, set()),
        (1, JUMP + 0.01, {"often", "seldom"}),
    ],
)
def test_a_set_is_answered_every_so_many_steps_of_progress_and_after_a_jump(build, progress, jump, due):
    found = build(lambda _: 1.0, often=2, seldom=3).measure(progress, jump)
    assert set(found) == {f"canary_{name}" for name in due} | ({"canary_min"} if due else set())


def test_the_figure_is_the_share_of_right_ones_among_those_that_could_be_judged(build):
    outcomes = iter([1.0, 0.0, None, 0.0])
    assert build(lambda _: next(outcomes), probe=1).measure(0, 0.0)["canary_probe"] == pytest.approx(1 / 3)


def test_where_nothing_could_be_judged_there_is_no_figure(build):
    assert build(lambda _: None, probe=1).measure(0, 0.0) == {}


def test_the_lowest_of_several_sets_has_a_name_of_its_own(build):
    outcomes = iter([1.0, 1.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0])
    found = build(lambda _: next(outcomes), first=1, second=1).measure(0, 0.0)
    assert found == {"canary_first": 0.75, "canary_second": 0.25, "canary_min": 0.25}


def test_answers_are_greedy_and_the_same_every_time(build):
    seen: list[Completion] = []
    canaries = build(lambda completion: seen.append(completion) or 1.0, probe=1)
    canaries.measure(0, 0.0)
    canaries.measure(1, 0.0)
    assert len(seen) == 8
    assert [c.token_ids for c in seen[:4]] == [c.token_ids for c in seen[4:]]
