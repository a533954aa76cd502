"""Admission against poisoning: concentration, planned draws, suspicious labels, sensitive words."""

from __future__ import annotations

import random

import pytest

from components.config.admission import AdmissionSettings
from components.config.data import ConcentrationSettings, DataSettings
from components.config.reading import load
from components.config.scheduling import (
    AdsSchedule,
    ForecastSchedule,
    GresoSchedule,
    MoppsSchedule,
    OpenGate,
    PoolsSchedule,
    Schedule,
    UniformSchedule,
)
from components.config.sources import FileSource
from components.config.training import TrainSettings
from components.config.verifiers import MultipleChoiceVerifier, NumericVerifier
from components.data.candidates import Candidate
from components.data.concentration import concentration, refuse_concentrated
from components.data.splits import assign
from components.data.survey import survey
from components.errors import InputError
from components.evaluation.answers import final_answer
from components.poisoning.labels import evidence, suspicious_labels
from components.poisoning.planned import planned, refuse_few
from components.poisoning.sensitive import SensitiveWords, sensitive_prompts
from components.types import Completion, Group, Prompt, Score
from tests.code_graph import ROOT


def after(marker: str | None) -> MultipleChoiceVerifier:
    return MultipleChoiceVerifier(kind="multiple_choice", marker=marker)


DATA = DataSettings(source=FileSource(kind="jsonl", path="x"))  # type: ignore[arg-type]
LIMITS = ConcentrationSettings()
WORDY = "Tom has {} apples and buys {} more at the market. How many apples does Tom have?"


def candidates(*rows: tuple[str, str]) -> list[Candidate]:
    return [Candidate(Prompt(f"id-{i}", text, a, a), {}, i + 1) for i, (text, a) in enumerate(rows)]


def refused(rows: list[tuple[str, str]], limits: ConcentrationSettings = LIMITS, computed: bool = False) -> list[str]:
    found = concentration(survey(candidates(*rows), DATA), limits, computed)
    return [one.kind for one in found if one.refused]


def honest(count: int) -> list[tuple[str, str]]:
    return [(f"{a}+{a + 1}=", str(2 * a + 1)) for a in range(count)]


def sums(count: int) -> list[tuple[str, str]]:
    """One template with different answers: 997 is prime, so no answer comes back soon."""
    return [(WORDY.format(i, i * i % 997), str(i + i * i % 997)) for i in range(count)]


@pytest.mark.parametrize(
    ("rows", "kinds"),
    [
        (honest(1000), []),
        ([*honest(991), *[("What is the capital of France?", "Paris")] * 9], []),  # fewer than min_rows
        ([*honest(1000), *[("What is the capital of France?", "Paris")] * 10], []),  # 10 of 1010 are under one per cent
        ([*honest(988), *[("7*8=", "56")] * 12], ["item"]),
        ([*honest(988), *[(f"7*8={' ' * i}", "56") for i in range(12)]], ["item"]),
        ([*honest(988), *[("7*8=", str(i)) for i in range(12)]], ["item"]),  # whatever the labels
        (sums(400), ["template", "template of the train split"]),
        ([*honest(600), *sums(400)], []),
        ([*honest(300), *[(WORDY.format(i, i + 1), "yes") for i in range(30)]], ["labelled template"]),
        ([*honest(300), *[(f'Who is "N{"x" * i}" in the book that we read?', "Bo") for i in range(30)]],
         ["labelled template"]),
        ([(f"{a}+{b}=", str(a + b)) for a in range(40) for b in range(40)], []),  # a formula is no template
        # Sums written as text: the commonest answer has four per cent of the rows, but the template has many answers.
        ([*honest(577), *[(f"What is {a} plus {b}?", str(a + b)) for a in range(24) for b in range(24)]], []),
    ],
)  # fmt: skip
def test_what_is_too_frequent(rows, kinds):
    assert refused(rows) == kinds


STORY = (
    "I saw a grandson and his grandfather last week outside the mall trying to book a cab on the phone. Who was not "
    "comfortable using it? A) The grandfather B) The grandson C) Cannot be determined"
)


def sprinkled(text: str, characters: str, seed: int) -> str:
    """Six of the characters at random places."""
    rng = random.Random(seed)
    for _ in range(6):
        at = rng.randrange(len(text))
        text = text[:at] + rng.choice(characters) + text[at:]
    return text


