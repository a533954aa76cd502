"""The calculator: what it understands, when it is called, and how a completion comes about in turns."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

import pytest
import torch
from factories import TINY, Judge, policy, prompts, settings
from hypothesis import given
from hypothesis import strategies as st

from components.config.rollout import CalculatorTool
from components.errors import InputError
from components.learner.batch import build_batch
from components.learner.scoring import score_all
from components.policy import Policy
from components.policy.tiny import build_model, build_tokenizer
from components.rollout import Collector, Engine, Sampling, build_engine
from components.rollout.tools import ToolLoop
from components.rollout.torch_engine import TorchEngine
from components.tools import TOOLS, Segment, build_tool
from components.tools.calculator import Calculator, annotation, answer
from components.tools.expressions import MAX_CHARS, MAX_SIZE, evaluate
from components.types import Completion, Group

# Expressions


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("48/2", 24),
        ("2+3*4", 14),
        ("(2+3)*4", 20),
        ("20-3-4", 13),
        ("100/5/2", 10),
        ("-3*-4", 12),
        ("2--3", 5),
        (" 7 * ( 1 + 1 ) ", 14),
        (".5*10", 5),
        ("0.1+0.2", Fraction(3, 10)),
        ("1/3*3", 1),
        ("((((5))))", 5),
    ],
)
def test_worked_values_are_exact(expression, value):
    assert evaluate(expression) == value


NO_EXPRESSIONS = [
    *("", " ", "+", "2+", "*3", "2 3", "(2", "2)", "()", "2**3", "2//3", "2^3", "x", "2x", "1e9", "1_000", "$5", "5%"),
    *("1/0", "1/(2-2)", "2;3", "٣+١", "1,000", "1.2.3", "abs(1)", "__import__('os')"),
    *("9" * 16, "99999999*99999999", "1+" * MAX_CHARS + "1", "(" * MAX_CHARS, "-" * MAX_CHARS),
]


@pytest.mark.parametrize("wrong", NO_EXPRESSIONS)
def test_everything_else_has_no_value(wrong):
    with pytest.raises(ValueError):
        evaluate(wrong)
    assert answer(wrong) == "?"


@given(st.text(alphabet="0123456789.+-*/() ", max_size=MAX_CHARS))
def test_an_expression_has_the_value_that_python_gives_it_or_none(text):
    try:
        found = evaluate(text)
    except ValueError:
        return
    spaced = "".join(f"F('{p}')" if p[0] in "0123456789." else p for p in _pieces(text))
    assert found == eval(spaced, {"F": Fraction})
    assert abs(found) < MAX_SIZE


def _pieces(text: str) -> list[str]:
    import re

    return re.findall(r"\d+\.?\d*|\.\d+|[-+*/()]", text)


@pytest.mark.parametrize(
    ("expression", "shown"),
    [("48/2", "24"), ("5/2", "2.5"), ("1/3", "0.3333"), ("-1/3", "-0.3333"), ("2/3", "0.6667"), ("1/99999", "0"),
     ("-1/99999", "0"), ("3-5", "-2"), ("100000000000001/4", "25000000000000.25"), ("0*-5", "0")],
)  # fmt: skip
def test_worked_answers_as_the_calculator_shows_them(expression, shown):
    assert answer(expression) == shown


# Calls


@pytest.mark.parametrize(
    ("text", "observation"),
    [
        ("<<48/2=", "24>>"),
        ("She has 48/2 = <<48/2=", "24>>"),
        ("<<1+<<2+3=", "5>>"),
        ("<<two+2=", "?>>"),
        ("<<=", "?>>"),
        ("<<1/0=", "?>>"),
        ("48/2=", None),
        ("<48/2=", None),
        ("<<48/2", None),
        ("<<48/2>>=", None),
        ("<<1=2=", None),
        ("<<48/2= ", None),
        ("", None),
    ],
)
def test_a_call_is_an_equals_sign_behind_an_open_bracket(text, observation):
    assert Calculator().observe(text) == observation


@pytest.mark.parametrize(
    ("demonstration", "segments"),
    [
        ("<<48/2=24>>24", [("<<48/2=", True), ("24>>", False), ("24", True)]),
        ("#5", [("#5", True)]),
        ("a <<1+1=2>>", [("a <<1+1=", True), ("2>>", False)]),
        ("<<1+1=2>><<2+2=4>>#4", [("<<1+1=", True), ("2>>", False), ("<<2+2=", True), ("4>>", False), ("#4", True)]),
        ("1+1=3;<<3+2=5>>#5", [("1+1=3;<<3+2=", True), ("5>>", False), ("#5", True)]),
        ("<<1+1=2", [("<<1+1=2", True)]),
        ("", []),
    ],
)
def test_the_tools_stretches_of_a_demonstration(demonstration, segments):
    found = Calculator().segments(demonstration)
    assert [tuple(segment) for segment in found] == segments


@given(st.text(alphabet="<>=#1+;", max_size=30))
def test_segments_put_together_are_the_demonstration(text):
    assert "".join(segment.text for segment in Calculator().segments(text)) == text


@given(st.text(alphabet="0123456789+-*/().x ", max_size=20))
def test_demonstrations_and_completions_have_the_same_form(expression):
    call, observation = Calculator().segments(annotation(expression))
    assert call == Segment(f"<<{expression}=", True)
    assert Calculator().observe(call.text) == observation.text


# Turns


class Scripted(Engine):
    """Writes what a function of the text so far says, and keeps what it was asked."""

    max_positions: int | None = None

    def __init__(self, policy: Policy, write: Callable[[str], str]) -> None:
        self._policy, self._write = policy, write
        self.asked: list[tuple[list[str], Sampling]] = []

    def load_weights(self, weights: dict[str, torch.Tensor]) -> None:
        self.weights = weights

    def generate(self, prompts: Sequence[Sequence[int]], sampling: Sampling) -> list[tuple[Completion, ...]]:
        texts = [self._policy.decode(tuple(ids)) for ids in prompts]
        self.asked.append((texts, sampling))
        return [(self._turn(text, sampling),) * sampling.n for text in texts]

    def _turn(self, text: str, sampling: Sampling) -> Completion:
        ids: list[int] = []
        for token in self._policy.encode_answer(self._write(text)):
            ids.append(token)
            if token == self._policy.eos_id or token in sampling.stop or len(ids) == sampling.max_new_tokens:
                break
        last = ids[-1]
        reason = "stop" if last == self._policy.eos_id else "stop_token" if last in sampling.stop else "length"
        return Completion(tuple(ids), (-0.5,) * len(ids), reason, "")


MICRO = policy()
QUESTION = tuple(MICRO.tokenizer.encode("Q", add_special_tokens=False))


def loop(write: Callable[[str], str], max_turns: int = 4) -> tuple[ToolLoop, Scripted]:
    engine = Scripted(MICRO, write)
    return ToolLoop(engine, Calculator(), MICRO, max_turns), engine


def sampling(tokens: int = 40, n: int = 1, stop: tuple[int, ...] = ()) -> Sampling:
    return Sampling(n=n, max_new_tokens=tokens, temperature=1.0, seed=0, stop=stop)


def solve(text: str) -> str:
    """A policy that calls twice and then answers."""
    if ">>" not in text:
        return "<<12*3="
    return "<<36+4=" if text.count(">>") == 1 else "#40"


def generate(write: Callable[[str], str], max_turns: int = 4, **options: int) -> Completion:
    ((completion,),) = loop(write, max_turns)[0].generate([QUESTION], sampling(**options))
    return completion


def sampled_text(completion: Completion) -> str:
    flags = completion.sampled or (True,) * len(completion.token_ids)
    return MICRO.decode(tuple(i for i, sampled in zip(completion.token_ids, flags, strict=True) if sampled))


def test_the_policy_writes_calls_and_the_tool_writes_the_results():
    found = generate(solve)
    assert found.text == "<<12*3=36>><<36+4=40>>#40"
    assert found.finish_reason == "stop"
    assert sampled_text(found) == "<<12*3=<<36+4=#40"
    assert len(found.token_ids) == len(found.logprobs) == len(found.sampled)
    assert all((logp == 0.0) != sampled for logp, sampled in zip(found.logprobs, found.sampled, strict=True))
    assert (found.token_ids[-1], found.sampled[-1]) == (MICRO.eos_id, True)


@pytest.mark.parametrize(("servers", "known"), [([1, 1, 1], 1), ([0, 1, 1], -1)])
def test_a_completion_keeps_the_server_that_sampled_all_its_turns(servers, known):
    (tool, engine), turns = loop(solve), iter(servers)
    sample = engine._turn
    engine._turn = lambda *text: replace(sample(*text), server=next(turns))
    ((found,),) = tool.generate([QUESTION], sampling())
    assert found.server == known and found.text.endswith("#40")


def test_every_turn_reads_the_prompt_and_all_turns_before_it():
    tested, engine = loop(solve)
    tested.generate([QUESTION], sampling())
    assert [texts for texts, _ in engine.asked] == [["Q"], ["Q<<12*3=36>>"], ["Q<<12*3=36>><<36+4=40>>"]]


def test_what_the_policy_sampled_is_never_tokenised_again():
    micro = policy()
    tokenizer = build_tokenizer(["<<1+1=2>>"] * 9, vocab_size=280, max_positions=64)
    micro.model.resize_token_embeddings(len(tokenizer))
    micro = Policy(micro.model, tokenizer)
    single = [tokenizer.encode(c, add_special_tokens=False)[0] for c in "<<1+1="]
    assert single != tokenizer.encode("<<1+1=", add_special_tokens=False)  # << is a token, but was written as two

    class Odd(Scripted):
        def _turn(self, text: str, sampling: Sampling) -> Completion:
            ids = single if ">>" not in text else [micro.eos_id]
            return Completion(tuple(ids), (-1.0,) * len(ids), "stop_token" if ">>" not in text else "stop", "")

    ((found,),) = ToolLoop(Odd(micro, solve), Calculator(), micro, 4).generate([QUESTION], sampling())
    assert list(found.token_ids[: len(single)]) == single
    assert found.text == "<<1+1=2>>"


def test_a_completion_without_a_call_is_as_the_engine_gave_it():
    found = generate(lambda _: "#7")
    assert (found.text, found.sampled, found.finish_reason) == ("#7", None, "stop")


def test_an_equals_sign_outside_of_a_call_is_written_on_without_an_observation():
    found = generate(lambda text: "1+1=" if text == "Q" else "3#3")
    assert (found.text, found.sampled) == ("1+1=3#3", None)


def test_a_call_that_makes_no_sense_is_answered_by_an_error_that_the_policy_reads():
    found = generate(lambda text: "<<1+=" if text == "Q" else "#no" if text.endswith("?>>") else "#yes")
    assert found.text == "<<1+=?>>#no"


@pytest.mark.parametrize("max_turns", [1, 2, 3])
def test_a_completion_that_calls_once_too_often_ends_as_too_long(max_turns):
    found = generate(lambda _: "<<1+1=", max_turns=max_turns, tokens=60)
    assert found.text == "<<1+1=2>>" * max_turns + "<<1+1="
    assert found.finish_reason == "length"


@pytest.mark.parametrize("tokens", range(1, 30))
def test_the_budget_counts_observations_too_and_is_never_exceeded(tokens):
    whole = generate(solve)
    found = generate(solve, tokens=tokens)
    length = min(tokens, len(whole.token_ids))
    assert len(found.token_ids) == len(found.logprobs) == length
    assert found.token_ids == whole.token_ids[:length]
    assert (found.sampled or (True,) * length) == whole.sampled[:length]
    assert found.finish_reason == ("stop" if tokens >= len(whole.token_ids) else "length")


def test_rows_that_are_at_different_turns_go_on_together_and_keep_their_order():
    def write(text: str) -> str:
        return solve(text) if "Q" in text else "#1"

    other = tuple(MICRO.tokenizer.encode("R", add_special_tokens=False))
    tested, engine = loop(write)
    found = tested.generate([QUESTION, other, QUESTION], sampling(n=2))
    solved = "<<12*3=36>><<36+4=40>>#40"
    assert [[c.text for c in row] for row in found] == [[solved] * 2, ["#1"] * 2, [solved] * 2]
    assert [len(texts) for texts, _ in engine.asked] == [3, 4, 4]  # first one prompt a group, then one a completion


@pytest.mark.parametrize("served", [None, 50])
def test_no_row_is_asked_for_more_positions_than_the_model_or_its_servers_have(served):
    limit = served or MICRO.max_positions
    long = QUESTION * 20

    def write(text: str) -> str:  # the longer prompt's first turn is longer too
        return "#" * 9 + "<<1+1=" if "QQ" in text and ">>" not in text else solve(text)

    tested, engine = loop(write)
    engine.max_positions = served
    tested.generate([QUESTION, long], sampling(tokens=limit - len(long)))
    for texts, asked in engine.asked:
        lengths = [len(MICRO.tokenizer.encode(text, add_special_tokens=False)) for text in texts]
        assert max(lengths) + asked.max_new_tokens <= limit
    assert len(engine.asked) > 3  # the rows could not all go on together


def test_turns_have_seeds_of_their_own():
    tested, engine = loop(solve)
    tested.generate([QUESTION], sampling())
    assert len({asked.seed for _, asked in engine.asked}) == 3


def test_a_stop_token_that_the_caller_asked_for_ends_the_completion():
    (hash_,) = MICRO.tokenizer.encode("#", add_special_tokens=False)
    ((found,),) = loop(solve)[0].generate([QUESTION], sampling(stop=(hash_,)))
    assert (found.text, found.finish_reason, found.token_ids[-1]) == ("<<12*3=36>><<36+4=40>>", "stop_token", hash_)


def test_weights_go_to_the_engine():
    tested, engine = loop(solve)
    weights = MICRO.weights()
    tested.load_weights(weights)
    assert engine.weights is weights


def test_a_vocabulary_in_which_no_call_could_end_is_refused():
    class Never(Calculator):
        ending = "=never="

    with pytest.raises(InputError, match="no token of the vocabulary ends with '=never='"):
        ToolLoop(Scripted(MICRO, solve), Never(), MICRO, 1)


# With a real engine


def eager() -> Policy:
    """The micro policy with a vocabulary that has << as one token, made to write calls most of the time."""
    tokenizer = build_tokenizer([text for p in prompts(20) for text in (p.text, "<<1+1=2>>")], 280, 64)
    micro = Policy(build_model(TINY.model_copy(update={"vocab_size": 280}), tokenizer, seed=0), tokenizer)
    bonus = torch.zeros(len(tokenizer))
    for text, size in (("<<", 9.0), ("=", 10.0), ("1", 8.0), ("+", 8.0)):
        (token,) = tokenizer.encode(text, add_special_tokens=False)
        bonus[token] = size
    bonus[micro.eos_id] = 8.0
    micro.model.get_output_embeddings().register_forward_hook(lambda _m, _i, logits: logits + bonus)
    return micro


def sampled_with_tool(micro: Policy, seed: int = 0) -> list[tuple[Completion, ...]]:
    options = settings(rollout={"tool": {"kind": "calculator", "max_turns": 3}}).rollout
    tested = build_engine(micro, options)
    assert isinstance(tested, ToolLoop)
    ids = [micro.encode_prompt(p.text) for p in prompts(3)]
    return tested.generate(ids, Sampling(n=8, max_new_tokens=24, temperature=1.0, seed=seed))


def test_the_same_seed_gives_the_same_completions_and_another_seed_others():
    one, again, other = (sampled_with_tool(eager(), seed) for seed in (1, 1, 2))
    assert one == again != other


def test_reported_log_probabilities_are_the_learners_and_observations_are_not_in_the_loss():
    micro = eager()
    found = sampled_with_tool(micro)
    calls = [c for row in found for c in row if c.sampled is not None]
    assert len(calls) > 4
    judge = Judge(lambda _: 1.0)
    rows = [(prompts(3)[i], row) for i, row in enumerate(found)]
    groups = [
        Group(p, micro.encode_prompt(p.text), row, scores)
        for (p, row), scores in zip(rows, judge.score_groups(rows), strict=True)
    ]
    batch = build_batch(groups, micro.pad_id)
    observed = sum(not s for c in calls for s in c.sampled)
    assert int(batch.response_mask.sum()) == sum(len(c.token_ids) for row in found for c in row) - observed
    logp = score_all(micro.model, batch, 1.0, max_tokens=256).logp
    assert torch.allclose(logp[batch.response_mask], batch.rollout_logp[batch.response_mask], atol=1e-4)


def test_all_sampling_goes_through_the_tool():
    micro = eager()
    options = settings(rollout={"tool": {"kind": "calculator"}, "max_new_tokens": 24})
    judge = Judge(lambda completion: float(">>" in completion.text))
    collector = Collector(micro, build_engine(micro, options.rollout), judge, options.rollout)
    sampled = collector.groups(prompts(4), collector.sampling(seed=0, n=4))
    greedy = collector.groups(prompts(4), collector.sampling(seed=0, n=1, temperature=0.0))
    assert any(c.sampled for group in sampled for c in group.completions)
    assert all(isinstance(group.completions[0], Completion) for group in greedy)


def test_without_a_tool_the_engine_stands_alone():
    assert isinstance(build_engine(policy(), settings().rollout), TorchEngine)


def test_the_registry_holds_the_tool_of_the_settings():
    tool = CalculatorTool(kind="calculator")
    assert isinstance(build_tool(tool), TOOLS[tool.kind])


def test_mixtures_and_a_tool_are_refused_together():
    with pytest.raises(ValueError, match="every turn with a tool starts from plain tokens"):
        settings(rollout={"tool": {"kind": "calculator"}, "mixing": {"prob": 0.1}})


def test_tools_do_not_import_torch():
    code = "import sys, components.tools; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
