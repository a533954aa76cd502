"""The library runs and judges the episodes; the policy's tokens stay what it has sampled."""

from __future__ import annotations

import psutil
import pytest
import torch

from components.config.reward import RewardSettings
from components.config.rollout import RolloutSettings
from components.environments.episodes import Episodes
from components.environments.process import EnvironmentProcess
from components.environments.prompts import prompts_of
from components.learner.batch import build_batch
from components.learner.scoring import score_all
from components.rewards import Scorer
from components.rollout import Collector, build_engine
from components.rollout.base import Sampling
from tests.environments.conftest import Scripted, Table, player, rubric, source

SAMPLED = Sampling(n=4, max_new_tokens=30, temperature=1.0, seed=1)
GREEDY = Sampling(n=1, max_new_tokens=60, temperature=0.0, seed=0)


# One turn


def test_a_task_of_one_turn_is_answered_as_the_engine_alone_would(words):
    own = player()
    engine = build_engine(own, RolloutSettings())
    played = words.episodes(own, engine).play(words.prompts[:3], SAMPLED)
    assert own.tokenizer.decode(played[0].prompt_ids).startswith(
        "<|system|>Answer with digits.<|user|>700100 backwards"
    )
    alone = engine.generate([one.prompt_ids for one in played], SAMPLED)
    assert [one.completions for one in played] == alone


def test_the_rubric_gives_accuracy_parts_with_their_weights_and_metrics(words):
    own = player()
    right = Scripted(own, lambda text: text.split("<|user|>")[1][:6][::-1])
    half = Scripted(own, lambda text: text.split("<|user|>")[1][:6][::-1][:3])
    ((one,),) = [played.verdicts for played in words.episodes(own, right).play(words.prompts[:1], GREEDY)]
    assert (one.accuracy, one.weight, one.parts) == (1.0, 1.0, {"alike": 0.25})
    assert one.metrics == {"turns": 1.0, "characters": 6.0}
    ((other,),) = [played.verdicts for played in words.episodes(own, half).play(words.prompts[:1], GREEDY)]
    assert (other.accuracy, other.parts) == (0.0, {"alike": 0.125})


def test_settings_weigh_what_the_rubric_has_weighed(words):
    own = player()
    engine = Scripted(own, lambda text: text.split("<|user|>")[1][:6][::-1])
    verifier = {"kind": "environment", "accuracy": "right", "rewards": ["alike"]}
    reward = RewardSettings.model_validate({"verifier": verifier, "weights": {"accuracy": 2.0, "alike": 0.5}})
    with Scorer(reward) as scorer:
        collector = Collector(own, engine, scorer, RolloutSettings(), words.episodes(own, engine))
        (group,) = collector.groups(words.prompts[:1], GREEDY)
    assert group.scores[0].rewards == {"accuracy": 2.0, "alike": 0.125}
    assert group.prompt == words.prompts[0]


def test_a_rubric_that_gives_other_rewards_than_the_settings_name_is_unscorable(words):
    own = player()
    episodes = Episodes(words.process, rubric("right"), own, Scripted(own, lambda _: "1"))
    (played,) = episodes.play(words.prompts[:1], GREEDY)
    assert (
        played.verdicts[0].unscorable == "error: the rubric gives alike, right, and `accuracy` and `rewards` name right"
    )


# Several turns


