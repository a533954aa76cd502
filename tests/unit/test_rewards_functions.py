"""Plain functions with TRL's signature: what they are called with, what they add to the reward, and what their failures
cost.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from components.config.advantages import GdpoAdvantage
from components.config.extensions import FunctionSet, RewardFunction
from components.config.reward import RewardSettings
from components.config.sandbox import SandboxSettings
from components.config.verifiers import PythonVerifier
from components.errors import EvenkeelError, InputError
from components.objectives.advantages.gdpo import decoupled
from components.objectives.advantages.rewards import rewards_of
from components.rewards import Scorer, build_verifier
from components.rewards.functions import load
from components.rewards.sandbox import Sandbox
from components.types import Group, Prompt, Score
from tests.unit.kept_workers import kept_workers
from tests.unit.sandboxes import completion

MODULE = '''
import socket, time
import numpy as np

def reward_func(completions, ground_truth, **kwargs):
    """The shape of an example in TRL's docs: a column of the data set, and whatever else there is."""
    return [1.0 if content.endswith(truth) else 0.0 for content, truth in zip(completions, ground_truth)]

def tokens(completion_ids):
    return [np.float32(len(ids)) for ids in completion_ids]

def chat(prompts, completions, **kwargs):
    assert [message["role"] for message in prompts[0]] == ["user"]
    return [len(messages[0]["content"]) for messages in completions]

def columns(prompts, completions, answer, solution, reference, id, task, source, family, difficulty):
    row = (prompts, answer, solution, reference, id, task, source, family, difficulty)
    wanted = ("6*7=", "42", "#42", "more", "p", "arithmetic", "file", "two", 3.0)
    return [float(tuple(column[at] for column in row) == wanted) for at in range(len(completions))]

def longest(completions, *, of=1):
    return [len(text) / of == max(map(len, completions)) for text in completions]

def rarely(completions, **kwargs):
    return [None if text == "n/a" else 1.0 for text in completions]

def loud(completions, **kwargs):
    print('{"values": [9]}', flush=True)
    return [0.5 for _ in completions]

def fails(completions, **kwargs):
    if "list" in completions:
        return None
    return [FAULTS[text]() if text in FAULTS else 1.0 for text in completions] + [1.0] * completions.count("one more")

def slow():
    time.sleep(60)

FAULTS = {
    "raise": lambda: 1 / 0,
    "nan": lambda: float("nan"),
    "text": lambda: "much",
    "network": socket.socket,
    "slow": slow,
}

def unnamed(completions, /):
    return [1.0]

async def later(completions, **kwargs):
    return [1.0]

def state(completions, trainer_state):
    return [1.0]

def blind(answer):
    return [1.0]

def correct(completions, answer):
    (text,) = completions
    return [{"double": 2, "none": None}.get(text, text == answer[0])]

class Uncalled:
    pass
