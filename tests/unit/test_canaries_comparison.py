"""Before and after training: falls, what so many probes can show, the file, and the gate's answer."""

from __future__ import annotations

from pathlib import Path

import pytest
from factories import Judge, settings, workspace

from components.canaries.comparison import compared, worst
from components.canaries.figures import Limit, falls, gravest, margin_falls
from components.canaries.items import Measured, Outcome, Probe, ProbeSet
from components.canaries.verdict import judge_canaries
from components.config import load
from components.config.canaries import CanarySettings, RequiredCanary
from components.errors import InputError
from components.files import read_json, sha256_tree, write_jsonl
from components.stages import canaries as stage
from components.types import StepRecord


def probe_set(count, strata=("",)) -> ProbeSet:
    probes = (Probe(str(i), ("?",), "pattern", stratum=strata[i % len(strata)]) for i in range(count))
    return ProbeSet("s", tuple(probes), "5e7")


def side(probes, values, by="generation", margin=None):
    outcomes = tuple(Outcome(value, margin=margin) for value in values)
    return {("s", by): Measured(probes, by, outcomes)}


def found(before, after, *, count=100, strata=("",), margins=(None, None), **fields):
    """What `out/canaries.json` says of one set, and its settings; scores are shares that are right."""
    one = CanarySettings(**{"path": "p", **fields})
    probes, by = probe_set(count, strata), one.by[0]
    values = [[1.0] * round(share * count) + [0.0] * (count - round(share * count)) for share in (before, after)]
    sides = {name: side(probes, v, by, m) for name, v, m in zip(("sft", "trained"), values, margins, strict=True)}
    return compared({"s": probes}, {"s": one}, sides, ()), {"s": one}


# Falls


def test_a_fall_is_paired_by_probe():
    """Of a hundred probes ten are lost and ten are won: no fall, and a standard error that says how sure that is."""
    (drop,) = falls(probe_set(100), [1.0] * 50 + [0.0] * 50, [0.0] * 10 + [1.0] * 50 + [0.0] * 40)
    assert drop.mean == 0
    assert drop.se == pytest.approx((0.2 / 99) ** 0.5)


def test_probes_that_could_not_be_judged_on_one_side_are_no_fall():
    (drop,) = falls(probe_set(4), [1.0, None, 1.0, 0.0], [None, 1.0, 0.0, 0.0])
    assert (drop.n, drop.mean) == (2, 0.5)


@pytest.mark.parametrize(
    ("fallen", "count", "verdict"),
    [
        (0, 200, "pass"),
        (0, 20, "inconclusive"),  # with twenty probes 15 points may be lost unseen
        (8, 200, "pass"),  # four points
        (12, 200, "fail"),
        (3, 40, "inconclusive"),  # 7.5 points, 1.8 standard errors: beyond the limit, and perhaps not real
        (12, 40, "fail"),
    ],
)
def test_a_fall_is_judged_by_its_size_and_by_what_so_many_probes_can_show(fallen, count, verdict):
    (drop,) = falls(probe_set(count), [1.0] * count, [0.0] * fallen + [1.0] * (count - fallen))
    assert drop.verdict(Limit(0.05, 2.0)) == verdict


@pytest.mark.parametrize("error_limit", [0.0, 2.0])
def test_one_probe_is_never_enough_to_be_sure_of_a_fall(error_limit):
    (drop,) = falls(probe_set(1), [1.0], [0.0])
    assert drop.verdict(Limit(0.05, error_limit)) == "inconclusive" and not drop.beyond(Limit(0.05, error_limit))
    assert (drop.to_dict()["low"], drop.to_dict()["high"]) == (None, None)
    content, chosen = found(1.0, 1.0, count=1, margins=(3.0, 1.0), **MARGIN | {"max_drop": 1.0})
    result, text = judge_canaries(content, chosen, {})
    assert result == "inconclusive" and "1 margin could be compared, which is too few" in text


def test_the_gravest_stratum_speaks_for_the_set():
    drops = falls(probe_set(200, ("a", "b")), [1.0, 0.0] * 100, [0.0, 1.0] * 100)
    assert gravest(drops, Limit(0.05, 2.0)).stratum == "a"


@pytest.mark.parametrize("config", ["configs/demo.yaml", "configs/faults/one-item.yaml"])
def test_every_shipped_set_has_enough_probes_to_show_a_fall_of_its_limit(config):
    for name, one in load(Path(config)).health.canaries.items():
        (drop,) = falls(probe_set(one.items), [1.0] * one.items, [1.0] * one.items)
        assert drop.verdict(Limit(one.max_drop, one.max_drop_se)) == "pass", name


