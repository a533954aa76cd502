"""Whatever a verifier does, every completion gets a score or a reason for having none, and the next one is judged."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from components.config.reward import RewardSettings, SoftOverlong
from components.config.sandbox import SandboxSettings
from components.config.verifiers import ExactVerifier, NumericVerifier, StructureVerifier
from components.errors import EvenkeelError
from components.processes.living import lives
from components.rewards import Scorer
from components.rewards.sandbox import Sandbox
from components.types import Prompt, Score
from tests.unit.sandboxes import HOSTILE, PROMPT, RIGHT, WRONG, completion, judge

ONE_WORKER = SandboxSettings(workers=1)  # each takes half a second to start


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(ExactVerifier(), SandboxSettings(timeout=1, memory_mb=512), HOSTILE) as sandbox:
        yield sandbox


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        ("hang", "timeout: no verdict within 1 s"),
        ("raise too hard", "error: ValueError: too hard"),
        ("leave", "error: SystemExit: 0"),
        ("die", "crash: the verifier's process ended with signal 9"),
        ("eat", "memory: the verifier needs more than its limit"),
        ("return 2", "error: the verifier returned 2.0, which is not in [0, 1]"),
        ("return nan", "error: the verifier returned nan, which is not in [0, 1]"),
        ("part 1.5", "error: the verifier returned 1.5 for the part named, which is not in [-1, 1]"),
        ("part nan", "error: the verifier returned nan for the part named, which is not in [-1, 1]"),
        ("metric inf", "error: the verifier returned inf for the metric named, which is not finite"),
    ],
)
def test_a_failing_verifier_makes_that_item_unscorable_and_no_other(sandbox, action, reason):
    assert judge(sandbox, "42", action, "41", "42") == [RIGHT, Score(None, unscorable=reason), WRONG, RIGHT]


@pytest.mark.parametrize("value", [-1.0, 0.25, 1.0])
def test_parts_and_metrics_come_back_with_the_accuracy(sandbox, value):
    part, metric = judge(sandbox, f"part {value}", f"metric {100 * value}")
    assert part == Score(0.5, {"named": value})
    assert metric == Score(0.5, metrics={"named": 100 * value})


def test_several_failures_in_one_batch_are_distinguished(sandbox):
    scores = judge(sandbox, "die", "42", "raise x", "hang", "die")
    assert [score.unscorable and score.unscorable.split(":")[0] for score in scores] == [
        "crash", None, "error", "timeout", "crash",
    ]  # fmt: skip
    assert judge(sandbox, "42") == [RIGHT]


def test_what_a_verifier_prints_cannot_pose_as_a_verdict(sandbox):
    assert judge(sandbox, "print", "42") == [WRONG, RIGHT]


def test_the_worker_does_not_inherit_the_environment(sandbox, monkeypatch):
    monkeypatch.setenv("SECRET_TOKEN", "x")
    sandbox.close()
    assert judge(sandbox, "environment SECRET_TOKEN") == [WRONG]


def test_a_timeout_also_ends_what_the_verifier_started(sandbox, tmp_path):
    [score] = judge(sandbox, f"spawn-and-hang {tmp_path / 'pid'}")
    assert score.accuracy is None
    assert ends(int((tmp_path / "pid").read_text()))


def test_long_texts_on_both_sides_do_not_block(sandbox):
    reasons = ["raise " + "é" * 5000] * 400
    scores = judge(sandbox, *reasons)
    assert len(scores) == 400
    assert {len(score.unscorable or "") for score in scores} == {300}


def test_texts_with_line_breaks_and_any_unicode_arrive_unchanged(sandbox):
    odd = 'a\nb\r\u2028"\\\x00\ud800'
    assert sandbox.judge([(Prompt("p", "q", odd, odd), odd), (PROMPT, "42")]) == [RIGHT, RIGHT]


def test_an_interrupted_exchange_leaves_no_stale_verdict(sandbox, monkeypatch):
    judge(sandbox, "42")
    with monkeypatch.context() as patched:
        patched.setattr("components.rewards.process.WorkerProcess.receive", interrupt)
        with pytest.raises(KeyboardInterrupt):
            judge(sandbox, "42", "42", "42")
    assert judge(sandbox, "41") == [WRONG]


def interrupt(_: object) -> None:
    raise KeyboardInterrupt


def test_a_verifier_that_cannot_be_built_is_an_error_that_says_why():
    broken = Sandbox(ExactVerifier(marker="broken"), SandboxSettings(), HOSTILE)
    with pytest.raises(EvenkeelError, match="did not start: RuntimeError: no such model"):
        judge(broken, "42")


def test_a_worker_whose_parent_was_killed_does_not_outlive_its_timeout():
    code = (
        "import sys; sys.path[:0] = ['.']\n"
        "from components.config.sandbox import SandboxSettings\n"
        "from components.rewards.process import WorkerProcess\n"
        "from components.rewards.sandbox import encode\n"
        "hello = {'verifier': {'marker': '#'}, 'limits': SandboxSettings(timeout=0.2).model_dump()}\n"
        f"worker = WorkerProcess({HOSTILE!r}, encode(hello))\n"
        "print(worker.pid, flush=True)\n"
        "prompt = {'id': '', 'text': '', 'answer': '', 'solution': ''}\n"
        "worker.send([encode({'prompt': prompt, 'text': 'hang'})])\n"
        "worker.flush()\n"
        "sys.stdin.read()\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert parent.stdout
    worker = int(parent.stdout.readline())
    time.sleep(0.2)
    parent.kill()
    parent.communicate()
    assert ends(worker)


def ends(pid: int, seconds: float = 10) -> bool:
    """True when the process is gone (or waits to be reaped) within some seconds."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not lives(pid):
            return True
        time.sleep(0.02)
    return False


