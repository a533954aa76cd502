"""The signals of a step: what they count, and what they leave out."""

import math

import pytest

from components.config.judgement import RuleSettings
from components.health.rules import compile_rule
from components.health.signals import SIGNALS, find_signal, step_signals
from components.types import Completion, FinishReason, Group, Prompt, Score


def completion(tokens: int, finish: FinishReason = "stop") -> Completion:
    return Completion(tuple(range(tokens)), (0.0,) * tokens, finish, "")


def group(*accuracies: float | None, lengths: tuple[int, ...] = (), penalty: float = 0.0) -> Group:
    scores = tuple(
        Score(None, unscorable="timeout") if a is None else Score(a, {"overlong": penalty}) for a in accuracies
    )
    sizes = lengths or (4,) * len(scores)
    return Group(Prompt("p", "q", "a", "s"), (1,), tuple(completion(n) for n in sizes), scores)


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        (
            [group(1, 1), group(0, 0), group(0, 0), group(1, 0)],
            {"zero_variance_share": 0.75, "all_right_share": 0.25, "all_wrong_share": 0.5},
        ),
        ([group(0.5, 0.5)], {"zero_variance_share": 1, "all_right_share": 0, "all_wrong_share": 0}),  # partial credit
        (  # what could not be judged is neither right nor wrong
            [group(1, None), group(None, None)],
            {"accuracy": 1, "unscorable_share": 0.75, "all_wrong_share": 0, "zero_variance_share": 1},
        ),
        (
            [group(None, None), group(1, None), group(0, 0), group(1, 1)],
            {
                "all_unscorable_share": 0.25,
                "unscorable_share": 3 / 8,
                "all_wrong_share": 1 / 3,
                "all_right_share": 2 / 3,
            },
        ),
        ([group(1, 0, penalty=-0.25)], {"accuracy": 0.5, "reward": 0.25}),  # the reward is shaped, accuracy is raw
        (
            [group(1, 0, None, 1, lengths=(2, 10, 50, 4))],
            {"length_right": 3, "length_wrong": 10, "length_mean": 16.5},
        ),
        ([group(*[0.0] * 20, lengths=tuple(range(1, 21)))], {"length_p95": 19}),  # a length that occurred
    ],
)
def test_signals_of_groups_by_hand(groups: list[Group], expected: dict[str, float]) -> None:
    found = step_signals(groups, [], {}, 1)
    assert {name: found[name] for name in expected} == pytest.approx(expected)


def scored(*scores: Score) -> Group:
    return Group(Prompt("p", "q", "a", "s"), (1,), tuple(completion(4) for _ in scores), scores)


def test_every_part_and_every_metric_has_its_mean_over_the_scorable_completions() -> None:
    lost = Score(None, unscorable="timeout")
    groups = [
        scored(Score(1, {"tree": 0.5}, metrics={"levenshtein": 0.25}), lost),
        scored(Score(0, {"tree": -0.25, "overlong": -1.0}, weight=2.0), lost),
    ]
    found = step_signals(groups, [], {}, 1)
    assert {name: found[name] for name in found if name.startswith(("part_", "metric_"))} == {
        "part_tree": 0.125,
        "part_overlong": -1.0,
        "metric_levenshtein": 0.25,
    }
    assert found["reward"] == pytest.approx((1.5 - 1.25) / 2)


@pytest.mark.parametrize(
    ("name", "source"), [("part_overlong", "groups"), ("metric_tree_edit_distance", "groups"), ("entropy", "learner")]
)
def test_a_signal_is_documented_by_its_name_or_by_its_prefix(name: str, source: str) -> None:
    signal = find_signal(name)
    assert signal is not None
    assert signal.source == source


@pytest.mark.parametrize("name", ["part_", "metric_", "parts_x", "entrpy"])
def test_a_prefix_alone_documents_nothing(name: str) -> None:
    assert find_signal(name) is None


def test_a_rule_may_read_a_part() -> None:
    rule = RuleSettings(when="part_consistency < 0.2 and metric_parsed < 0.5", why="test")
    assert compile_rule("inconsistent", rule).signals == ["metric_parsed", "part_consistency"]


def test_signals_describe_the_sampled_groups_and_count_the_trained_ones() -> None:
    sampled = [group(1, 0), group(0, 0), group(0, 0)]
    found = step_signals(sampled, sampled[:1], {}, 3)
    assert (found["groups_sampled"], found["groups_trained"], found["attempts"]) == (3, 1, 3)
    assert found["accuracy"] == pytest.approx(1 / 6)


def test_truncated_counts_completions_that_hit_the_limit() -> None:
    g = group(1, 0)
    cut = Group(g.prompt, g.prompt_ids, (completion(4, "length"), completion(4)), g.scores)
    assert step_signals([cut], [], {}, 1)["truncated_share"] == 0.5


def test_a_mean_of_nothing_does_not_exist() -> None:
    found = step_signals([group(None, None)], [], {}, 1)
    assert {"reward", "accuracy", "zero_variance_share", "length_right"}.isdisjoint(found)
    assert found["unscorable_share"] == 1


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_value_that_is_not_finite_is_left_out_and_counted(bad: float) -> None:
    found = step_signals([group(1, 0)], [], {"loss": bad, "entropy": 0.4, "nonfinite": 2.0}, 1)
    assert "loss" not in found
    assert found["entropy"] == 0.4
    assert found["nonfinite"] == 3


def test_an_undocumented_signal_is_an_error() -> None:
    with pytest.raises(ValueError, match="entrpy"):
        step_signals([group(1, 0)], [], {"entrpy": 0.4}, 1)


def test_every_group_signal_is_documented_and_within_its_range() -> None:
    found = step_signals([group(1, 0, None), group(1, 1), group(0, 0)], [group(1, 0)], {}, 2)
    named = {name for name in found if name in SIGNALS}
    assert named - {"nonfinite"} == {name for name, signal in SIGNALS.items() if signal.source == "groups"}
    assert {name for name in found if name not in SIGNALS} == {"part_overlong"}
    assert all(SIGNALS[name].low <= found[name] <= SIGNALS[name].high for name in named)
