"""The consistency reward: does the answer follow from the thinking? Classifiers, their audit, and their failures."""

from __future__ import annotations

import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.config.consistency import EmbeddedConsistency, NliConsistency
from components.config.reward import RewardSettings
from components.config.sandbox import SandboxSettings
from components.config.tasks import ArithmeticSource
from components.data.consistency import Solution, changed, pairs, train
from components.errors import EvenkeelError, InputError
from components.files import write_json
from components.rewards import Scorer, build_verifier
from components.rewards.alignment import FEATURES, Case, Equation, equations, evaluate, features
from components.rewards.consistency import EmbeddedVerifier, NliVerifier, Weights, read_model, weights_file
from components.rewards.pair_classifier import find_label
from components.rewards.scorer import MISSING, with_part
from components.tasks import TASKS
from components.types import Prompt, Score
from tests.unit.classifiers import save_classifier
from tests.unit.sandboxes import HOSTILE, completion

SETTINGS = EmbeddedConsistency()
ONE_WORKER = SandboxSettings(workers=1)  # each takes half a second to start
ALONE = EmbeddedConsistency(sandbox=ONE_WORKER)


@pytest.fixture(scope="module")
def problems() -> list[Prompt]:
    return TASKS["arithmetic"](ArithmeticSource(rows=900, levels=2), 4)


@pytest.fixture(scope="module")
def trained(problems: list[Prompt]) -> tuple[Weights, dict[str, Any]]:
    return train(problems[:600], SETTINGS, 0)


@pytest.fixture(scope="module")
def verifier(trained: tuple[Weights, dict[str, Any]]) -> EmbeddedVerifier:
    return EmbeddedVerifier("#", trained[0].model_dump())


# Features


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("7+8+0=15;4+3+1=8", [("7+8+0", "15"), ("4+3+1", "8")]),
        ("She sold 48/2 = <<48/2=24>>24 clips", [("48/2", "24")]),
        ("$1,200 * 2 = $2,400.", [("1,200 * 2 ", "2,400")]),
        ("3=3;4<5", []),
        ("x = 5, so 5 = x", []),
        ("=" * 200, []),
    ],
)
def test_equations_are_read_where_an_operation_stands_before_the_sign(text, found):
    assert [(e.left.strip(" $"), e.right) for e in equations(text)] == [(left.strip(), right) for left, right in found]


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("7+8+0", 15), ("12-8-0", 4), ("7*6+4", 46), ("2+3*4", 14), ("1,200 * 2", 2400), ("48/2", 24),
        ("1/3", Fraction(1, 3)), ("0.5*3", Fraction(3, 2)), ("1/0", None), ("1..5+2", None),
        ("9" * 40 + "+1", None),
    ],
)  # fmt: skip
def test_expressions_are_evaluated_exactly(expression, value):
    assert evaluate(expression) == value


@pytest.mark.parametrize(
    ("thinking", "answer", "name", "value"),
    [
        ("7+8+0=15;4+3+1=8", "85", "assembled_from_all", 1),
        ("7+8+0=15;4+3+1=8", "75", "assembled_from_all", 0),
        ("7*7=49;13-9-0=4;5-4-1=0", "4", "assembled", 1),
        ("7*7=49;13-9-0=4;5-4-1=0", "4", "assembled_from_all", 0),
        ("20+22=42", "42", "last_result", 1),
        ("20+22=42;1+1=2", "42", "last_result", 0),
        ("20+22=42;1+1=2", "42", "any_result", 1),
        ("4+3=8;1+1=2", "2", "true_equations", 0.5),
        ("3=3;4<5", "354", "compared", 1),
        ("3=3;4<5", "345", "compared", 0),
        ("3=3;4>5", "354", "compared", 0),
        ("I guess 42", "42", "last_number", 1),
        ("I guess 42", "42", "follows", 0),
        ("4+3+1=8", "85", "digits_used", 0.75),
        ("", "", "assembled", 0),
    ],
)
def test_features_say_how_answer_and_thinking_are_aligned(thinking, answer, name, value):
    assert FEATURES[name](Case.read("47+38=", thinking, answer)) == value


@given(st.text(max_size=80), st.text(max_size=200), st.text(max_size=20))
def test_features_of_any_text_are_shares(question, thinking, answer):
    found = features(question, thinking, answer)
    assert len(found) == len(FEATURES)
    assert all(0 <= value <= 1 for value in found)