# The file


def test_every_side_has_its_figures_and_the_fall_its_interval():
    content, _ = found(0.9, 0.5)
    way = content["sets"]["s"]["by"]["generation"]
    assert (way["sft"]["score"], way["trained"]["score"], way["verdict"]) == (0.9, 0.5, "fail")
    assert way["drop"]["mean"] == pytest.approx(0.4)
    assert way["drop"]["low"] < 0.35 < 0.45 < way["drop"]["high"]
    assert content["sets"]["s"]["max_drop"] == 0.05


def test_without_sets_the_file_says_so():
    assert "no probe sets are configured" in compared({}, {}, {}, ())["said"]


def test_the_worst_while_training_has_its_step():
    rows = [StepRecord(step, {"canary_s": score} if step % 2 == 0 else {}) for step, score in enumerate([0.9, 0, 0.2])]
    assert worst("s", "generation", rows) == {"score": 0.2, "step": 2, "first": 0.9}
    assert worst("s", "likelihood", rows) is None


# The gate


@pytest.mark.parametrize(
    ("case", "result", "said"),
    [
        (found(1.0, 1.0), "pass", "1 probe sets kept"),
        (found(1.0, 0.8), "fail", "s by generation -20.0 points, limit -5.0"),
        (found(1.0, 0.8, level="warn"), "inconclusive", "-20.0 points"),
        (found(1.0, 1.0, count=20), "inconclusive", "20 probes show no fall below 15.0 points"),
        (found(1.0, 1.0, by=("likelihood",), margins=(3.0, 1.0), max_margin_drop=1.0), "fail", "fell by 2.00 nats"),
    ],
)
def test_the_gate_judges_the_recorded_falls_again(case, result, said):
    answer, text = judge_canaries(*case, {})
    assert answer == result
    assert said in text


MARGIN = {"by": ("likelihood",), "max_margin_drop": 1.0}


@pytest.mark.parametrize("limit", [1.0, None])
def test_a_margin_that_is_no_finite_number_any_more_is_a_fall_beyond_every_limit(limit):
    content, chosen = found(0.0, 0.0, margins=(-20.0, None), **MARGIN | {"max_margin_drop": limit})
    judged = judge_canaries(content, chosen, {})
    assert content["sets"]["s"]["by"]["likelihood"]["verdict"] == judged[0] == ("pass" if limit is None else "fail")
    assert ("the margin of 100 probes is no finite number any more" in judged[1]) is (limit is not None)


def test_one_probe_that_lost_its_margin_is_enough_and_one_that_never_had_one_is_none():
    probes = probe_set(3)
    (drop,) = margin_falls(probes, [1.0, None, 1.0], [1.0, None, None])
    assert (drop.lost, drop.n, drop.beyond(Limit(10.0, 2.0))) == (1, 1, True)
    (drop,) = margin_falls(probes, [1.0, None, None], [1.0, None, 1.0])
    assert (drop.lost, drop.beyond(Limit(10.0, 2.0))) == (0, False)


@pytest.mark.parametrize(
    "change",
    [
        lambda way: way.pop("margin_drops"),
        lambda way: way["margin_drops"].clear(),
        lambda way: way["margin_drops"].pop(),
        lambda way: way["margin_drops"][0].pop("lost"),  # by a version that did not count them
    ],
)
def test_a_margin_that_is_judged_and_not_on_record_for_every_part_of_the_set_fails(change):
    content, chosen = found(1.0, 1.0, strata=("a", "b"), count=200, margins=(3.0, 3.0), **MARGIN)
    assert judge_canaries(content, chosen, {})[0] == "pass"
    change(content["sets"]["s"]["by"]["likelihood"])
    result, text = judge_canaries(content, chosen, {})
    assert result == "fail"
    assert "its margin is not on record" in text
    assert judge_canaries(content, {"s": chosen["s"].model_copy(update={"max_margin_drop": None})}, {})[0] == "pass"


def test_where_no_margin_could_be_compared_a_person_is_asked():
    result, text = judge_canaries(*found(1.0, 1.0, margins=(None, 3.0), **MARGIN), {})
    assert result == "inconclusive"
    assert "no margin could be compared" in text


def test_a_verdict_in_the_file_counts_for_nothing():
    content, chosen = found(1.0, 0.5)
    content["sets"]["s"]["by"]["generation"]["verdict"] = "pass"
    assert judge_canaries(content, chosen, {})[0] == "fail"