'''
PROMPT = Prompt(
    "p", "6*7=", "42", "#42", task="arithmetic", source="file", family="two", difficulty=3, reference="more"
)
LIMITS = SandboxSettings(workers=1, timeout=2)
RIGHT = {"kind": "exact"}


@pytest.fixture(scope="module", autouse=True)
def _workers() -> Iterator[None]:
    with kept_workers():
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The working folder, with the module `mine`."""
    path = tmp_path_factory.mktemp("functions")
    (path / "mine.py").write_text(MODULE, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(path)
        patched.setattr(sys, "path", [*sys.path])
        yield path
    sys.modules.pop("mine", None)


def functions(*names: str, **settings: Any) -> dict[str, Any]:
    return {name: {"target": f"mine:{name}", **settings} for name in names}


def scored(chosen: dict[str, Any], *groups: Sequence[str], **reward: Any) -> list[tuple[Score, ...]]:
    settings = RewardSettings.model_validate({"verifier": RIGHT, "functions": chosen, "sandbox": LIMITS, **reward})
    with Scorer(settings) as scorer:
        return scorer.score_groups([(PROMPT, [completion(text, len(text)) for text in texts]) for texts in groups])


def test_a_function_gets_the_columns_that_it_names_and_is_a_part_of_the_reward_by_its_weight(folder):
    chosen = {
        **functions("reward_func", weight=0.5),
        **functions("tokens", weight=-0.125),
        **functions("chat", conversational=True),
        **functions("columns", weight=0),
        **functions("longest", settings={"of": 1}),
        **functions("loud"),
    }
    [(right, wrong)] = scored(chosen, ["#42", "#4"])
    assert right.rewards == {"accuracy": 1, "reward_func": 0.5, "tokens": -0.375, "chat": 3, "longest": 1, "loud": 0.5}
    assert wrong.rewards == {"accuracy": 0, "reward_func": 0, "tokens": -0.25, "chat": 2, "longest": 0, "loud": 0.5}
    assert right.metrics["columns"] == 1 and right.reward == 5.625


def test_what_a_function_does_not_apply_to_gets_the_mean_of_its_group_and_is_counted(folder):
    some, none = scored(functions("rarely", weight=2.0), ["#42", "n/a"], ["n/a", "n/a"])
    assert [score.parts["rarely"] for score in (*some, *none)] == [2, 2, 0, 0]
    assert [score.metrics["rarely_missing"] for score in (*some, *none)] == [0, 1, 1, 1]


FAILURES = {
    "raise": "error: reward.functions.fails: ZeroDivisionError: division by zero",
    "nan": "returned nan, which is no finite number and not None",
    "text": "returned 'much', which is no finite number and not None",
    "one more": "returned 4 values for 3 completions",
    "list": "mine:fails returned a NoneType, not a list of numbers",
    "network": "error: reward.functions.fails: PermissionError",
    "slow": "timeout: reward.functions.fails: no verdict within 2 s",
}


def test_a_call_that_fails_makes_its_group_unscorable_and_no_other(folder):
    before, *broken, after = scored(functions("fails"), ["#42"], *(["#42", text, "#41"] for text in FAILURES), ["#41"])
    assert (before[0].reward, after[0].reward) == (2, 1)
    for scores, reason in zip(broken, FAILURES.values(), strict=True):
        assert [score.accuracy for score in scores] == [None] * 3
        assert all(reason in str(score.unscorable) for score in scores)


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("state", {}, "it needs trainer_state"),
        ("later", {}, "it is asynchronous"),
        ("blind", {}, "it does not take completions"),
        ("unnamed", {}, "it has arguments without names"),
        ("Uncalled", {}, "mine:Uncalled is a type, not a function"),
        ("absent", {}, "cannot import mine:absent"),
        ("longest", {"off": 2}, "settings.off is no argument of it"),
        ("loud", {"answer": 2}, "settings.answer has the name of a column"),
    ],
)
def test_a_function_that_cannot_be_called_is_refused_with_what_it_lacks(folder, name, settings, message):
    with pytest.raises(InputError) as caught:
        load(RewardFunction(target=f"mine:{name}", settings=settings))
    assert message in caught.value.what and caught.value.how


def test_a_worker_that_does_not_start_says_why_and_what_to_do(folder):
    with pytest.raises(EvenkeelError) as caught:
        scored(functions("state"), ["#42"])
    assert "mine:state cannot be a reward function: it needs trainer_state" in caught.value.what
    assert "fix:   the arguments are prompts, completions, answer, ground_truth" in caught.value.what


@pytest.mark.parametrize(
    ("sections", "problem"),
    [
        ({"functions": functions("kl")}, "functions.kl: choose another name; accuracy, consistency, kl, overlong"),
        ({"functions": functions("overlong")}, "functions.overlong: choose another name"),
        ({"functions": functions("brief_missing")}, "functions.brief_missing: choose another name"),
        ({"functions": functions("tree"), "verifier": {"kind": "structure", "tree": True}}, "jaccard_class"),
        ({"functions": functions("brief"), "weights": {"brief": 2}}, "set functions.brief.weight instead"),
        ({"functions": functions("Brief")}, "pattern"),
        ({"functions": functions("brief", weight=0), "weights": {"accuracy": 0}}, "nothing to be rewarded for"),
    ],
)
def test_names_that_mean_something_else_are_refused(sections, problem):
    with pytest.raises(ValidationError, match=problem):
        RewardSettings.model_validate(sections)


def test_parts_are_normalised_each_by_itself_whatever_their_scale(folder):
    """GDPO: many tokens weigh no more than a right answer, and the sign of a weight stays."""
    texts = ["#42", "a long detour, then #42", "#4"]
    scores = tuple(Score(float(text.endswith("#42")), {"tokens": -float(len(text))}) for text in texts)
    group = Group(PROMPT, (), tuple(completion(text, len(text)) for text in texts), scores)
    found = decoupled(rewards_of([group]), GdpoAdvantage(kind="gdpo"))[0].tolist()
    right, long, wrong = found
    assert right > long and right > wrong and abs(sum(found)) < 1e-6


def test_a_plain_function_is_a_verifier_that_judges_one_completion_at_a_time(folder):
    section = PythonVerifier(kind="python", target="mine:correct", marker="#")
    with Sandbox(section, LIMITS) as sandbox:
        right, wrong, double, none = sandbox.judge([(PROMPT, text) for text in ("42", "41", "double", "none")])
    assert (right, wrong) == (Score(1.0), Score(0.0))
    assert "returned 2, and an accuracy is in [0, 1]: scale it" in str(double.unscorable)
    assert none.unscorable == "refused: mine:correct returned None"
    assert build_verifier(section).wrap("42") == "#42"


def test_an_accuracy_cannot_have_the_tokens_which_the_audit_does_not_know(folder):
    with pytest.raises(InputError, match="it needs completion_ids"):
        build_verifier(PythonVerifier(kind="python", target="mine:tokens")).prepare()


def test_replies_do_not_depend_on_the_number_of_workers(folder):
    chosen = {name: RewardFunction.model_validate(one) for name, one in functions("longest", "fails").items()}
    calls = [
        (name, PROMPT, [completion(text) for text in ("a" * n, "raise" if n % 3 else "b")])
        for name in chosen
        for n in range(1, 5)
    ]
    found = []
    for workers in (1, 2):
        with Sandbox(FunctionSet(functions=chosen), SandboxSettings(workers=workers)) as sandbox:
            found.append(sandbox.values(calls))
    assert found[0] == found[1] and any(isinstance(one, str) for one in found[0])