def test_an_equation_is_true_when_both_sides_are_equal():
    assert Equation("7+8+0", "15").true
    assert not Equation("7+8+0", "16").true


# The embedded classifier


def test_pairs_hold_one_of_every_kind_and_only_the_solution_itself_is_consistent(problems):
    solutions = [Solution(p.text, *p.solution.split("#")) for p in problems[:50]]
    for solution, made in zip(solutions, pairs(solutions, 1), strict=True):
        assert [pair.kind for pair in made] == [
            "own", "other answer", "other premise", "other thinking", "wrong answer", "wrong thinking", "restated",
        ]  # fmt: skip
        assert [pair.consistent for pair in made] == [True] + [False] * 6
        own = (solution.question, solution.thinking, solution.answer)
        parts = [(pair.question, pair.thinking, pair.answer) for pair in made]
        assert parts[0] == own
        assert own not in parts[1:]


@given(st.text(min_size=1, max_size=20), st.randoms(use_true_random=False))
def test_a_changed_text_differs_in_one_place(text, rng):
    other = changed(text, rng)
    assert len(other) == len(text)
    assert sum(x != y for x, y in zip(text, other, strict=True)) == 1


def test_the_classifier_distinguishes_held_out_solutions_from_every_kind_of_mismatch(trained):
    figures = trained[1]
    assert figures["auc"] > 0.97
    assert figures["accuracy"] > 0.9
    assert figures["means"]["own"] > 0.9
    assert all(mean < 0.2 for kind, mean in figures["means"].items() if kind != "own")


def test_audit_shuffled_premises_score_low_on_problems_that_were_never_seen(problems, verifier):
    unseen = problems[600:]
    own = [verifier.accuracy(p, p.solution) for p in unseen]
    shuffled = []
    for p, other in zip(unseen, unseen[7:] + unseen[:7], strict=True):
        thinking = other.solution.rpartition("#")[0]
        shuffled.append(verifier.accuracy(other, f"{thinking}#{p.answer}") if p.answer != other.answer else 0.0)
    assert sum(own) / len(own) > 0.9
    assert sum(shuffled) / len(shuffled) < 0.1


def test_audit_restating_the_answer_at_the_end_of_foreign_thinking_does_not_pay(problems, verifier):
    p, other = problems[600], problems[612]
    for restated in (f" {p.answer}", f"; so {p.answer}", f" {p.answer}+0={p.answer}"):
        assert verifier.accuracy(p, f"{other.solution.rpartition('#')[0]}{restated}#{p.answer}") < 0.3


def test_an_answer_that_follows_from_a_mistake_is_consistent_and_a_lucky_one_is_not(verifier):
    prompt = Prompt("p", "47+38=", "85", "")
    assert verifier.accuracy(prompt, "7+8+0=15;4+3+0=7#75") > 0.8
    assert verifier.accuracy(prompt, "7+8+0=15;4+3+0=7#85") < 0.2


@pytest.mark.parametrize("text", ["7+8+0=15;4+3+1=8", "#85", "7+8+0=15;4+3+1=8#", " # ", ""])
def test_without_marker_thinking_or_answer_nothing_follows(verifier, text):
    assert verifier.accuracy(Prompt("p", "47+38=", "85", ""), text) == 0.0


def test_training_depends_on_the_seed_only(problems):
    few = problems[:150]
    first = train(few, SETTINGS, 0)
    assert train(few, SETTINGS, 0) == first
    assert train(few, SETTINGS, 1)[0] != first[0]


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ([("1+1=", "1+1=2#2")] * 19, "19 solutions of the SFT split have thinking before '#'"),
        ([("1+1=", "2")] * 50, "0 solutions"),
        ([("1+1=", "1+1=2#2")] * 50, "with different answers"),
        ([(f"{i}?", f"{i % 7}{i % 5}#{'ab'[i % 2]}") for i in range(60)], "as a reward it would be noise"),
    ],
)
def test_solutions_from_which_nothing_can_be_learned_are_refused(rows, problem):
    prompts = [Prompt(str(i), question, "", solution) for i, (question, solution) in enumerate(rows)]
    with pytest.raises(InputError, match=problem) as caught:
        train(prompts, SETTINGS, 0)
    assert caught.value.where == "reward.consistency"


@pytest.fixture
def path(tmp_path: Path, trained: tuple[Weights, dict[str, Any]]) -> Path:
    """The file with the weights."""
    write_json(tmp_path / "consistency.json", weights_file(trained[0]))
    return tmp_path / "consistency.json"


