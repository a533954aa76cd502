"""The health monitor inside a real, tiny training run of TRL, and what happens when the monitor itself fails."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import torch

pytest.importorskip("trl", minversion="1.16.0", reason="TRL, a dependency of tests alone, is not installed")
os.environ["TRL_EXPERIMENTAL_SILENCE"] = "1"

from datasets import Dataset
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM, TrainerControl, TrainerState
from trl import GRPOConfig, GRPOTrainer

from components.config.judgement import RuleSettings
from components.errors import InputError
from components.files import read_jsonl
from components.health.callback import EvenkeelCallback
from components.health.monitor import replay
from components.health.readers import read_log
from flows.judging.audit_log import judge

WORDS = 12


class Trainer(GRPOTrainer):
    def _send_telemetry(self):
        """Nothing leaves this machine."""


def rule(when: str, level: str = "stop", streak: int = 1) -> RuleSettings:
    return RuleSettings(when=when, level=level, streak=streak, why="a test")


def length(completion_ids, **_):
    return [float(len(ids)) for ids in completion_ids]


def trainer(folder: Path, callback: EvenkeelCallback, reward=length, **settings) -> Trainer:
    """A trainer that generates for real, from a model of random weights; a few steps take a second."""
    torch.manual_seed(0)
    vocabulary = ["<pad>", "<end>", *(f"word{number}" for number in range(2, WORDS))]
    model = models.WordLevel({word: number for number, word in enumerate(vocabulary)}, unk_token="word2")
    config = Qwen3Config(
        vocab_size=WORDS, hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=1, head_dim=4, tie_word_embeddings=True, bos_token_id=None, eos_token_id=1, pad_token_id=0,
    )  # fmt: skip
    prompts = Dataset.from_dict({"prompt": [f"word{number}" for number in range(2, 10)]})
    defaults = {"max_steps": 4, "logging_steps": 1, "num_generations": 4, "per_device_train_batch_size": 4,
                "max_completion_length": 6, "learning_rate": 1e-3, "save_strategy": "no"}  # fmt: skip
    return Trainer(
        model=Qwen3ForCausalLM(config),
        reward_funcs=[reward],
        args=GRPOConfig(
            output_dir=str(folder), use_cpu=True, bf16=False, report_to="none", disable_tqdm=True, seed=0,
            **(defaults | settings),
        ),
        train_dataset=prompts,
        eval_dataset=prompts.select(range(4)) if "eval_steps" in settings else None,
        processing_class=PreTrainedTokenizerFast(
            tokenizer_object=Tokenizer(model), pad_token="<pad>", eos_token="<end>"
        ),
        callbacks=[callback],
    )  # fmt: skip


def test_every_step_of_a_real_training_is_judged_as_an_audit_of_its_log_judges_it(tmp_path):
    said = []
    rules = {"long": rule("length_mean > 0", "warn"), "early": rule("step >= 2 and entropy > 0", "stop", 2)}
    callback = EvenkeelCallback(tmp_path / "health", rules=rules, say=said.append)
    run = trainer(tmp_path, callback)
    run.train()
    run.state.save_to_json(str(tmp_path / "trainer_state.json"))
    log = read_log(tmp_path / "trainer_state.json")
    assert [record.step for record in log.records] == [1, 2, 3, 4]
    assert {"loss", "reward", "entropy", "zero_variance_share", "clip_low", "grad_norm", "lr"} <= set(
        log.records[0].signals
    )
    assert [(v.rule, v.step) for v in callback.verdicts] == [("long", 1), ("early", 3)]
    assert callback.verdicts == judge(tmp_path, log, rules).verdicts
    assert [line.split(":")[1:3] for line in said] == [[" step 1", " long says warn"], [" step 3", " early says stop"]]
    written = read_log(tmp_path / "health" / "records.jsonl")
    assert written.format == "jsonl"
    assert replay(rules, written.records) == callback.verdicts
    assert [row["rule"] for row in read_jsonl(tmp_path / "health" / "verdicts.jsonl")] == ["long", "early"]


def test_a_training_is_evaluated_before_the_step_is_judged_and_both_are_one_record(tmp_path):
    callback = EvenkeelCallback(
        tmp_path / "health", names=mapping(tmp_path), rules={"both": rule("loss > 9 or dev_pass_at_1 > 0")}
    )
    run = trainer(tmp_path, callback, eval_strategy="steps", eval_steps=2, per_device_eval_batch_size=4)
    run.train()
    records = read_log(tmp_path / "health" / "records.jsonl").records
    assert [record.step for record in records] == [1, 2, 3, 4]
    assert ["dev_pass_at_1" in record.signals for record in records] == [False, True, False, True]
    assert [verdict.step for verdict in callback.verdicts] == [2]


def mapping(folder: Path) -> Path:
    """A mapping that takes the mean reward of the evaluation for held-out accuracy."""
    path = folder / "names.yaml"
    path.write_text("signals: {loss: loss, reward: reward, dev_pass_at_1: eval_reward}")
    return path


@pytest.mark.parametrize(("stop", "steps"), [(True, 2), (False, 4)], ids=["stop", "watch only"])
def test_a_stop_rule_ends_the_training_only_where_that_was_asked_for(tmp_path, stop, steps):
    said = []
    callback = EvenkeelCallback(rules={"second": rule("step >= 2 and reward > 0")}, stop=stop, say=said.append)
    run = trainer(tmp_path, callback)
    run.train()
    assert run.state.global_step == steps
    assert len(said) == 1
    assert said[0].endswith("; training stops") == stop


def test_a_warning_does_not_end_a_training(tmp_path):
    run = trainer(tmp_path, EvenkeelCallback(rules={"warned": rule("reward > 0", "warn")}, stop=True, say=str))
    run.train()
    assert run.state.global_step == 4


def test_a_broken_monitor_goes_off_with_one_word_and_the_training_goes_on(tmp_path, capsys):
    callback = EvenkeelCallback(tmp_path / "health", rules={"any": rule("reward > 0")}, stop=True)
    callback._rules = None  # a bug of ours, at the worst place
    run = trainer(tmp_path, callback)
    run.train()
    assert run.state.global_step == 4
    complaints = [line for line in capsys.readouterr().err.splitlines() if line.startswith("evenkeel:")]
    assert len(complaints) == 1
    assert "monitor is off" in complaints[0]
    assert not (tmp_path / "health").exists()


def test_a_full_disk_or_a_closed_pipe_does_not_keep_the_monitor_from_stopping_a_training(tmp_path, capsys):
    (tmp_path / "health").write_text("a file where the folder should be")
    callback = EvenkeelCallback(tmp_path / "health", rules={"second": rule("step >= 2 and reward > 0")}, stop=True)
    run = trainer(tmp_path, callback)
    run.train()
    assert run.state.global_step == 2
    assert capsys.readouterr().err.count("the health output is off") == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"rules": {"typo": rule("entrophy < 1")}}, "did you mean entropy"),
        ({"rules": "nowhere.yaml"}, "file not found"),
        ({"names": "nowhere.yaml"}, "file not found"),
    ],
    ids=["a rule that does not compile", "no rules", "no mapping"],
)
def test_a_monitor_that_cannot_be_built_is_no_silent_monitor(arguments, said):
    with pytest.raises(InputError) as caught:
        EvenkeelCallback(**arguments)
    assert said in str(caught.value)


def events(callback: EvenkeelCallback, *logs: tuple[int, dict], history=(), main=True) -> TrainerControl:
    """What the Trainer would tell a callback, without a training."""
    state, control = TrainerState(log_history=list(history), is_world_process_zero=main), TrainerControl()
    callback.on_train_begin(None, state, control)
    for step, values in logs:
        state.global_step = step
        callback.on_log(None, state, control, logs=values)
    callback.on_train_end(None, state, control)
    return control


def test_a_training_that_continues_is_judged_with_the_history_of_its_checkpoint(tmp_path):
    history = [{"step": step, "entropy": 0.1, "epoch": 0.0} for step in (1, 2)]
    callback = EvenkeelCallback(tmp_path, rules={"low": rule("entropy < 0.5", streak=3)}, stop=True, say=str)
    control = events(callback, (3, {"entropy": 0.1}), history=history)
    assert control.should_training_stop
    assert [record.step for record in read_log(tmp_path / "records.jsonl").records] == [3]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), None], ids=["NaN", "infinity", "TRL's null"])
def test_a_number_that_is_not_finite_breaches_live_and_in_the_written_log(tmp_path, value):
    rules = {"reads it": rule("entropy < 0"), "counts it": rule("nonfinite > 0")}
    callback = EvenkeelCallback(tmp_path, rules=rules, say=str)
    events(callback, (1, {"entropy": 1.0, "kl": 0.1}), (2, {"entropy": value, "kl": 0.1}))
    assert [(v.rule, v.step) for v in callback.verdicts] == [("reads it", 2), ("counts it", 2)]
    assert "NaN" not in (tmp_path / "records.jsonl").read_text()
    assert replay(rules, read_log(tmp_path / "records.jsonl").records) == callback.verdicts


def test_every_process_judges_and_only_the_main_one_writes(tmp_path):
    said = []
    callback = EvenkeelCallback(tmp_path / "health", rules={"any": rule("entropy > 0")}, stop=True, say=said.append)
    assert events(callback, (1, {"entropy": 1.0}), main=False).should_training_stop
    assert not said
    assert not (tmp_path / "health").exists()


def test_what_comes_after_its_step_was_judged_is_left_out_and_said(capsys):
    callback = EvenkeelCallback(rules={"high": rule("entropy > 1")}, say=str)
    events(callback, (1, {"entropy": 1.0}), (1, {"entropy": 2.0}), (2, {"train_runtime": 3.0}))
    assert callback.verdicts == []
    assert "came after it was judged" in capsys.readouterr().err


def test_the_folder_holds_json_lines_that_any_parser_reads(tmp_path):
    events(EvenkeelCallback(tmp_path, rules={"any": rule("entropy > 0")}, say=str), (5, {"entropy": 1.0}))
    record, verdict = (json.loads((tmp_path / f"{name}.jsonl").read_text()) for name in ("records", "verdicts"))
    assert (record["step"], record["signals"]["entropy"]) == (5, 1.0)
    assert (verdict["rule"], verdict["evidence"]) == ("any", {"entropy": [1.0]})
