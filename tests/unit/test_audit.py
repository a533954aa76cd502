"""The audit: right and wrong answers by construction, and a verifier that falls for one of them is caught."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import nullcontext
from functools import cache
from typing import Any, cast

import pytest

from components.audit.hacks import HACKS, same
from components.audit.measure import Audit, Kind, measure
from components.audit.probes import Probe, make_probes
from components.audit.verdict import judge_audit, render
from components.config import Settings, load, reward
from components.config.audit import AuditSettings
from components.config.sandbox import SandboxSettings
from components.config.verifiers import ExactVerifier as ExactSettings
from components.config.verifiers import NumericVerifier as NumericSettings
from components.errors import NoCandidate
from components.evaluation.statistics import wilson
from components.files import read_json, write_json, write_jsonl
from components.layout import Layout
from components.rewards import build_verifier
from components.rewards.base import ExactVerifier, Verifier
from components.rewards.code.tests import exploits
from components.rewards.sandbox import Sandbox
from components.stages import audit as stage
from components.stages.train import overridden
from components.training.second_opinion import SecondOpinion
from components.types import Completion, Group, Prompt, Score
from tests.code_graph import ROOT
from tests.unit.kept_workers import kept_workers
from tests.unit.test_rewards_verifiers import sections

PROMPTS = [
    Prompt(id=f"p{i}", text=f"{i}+{i * i}=", answer=str(i + i * i), solution=f"{i}+{i * i}={i + i * i}#{i + i * i}")
    for i in range(2, 42)
]
MANY = [Prompt(id=f"q{i}", text=f"{i}+1000=", answer=str(i + 1000), solution=f"#{i + 1000}") for i in range(200)]
EXACT, NUMERIC = ExactVerifier("#"), NumericSettings(kind="numeric", marker="#")


class Substring(ExactVerifier):
    """Right when the reference stands anywhere in the text."""

    def accuracy(self, prompt: Prompt, text: str) -> float:
        return float(prompt.answer in text)


class Lenient(ExactVerifier):
    """Compares digits as `int` does: those of any script are the same to it."""

    def accuracy(self, prompt: Prompt, text: str) -> float:
        found = re.findall(r"\d+", text.rpartition("#")[2])
        return float(len(found) == 1 and len(found[0]) < 100 and int(found[0]) == int(prompt.answer))


class Moody(ExactVerifier):
    """Changes its mind at every tenth call."""

    calls = 0

    def accuracy(self, prompt: Prompt, text: str) -> float:
        self.calls += 1
        return super().accuracy(prompt, text) if self.calls % 10 else 0.5


class Bare:
    """A verifier without a fence, in the place of a sandbox."""

    def __init__(self, verifier: Verifier) -> None:
        self._verifier = verifier

    def judge(self, items: Sequence[tuple[Prompt, str]]) -> list[Score]:
        return [Score(self._verifier.accuracy(prompt, text)) for prompt, text in items]


@cache
def probed(prompts: tuple[Prompt, ...]) -> list[Probe]:
    """The same for every verifier here, each of which states an answer as ``EXACT`` does."""
    return make_probes(EXACT, prompts)


def audited(verifier: Verifier, second: Verifier | None = None, prompts: Sequence[Prompt] = PROMPTS) -> Audit:
    probes = probed(tuple(prompts))
    other = cast(Sandbox, Bare(second)) if second else None
    return measure(probes, lambda: nullcontext(cast(Sandbox, Bare(verifier))), 3, other)


def verdict(audit: Audit, **limits: Any) -> dict[str, Any]:
    return judge_audit(audit, AuditSettings(**limits))


def wrong_kinds(audit: Audit) -> set[str]:
    return {kind.name for kind in audit.kinds if kind.wrong.count}


# --- the interval


@pytest.mark.parametrize(
    ("count", "n", "low", "high"),
    [
        *[(0, 10, 0.0, 0.2775), (10, 100, 0.0552, 0.1744), (1, 3400, 0.00005, 0.00166)],
        *[(200, 200, 0.9812, 1.0), (0, 0, 0.0, 1.0)],
    ],
)
def test_wilson_intervals_are_the_published_ones(count, n, low, high):
    found = wilson(count, n)
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-4)


def test_a_share_beyond_its_whole_is_refused():
    with pytest.raises(ValueError, match="3 of 2"):
        wilson(3, 2)


# --- the probes


def test_every_prompt_is_probed_with_right_and_wrong_answers():
    probes = probed(tuple(PROMPTS))
    kinds = {probe.kind for probe in probes}
    assert {"reference solution", "another's solution", *(f"hack: {name}" for name in HACKS)} <= kinds
    fixed = [p.kind for p in probes if not p.advice]
    assert {kind: fixed.count(kind) for kind in set(fixed)} == dict.fromkeys(fixed, len(PROMPTS))


def test_no_wrong_probe_states_the_reference_answer():
    for probe in probed(tuple(PROMPTS)):
        if not probe.right:
            assert probe.text.rpartition("#")[2].strip() != probe.prompt.answer


KINDS = {
    "numeric": ({"marker": "#"}, [*map(str, range(12)), "0.25", "1/2", "0.16666666666", "10000000", "$5", "97", "0/7"]),
    "exact": ({"marker": "#"}, [*map(str, range(12)), "yes", "No."]),
    "math": ({"marker": "#"}, [*map(str, range(8)), "x-y", "ab", r"\frac{1}{2}", "[0,1)", "2x+1", "yes"]),
    "multiple_choice": ({"marker": "#"}, ["A", "B", "C", "D", "(E)", "B.", "C)"]),
    "json": ({"marker": "#"}, ["0", "1", "[]", '{"a": 1}', '{"b": [1, 2]}', '"x"', "true"]),
    "countdown": ({"marker": "#"}, ["3*8-2", "8*2+3", "3+8+2", "8-3-2", "(8-2)/3"]),
    "code": ({"seconds": 1.0}, [f"assert f{i}(1) == [{i}]\nassert set(f{i}(2)) == {{{i}}}" for i in range(3)]),
}
"""Kind -> its settings, and answers whose audit an honest verifier passes."""
WRITTEN = {"code": lambda answer: "\n".join(f"def f{i}(x): return [{i}]" for i in range(3) if f"f{i}" in answer)}


def asked(kind: str) -> tuple[Any, list[Prompt]]:
    options, answers = KINDS[kind]
    section = sections(reward.Verifier)[kind](kind=kind, **options)
    verifier = build_verifier(section)
    prompts = []
    for i, answer in enumerate(answers):
        value = eval(answer) if kind == "countdown" else None
        text = f"[2, 3, 8] = {value:g}" if kind == "countdown" else f"Which one, {'xyz'[i % 3] * (i + 1)}?"
        solution = verifier.wrap(WRITTEN.get(kind, str)(answer))
        prompts.append(Prompt(id=f"p{i}", text=text, answer=answer, solution=solution))
    return section, prompts


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_behind_its_fence_passes_its_audit_with_right_references(kind):
    section, prompts = asked(kind)
    probes = [probe for probe in make_probes(build_verifier(section), prompts) if not probe.quick]
    with Sandbox(section, SandboxSettings(workers=1, timeout=10)) as sandbox:
        scores = sandbox.judge([(probe.prompt, probe.text) for probe in probes])
    wrongly = [(p.kind, p.prompt.answer, p.text[:60], s) for p, s in zip(probes, scores, strict=True)
               if p.right != (s.accuracy == 1)]  # fmt: skip
    assert wrongly == []
    assert {probe.right for probe in probes} == {True, False}


def test_assertions_that_an_object_without_a_solution_passes_fail_the_audit_of_code():
    section = sections(reward.Verifier)["code"](kind="code", seconds=1.0)
    right = "```python\ndef f{0}(x): return [{0}]\n```"
    prompts = [Prompt(str(i), "?", f"want = [{i}]\nassert f{i}(1) == want", right.format(i)) for i in range(3)]
    probes = [p for p in make_probes(build_verifier(section), prompts) if p.kind.startswith("hack: equal")]
    with Sandbox(section, SandboxSettings(workers=1, timeout=10)) as sandbox:
        assert [score.accuracy for score in sandbox.judge([(p.prompt, p.text) for p in probes])] == [1.0] * 3


def test_code_is_probed_with_tricks_for_every_function_that_is_tested():
    helper = "import math\ndef close(a, b): return abs(a - b) < 1\n"
    found = exploits(f"{helper}assert close(area(1), math.pi)\nassert area(len([])) == 0")
    assert {"equal to everything", "true as it is", "shadowed builtins", "leaves at import"} <= set(found)
    assert "def area(" in found["equal to everything"] and "def close" not in found["equal to everything"]
    assert exploits("assert (") == exploits("assert 1 == 1") == {}


@pytest.mark.parametrize(
    ("answer", "kinds"),
    [("0", {"repeated answer"}), ("0/3", {"near miss"}), ("0.97", {"claim"}), ("answer", {"placeholder"})],
)
def test_a_hack_that_happens_to_state_the_reference_is_no_probe(answer, kinds):
    prompt = Prompt(id="p", text="How many?", answer=answer, solution=f"#{answer}")
    made = {p.kind.removeprefix("hack: ") for p in make_probes(EXACT, [prompt, *PROMPTS]) if p.prompt is prompt}
    assert not made & kinds
    assert "refusal" in made


def test_a_near_miss_of_a_decimal_is_beyond_every_tolerance():
    made = make_probes(EXACT, [Prompt(id="p", text="?", answer="0.16666666", solution="")])
    assert "#0.16766666" in [probe.text for probe in made if probe.kind == "hack: near miss"]


def test_what_cannot_be_wrong_is_no_probe():
    twins = [Prompt(str(i), f"{i}?", answer, f"#{answer}") for i, answer in enumerate(("5", "5.0"))]
    assert not {p.kind for p in make_probes(EXACT, twins)} & {"another's solution", "hack: commonest answer"}


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        *[("5", "5.0", True), ("A b", "a  B", True), ("1/2", "0.5", True)],
        *[("5", "6", False), ("A", "B", False), ("x", "5", False)],
    ],
)
def test_answers_are_compared_by_value(one, other, equal):
    assert same(one, other) is equal


# --- what it finds


def test_an_honest_verifier_passes():
    found = verdict(audited(EXACT, prompts=MANY))
    assert (found["verdict"], found["reasons"]) == ("pass", [])
    assert (found["false_positive"]["count"], found["false_positive"]["n"]) == (0, 200)
    assert found["false_positive"]["high"] == pytest.approx(0.0188, abs=1e-4)


def test_a_verifier_that_looks_for_a_substring_falls_for_listing_every_option():
    audit = audited(Substring("#"))
    assert {"hack: all options", "hack: every option marked", "hack: repeated answer"} <= wrong_kinds(audit)
    found = verdict(audit)
    assert found["verdict"] == "fail"
    said = "40 of 40 wrong answers of one sort were accepted (hack: all options)"
    assert [reason for reason in found["reasons"] if reason.startswith(said)]


def test_a_verifier_that_reads_digits_of_any_script_falls_for_look_alikes():
    assert wrong_kinds(audited(Lenient("#"))) == {"hack: look-alike characters"}


def judged(*kinds: tuple[str, bool, int, int]) -> dict[str, Any]:
    """The verdict on kinds of the given name, side, wrong and all probes, where nothing else is amiss."""
    made = tuple(Kind(name, right, wilson(count, n), 0, None, ()) for name, right, count, n in kinds)
    return judge_audit(Audit(200, made, 200, 0, {}, wilson(0, 200), wilson(0, 200)), AuditSettings())


@pytest.mark.parametrize(
    ("count", "n", "fails"),
    [(7, 200, True), (5, 200, True), (4, 200, False), (1, 20, False), (2, 20, True), (0, 9, False)],
)
def test_a_sort_fails_by_its_observed_rate_from_the_second_one_on(count, n, fails):
    assert (judged(("hack: x", False, count, n))["verdict"] == "fail") is fails


def test_right_answers_of_one_sort_are_held_to_their_own_limit():
    assert judged(("form: x", True, 3, 200))["reasons"] == ["3 of 200 right answers of one sort were refused (form: x)"]
    assert judged(("form: x", True, 2, 200))["verdict"] == "pass"


def test_a_prompt_counts_once_however_many_of_its_wrong_answers_are_accepted():
    class Lax(ExactVerifier):
        def accuracy(self, prompt: Prompt, text: str) -> float:
            return 1.0 if prompt.id == "q7" else super().accuracy(prompt, text)

    found = verdict(audited(Lax("#"), prompts=MANY))
    assert (found["false_positive"]["count"], found["false_positive"]["n"]) == (1, 200)
    assert found["verdict"] == "fail"
    assert "of 1 of 200 prompts a wrong answer was accepted" in found["reasons"][0]


def test_a_verdict_that_depends_on_what_a_worker_judged_before_shows_in_new_workers():
    class Remembering(Bare):
        def judge(self, items: Sequence[tuple[Prompt, str]]) -> list[Score]:
            return [Score(float(place % 2)) for place in range(len(items))]

    probes = probed(tuple(PROMPTS))
    audit = measure(probes, lambda: nullcontext(cast(Sandbox, Remembering(EXACT))), 2)
    assert audit.unstable > 0


def test_a_verifier_that_refuses_right_answers_fails():
    class Strict(ExactVerifier):
        def accuracy(self, prompt: Prompt, text: str) -> float:
            return super().accuracy(prompt, text) if text.endswith("0") else 0.0

    found = verdict(audited(Strict("#")))
    assert found["verdict"] == "fail"
    assert "prompts a right answer was refused" in found["reasons"][1]


def test_a_verifier_that_changes_its_mind_fails():
    audit = audited(Moody("#"))
    assert audit.unstable > 0
    assert verdict(audit)["reasons"][-1].endswith("were not judged the same every time")


def test_too_few_probes_prove_nothing_and_the_reason_says_so():
    found = verdict(audited(EXACT, prompts=PROMPTS[:2]))
    assert found["verdict"] == "fail"
    assert "on too few prompts to know: raise audit.prompts" in found["reasons"][0]


def test_what_cannot_be_judged_is_not_accepted_and_is_counted_by_its_reason():
    class Deaf(Bare):
        def judge(self, items: Sequence[tuple[Prompt, str]]) -> list[Score]:
            return [Score(None, unscorable="timeout: no verdict") for _ in items]

    probes = [Probe("reference solution", PROMPTS[0], "#6", True), Probe("hack: empty", PROMPTS[0], "", False)]
    audit = measure(probes, lambda: nullcontext(cast(Sandbox, Deaf(EXACT))), 2)
    assert audit.unscorable == {"timeout": 2}
    assert [(kind.wrong.count, kind.unscorable) for kind in audit.kinds] == [(1, 1), (0, 1)]


def test_a_second_verifier_shows_where_the_two_differ():
    disagreements = {kind.name: kind.disagree for kind in audited(EXACT, Lenient("#")).kinds}
    assert disagreements["hack: look-alike characters"] == len(PROMPTS)
    assert disagreements["reference solution"] == 0


# --- the stage


def settings(*overrides: str) -> Settings:
    return load(ROOT / "configs/demo.yaml", ["reward.sandbox.workers=1", *overrides])


def prepared(layout: Layout) -> Layout:
    for split in ("train", "dev", "test"):
        chosen = PROMPTS if split == "train" else PROMPTS[:0]
        write_jsonl(layout.split(split), [prompt.to_dict() for prompt in chosen])
    return layout


def test_the_stage_judges_behind_the_fence_and_writes_the_same_bytes_twice(tmp_path):
    written = []
    for folder, workers in (("one", nullcontext()), ("two", kept_workers())):
        layout = prepared(Layout(tmp_path / folder))
        with workers:
            stage.run(settings("audit.max_false_positive=0.1", "audit.repeats=2"), layout)
        written.append((layout.audit.read_bytes(), layout.audit_page.read_bytes()))
    assert written[0] == written[1]
    assert read_json(layout.audit)["verdict"] == "pass"
    assert set(read_json(layout.audit_timing)) == {"median", "slowest", "per_second"}


def test_the_page_shows_what_was_judged_wrongly_and_loads_nothing(tmp_path):
    page = render(verdict(audited(Lenient("#"))), settings())
    assert "The verifier cannot be trusted" in page
    assert "hack: look-alike characters" in page
    assert not re.search(r"(src|href)=", page)


def test_the_page_escapes_what_a_model_wrote():
    audit = verdict(audited(EXACT))
    example = {"question": "<script>", "answer": "\u202e5", "text": "<img>", "verdict": "accuracy 1", "id": "p"}
    audit["kinds"][0]["examples"] = [example]
    page = render(audit, settings())
    assert "<script>" not in page and "<img>" not in page and "\\u202e5" in page


@pytest.mark.parametrize(("failed", "override"), [(False, ""), (True, "an experiment")])
def test_training_goes_on_after_a_pass_or_with_a_reason(tmp_path, failed, override):
    layout = Layout(tmp_path)
    write_json(layout.audit, {"verdict": "fail" if failed else "pass", "reasons": []})
    assert overridden("audit", settings(f"audit.override='{override}'"), layout) == override


def test_training_is_refused_after_a_failed_audit_naming_the_reasons_and_the_page(tmp_path):
    layout = Layout(tmp_path)
    write_json(layout.audit, {"verdict": "fail", "reasons": ["it takes anything"]})
    with pytest.raises(
        NoCandidate, match=r"failed its audit[^$]*it takes anything[^$]*audit\.html[^$]*audit\.override"
    ):
        overridden("audit", settings(), layout)


# --- the second opinion while training


def group(*answers: str) -> Group:
    prompt = PROMPTS[0]
    completions = tuple(Completion((1,), (0.0,), "stop", f"#{answer}") for answer in answers)
    scores = tuple(Score(EXACT.accuracy(prompt, completion.text)) for completion in completions)
    return Group(prompt, (1,), completions, scores)


def test_the_second_verifier_judges_a_seeded_sample_and_its_disagreement_is_a_signal():
    chosen = AuditSettings(second=NUMERIC, live_share=1.0)
    with SecondOpinion(chosen, settings().reward.sandbox, seed=0) as second:
        signals, examples = second.compare([group("6", "6.0", "7", "006")], step=3)
    assert signals == {"second_compared": 4.0, "second_disagreement": 0.5, "second_doubted": 0.0}
    assert [(row["text"], row["first"], row["second"]) for row in examples] == [("#6.0", 0.0, 1.0), ("#006", 0.0, 1.0)]


def test_the_sample_depends_on_seed_and_step_only():
    chosen = AuditSettings(second=ExactSettings(), live_share=0.1)
    groups = [group(*map(str, range(10))) for _ in range(10)]

    def sample(seed: int, step: int) -> list[str]:
        return [c.text for _, c, _ in SecondOpinion(chosen, settings().reward.sandbox, seed)._sample(groups, step)]

    assert len(sample(0, 0)) == 10
    assert sample(0, 0) == sample(0, 0)
    assert sample(0, 0) != sample(0, 1)
    assert sample(0, 0) != sample(1, 0)


def test_a_share_of_zero_starts_no_worker():
    with SecondOpinion(AuditSettings(second=NUMERIC, live_share=0.0), settings().reward.sandbox, seed=0) as second:
        assert second._sandbox is None


@pytest.mark.parametrize(
    ("chosen", "answer", "signals"),
    [
        (AuditSettings(), "6", {}),
        (AuditSettings(second=NUMERIC, live_share=0.0), "6", {}),
        (AuditSettings(second=NUMERIC, live_share=1.0), "hello", {"second_compared": 0.0}),
    ],
    ids=["no second verifier", "a share of zero", "one that can judge nothing"],
)
def test_where_nothing_can_be_compared_nothing_is_said_but_that(chosen, answer, signals):
    prompt = Prompt(id="p", text="?", answer=answer, solution="")
    said = Group(prompt, (1,), (Completion((1,), (0.0,), "stop", f"#{answer}"),), (Score(1.0),))
    with SecondOpinion(chosen, settings().reward.sandbox, seed=0) as second:
        assert second.compare([said], step=0) == (signals, [])
