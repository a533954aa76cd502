"""The scorers of reasoning-gym as a verifier, behind the fence."""

from __future__ import annotations

import ast
import importlib.util
import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from components.audit.measure import measure
from components.audit.probes import make_probes
from components.audit.verdict import judge_audit
from components.config.audit import AuditSettings
from components.config.reasoning_gym import ReasoningGymSource, ReasoningGymVerifier
from components.config.reward import RewardSettings
from components.config.sandbox import SandboxSettings
from components.reasoning_gym.entries import dumps
from components.rewards import Scorer, build_verifier
from components.rewards.reasoning_gym import EVALUATING, PARSING, check_formula, last_element
from components.rewards.sandbox import Sandbox
from components.tasks.reasoning_gym import generate
from components.types import Completion, Prompt
from tests.tiers import slow_but

SETTINGS = ReasoningGymVerifier(kind="reasoning_gym")
FAKE = (sys.executable, str(Path(__file__).with_name("gym_worker.py")))
DATASETS = ("chain_sum", "countdown", "string_insertion", "polynomial_multiplication", "arc_agi", "word_ladder")
"""Decimals, a formula, `eval`, sympy, tuples in the entry, words that the data set loads."""
PLAIN = Prompt("p", "1 + 1", "2", "2")


@pytest.fixture(scope="module")
def prompts() -> dict[str, Prompt]:
    section = {"kind": "reasoning_gym", "rows": len(DATASETS), "datasets": {key: {} for key in DATASETS}}
    return {prompt.task: prompt for prompt in generate(ReasoningGymSource.model_validate(section), 0)}


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(SETTINGS, SandboxSettings(workers=1)) as one:
        yield one


def fake(answer: str) -> Prompt:
    entry = {"question": "?", "answer": answer, "metadata": {}}
    return Prompt("f", "?", answer, answer, reference=dumps({"dataset": "fake", "settings": {}, "entry": entry}))


@pytest.mark.parametrize("name", DATASETS)
def test_the_reference_answer_is_right_and_another_is_wrong(
    name: str, prompts: dict[str, Prompt], sandbox: Sandbox
) -> None:
    prompt = prompts[name]
    right, spaced, wrong = sandbox.judge(
        [(prompt, prompt.answer), (prompt, f" {prompt.answer}\n"), (prompt, "so be it")]
    )
    assert (right.accuracy, spaced.accuracy, wrong.accuracy) == (1, 1, 0)
    assert right.metrics == {"library_score": 1}


def test_partial_credit_is_a_metric_unless_it_is_asked_for(prompts: dict[str, Prompt], sandbox: Sandbox) -> None:
    prompt = prompts["chain_sum"]
    text = f"{prompt.answer} {prompt.answer}"
    (score,) = sandbox.judge([(prompt, text)])
    assert score.accuracy == 0
    assert 0 < score.metrics["library_score"] < 1
    assert score.parts == {}
    partial = SETTINGS.model_copy(update={"partial": True})
    paying = RewardSettings(verifier=partial, sandbox=SandboxSettings(workers=1))
    with Scorer(paying) as scorer:
        completions = [Completion((1,), (-1.0,), "stop", answer) for answer in (text, prompt.answer)]
        partly, wholly = scorer.score(prompt, completions)
    assert partly.reward == partly.parts["partial"] == score.metrics["library_score"]
    assert wholly.reward == 1


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"marker": "####"}, "two and two\n#### {}"),
        ({"tag": "answer"}, "<answer>7</answer> no: <answer> {} </answer> it is"),
    ],
)
def test_the_answer_stands_after_a_marker_or_in_an_element(
    changed: dict[str, Any], text: str, prompts: dict[str, Prompt]
) -> None:
    prompt = prompts["chain_sum"]
    verifier = build_verifier(SETTINGS.model_copy(update=changed))
    assert verifier.accuracy(prompt, text.format(prompt.answer)) == 1
    assert verifier.accuracy(prompt, verifier.wrap(prompt.answer)) == 1
    assert verifier.accuracy(prompt, prompt.answer) == 0


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", None),
        ("<a>1", None),
        ("</a><a>1</a>", "1"),
        ("<a>1</a> <a>\n2 </a>", "\n2 "),
        ("<a>1<a>2</a>", "1<a>2"),
        ("<a>1</a><a>2", "1"),
        ("<A>1</A>", None),
    ],
)
def test_the_last_element_counts_up_to_its_first_end(text: str, found: str | None) -> None:
    assert last_element(text, "a") == found


@pytest.mark.timeout(20)
def test_thousands_of_beginnings_without_an_end_take_no_time() -> None:
    start = time.process_time()
    assert last_element("<answer>" * 200_000, "answer") is None
    assert time.process_time() - start < 1


def test_digits_that_only_look_so_are_wrong(prompts: dict[str, Prompt], sandbox: Sandbox) -> None:
    prompt = prompts["chain_sum"]
    wide = prompt.answer.translate(str.maketrans("0123456789", "０１２３４５６７８９"))
    assert sandbox.judge([(prompt, wide)])[0].accuracy == 0