def test_scorer_returns_one_score_per_completion_in_order():
    other = Prompt(id="q", text="1+1=", answer="2", solution="1+1+0=2#2")
    with Scorer(RewardSettings(sandbox=ONE_WORKER)) as scorer:
        groups = scorer.score_groups([
            (PROMPT, [completion("#42"), completion("42"), completion("#41")]),
            (other, []),
            (other, [completion("#2")]),
        ])  # fmt: skip
        assert groups == [(RIGHT, WRONG, WRONG), (), (RIGHT,)]
        assert scorer.score(other, [completion("no answer")]) == (WRONG,)


def test_a_reference_that_the_verifier_cannot_read_is_unscorable_not_wrong():
    prompt = Prompt(id="p", text="q", answer="blue", solution="#### blue")
    with Scorer(RewardSettings(verifier=NumericVerifier(kind="numeric"), sandbox=ONE_WORKER)) as scorer:
        [score] = scorer.score(prompt, [completion("#### 3")])
    assert score.unscorable == "refused: the reference answer 'blue' is none that can be compared: it is not one number"


def test_shaping_is_a_part_of_its_own_and_leaves_accuracy_raw():
    settings = RewardSettings(soft_overlong=SoftOverlong(limit=10, cache=4), sandbox=ONE_WORKER)
    with Scorer(settings) as scorer:
        right, wrong = scorer.score(PROMPT, [completion("#42", tokens=8), completion("#41", tokens=10)])
    assert (right.accuracy, dict(right.parts), right.reward) == (1.0, {"overlong": -0.5}, 0.5)
    assert (wrong.accuracy, dict(wrong.parts), wrong.reward) == (0.0, {"overlong": -1.0}, -1.0)


def test_parts_are_weighted_and_a_part_of_weight_0_is_only_measured():
    rule = "class Door { require width(min=0.9, unit=m) }"
    prompt = Prompt(id="p", text="?", answer=rule, solution=rule)
    weights = {"accuracy": 0.5, "jaccard_class": 0.0, "jaccard_parameter": 0.25, "overlong": 2.0}
    settings = RewardSettings(
        verifier=StructureVerifier(kind="structure"),
        sandbox=ONE_WORKER,
        soft_overlong=SoftOverlong(limit=10, cache=4),
        weights=weights,
    )
    with Scorer(settings) as scorer:
        whole, half = scorer.score(prompt, [completion(rule), completion(rule.replace(", unit=m", ""), tokens=8)])
    assert whole.rewards == {
        "accuracy": 0.5, "jaccard_function": 1.0, "jaccard_parameter": 0.25, "overlong": 0.0,
    }  # fmt: skip
    assert whole.metrics["jaccard_class"] == 1.0
    assert (half.accuracy, half.rewards["accuracy"]) == (0.0, 0.0)
    assert (half.parts["jaccard_parameter"], half.parts["overlong"]) == (0.125, -1.0)
    assert half.reward == pytest.approx(0.125)


def test_a_part_that_is_worth_nothing_moves_no_reward_whatever_it_says():
    settings = RewardSettings(
        soft_overlong=SoftOverlong(limit=10, cache=4), sandbox=ONE_WORKER, weights={"overlong": 0}
    )
    with Scorer(settings) as scorer:
        [score] = scorer.score(PROMPT, [completion("#42", tokens=10)])
    assert (score.reward, score.metrics["overlong"]) == (1.0, -1.0)
