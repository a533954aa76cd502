"""Problems of reasoning-gym as a source: shares, determinism, entries that travel, and what is refused."""

from __future__ import annotations

import random
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from components.config import pin_inputs, pins
from components.config.reasoning_gym import ReasoningGymSource
from components.data.provenance import Passes
from components.data.splits import SPLITS
from components.errors import InputError
from components.layout import Layout
from components.reasoning_gym.entries import dumps, loads
from components.reasoning_gym.library import names
from components.stages import data as data_stage
from components.tasks.reasoning_gym import check_sources, difficulty, generate, generate_each, process
from tests.unit.factories import settings

SUMS = {"min_terms": 2, "max_terms": 2}
HASHED = ("codeio", "isomorphic_strings", "knight_swap", "polynomial_multiplication", "ransom_note", "word_ladder")
"""Data sets of 0.1.25 whose entries depend on the hash seed, or on Python's global random stream."""


def source(datasets: dict[str, Any], rows: int = 12, **options: Any) -> ReasoningGymSource:
    return ReasoningGymSource.model_validate({"kind": "reasoning_gym", "rows": rows, "datasets": datasets, **options})


MIXED = {"chain_sum": {"weight": 2, "settings": SUMS, "suffix": " Answer with the number only."}, "spell_backward": {}}


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Entries are made here: the process that seeds hashes and sets limits takes seconds to import the library."""

    def made(requests: list[dict[str, Any]]) -> Iterator[tuple[str, Any]]:
        for request in requests:
            try:
                yield from ((request["name"], entry) for entry in process.draw(**request))
            except InputError as error:
                yield request["name"], error

    before = random.getstate()
    monkeypatch.setattr("components.tasks.reasoning_gym.made_by_library", made)
    yield
    random.setstate(before)


def test_weights_share_the_rows_and_each_data_set_is_a_family(in_this_process: None) -> None:
    prompts = list(generate(source(MIXED, solution="#{answer}"), 0))
    assert not {prompt.text for prompt in prompts} & {prompt.text for prompt in generate(source(MIXED), 1)}
    assert [prompt.family for prompt in prompts] == ["chain_sum"] * 8 + ["spell_backward"] * 4
    assert len({prompt.text for prompt in prompts}) == 12
    assert all(prompt.text.endswith("= Answer with the number only.") for prompt in prompts[:8])
    assert all(prompt.demonstration == prompt.solution == f"#{prompt.answer}" for prompt in prompts)


def test_shares_round_to_the_rows_and_leave_none_without() -> None:
    assert source({"a": {}, "b": {}, "c": {"weight": 0}, "d": {}}, rows=10).shares() == {"a": 4, "b": 3, "c": 0, "d": 3}


@pytest.mark.slow
def test_the_seed_makes_the_problems_whatever_the_seed_of_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONHASHSEED", "1")
    first = [prompt.to_dict() for prompt in generate(source({key: {} for key in HASHED}), 3)]
    monkeypatch.setenv("PYTHONHASHSEED", "2")
    assert [prompt.to_dict() for prompt in generate(source({key: {} for key in HASHED}), 3)] == first


def test_an_entry_comes_back_as_it_was() -> None:
    entry = {
        "grid": ((1, 2), [3, (4,)]),
        "map": {1: "a", (2, 3): None},
        "()": [1],
        "x": {"{}": {"()": 2.5}},
        "half": Fraction(1, 2),
    }
    assert loads(dumps(entry)) == entry
    with pytest.raises(TypeError):
        dumps({"a": {1, 2}})


@pytest.mark.slow
def test_every_data_set_makes_the_same_problems_twice_or_says_why_not() -> None:
    everything = source({key: {} for key in names()}, rows=2 * len(names()))
    found = generate_each(everything, 0)
    again = generate_each(everything, 0)
    made = {name: prompts for name, prompts in found.items() if not isinstance(prompts, InputError)}
    assert {name: again[name] for name in made} == made
    refused = {name: made.what for name, made in found.items() if isinstance(made, InputError)}
    no_answer = ("boxnet", "graph_color", "propositional_logic", "rubiks_cube", "rush_hour")
    assert refused == {"composite": "composite cannot be a source"} | {
        n: f"{n} has no reference answer" for n in no_answer
    }
    assert set(found) == set(names())


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({"difficulty": 3}, 3.0),
        ({"difficulty": {"terms": (2, 6)}, "terms": 6}, 1.0),
        ({"difficulty": {"terms": (2, 6), "digits": (1, 3)}, "terms": 2, "digits": 2}, 0.2),
        ({"difficulty": {"terms": (2, 2), "kind": "x"}, "terms": 2}, 0.0),
        ({}, 0.0),
        (None, 0.0),
    ],
)
def test_difficulty_is_the_place_in_the_ranges_that_were_drawn_from(metadata: Any, expected: float) -> None:
    assert difficulty(metadata) == expected


WRONG: dict[str, dict[str, Any]] = {
    "chain_sums": {},
    "chain_sum": {"settings": {"terms": 2}},
    "gcd": {"settings": {"min_numbers": 9}},
    "lcm": {"settings": {"min_numbers": "two"}},
    "products": {"settings": {"min_terms": 2, "max_terms": 2, "min_digits": 1, "max_digits": 1}},
    "graph_color": {},
    "composite": {},
}


@pytest.fixture(scope="module")
def refusals() -> dict[str, Any]:
    return generate_each(source(WRONG, rows=700 * len(WRONG)), 0)


@pytest.mark.parametrize(
    ("name", "what", "how"),
    [
        ("chain_sums", "no data set 'chain_sums'", "did you mean chain_sum"),
        ("chain_sum", "no setting 'terms'", "min_terms, max_terms"),
        ("gcd", "max_numbers must be >= min_numbers", "correct the setting"),
        ("lcm", "lcm refuses its settings", "correct the setting"),
        ("products", "distinct problems with these settings, 700 are needed", "lower rows"),
        ("graph_color", "graph_color has no reference answer", "leave it out"),
        ("composite", "composite cannot be a source", "data.source.datasets"),
    ],
)
def test_what_cannot_be_a_source_is_refused_with_the_reason(
    name: str, what: str, how: str, refusals: dict[str, Any]
) -> None:
    refused = refusals[name]
    assert isinstance(refused, InputError)
    assert what in refused.what
    assert how in (refused.how or "")
    assert (refused.where or "").startswith("data.source.datasets")


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"rows": 0}, "greater than or equal to 1"),
        ({"datasets": {}}, "at least one data set"),
        ({"datasets": {"chain_sum": {"weight": 0}}}, "a weight above 0"),
        ({"datasets": {"chain_sum": {}, "gcd": {"weight": 0.001}}}, "leaves none to gcd"),
        ({"datasets": {"chain_sum": {"settings": {"seed": 3}}}}, "seed follows from the run's seed"),
        ({"datasets": {"chain_sum": {"wait": 2}}}, "Extra inputs"),
        ({"solution": "yes"}, "write {answer}"),
    ],
)
def test_impossible_settings_are_refused_without_the_library(changed: dict[str, Any], what: str) -> None:
    with pytest.raises(ValidationError, match=what):
        ReasoningGymSource.model_validate({"kind": "reasoning_gym", "rows": 10, "datasets": {"gcd": {}}} | changed)


def test_the_version_of_the_library_is_pinned_with_the_inputs() -> None:
    chosen = settings(
        data={"source": {"kind": "reasoning_gym", "rows": 16, "datasets": MIXED, "solution": "#{answer}"}}
    )
    pinned = pin_inputs(chosen)
    assert isinstance(pinned.data.source, ReasoningGymSource)
    assert pinned.data.source.version == "0.1.25"
    assert Passes(pinned.data, 0).provenance.to_dict() == {
        "name": "reasoning-gym 0.1.25",
        "kind": "reasoning_gym",
        "file": None,
        "sha256": None,
        "trust": "generated",
        "trusted": True,
    }


def test_another_version_than_the_pinned_one_is_refused() -> None:
    pinned = settings(
        data={
            "source": {"kind": "reasoning_gym", "rows": 16, "datasets": MIXED, "solution": "#{answer}", "version": "0"}
        }
    )
    with pytest.raises(InputError, match=r"reasoning-gym 0\.1\.25 is installed, and the configuration has version 0"):
        pin_inputs(pinned)
    with pytest.raises(InputError, match="the configuration has version 0"):
        check_sources(pinned)


def test_a_missing_library_is_an_error_that_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(pins.LIBRARIES, "reasoning_gym", ("no-such-library", "llm"))
    with pytest.raises(InputError) as caught:
        list(generate(source(MIXED), 0))
    assert caught.value.how == "pip install -c constraints.txt -e '.[llm]'"


def test_suites_take_problems_of_the_library_too(in_this_process: None) -> None:
    suite = {"kind": "reasoning_gym", "source": {"kind": "reasoning_gym", "rows": 4, "datasets": {"chain_sums": {}}}}
    with pytest.raises(InputError, match="no data set 'chain_sums'"):
        check_sources(settings(evaluation={"suites": {"harder": suite}}))


def test_the_data_stage_admits_what_the_scorer_accepts(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    chosen = settings(
        data={
            "source": {"kind": "reasoning_gym", "rows": 60, "datasets": MIXED, "solution": "#{answer}"},
            "splits": {"sft": 0.25, "train": 0.25, "dev": 0.25, "test": 0.25},
        },
        reward={"verifier": {"kind": "reasoning_gym", "marker": "#"}},
    )
    data_stage.run(chosen, layout)
    rows = [line for split in SPLITS for line in layout.split(split).read_text().splitlines()]
    assert len(rows) == 60