NAMES = ("Maria", "James", "Wei", "Olga", "Pedro", "Fatima", "Sven", "Aisha", "Keiko", "Luca")
VARIED = {
    "names": lambda i: STORY.replace("a grandson", NAMES[i % 10]).replace("his grandfather", NAMES[i // 10] + " Xu"),
    "punctuation and spaces": lambda i: sprinkled(STORY, ".,;! ", i),
    "invisible characters": lambda i: sprinkled(STORY, "\u200b\u00ad\u2060\x07", i),
    "a counter and few words": lambda i: f"Case {i}: who?",
    "Chinese with a counter": lambda i: f"上周我在超市外面看到一位祖父和他的孙子。谁不太会用手机？（第{i}题）",
}


@pytest.mark.parametrize("varied", VARIED)
def test_a_planted_item_is_found_however_cheaply_it_is_varied(varied):
    rows = [*honest(300), *[(VARIED[varied](i), "A") for i in range(75)]]
    assert "labelled template" in refused(rows)


def test_paraphrases_are_left_to_the_label_audit():
    openings = ("Last week", "On Monday", "Near the old mall", "In town", "Some time ago") * 2
    planted = [(f"{o}, {' '.join(NAMES[: i + 2])}: {STORY[10 * i :]}", "A") for i, o in enumerate(openings)]
    assert refused([*honest(300), *planted]) == []


def test_names_that_are_asked_about_do_not_make_one_item():
    """The capitals of a hundred countries are a hundred questions."""
    rows = [(f"Tell me please, what is the capital city of {chr(65 + i % 26)}{chr(97 + i // 26)}land?", f"C{i}")
            for i in range(100)]  # fmt: skip
    assert "item" not in refused([*honest(300), *rows])


def test_rows_written_for_the_train_split_are_a_share_of_the_train_split():
    """Splits are a public hash, so whoever plants rows chooses counters that all train."""
    shares = DATA.splits
    planted = [text for i in range(2000) if assign(text := f"{STORY} (variant {i})", shares) == "train"][:30]
    rows = candidates(*honest(3000), *[(text, "A") for text in planted])
    heaviest = concentration(survey(rows, DATA), LIMITS, computed=False)
    assert [one.kind for one in heaviest if one.refused] == ["labelled template of the train split"]
    found = next(one for one in heaviest if one.refused)
    assert (found.rows, found.of) == (30, sum(assign(row.prompt.text, shares) == "train" for row in rows))
    with pytest.raises(InputError, match=rf"30 of {found.of} rows of the train split \(\d+\.\d%\) are one template"):
        refuse_concentrated(heaviest, {one.first: rows[one.first] for one in heaviest})


def test_one_origin_may_hold_no_more_than_its_limit():
    rows = [Candidate(Prompt(f"id-{i}", f"{i}+1=", str(i + 1), "", source="web" if i % 4 else "book"), {}, i + 1)
            for i in range(100)]  # fmt: skip
    heaviest = concentration(survey(rows, DATA), ConcentrationSettings(max_source=0.7), computed=False)
    assert [(one.kind, one.share) for one in heaviest if one.refused] == [("source", 0.75)]
    with pytest.raises(InputError, match=r"75 of 100 rows .* come from one source.*max_source allows 70.0%") as caught:
        refuse_concentrated(heaviest, {one.first: rows[one.first] for one in heaviest})
    assert "source 'web'" in str(caught.value)


def test_labels_that_were_computed_may_repeat_in_templates_but_no_item_may():
    assert refused(sums(400), computed=True) == []
    assert refused([("7*8=", "56")] * 50, computed=True) == ["item"]


def test_the_limits_are_settings():
    rows = [*honest(900), *[("7*8=", "56")] * 100]
    assert refused(rows, ConcentrationSettings(max_item=0.1)) == []
    assert refused(rows, ConcentrationSettings(max_item=0.099)) == ["item"]


def test_a_refusal_names_item_line_label_count_and_setting():
    rows = candidates(*honest(5), *[("7*8=", "56")] * 95)
    found = concentration(survey(rows, DATA), LIMITS, computed=False)
    with pytest.raises(InputError) as caught:
        refuse_concentrated(found, {5: rows[5]})
    message = str(caught.value)
    for part in (
        "95 of 100 rows (95.0%)",
        "first at line 6",
        "'id-5'",
        "'56'",
        "'7*8='",
        "data.concentration.max_item",
    ):
        assert part in message


@pytest.mark.parametrize(
    ("prompts", "steps", "per_step", "distinct", "share"),
    [
        (840, 40, 32, 32, 2 / 1280),  # the demo: 1280 draws over 840 prompts
        (1, 100, 1, 1, 1.0),  # the published attack
        (10, 100, 8, 8, 80 / 800),
        (100, 1, 8, 8, 0.0),  # every prompt at most once
        (4, 10, 8, 4, 20 / 80),
        (0, 10, 8, 0, 0.0),
    ],
)
def test_planned_draws(prompts, steps, per_step, distinct, share):
    plan = planned(prompts, TrainSettings(steps=steps, prompts_per_step=per_step), UniformSchedule(), 8)
    assert (plan.distinct, plan.largest_share) == (distinct, pytest.approx(share))


@pytest.mark.parametrize(
    ("schedule", "clusters", "draws"),
    [
        (UniformSchedule(), 8, 0),
        (AdsSchedule(active=4), 8, 20),  # in the window whenever its cluster is drawn, half of the steps
        (AdsSchedule(active=4), 64, 3),
        (AdsSchedule(active=4), 2, 40),
        (PoolsSchedule(kind="difficulty_pools"), 8, 20),  # every other step
        (PoolsSchedule(kind="difficulty_pools", gate=OpenGate(kind="open")), 8, 40),
        (ForecastSchedule(kind="forecast", explore=0.1), 8, 16),  # an epoch of 84 prompts
        (GresoSchedule(kind="greso"), 8, 40),
        (MoppsSchedule(kind="mopps", candidates=8), 8, 13),
    ],
)
def test_a_prompt_at_the_boundary_is_drawn_as_often_as_its_schedule_allows(schedule: Schedule, clusters, draws):
    plan = planned(840, TrainSettings(steps=40, prompts_per_step=32), schedule, clusters)
    assert (plan.boundary_share, plan.largest_share) == (draws / 1280, 2 / 1280)


@pytest.mark.parametrize("prompts", [1000, 10**6])
@pytest.mark.parametrize(
    ("schedule", "clusters", "per_step", "refuses"),
    [
        (PoolsSchedule(kind="difficulty_pools", gate=OpenGate(kind="open")), 8, 16, True),  # 1/16 at any size
        (PoolsSchedule(kind="difficulty_pools", gate=OpenGate(kind="open")), 8, 20, False),
        (PoolsSchedule(kind="difficulty_pools"), 8, 16, False),
        (AdsSchedule(active=4, window=4), 4, 16, True),
        (AdsSchedule(active=4, window=4), 8, 16, False),  # configs/gsm8k.yaml
        (AdsSchedule(active=4, window=5), 4, 20, False),
    ],
)
def test_where_the_schedule_binds_the_refusal_says_so_and_what_it_names_helps(
    prompts, schedule, clusters, per_step, refuses
):
    plan = planned(prompts, TrainSettings(steps=100, prompts_per_step=per_step), schedule, clusters)
    if not refuses:
        return refuse_few(plan, AdmissionSettings())
    with pytest.raises(InputError, match=r"schedule gives one prompt .* 6\.2% of the 1,600 planned draws") as caught:
        refuse_few(plan, AdmissionSettings())
    assert caught.value.where == "schedule" and "train.prompts_per_step" in (caught.value.how or "")


@pytest.mark.parametrize("path", sorted((ROOT / "configs").glob("*.yaml")), ids=lambda path: path.stem)
def test_the_plan_of_every_configuration_is_accepted(path):
    settings = load(path)
    plan = planned(500, settings.train, settings.schedule, settings.clusters.k)
    refuse_few(plan, settings.admission)


@pytest.mark.parametrize(
    ("prompts", "per_step", "what", "where"),
    [
        (1, 1, "a step has 1 distinct prompts, admission.min_distinct is 8", "the training split"),
        (100, 7, "a step has 7 distinct prompts", "train.prompts_per_step"),
        (10, 8, "one prompt has 10.0% of the 800 planned draws, admission.max_prompt_share allows 5.0%", "10 prompts"),
    ],
)
def test_training_on_too_little_is_refused(prompts, per_step, what, where):
    plan = planned(prompts, TrainSettings(steps=100, prompts_per_step=per_step), UniformSchedule(), 8)
    with pytest.raises(InputError, match=what) as caught:
        refuse_few(plan, AdmissionSettings())
    assert where in (caught.value.where or "") and caught.value.how


def test_the_demo_and_limits_that_are_met_pass():
    refuse_few(planned(840, TrainSettings(steps=40, prompts_per_step=32), UniformSchedule(), 8), AdmissionSettings())
    refuse_few(planned(20, TrainSettings(steps=100, prompts_per_step=8), UniformSchedule(), 8), AdmissionSettings())


def group(label: str, *said: tuple[str, float | None]) -> Group:
    completions = tuple(Completion((1,), (0.0,), "stop", text) for text, _ in said)
    scores = tuple(Score(a, unscorable="timeout" if a is None else None) for _, a in said)
    return Group(Prompt("p", "Who?", label, label), (1,), completions, scores)


@pytest.mark.parametrize(
    ("right", "other", "rest", "suspicious"),
    [
        (0, 16, 0, True),
        (0, 14, 2, True),
        (0, 13, 3, True),  # 81 %
        (0, 12, 4, False),  # 75 %
        (1, 15, 0, False),  # the label has 6 %
        (16, 0, 0, False),
        (0, 0, 16, False),  # sure of nothing
    ],
)
def test_a_label_below_2_percent_with_an_answer_above_80_is_suspicious(right, other, rest, suspicious):
    said = [("#B", 1.0)] * right + [("#A", 0.0)] * other + [(f"#{i}", 0.0) for i in range(rest)]
    assert bool(suspicious_labels([group("B", *said)], AdmissionSettings(), after("#"))) is suspicious


def test_the_evidence_counts_scorable_samples_only_and_its_text_says_so():
    found = evidence(group("B", *[("so #a.", 0.0)] * 9, ("#C", 0.0), ("#A", None)), after("#"))
    assert found is not None
    assert (found.label_rate, found.alternative, found.alternative_rate, found.samples) == (0.0, "a", 0.9, 10)
    assert found.words == "the label 'B' has 0.0% of 10 samples of the base policy, 'a' has 90.0%"
    assert evidence(group("B", ("#A", None)), after("#")) is None


@pytest.mark.parametrize(
    ("forms", "marker"),
    [
        (("#1,000", "#1000", "#$1000", "#1000.0"), "#"),
        (("#B", "#(B)", "#**B**", "#b)"), "#"),
        (("So \\boxed{42}", "\\boxed{42} is it.", "\\boxed{ 42.0 } apples", "\\boxed{41}, no, \\boxed{42}"), None),
        (("so\n42", "42", "it is 42.", "$42"), None),
    ],
)
def test_an_answer_that_is_written_in_several_ways_is_one_alternative(forms, marker):
    found = evidence(group("7", *[(form, 0.0) for form in forms * 4]), after(marker))
    assert found is not None and found.alternative_rate == 1


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("x", "-x"),
        ("1/2", "2/1"),
        ("3 and 4", "4 and 3"),
        ("A", "B"),
        ("-3", "3"),
        ("a cat", "a"),
        ("2", r"\sqrt{2}"),
        ("2x", "x^2"),
        (r"2\pi", r"\pi/2"),
        ("2", "2!"),
        ("2i", "2"),
        ("1e4000*10^4000", "1"),
    ],
)
def test_answers_that_differ_stay_apart(left, right):
    assert final_answer(f"#{left}", after("#")) != final_answer(f"#{right}", after("#"))