def test_a_prompt_of_another_source_is_unscorable(sandbox: Sandbox) -> None:
    (score,) = sandbox.judge([(PLAIN, "2")])
    assert score.unscorable == ("refused: this prompt does not come from reasoning_gym: there is no entry to score by")


@pytest.fixture(scope="module")
def scorer() -> Iterator[Sandbox]:
    """A fake scorer, which does what the answer says."""
    with Sandbox(SETTINGS, SandboxSettings(workers=1, timeout=6, cpu_seconds=0.5), FAKE) as sandbox:
        yield sandbox


RAISED = [
    ("raise", "error: KeyError"),
    ("nan", "error: ValueError: the library's score is nan"),
    ("1.5", "error: ValueError: the library's score is 1.5"),
    ("-0.1", "error: ValueError: the library's score is -0.1"),
]
ENDED = [("hang", "timeout:"), ("burn", "cpu:")]
"""They end the worker, and the next one takes seconds to start; `test_rewards_fence` has them for any verifier."""


@pytest.mark.parametrize(("text", "reason"), slow_but([*RAISED, *ENDED], *RAISED, ENDED[1]))
def test_what_the_scorer_cannot_judge_is_unscorable_and_never_wrong(text: str, reason: str, scorer: Sandbox) -> None:
    [score] = scorer.judge([(fake("1"), text)])
    assert score.accuracy is None
    assert (score.unscorable or "").startswith(reason)


def test_right_is_full_marks_but_for_a_rounding(scorer: Sandbox) -> None:
    scores = scorer.judge([(fake("1"), text) for text in ("1", "0.25", "0.9999999999999999")])
    assert [score.accuracy for score in scores] == [1, 0, 1]


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("string_insertion", "[exec('raise SystemExit')]"),
        ("countdown", "exec('raise SystemExit') or 1"),
        ("polynomial_multiplication", "exec('raise SystemExit')"),
    ],
)
def test_nothing_that_a_policy_wrote_is_executed(
    name: str, answer: str, prompts: dict[str, Prompt], sandbox: Sandbox
) -> None:
    """Executed, it would end the scorer, and the answer would be unscorable."""
    assert sandbox.judge([(prompts[name], answer)])[0].accuracy == 0


@pytest.mark.slow
def test_the_scorers_that_run_an_answer_are_known() -> None:
    """Every other `eval` of the library is of its own texts."""
    spec = importlib.util.find_spec("reasoning_gym")
    assert spec is not None and spec.origin
    root = Path(spec.origin).parent
    own = {"arithmetic.basic_arithmetic", "arithmetic.bitwise_arithmetic", "algorithmic.number_sorting", "code.codeio"}
    own |= {f"arithmetic.gsm_symbolic.generators_{name}" for name in ("00_49", "50_99")}
    found: dict[str, set[str]] = {}
    for path in root.rglob("*.py"):
        calls = [node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
        name = ".".join(path.relative_to(root).with_suffix("").parts)
        for called in (call.id for call in calls if isinstance(call, ast.Name)):
            found.setdefault(called, set()).add(name)
    assert (found["eval"] | found.get("exec", set())) - own == set(EVALUATING)
    assert found["parse_expr"] - {"logic.propositional_logic"} == set(PARSING)  # which has a parser of that name
    assert "sympify" not in found


@pytest.mark.parametrize(
    "text", ["(1+2)*3 - 4/5", "x**2 + 2*x*y", "-cos(3*x)/3 + C", "2*sqrt(x) + exp(x)*log(x)", "5!"]
)
def test_formulas_are_read(text: str) -> None:
    check_formula(text)


@pytest.mark.parametrize(
    "text", ["exec('1')", "().__class__", "x.free_symbols", "[1][0]", "lambda: 1", "preview(x)", "9" * 3000, "open(1)"]
)
def test_what_is_no_formula_is_not_read(text: str) -> None:
    with pytest.raises(ValueError, match=r"formula|function"):
        check_formula(text)


def audited(name: str, sandbox: Sandbox) -> dict[str, Any]:
    section = {"kind": "reasoning_gym", "rows": 20, "datasets": {name: {}}}
    made = list(generate(ReasoningGymSource.model_validate(section), 0))
    audit = measure(make_probes(build_verifier(SETTINGS), made), lambda: nullcontext(sandbox), repeats=2)
    return judge_audit(audit, AuditSettings(max_false_positive=0.2))


@pytest.mark.parametrize("name", slow_but(["chain_sum", "basic_arithmetic", "word_sorting"], "chain_sum"))
@pytest.mark.slow
def test_a_sound_scorer_passes_its_audit(name: str, sandbox: Sandbox) -> None:
    assert audited(name, sandbox)["reasons"] == []


def test_the_audit_finds_a_scorer_that_can_be_gamed(sandbox: Sandbox) -> None:
    """That of spell_backward compares letter by letter and does not mind more of them."""
    found = audited("spell_backward", sandbox)
    assert found["verdict"] == "fail"
    assert any("repeated answer" in reason for reason in found["reasons"])