@pytest.mark.parametrize(
    ("required", "result", "said"),
    [
        ({"s": RequiredCanary()}, "pass", "kept"),
        ({"other": RequiredCanary()}, "fail", "the run has none of that name"),
        ({"s": RequiredCanary(sha256="0" * 64)}, "fail", "not the probe set that the policy asks for"),
        ({"s": RequiredCanary(max_drop=0.03)}, "fail", "limit -3.0"),
        ({"s": RequiredCanary(by=("likelihood",))}, "fail", "not scored by likelihood"),
        ({"s": RequiredCanary(max_drop=0.5)}, "pass", "kept"),  # a policy can only be stricter
    ],
)
def test_a_policy_asks_for_sets_that_the_run_cannot_leave_out_or_weaken(required, result, said):
    answer, text = judge_canaries(*found(1.0, 0.96, count=400), required)
    assert answer == result
    assert said in text


def test_a_run_cannot_call_every_fall_noise_where_a_policy_asks_for_the_set():
    content, chosen = found(1.0, 0.5, max_drop_se=1000.0)
    assert judge_canaries(content, chosen, {})[0] == "inconclusive"
    assert judge_canaries(content, chosen, {"s": RequiredCanary()})[0] == "fail"


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"refusals": ("",)}, "refusals"),
        ({"pattern": ".*", "format": "format"}, "format, pattern"),
        ({"normalise": True}, "normalise"),
    ],
)
def test_a_run_cannot_judge_the_file_that_a_policy_names_in_another_way(changed, named):
    content, chosen = found(1.0, 1.0, **changed)
    result, text = judge_canaries(content, chosen, {"s": RequiredCanary(sha256="5e7")})
    assert (result, text) == ("fail", f"s: {named} of health.canaries must be as gate.canaries has it")
    assert judge_canaries(content, chosen, {"s": RequiredCanary(sha256="5e7", **changed)})[0] == "pass"
    assert judge_canaries(content, chosen, {"s": RequiredCanary()})[0] == "pass"  # no file is named


def test_a_policy_that_says_how_a_set_is_judged_names_its_file():
    with pytest.raises(ValueError, match="goes with `sha256`"):
        RequiredCanary(refusals=("no",))


def test_a_set_that_was_not_scored_fails():
    content, chosen = found(1.0, 1.0)
    assert judge_canaries({"sets": {}}, chosen, {}) == ("fail", "s: it was not scored")
    both = {"s": CanarySettings(path="p", by=("generation", "likelihood"))}
    assert judge_canaries(content, both, {}) == ("fail", "s: it was not scored by likelihood")


@pytest.mark.parametrize("value", [None, "0", float("nan"), True, -1])
def test_a_figure_that_is_no_number_is_no_evidence(value):
    content, chosen = found(1.0, 1.0)
    content["sets"]["s"]["by"]["generation"]["drops"][0]["se"] = value
    with pytest.raises(InputError, match="not recorded in finite numbers"):
        judge_canaries(content, chosen, {})


# The stage


def test_the_stage_scores_every_set_on_both_checkpoints(tmp_path, monkeypatch):
    monkeypatch.setattr(stage, "Scorer", lambda *_: Judge(lambda _: 1.0))
    write_jsonl(tmp_path / "bbq.jsonl", [{"question": "1+1?", "choices": ["1", "2"], "answer": 1}] * 3)
    layout = workspace(tmp_path / "run")
    stage_policy = layout.sft_checkpoint
    layout.train_checkpoint.parent.mkdir(parents=True)
    stage_policy.rename(layout.train_checkpoint)
    workspace(tmp_path / "run")
    write_jsonl(layout.records, [StepRecord(0, {"canary_carries": 0.25}).to_dict()])
    sets = {
        "carries": {"generated": "carries", "items": 8, "by": ["likelihood", "generation"]},
        "skill": {"path": str(tmp_path / "bbq.jsonl"), "format": "multiple_choice", "by": ["likelihood"]},
    }
    stage.write_canaries(settings(health={"canaries": sets}), layout)
    content = read_json(layout.canaries)
    ways = {(name, by): way for name, one in content["sets"].items() for by, way in one["by"].items()}
    assert set(ways) == {("carries", "likelihood"), ("carries", "generation"), ("skill", "likelihood")}
    assert all(way["sft"] == way["trained"] for way in ways.values())  # the same checkpoint twice
    assert ways["carries", "generation"]["while_training"]["score"] == 0.25
    assert content["checkpoint_sha256"] == sha256_tree(layout.train_checkpoint)


def test_without_sets_the_stage_loads_nothing_and_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(stage, "load_policy", None)
    layout = workspace(tmp_path)
    layout.train_checkpoint.mkdir(parents=True)
    stage.write_canaries(settings(), layout)
    assert read_json(layout.canaries)["sets"] == {}