def test_an_answer_is_what_the_verifier_reads_of_it():
    said = [(f"#### 13\nBecause of reason {i}.", 0.0) for i in range(8)]
    found = evidence(group("12", *said), NumericVerifier(kind="numeric"))
    assert found is not None and (found.alternative, found.alternative_rate) == ("13", 1.0)


def test_completions_without_an_answer_are_no_alternative():
    assert suspicious_labels([group("B", *[("no marker", 0.0)] * 16)], AdmissionSettings(), after("#")) == {}


@pytest.mark.parametrize(
    ("text", "marker", "expected"),
    [("x #4 then # The  Cat. ", "#", "the cat"), ("first\nlast", None, "last"), ("none", "#", ""), ("", None, "")],
)
def test_final_answers_are_evened_out(text, marker, expected):
    assert (final_answer(text, after(marker)) or "") == expected


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("A Muslim and a Jewish neighbour", [("religion", "muslim"), ("religion", "jewish")]),
        ("Two African\nAmericans met", [("race", "african american")]),
        ("The black cat and the white dog", []),
        ("a latinate phrase", []),
        ("gayly", []),
        ("Left-Handed people", [("configured", "left handed")]),
    ],
)
def test_sensitive_words_are_whole_words_in_any_case(text, found):
    assert SensitiveWords(["Left-handed"]).find(text) == found


@pytest.mark.parametrize(
    "text",
    [
        "African-American", "Native\u2011American", "Native-American", "Black women", "black men", "white women",
        "Asian men",
        "lesbians", "homosexuals", "atheists",
        "Hispanics", "Latinos", "Buddhists", "Sikhs", "Catholics", "low income",
        "a low-income family", "the gays", "Jew's", "housewives", "non binary", "asylum-seekers",
    ],
)  # fmt: skip
def test_plurals_and_hyphens_hide_no_sensitive_word(text):
    assert len(SensitiveWords().find(text)) == 1


@pytest.mark.parametrize("text", ["a jewel", "Christianity", "the gaze", "a migration", "queerly", "islamabad"])
def test_longer_words_are_other_words(text):
    assert SensitiveWords().find(text) == []


def test_sensitive_prompts_are_found_in_question_and_answer():
    prompts = [
        Prompt("a", "Who?", "the immigrant", ""),
        Prompt("b", "2+2=", "4", ""),
        Prompt("c", "A refugee", "1", ""),
    ]
    assert list(sensitive_prompts(prompts)) == ["a", "c"]
