"""Logs of other trainers: real forms, other people's units, and everything that can be wrong with a file."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from components.errors import InputError
from components.health.readers import NAMES_FOLDER, READERS, load_names, read_log
from components.health.readers.lines import as_number, as_step
from components.health.readers.log import names_of
from components.health.readers.steps import Row, Steps
from components.health.signals import SIGNALS, find_signal

VERL = (
    "(TaskRunner pid=2226) step:{step} - global_seqlen/min:419336 - actor/entropy:0.25 - actor/pg_clipfrac:0.0008"
    " - actor/ppo_kl:-8.1e-06 - actor/kl_loss:0.0013 - actor/kl_coef:0.001 - actor/loss:0.042 - actor/grad_norm:0.129"
    " - actor/lr:2e-06 - training/global_step:{step} - critic/score/mean:-0.5 - critic/score/max:1.0"
    " - critic/rewards/mean:-0.6 - response_length/mean:1267.02 - response_length/clip_ratio:0.25 - timing_s/gen:262\n"
)
VERL_SIGNALS = {
    "entropy": 0.25, "kl_ref": 0.0013, "kl_beta": 0.001, "loss": 0.042, "grad_norm": 0.129, "lr": 2e-06, "reward": -0.5,
    "length_mean": 1267.02, "truncated_share": 0.25,
}  # fmt: skip
TRL = {
    "loss": 0.01, "grad_norm": 0.5, "learning_rate": 1e-6, "num_tokens": 900.0, "completions/mean_length": 200.0,
    "completions/clipped_ratio": 0.25, "rewards/accuracy_reward/mean": 0.75, "rewards/format-ok/mean": 0.5,
    "rewards/accuracy_reward/std": 0.4, "reward": 1.25, "reward_std": 0.3, "frac_reward_zero_std": 0.125,
    "sampling/sampling_logp_difference/mean": 0.01, "sampling/sampling_logp_difference/max": 0.7, "kl": 0.002,
    "sampling/importance_sampling_ratio/mean": 0.99, "entropy": 0.4, "entropy_coef": 0.001,
    "clip_ratio/low_mean": 0.01, "clip_ratio/high_mean": 0.02, "clip_ratio/region_mean": 0.03, "epoch": 0.5,
}  # fmt: skip
TRL_SIGNALS = {
    "loss": 0.01, "grad_norm": 0.5, "lr": 1e-6, "length_mean": 200.0, "truncated_share": 0.25, "accuracy": 0.75,
    "metric_accuracy_reward": 0.75, "metric_format_ok": 0.5, "reward": 1.25, "zero_variance_share": 0.125,
    "mismatch_mean": 0.01, "mismatch_max": 0.7, "kl_ref": 0.002, "entropy": 0.4, "entropy_coef": 0.001,
    "clip_low": 0.01, "clip_high": 0.02,
}  # fmt: skip
PRIME = {
    "train/agg/all/agent/reward/mean": 0.6, "train/agg/all/agent/solved_some": 0.25, "step": 7,
    "train/agg/all/agent/solved_all": 0.7, "train/agg/all/agent/solved_none": 0.05, "time": 1.7e9,
    "train/agg/all/agent/is_truncated/mean": 0.02, "train/agg/all/agent/has_error/mean": 0.01, "off_policy/mean": 1.5,
    "train/agg/effective/agent/reward/mean": 0.5,
}  # fmt: skip
PRIME_TRAINER = {"entropy/all/mean": 0.3, "entropy/gsm8k/mean": 0.9, "mismatch_kl/all/mean": 0.002, "loss/mean": 0.1}
PRIME_SIGNALS = {
    "reward": 0.6, "zero_variance_share": 0.75, "all_right_share": 0.7, "all_wrong_share": 0.05,
    "truncated_share": 0.02, "unscorable_share": 0.01, "staleness": 1.5,
}  # fmt: skip


def log(folder: Path, *rows: object, end: str = "\n") -> Path:
    """A file of lines: text as it is, anything else as JSON."""
    path = folder / "log"
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows) + end, encoding="utf-8")
    return path


def state(folder: Path, *entries: object) -> Path:
    """A `trainer_state.json` as the Trainer writes it."""
    path = folder / "trainer_state.json"
    content = {"best_metric": None, "epoch": 1.0, "global_step": len(entries), "log_history": list(entries)}
    path.write_text(json.dumps(content, indent=2, sort_keys=True), encoding="utf-8")
    return path


def signals(path: Path, **arguments) -> dict[int, dict[str, float]]:
    """Step -> signals, without those that every record has."""
    records = read_log(path, **arguments).records
    return {r.step: {k: v for k, v in r.signals.items() if k not in ("nonfinite", "progress")} for r in records}


def entropies(path: Path, **arguments) -> dict[int, float]:
    return {record.step: record.signals["entropy"] for record in read_log(path, **arguments).records}


# --- every trainer's own form


def test_trl_is_read_from_the_state_that_the_trainer_saves(tmp_path):
    path = state(
        tmp_path, {**TRL, "step": 10}, {"eval_loss": 0.1, "eval_rewards/accuracy_reward/mean": 0.5, "step": 10}
    )
    assert read_log(path).format == "trl"
    assert signals(path) == {10: {**TRL_SIGNALS, "dev_pass_at_1": 0.5}}


VERL_LINE = VERL.format(step=34).strip()
VERL_DATA = {name: float(value) for name, _, value in (part.rpartition(":") for part in VERL_LINE.split(" - ")[1:])}


@pytest.mark.parametrize(
    ("row", "format", "expected"),
    [
        ({**TRL, "step": 10}, "trl", {10: TRL_SIGNALS}),
        (VERL_LINE, "verl", {34: VERL_SIGNALS}),
        (f"\x1b[36m(TaskRunner pid=1)\x1b[0m {VERL_LINE}", "verl", {34: VERL_SIGNALS}),
        ({"step": 34, "data": VERL_DATA}, "verl", {34: VERL_SIGNALS}),
    ],
    ids=["TRL's log entries", "verl's console", "in Ray's colours", "verl's file logger"],
)
def test_a_trainer_is_known_by_its_lines(tmp_path, row, format, expected):
    path = log(tmp_path, row) if isinstance(row, dict) else log(tmp_path, "Started a local Ray instance.", row)
    assert read_log(path).format == format
    assert signals(path) == expected


def test_verls_validation_is_the_mean_over_its_data_sets_also_as_numpy_prints_it(tmp_path):
    path = log(
        tmp_path,
        "step:0 - val-aux/openai/gsm8k/acc/std@8:0.1 - val-core/openai/gsm8k/acc/mean@8:np.float64(0.5)"
        " - val-core/math/acc/mean@8:0.25 - val-core/openai/gsm8k/acc/best@8/mean:0.875",
    )
    assert signals(path) == {0: {"dev_pass_at_1": 0.375, "dev_pass_at_k": 0.875}}


def test_prime_rl_is_read_from_the_metrics_that_trainer_and_orchestrator_write_in_pieces(tmp_path):
    path = log(tmp_path, {"step": 7, "perf/mfu": 30.0}, PRIME, {"step": 7, "time": 1.0, **PRIME_TRAINER},
               {"step": 7, "eval/a/effective/agent/pass@1": 0.5, "eval/a/effective/agent/pass@8": 0.75},
               {"step": 7, "eval/b/effective/agent/pass@1": 0.25, "eval/b/effective/agent/pass@8": 0.5})  # fmt: skip
    assert read_log(path).format == "prime-rl"
    trainer = {"entropy": 0.3, "mismatch_k3": 0.002, "loss": 0.1}
    assert signals(path) == {7: {**PRIME_SIGNALS, **trainer, "dev_pass_at_1": 0.375, "dev_pass_at_k": 0.625}}
    assert not read_log(path).remarks


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "16:43:41 SUCCESS Step 13 | Time: 7.47s | Reward: 0.7307 | Throughput: 1800.4 tokens/s | Seq. Length: 104.9"
            " tokens/sample | Async Level: 1 | Max. Off-Policy Level: 1",
            {"reward": 0.7307, "length_mean": 104.9},
        ),
        (
            "Generating rollouts: 100%|##| 128/128 [00:07<00:00, 17.17it/s]16:43:42 SUCCESS Step 13 |    7.5s | "
            "Reward 0.7189 | Trainable 3/64 (4.7%) | Turns 1.0 | Max Off-Policy 2 | Error 60.0% | Truncation 1.2%",
            {"reward": 0.7189, "unscorable_share": 0.6, "truncated_share": 0.012},
        ),
        (
            "16:43:42 SUCCESS Step 13 | 7.5s | Loss 0.0012 | Entropy 0.3311 | Mismatch KL 0.0020 | Grad. Norm 0.1211 | "
            "LR 1.00e-06 | Throughput 1800 tokens/s | MFU 30.1% | Peak Mem. 22.1 GiB",
            {"loss": 0.0012, "entropy": 0.3311, "mismatch_k3": 0.002, "grad_norm": 0.1211, "lr": 1e-06},
        ),
        (
            "16:44:42 SUCCESS Evaluated gsm8k (Step 13) | Policy v13 | 1m 5s | Reward 0.4100 | Truncation 0.0%",
            {"dev_pass_at_1": 0.41},
        ),
    ],
    ids=["orchestrator, older", "orchestrator behind a progress bar", "trainer", "evaluation"],
)
def test_prime_rl_is_read_from_its_consoles(tmp_path, line, expected):
    path = log(tmp_path, "16:43:41    INFO Starting orchestrator step 13", line)
    assert read_log(path).format == "prime-rl"
    assert signals(path) == {13: pytest.approx(expected)}


def test_a_message_inside_json_is_no_console(tmp_path):
    path = log(tmp_path, {"step": 1, "entropy": 0.5, "message": "Step 7 | Entropy 9.0 | step:8 - actor/entropy:9.0"})
    assert signals(path) == {1: {"entropy": 0.5}}
    names = mapped(tmp_path, {"signals": {"entropy": "entropy"}})
    assert signals(path, format="prime-rl", names=names) == {1: {"entropy": 0.5}}


def test_colours_are_no_part_of_a_number(tmp_path):
    path = log(tmp_path, "16:43:42 \x1b[32m\x1b[1mSUCCESS\x1b[0m \x1b[32mStep 3 | 7.5s | Reward 0.5\x1b[0m")
    assert signals(path) == {3: {"reward": 0.5}}


@pytest.mark.parametrize(
    "row", [{"entropy": 0.5}, {"signals": {"entropy": 0.5}, "notes": {}}, {"data": {"entropy": 0.5}}]
)
@pytest.mark.parametrize("step", ["step", "_step", "global_step"])
def test_plain_lines_use_our_names_flat_or_nested(tmp_path, row, step):
    path = log(tmp_path, {step: 3, **row})
    assert signals(path, format="jsonl") == {3: {"entropy": 0.5}}


def test_signals_named_after_settings_are_read_too(tmp_path):
    path = log(tmp_path, {"step": 1, "entropy": 0.5, "part_format": 0.25, "something": 4})
    assert signals(path) == {1: {"entropy": 0.5, "part_format": 0.25}}


# --- mapping files


@pytest.mark.parametrize("format", READERS)
def test_every_format_has_a_mapping_to_signals_that_exist(format):
    assert all(find_signal(ours.replace("*", "x")) for ours in names_of(format).signals)
    assert format == "jsonl" or (NAMES_FOLDER / f"{format}.yaml").is_file()


def mapped(folder: Path, tree: object) -> Path:
    path = folder / "names.yaml"
    path.write_text(tree if isinstance(tree, str) else yaml.safe_dump(tree), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("theirs", "expected"),
    [
        ("a", 0.25),
        (["missing", "a", "b"], 0.25),
        ({"name": "a", "scale": 4}, 1.0),
        ({"name": "a", "one_minus": True}, 0.75),
        ({"name": "a", "scale": 0.5, "offset": 0.5}, 0.625),
        ("x/*/y", 2.0),
        ("x/**", 3.0),
    ],
)
def test_a_mapping_names_and_converts(tmp_path, theirs, expected):
    values = {"a": 0.25, "b": 9.0, "x/1/y": 1.0, "x/2/y": 3.0, "x/p/q/y": 5.0}
    names = mapped(tmp_path, {"signals": {"entropy": theirs}})
    assert entropies(log(tmp_path, {"step": 1, **values}), names=names) == {1: expected}


def test_a_mapping_of_ones_own_extends_a_shipped_one(tmp_path):
    shipped = str(NAMES_FOLDER / "verl.yaml")
    accuracy = {"name": "critic/score/mean", "scale": 0.5, "offset": 0.5}
    names = mapped(tmp_path, {"extends": shipped, "signals": {"accuracy": accuracy}})
    path = log(tmp_path, VERL.format(step=34).strip())
    assert signals(path, names=names) == {34: {**VERL_SIGNALS, "accuracy": 0.25}}


@pytest.mark.parametrize(
    ("tree", "said"),
    [
        ({"signals": {"entrpy": "a"}}, "did you mean entropy?"),
        ({"signals": {"zzzz": "a"}}, "use one of: reward"),
        ({"signals": {}}, "signals"),
        ({"signal": {"entropy": "a"}}, "signals"),
        ({"signals": {"entropy": {"name": "a", "scal": 2}}}, "signals.entropy.scal"),
        ({"signals": {"entropy": {"name": "a", "scale": 2, "one_minus": True}}}, "one_minus"),
        ({"signals": {"entropy": {"name": "a", "scale": float("nan")}}}, "scale"),
        ({"signals": {"entropy": 3}}, "signals.entropy"),
        ({"signals": {"metric_*": "rewards/all"}}, "`*` in their name"),
        ({"signals": {"ent*opy": "a*"}}, "unknown signal"),
        ("signals: {entropy: a, entropy: b}", "twice"),
        ("signals: [", "YAML"),
        ("signals: !!python/object/apply:os.system ['true']", "YAML"),
    ],
)
def test_a_mapping_that_is_wrong_is_refused_with_what_to_fix(tmp_path, tree, said):
    with pytest.raises(InputError) as caught:
        load_names(mapped(tmp_path, tree))
    assert said in str(caught.value)


@pytest.mark.timeout(20)
def test_a_name_of_many_stars_stalls_on_no_metric(tmp_path):
    tree = {"signals": {"entropy": "**a" * 20, "metric_*": "*/" * 20 + "x", "reward": "r [1]/*"}}
    names = load_names(mapped(tmp_path, tree))
    start = time.process_time()
    assert not names.reads("a" * 3000 + "!") and not names.reads("y/" * 1500)
    assert names.translate({"r [1]/é": 2.0, "y/" * 20 + "x": 3.0}) == {"nonfinite": 0.0, "reward": 2.0, "metric_y": 3.0}
    assert time.process_time() - start < 2


def test_a_name_that_is_too_long_for_a_pattern_is_refused(tmp_path):
    with pytest.raises(InputError, match="it is too large") as caught:
        load_names(mapped(tmp_path, {"signals": {"entropy": "**a" * 100_000}}))
    assert len(str(caught.value)) < 1000


# --- logs that are not as they should be


def test_a_line_cut_off_by_a_live_log_is_said_and_the_rest_judged(tmp_path):
    path = log(tmp_path, VERL.format(step=1).strip(), VERL.format(step=2)[:180], end="")
    assert list(signals(path)) == [1]
    assert "the last line is cut off and was left out" in read_log(path).remarks
    path = log(tmp_path, {"step": 1, "entropy": 1.0}, '{"step": 2, "entr', end="")
    assert list(signals(path)) == [1]
    assert "the last line is cut off and was left out" in read_log(path).remarks


def test_a_last_json_line_is_whole_without_an_end_of_line(tmp_path):
    path = log(tmp_path, {"step": 1, "entropy": 1.0}, {"step": 2, "entropy": 2.0}, end="")
    assert entropies(path) == {1: 1.0, 2: 2.0}
    assert not read_log(path).remarks


def test_other_text_between_the_lines_is_passed_over_and_counted(tmp_path):
    noise = ["(WorkerDict pid=8) step:99 of 100", "Traceback (most recent call last):", "  step:7", "[1]", '{"a": 1}']
    path = log(tmp_path, noise[0], VERL.format(step=1).strip(), *noise[1:], VERL.format(step=2).strip())
    assert list(signals(path)) == [1, 2]
    assert read_log(path).remarks == ["lines passed over, which are no metrics of verl: 5"]


def test_half_a_value_from_another_process_is_no_number(tmp_path):
    path = log(tmp_path, "step:1 - actor/entropy:0.5 - actor/grad_norm:0.1(WorkerDict pid=3) hello - actor/lr:1e-6")
    assert signals(path) == {1: {"entropy": 0.5, "lr": 1e-6}}


def test_bytes_that_are_no_text_spoil_only_their_line(tmp_path):
    first, third = (VERL.format(step=step).encode() for step in (1, 3))
    assert list(signals(content(tmp_path, first + b"\xff\xfe step:2 - actor/entropy:\xff\n" + third))) == [1, 3]


def test_a_resumed_run_goes_on_from_its_checkpoint_and_what_came_after_is_void(tmp_path):
    first = [{"step": step, "entropy": 1.0} for step in range(1, 9)]
    again = [{"step": step, "entropy": 2.0} for step in range(5, 7)]
    path = log(tmp_path, *first, *again)
    assert entropies(path) == {1: 1.0, 2: 1.0, 3: 1.0, 4: 1.0, 5: 2.0, 6: 2.0}
    void = "resumed: the log goes back from step 8 to 5; what it said of those steps before is void"
    assert read_log(path).remarks == [void]


def test_the_later_of_two_rows_of_a_step_counts(tmp_path):
    path = log(tmp_path, {"step": 1, "entropy": 1.0, "loss": 1.0}, {"step": 1, "entropy": 2.0})
    assert signals(path) == {1: {"entropy": 2.0}}
    assert "steps said again, of which the later row counts: 1, the first 1" in read_log(path).remarks


@given(st.lists(st.tuples(st.integers(0, 6), st.sampled_from(["reward", "entropy", "loss"])), max_size=30))
def test_whatever_is_said_again_the_step_and_all_later_ones_are_void(said):
    steps, expected, resumed = Steps(names_of("jsonl")), dict[int, dict[str, float]](), 0
    for number, (step, name) in enumerate(said):
        steps.add(Row(step, {name: float(number)}))
        if name in expected.get(step, {}):
            resumed += step < max(expected)
            expected = {one: known for one, known in expected.items() if one < step}
        expected.setdefault(step, {})[name] = float(number)
    own = {"progress", "nonfinite"}
    found = {r.step: {n: v for n, v in r.signals.items() if n not in own} for r in steps.records()}
    assert found == expected
    assert list(found) == sorted(expected)
    assert sum(remark.startswith("resumed") for remark in steps.remarks()) == resumed


def test_of_several_names_the_first_that_a_step_has_counts_step_by_step(tmp_path):
    tree = {"signals": {"reward": ["score", "rewards/*"], "metric_*": "rewards/*", "entropy": "score"}}
    names = load_names(mapped(tmp_path, tree))
    rows = [{"score": 1.0, "rewards/a": 2.0}, {"rewards/a": 2.0, "rewards/b": 4.0}, {"score": "text", "rewards/a": 3.0}]
    assert [names.translate(row) for row in rows] == [
        {"nonfinite": 0.0, "reward": 1.0, "metric_a": 2.0, "entropy": 1.0},
        {"nonfinite": 0.0, "reward": 3.0, "metric_a": 2.0, "metric_b": 4.0},
        {"nonfinite": 0.0, "reward": 3.0, "metric_a": 3.0},
    ]


def test_a_late_row_with_other_metrics_belongs_to_its_step(tmp_path):
    path = log(tmp_path, {"step": 1, "entropy": 1.0}, {"step": 2, "entropy": 2.0}, {"step": 1, "dev_pass_at_1": 0.5})
    assert signals(path) == {1: {"entropy": 1.0, "dev_pass_at_1": 0.5}, 2: {"entropy": 2.0}}
    assert not read_log(path).remarks


def test_times_are_never_looked_at(tmp_path):
    steps = [{"step": 1, "entropy": 1.0, "time": 9e9}, {"step": 2, "entropy": 2.0, "time": -3}]
    assert entropies(log(tmp_path, *steps)) == {1: 1.0, 2: 2.0}


@pytest.mark.parametrize(
    ("text", "expected"),
    [("NaN", math.nan), ("Infinity", math.inf), ("-Infinity", -math.inf), ("1e999", math.inf), ('"nan"', math.nan),
     ('"Infinity"', math.inf), ("null", math.nan), (f"1{'0' * 400}", math.inf)],
)  # fmt: skip
def test_a_number_that_is_not_finite_is_kept_and_counted(tmp_path, text, expected):
    rows = ['{"step": 1, "loss": 0.5, "entropy": 1.0}', f'{{"step": 2, "loss": 0.5, "entropy": {text}}}']
    _, record = read_log(log(tmp_path, *rows)).records
    assert record.signals["entropy"] == pytest.approx(expected, nan_ok=True)
    assert record.signals["nonfinite"] == 1


@pytest.mark.parametrize("every", [1, 5])
def test_gaps_of_a_table_are_no_numbers(tmp_path, every):
    """As pandas writes it: each row has every column, and an evaluation is a row of its own, or in that of its step."""
    columns = ("loss", "reward", "kl", "eval_loss", "eval_reward", "late")
    rows: list[dict[str, float | None]] = []
    for step in range(1, 41):
        training = {"loss": 0.1, "reward": 0.5, "kl": 0.2, **({"late": 1.0} if step > 30 else {})}
        evaluated = {"eval_loss": 0.1, "eval_reward": 0.5} if step % 5 == 0 else {}
        parts = [{**training, **evaluated}] if every == 1 else [training, evaluated] if evaluated else [training]
        rows += [{"step": step, **dict.fromkeys(columns), **part} for part in parts]
    found = read_log(log(tmp_path, *rows), names=names_of("trl"))
    assert len(found.records) == 40
    assert {record.signals["nonfinite"] for record in found.records} == {0.0}
    assert all({"loss", "reward", "kl_ref"} <= record.signals.keys() for record in found.records)


def test_null_of_a_metric_that_has_had_numbers_stays_nan_to_the_end(tmp_path):
    rows = [{"step": n, "loss": 0.5, "entropy": 1.0 if n < 3 else None} for n in range(1, 30)]
    nonfinite = [record.signals["nonfinite"] for record in read_log(log(tmp_path, *rows)).records]
    assert nonfinite == [0.0] * 2 + [1.0] * 27


def test_a_reward_function_without_a_completion_of_its_task_is_no_broken_number(tmp_path):
    rows = [{**TRL, "rewards/code/mean": math.nan if n % 2 else 0.5, "step": n} for n in range(1, 5)]
    for record in read_log(state(tmp_path, *rows)).records:
        assert record.signals["nonfinite"] == 0
        assert ("metric_code" in record.signals) == (record.step % 2 == 0)


def test_a_second_evaluation_of_a_step_leaves_its_training(tmp_path):
    evaluations = [{"epoch": 1.0, "eval_rewards/accuracy_reward/mean": value, "step": 2} for value in (0.4, 0.6)]
    records = read_log(state(tmp_path, *({**TRL, "step": n} for n in (1, 2)), *evaluations)).records
    assert records[1].signals == {**records[0].signals, "progress": 2.0, "dev_pass_at_1": 0.6}


def test_dictionaries_that_a_program_prints_are_no_steps_of_a_console(tmp_path):
    entry = "{'loss': '0.1', 'reward': '0.5', 'kl': '0.01', 'completions/mean_length': '20', 'epoch': '0.1'}"
    own = ["{'learning_rate': 1e-06, 'beta': 0.04}", "{'prompt': 'a', 'reward': 1.0}"]
    found = read_log(log(tmp_path, own[0], *(line for _ in range(5) for line in (own[1], entry))))
    assert [record.step for record in found.records] == [1, 2, 3, 4, 5]
    assert {record.signals["reward"] for record in found.records} == {0.5}


def test_the_mean_over_groups_without_any_value_does_not_exist(tmp_path):
    path = state(tmp_path, {**TRL, "reward": None, "rewards/format-ok/mean": None, "step": 1})
    [record] = read_log(path).records
    assert not {"reward", "metric_format_ok"} & set(record.signals)
    assert record.signals["nonfinite"] == 0


def test_what_a_log_says_of_nonfinite_itself_counts(tmp_path):
    [record] = read_log(log(tmp_path, {"step": 1, "nonfinite": 3, "entropy": 1.0})).records
    assert record.signals["nonfinite"] == 3


@pytest.mark.parametrize("value", ["0.31", "high", True, [0.3], {"mean": 0.3}], ids=repr)
def test_what_is_no_number_is_left_out_and_said(tmp_path, value):
    path = log(tmp_path, {"step": 1, "entropy": 0.5, "loss": 1.0}, {"step": 2, "entropy": value, "loss": 1.0})
    assert signals(path)[2] == {"loss": 1.0}
    said = f"values left out, which are no numbers: 1, the first entropy in step 2, {value!r}"
    assert read_log(path).remarks == [said]


@pytest.mark.parametrize(
    "step", [-1, 1.5, "7", True, None, float("nan"), [1], 2**53, 1e300, 10**400], ids=lambda step: f"{step!r:.20}"
)
def test_a_row_without_a_whole_step_is_passed_over(tmp_path, step):
    path = log(tmp_path, {"step": 1, "entropy": 1.0}, {"step": step, "entropy": 9.0})
    assert entropies(path) == {1: 1.0}
    assert read_log(path).remarks == ["lines passed over, which are no metrics of jsonl: 1"]


def test_steps_that_are_logged_now_and_then_are_said_to_be(tmp_path):
    remarks = read_log(log(tmp_path, *({"step": step, "entropy": 1.0} for step in (10, 20, 30, 35)))).remarks
    assert remarks == ["every 10th step is logged; streaks and windows of the rules count logged steps"]


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("truncated_share", 25.0, "cannot be 25, as in step 2 and 1 in all; check the unit in the mapping"),
        ("truncated_share", 1.0001, None),
        ("entropy", -0.5, "cannot be -0.5, as in step 2 and 1 in all; check the unit in the mapping"),
        ("grad_norm", math.nan, "is NaN or infinite, first in step 2, in 1 in all"),
        ("grad_norm", math.inf, "is NaN or infinite, first in step 2, in 1 in all"),
        ("reward", -7.0, None),
    ],
)
def test_a_value_that_cannot_be_is_said_whether_or_not_a_rule_reads_it(tmp_path, name, value, said):
    remarks = read_log(log(tmp_path, {"step": 1, name: 0.5}, {"step": 2, name: value})).remarks
    assert remarks == ([f"{name} {said}"] if said else [])


def content(folder: Path, data: bytes) -> Path:
    path = folder / "log"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("data", "format", "said"),
    [
        (b"", "auto", "the log is empty"),
        (b" \n\n", "auto", "the log is empty"),
        (b"\x00\x01\x02", "auto", "not a text"),
        (b"hello\nworld\n", "auto", "no line of it is a step"),
        (b"hello\nworld\n", "verl", "name the format"),
        (b'{"step": 1, "entropy": 1}', "verls", "use auto, trl, verl"),
        (b'{"step": 1, "mine": 1}', "auto", "in them no metric that a rule could read"),
        (b'{"step": 1, "mine": 1}', "jsonl", "--names mapping.yaml"),
        (b'{"step": 1, "kl": 1}', "jsonl", "it looks like trl"),
        (VERL.format(step=1).encode(), "trl", "it looks like verl"),
        (VERL.format(step=1).encode(), "prime-rl", "--format verl"),
        (b'{"log_history": [', "auto", "not a whole trainer_state.json"),
        (b'{"log_history": 3}', "auto", "not a whole trainer_state.json"),
        (b'{"log_history": []}', "auto", "no step in it"),
        (b"[" * 100_000, "auto", "no line of it is a step"),
        (b'{"step": ' + b"9" * 5000 + b', "entropy": 1}', "auto", "no line of it is a step"),
        (b"step:" + b"9" * 5000 + b" - actor/entropy:1\n", "auto", "no line of it is a step"),
        (b'{"a":' * 100_000, "jsonl", "no step in it"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_log_is_refused_with_what_was_found_and_what_to_name(tmp_path, data, format, said):
    with pytest.raises(InputError) as caught:
        read_log(content(tmp_path, data), format)
    assert said in str(caught.value)


def test_a_folder_a_missing_file_and_a_device_are_refused(tmp_path):
    with pytest.raises(InputError, match="a folder"):
        read_log(tmp_path)
    with pytest.raises(InputError, match="file not found"):
        read_log(tmp_path / "nothing")
    with pytest.raises(InputError, match="is a device, not a file"):
        read_log(Path("/dev/zero"))


# --- invariants


VALUES = st.one_of(st.floats(), st.integers(), st.none(), st.text(max_size=5), st.booleans(), st.lists(st.integers()))


@given(st.lists(st.dictionaries(st.sampled_from(["step", "entropy", "loss", "data", "x/y"]), VALUES, max_size=4)))
def test_any_json_lines_give_ordered_steps_of_known_signals_or_a_refusal(tmp_path_factory, rows):
    path = log(tmp_path_factory.mktemp("any"), *rows)
    try:
        records = read_log(path, "jsonl").records
    except InputError:
        return
    assert [r.step for r in records] == sorted({r.step for r in records})
    assert all(name in SIGNALS and isinstance(value, float) for r in records for name, value in r.signals.items())


@given(st.binary(max_size=300), st.sampled_from(["auto", *READERS]))
def test_any_bytes_are_read_or_refused(tmp_path_factory, data, format):
    path = content(tmp_path_factory.mktemp("any"), VERL.format(step=1).encode() + data)
    try:
        records = read_log(path, format).records
    except InputError as refusal:
        assert refusal.how
    else:
        assert records[0].signals["nonfinite"] == 0


@given(st.floats(allow_nan=False))
def test_a_number_is_read_as_it_is(value):
    assert as_number(json.loads(json.dumps(value))) == value


@given(st.integers(0, 2**53 - 1))
def test_a_whole_step_is_a_step_also_as_a_float(step):
    assert as_step(step) == as_step(float(step)) == step