def test_weights_are_plain_numbers_and_read_back_as_written(path, trained):
    assert read_model(SETTINGS, path) == trained[0].model_dump()
    assert set(json.loads(path.read_text())["model"]) == {"intercept", "coefficients"}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (weights_file(None), "not the weights of a consistency classifier"),
        ([], "not the weights"),
        ({"model": {"intercept": 0, "coefficients": {}, "code": "x"}}, "not the weights"),
        ({"model": {"intercept": 0, "coefficients": {"last_result": 1}}}, "other features"),
    ],
)
def test_a_file_that_holds_no_weights_of_these_features_is_refused(tmp_path, content, problem):
    write_json(tmp_path / "c.json", content)
    with pytest.raises(InputError, match=problem):
        Scorer(RewardSettings(consistency=SETTINGS), tmp_path / "c.json")


def test_a_missing_file_is_refused(tmp_path):
    for path in (None, tmp_path / "none.json"):
        with pytest.raises(InputError):
            Scorer(RewardSettings(consistency=SETTINGS), path)


# In the reward


def test_consistency_is_a_part_of_its_own_from_a_fenced_process(path):
    settings = RewardSettings(consistency=ALONE, sandbox=ONE_WORKER, weights={"consistency": 0.5})
    texts = ["7+8+0=15;4+3+1=8#85", "7+8+0=15;4+3+0=7#75", "7+8+0=15;4+3+0=7#85"]
    with Scorer(settings, path) as scorer:
        right, wrong, lucky = scorer.score(Prompt("p", "47+38=", "85", ""), [completion(text) for text in texts])
    assert [score.accuracy for score in (right, wrong, lucky)] == [1.0, 0.0, 1.0]
    assert right.parts["consistency"] > 0.4 < wrong.parts["consistency"]
    assert lucky.parts["consistency"] < 0.1
    assert right.reward == 1.0 + right.parts["consistency"]
    assert right.metrics == {MISSING: 0.0}


@pytest.mark.parametrize(
    ("consistent", "parts", "missing"),
    [
        ([0.9, 0.1], [0.9, 0.1], [0, 0]),
        ([0.9, None, 0.1], [0.9, 0.5, 0.1], [0, 1, 0]),
        ([None, None], [0.0, 0.0], [1, 1]),
    ],
)
def test_a_consistency_that_cannot_be_judged_takes_the_mean_of_the_group_and_is_counted(consistent, parts, missing):
    found = with_part([Score(1.0) for _ in consistent], "consistency", consistent)
    assert [score.parts["consistency"] for score in found] == parts
    assert [score.metrics[MISSING] for score in found] == missing
    assert [score.accuracy for score in found] == [1.0] * len(parts)


def test_a_completion_that_the_verifier_could_not_judge_stays_unscorable():
    lost = Score(None, unscorable="timeout")
    assert with_part([lost, Score(1.0)], "consistency", [0.3, 0.7])[0] is lost


def test_a_failing_classifier_costs_the_part_and_not_the_accuracy(path):
    limits = SandboxSettings(timeout=1, workers=1)
    settings = RewardSettings(consistency=EmbeddedConsistency(sandbox=limits), sandbox=ONE_WORKER)
    with Scorer(settings, path) as scorer:
        pool = scorer._consistency._pool
        pool._start = (HOSTILE, pool._start[1])  # returns what the text names, else 0
        texts = ["hang #85", "return 0.8 #85", "raise no #3", "#85"]
        scores = scorer.score(Prompt("p", "47+38=", "85", ""), [completion(text) for text in texts])
    assert [score.accuracy for score in scores] == [1.0, 1.0, 0.0, 1.0]
    assert [score.metrics[MISSING] for score in scores] == [1.0, 1.0, 1.0, 0.0]


# The classifier from a folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    words = ["The", "final", "answer", "is", *"0123456789=+;"]
    labels = ("contradiction", "entailment")
    return save_classifier(tmp_path_factory.mktemp("crm"), words, labels, positions=24, initializer_range=0.8)


@pytest.fixture(scope="module")
def nli(folder: Path) -> NliVerifier:
    return NliVerifier("#", folder, None)