def halving(text: str) -> str:
    """The middle of what is left."""
    low, high = 0, 9
    for turn in text.split("<|assistant|>")[1:-1]:
        number, _, answer = turn.partition("<|end|><|user|>")
        low, high = (int(number) + 1, high) if "higher" in answer else (low, int(number) - 1)
    return str((low + high) // 2)


def test_the_environment_answers_and_stops_by_itself(game):
    own = player()
    played = game.episodes(own, Scripted(own, halving)).play(game.prompts, GREEDY)
    texts = [own.tokenizer.decode(one.completions[0].token_ids) for one in played]
    assert texts[0] == "4<|end|><|user|>lower<|assistant|>1<|end|><|user|>lower<|assistant|>0<|end|>"
    assert texts[1] == "4<|end|><|user|>lower<|assistant|>1<|end|>"
    assert [(one.verdicts[0].accuracy, one.verdicts[0].parts["early"]) for one in played[:2]] == [
        (1.0, 1 / 6),
        (1.0, 0.25),
    ]
    assert all(one.completions[0].finish_reason == "stop" for one in played)


def test_only_what_the_policy_wrote_is_in_the_loss(game):
    own = player()
    (one,) = game.episodes(own, Scripted(own, halving)).play(game.prompts[:1], GREEDY)
    completion = one.completions[0]
    assert completion.sampled is not None
    pairs = zip(completion.token_ids, completion.sampled, strict=True)
    assert own.tokenizer.decode([token for token, mine in pairs if mine]) == "4<|end|>1<|end|>0<|end|>"
    assert [logp for logp, mine in zip(completion.logprobs, completion.sampled, strict=True) if not mine] == (
        [0.0] * completion.sampled.count(False)
    )


def test_sampled_log_probabilities_are_the_learners(game):
    own = player()
    engine = build_engine(own, RolloutSettings())
    verifier = {"kind": "environment", "accuracy": "found", "rewards": ["early", "legal"]}
    with Scorer(RewardSettings.model_validate({"verifier": verifier})) as scorer:
        collector = Collector(own, engine, scorer, RolloutSettings(), game.episodes(own, engine))
        groups = collector.groups(game.prompts[:4], SAMPLED)
    assert max(score.metrics["turns"] for group in groups for score in group.scores) > 2
    batch = build_batch(groups, own.pad_id)
    observed = sum(c.sampled.count(False) for group in groups for c in group.completions if c.sampled)
    written = sum(len(c.token_ids) for group in groups for c in group.completions)
    assert 0 < int(batch.response_mask.sum()) == written - observed
    logp = score_all(own.model, batch, 1.0, max_tokens=256).logp
    assert torch.allclose(logp[batch.response_mask], batch.rollout_logp[batch.response_mask], atol=1e-4)


def test_the_same_seed_gives_the_same_bytes_in_any_process(game):
    own = player()
    first = game.episodes(own).play(game.prompts[:3], SAMPLED)
    with EnvironmentProcess(game.source) as another:
        again = Episodes(another, game.rubric, own, build_engine(own, RolloutSettings())).play(
            game.prompts[:3], SAMPLED
        )
    assert first == again
    other = Sampling(n=4, max_new_tokens=30, temperature=1.0, seed=2)
    assert first != game.episodes(own).play(game.prompts[:3], other)


def test_all_episodes_that_wait_are_answered_in_one_batch(game):
    own = player()
    engine = Scripted(own, halving)
    game.episodes(own, engine).play(game.prompts[:3], Sampling(n=2, max_new_tokens=60, temperature=1.0, seed=0))
    assert engine.batches[0] == 6
    assert len(engine.batches) == 3


def test_a_conversation_that_fills_its_room_ends_there_and_is_judged(game):
    own = player()
    wrong = Scripted(own, lambda _: "777")
    (played,) = game.episodes(own, wrong).play(
        game.prompts[:1], Sampling(n=1, max_new_tokens=12, temperature=0.0, seed=0)
    )
    (completion,), (score,) = played.completions, played.verdicts
    assert (len(completion.token_ids), completion.finish_reason) == (12, "length")
    assert score.accuracy == 0.0


def test_the_limit_of_turns_is_the_librarys(game):
    own = player()
    wrong = Scripted(own, lambda _: "7")
    (played,) = game.episodes(own, wrong).play(
        game.prompts[:1], Sampling(n=1, max_new_tokens=200, temperature=0.0, seed=0)
    )
    assert played.verdicts[0].metrics["turns"] == 6.0


def test_without_a_chat_template_turns_stand_in_lines(game):
    own = player(chat=False)
    played = game.episodes(own, Scripted(own, lambda text: "0" if "lower" in text else "4")).play(
        game.prompts[:1], GREEDY
    )
    assert own.tokenizer.decode(played[0].prompt_ids) == "0-1 (0)"
    assert own.tokenizer.decode(played[0].completions[0].token_ids) == "4<|end|>\nlower\n0<|end|>"


def test_the_librarys_simulated_user_opens_and_ends_the_conversation_and_is_not_learned_from():
    own = player(positions=2048)

    def say(text: str) -> str:
        """Both parts: the user wants what the task says, and is content with any answer."""
        if "You are role-playing a USER" not in text:
            return text.rpartition("<|user|>")[2].split()[1][::-1]
        word = text.partition("want the ASSISTANT to do for you:")[2].split()[0]
        return f"Reverse {word} please." if text.count("<|assistant|>") == 1 else "###DONE###"

    simulated = Table(source("reversing", settings={"id": "user-sim"}), rubric("right", "alike"))
    with simulated.process:
        (played,) = simulated.episodes(own, Scripted(own, say)).play(simulated.prompts[:1], GREEDY)
    opening = own.tokenizer.decode(played.prompt_ids)
    assert opening == "<|system|>Answer with digits.<|user|>Reverse 700100 please.<|assistant|>"
    assert own.tokenizer.decode(played.completions[0].token_ids) == "001007<|end|>"
    assert played.completions[0].sampled in (None, (True,) * 7)
    assert (played.verdicts[0].accuracy, played.verdicts[0].metrics["user_turns"]) == (1.0, 2.0)


# Tools


def test_the_policy_calls_a_tool_and_reads_its_answer(sums):
    own = player()

    def say(text: str) -> str:
        if "<|tool|>" in text:
            return text.rpartition("<|tool|>")[2].partition("<|assistant|>")[0]
        a, b = text.split("<|user|>")[1].split("=")[0].split("+")
        return f'<tool_call>{{"name": "sums_add", "arguments": {{"a": {a}, "b": {b}}}}}</tool_call>'

    limits = Sampling(n=2, max_new_tokens=200, temperature=1.0, seed=0)
    played = sums.episodes(own, Scripted(own, say)).play(sums.prompts[:2], limits)
    assert [score.accuracy for one in played for score in one.verdicts] == [1.0] * 4
    completion = played[1].completions[0]
    assert own.tokenizer.decode(completion.token_ids).endswith("</tool_call><|end|><|tool|>8<|assistant|>8<|end|>")
    mine = [token for token, own_one in zip(completion.token_ids, completion.sampled, strict=True) if own_one]
    assert "<|tool|>" not in own.tokenizer.decode(mine)


@pytest.mark.parametrize(
    ("call", "answer"),
    [
        ('{"name": "sums_none", "arguments": {}}', "there is no tool 'sums_none'"),
        ('{"name": "sums_add", "arguments": [1]}', "the arguments are no JSON object"),
    ],
)
def test_a_call_that_makes_no_sense_is_answered(sums, call, answer):
    own = player()
    engine = Scripted(own, lambda text: "7" if "<|tool|>" in text else f"<tool_call>{call}</tool_call>")
    limits = Sampling(n=1, max_new_tokens=200, temperature=1.0, seed=0)
    (played,) = sums.episodes(own, engine).play(sums.prompts[:1], limits)
    assert answer in own.tokenizer.decode(played.completions[0].token_ids)
    assert played.verdicts[0].accuracy == 1.0


# What goes wrong


def test_errors_and_time_outs_make_their_own_episodes_unscorable_and_the_others_go_on():
    chosen = source("higher_lower", rows=5, settings={"taskset": {"crash_on": 0, "sleep_on": 1}}, timeout=5.0)
    own = player()
    with EnvironmentProcess(chosen) as process:
        episodes = Episodes(process, rubric("found", "early", "legal"), own, Scripted(own, halving))
        zero, one, *_, two = prompts_of(chosen, process)
        crashed, late, third = (played.verdicts[0] for played in episodes.play([zero, one, two], GREEDY))
    assert crashed.unscorable == "error: RuntimeError: this game has a bug"
    assert late.unscorable == "timeout: the environment did not go on within 5 s"
    assert third.accuracy == 1.0


def test_a_process_that_dies_makes_its_episodes_unscorable_and_the_next_ones_have_another(game):
    own = player()
    with EnvironmentProcess(game.source) as process:
        process.tasks(1)
        worker = process._worker

        def dies(text: str) -> str:
            psutil.Process(worker.pid).kill()
            return "4"

        episodes = Episodes(process, game.rubric, own, Scripted(own, dies))
        (played,) = episodes.play(game.prompts[:1], GREEDY)
        assert played.verdicts[0].unscorable == "crash: the environment's process ended with signal 9"
        (played,) = Episodes(process, game.rubric, own, Scripted(own, halving)).play(game.prompts[:1], GREEDY)
        assert played.verdicts[0].accuracy == 1.0


def test_nothing_of_an_environment_outlives_it(sums):
    with EnvironmentProcess(sums.source) as process:
        process.tasks(1)
        started = psutil.Process(process._worker.pid)
        running = [started, *started.children(recursive=True)]
        assert len(running) > 1  # the tool's server
    _, left = psutil.wait_procs(running, timeout=10)
    assert not left
