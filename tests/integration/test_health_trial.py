"""A reduced health trial: a healthy run and one fault of each part, with the rules acting."""

from __future__ import annotations

from pathlib import Path

import pytest

from components.health.monitor import standing
from tests.benchmarks.health.arms import DEFAULT_RULES, PLAIN_ARM, arms_of, rules_of
from tests.benchmarks.health.generated.drawing import half_of
from tests.benchmarks.health.store import Run
from tests.benchmarks.health.training import measure

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]  # the checkpoint is made first
SEED = 0
FAULTS = {
    "otherquestions-constant-all-1": "data",
    "oneprompt-constant-all-1": "schedule",
    "refusing-constant-all-1": "verifier",
    "repeated-constant-replica-1": "sampler",
    "shuffled-constant-all-1": "learner",
}
"""Of the kinds that rules were designed on -> the part that is broken."""


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Holds the checkpoint that all runs start from."""
    return tmp_path_factory.mktemp("trial")


def responding(work: Path, condition: str) -> Run:
    (arm,) = arms_of("respond", DEFAULT_RULES)
    return measure(work, condition, SEED, arm)


def acts(run: Run) -> list[dict[str, object]]:
    return [one for one in run.responses if one["kind"] == "response" and one["level"] != "warn"]


def test_a_healthy_run_is_let_be_and_is_the_run_without_a_monitor(work: Path) -> None:
    healthy, plain = responding(work, "dapo_uniform"), measure(work, "dapo_uniform", SEED, PLAIN_ARM)
    assert acts(healthy) == []
    assert (healthy.held_out, healthy.final) == (plain.held_out, plain.final)


@pytest.mark.parametrize(("condition", "part"), FAULTS.items())
def test_a_part_that_breaks_in_mid_run_is_named_within_three_steps_and_repaired_where_possible(
    work: Path, condition: str, part: str
) -> None:
    assert half_of(condition.partition("-")[0]) == "seen"
    run = responding(work, condition)
    first = acts(run)[0]
    assert first["part"] == part
    assert part == "learner" or run.begins <= first["step"] <= run.begins + 3  # type: ignore[operator]
    if part == "learner":  # no response repairs it: the run stops, or the rule holds to its end, and the gate fails
        assert run.stopped_by or first["rule"] in standing(rules_of(DEFAULT_RULES), run.records)
    else:
        assert not run.stopped_by and run.final > 0.6