def test_the_folders_classifier_gives_the_probability_of_its_consistent_class(folder, nli):
    p = nli.accuracy(Prompt("p", "1 + 1 =", "2", ""), "1 + 1 = 2 # 2")
    other = NliVerifier("#", folder, "contradiction").accuracy(Prompt("p", "1 + 1 =", "2", ""), "1 + 1 = 2 # 2")
    assert 0 < p < 1
    assert p + other == pytest.approx(1)
    assert p == nli.accuracy(Prompt("p", "1 + 1 =", "2", ""), "1 + 1 = 2 # 2")
    assert p != nli.accuracy(Prompt("p", "1 + 1 =", "2", ""), "1 + 1 = 2 # 3")


def test_too_long_thinking_loses_its_front_and_keeps_question_end_and_answer(nli):
    pairs = nli._classifier

    def encode(question: str, thinking: str) -> Any:
        return pairs._encode(question, thinking, "The final answer is 8")["input_ids"][0]

    def read(question: str, thinking: str) -> str:
        return pairs._tokenizer.decode(encode(question, thinking))

    front, end = "1 " * 40, "7 6 5"
    assert read("4 4", front + end) == f"[CLS] 4 4 {'1 ' * 11}7 6 5 [SEP] The final answer is 8 [SEP]"
    assert read("4 4", "2 " * 60 + front + end) == read("4 4", front + end)
    assert read("4 4", end) == "[CLS] 4 4 7 6 5 [SEP] The final answer is 8 [SEP]"
    assert len(encode("4 " * 40, end)) == 24  # a question that is too long by itself


@pytest.mark.parametrize(
    ("names", "wanted", "number"),
    [
        ({0: "ENTAILMENT", 1: "not_entailment"}, None, 0),
        ({0: "inconsistent", 1: "consistent"}, None, 1),
        ({0: "no", 1: "yes"}, "yes", 1),
    ],
)
def test_the_consistent_class_is_found_by_its_name(names, wanted, number):
    assert find_label(names, wanted) == number


@pytest.mark.parametrize(
    ("names", "wanted"), [({0: "LABEL_0", 1: "LABEL_1"}, None), ({0: "no", 1: "yes"}, "Yes"), ({0: "entailment"}, None)]
)
def test_a_class_that_cannot_be_determined_is_an_error_that_names_the_classes(names, wanted):
    with pytest.raises(ValueError, match=r"which of the classes .*Name it in reward.consistency.label"):
        find_label(names, wanted)


def test_the_folders_classifier_runs_in_a_fenced_process(folder):
    settings = RewardSettings(consistency=NliConsistency(kind="nli", path=folder), weights={"consistency": 2})
    with Scorer(settings) as scorer:
        [score] = scorer.score(Prompt("p", "1 + 1 =", "2", ""), [completion("1 + 1 = 2 # 2")])
    alone = build_verifier(NliConsistency(kind="nli", path=folder))
    assert score.accuracy == 1.0
    assert score.parts["consistency"] == 2 * alone.accuracy(Prompt("p", "1 + 1 =", "2", ""), "1 + 1 = 2 # 2")


def test_a_folder_that_could_run_code_or_has_changed_is_refused(folder, tmp_path):
    with pytest.raises(InputError, match="content has changed"):
        Scorer(RewardSettings(consistency=NliConsistency(kind="nli", path=folder, sha256="0" * 64)))
    with pytest.raises(InputError, match="input not found"):
        Scorer(RewardSettings(consistency=NliConsistency(kind="nli", path=tmp_path / "none")))
    (tmp_path / "pytorch_model.bin").write_bytes(b"x")
    with pytest.raises(InputError, match="pickle"):
        Scorer(RewardSettings(consistency=NliConsistency(kind="nli", path=tmp_path)))


@pytest.mark.slow
def test_a_class_that_does_not_exist_is_said_before_anything_is_judged(folder):
    wrong = NliConsistency(kind="nli", path=folder, label="sure")
    with Scorer(RewardSettings(consistency=wrong)) as scorer, pytest.raises(EvenkeelError, match="contradiction, ent"):
        scorer.score(Prompt("p", "1 + 1 =", "2", ""), [completion("1 + 1 = 2 # 2")])


def test_the_embedded_classifier_needs_neither_torch_nor_numpy():
    code = (
        "import sys, components.rewards.worker\n"
        "from components.rewards.alignment import features\n"
        "features('1', '1+1=2', '2')\n"
        "sys.exit(bool({'torch', 'numpy', 'sklearn', 'transformers'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
