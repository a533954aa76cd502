"""A trial of the health rules is of every fault, or it is no figure."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from components.errors import InputError
from components.types import StepRecord
from tests.benchmarks import trial
from tests.benchmarks.health import running, store, training
from tests.benchmarks.health.arms import DEFAULT_RULES, PLAIN_ARM, Arm, arms_of
from tests.benchmarks.health.faults import FAULTS
from tests.benchmarks.health.grounds import Ground
from tests.benchmarks.health.judged import BASE, Scored, scored
from tests.benchmarks.health.plan import sft_seed_of
from tests.benchmarks.health.store import Run
from tests.benchmarks.trial import CELL, SEED, Trial, summary, wanted

PLAIN, RESPOND = arms_of("both", DEFAULT_RULES)


def made(condition: str, seed: int, arm: Arm = PLAIN_ARM, **changes: Any) -> Run:
    """A run of five steps that ends as well as a healthy one."""
    records = [StepRecord(step, {"entropy": 1.0, "accuracy": 0.5}) for step in range(5)]
    run = Run(condition, seed, sft_seed_of(condition, seed), 0, 5, records, [(0, 0.4), (5, 0.6)], 0.6, 5, arm=arm.name)
    return replace(run, **changes)


@pytest.fixture
def training_fails(monkeypatch: pytest.MonkeyPatch) -> set[tuple[str, str]]:
    """Arms and conditions whose runs fail; all others are trained in no time, in this process."""
    failing: set[tuple[str, str]] = set()

    def measure(work: Path, condition: str, seed: int, arm: Arm, _ground: Ground) -> Run:
        if (arm.name, condition) in failing:
            raise OSError("no space left")
        return made(condition, seed, arm)

    class Pool:
        def submit(self, function: Any, *arguments: Any) -> Future[Any]:
            future: Future[Any] = Future()
            try:
                future.set_result(function(*arguments))
            except MemoryError as error:  # as where a process is killed
                future.set_exception(error)
            return future

    @contextmanager
    def pool(jobs: int, mp_context: Any) -> Iterator[Pool]:
        yield Pool()

    monkeypatch.setattr(running, "ProcessPoolExecutor", pool)
    monkeypatch.setattr(running, "_prepared", lambda work, seed, ground: work)
    monkeypatch.setattr(training, "measure", measure)
    return failing


def test_the_trial_has_a_figure_for_every_fault(tmp_path, training_fails):
    row = Trial().measure(CELL, "full", tmp_path)
    assert list(row["faults"]) == list(FAULTS)
    assert Trial().figures({CELL: row})["faults"] == str(len(FAULTS))


def test_a_run_that_fails_fails_the_trial_by_its_name_and_the_others_are_kept(tmp_path, training_fails, capsys):
    training_fails |= {("plain", "nan_burst"), ("plain", "too_easy")}
    with pytest.raises(InputError, match=r"2 of \d+ runs failed: plain too_easy-01, plain nan_burst-01"):
        Trial().measure(CELL, "full", tmp_path)
    assert "OSError: no space left" in capsys.readouterr().out
    assert len(list((tmp_path / "runs" / "plain").iterdir())) == len(wanted(PLAIN)) - 2


def test_a_run_with_responses_that_fails_fails_the_trial_too(tmp_path, training_fails):
    training_fails.add((RESPOND.name, "nan_burst"))
    with pytest.raises(InputError, match=f"runs failed: {RESPOND.name} nan_burst-01"):
        Trial().measure(CELL, "full", tmp_path)


def test_a_run_whose_process_is_gone_fails_the_trial(tmp_path, training_fails, monkeypatch, capsys):
    def killed(*_: Any) -> str:
        raise MemoryError

    monkeypatch.setattr(running, "_one", killed)
    with pytest.raises(InputError, match=r"runs failed: plain dapo_uniform-01, .* plain verifier_noise_5-01"):
        Trial().measure(CELL, "full", tmp_path)
    assert "FAILED MemoryError" in capsys.readouterr().out


def test_another_call_makes_only_what_failed(tmp_path, training_fails, capsys):
    training_fails.add(("plain", "nan_burst"))
    with pytest.raises(InputError):
        Trial().measure(CELL, "full", tmp_path)
    training_fails.clear()
    capsys.readouterr()
    Trial().measure(CELL, "full", tmp_path)
    assert capsys.readouterr().out.startswith("1 runs to do\n1/1 plain nan_burst-01")


@pytest.fixture
def whole(tmp_path: Path) -> Scored:
    for arm in (PLAIN, RESPOND):
        for _, condition, seed in wanted(arm):
            store.save(tmp_path / arm.name, made(condition, seed, arm))
    return scored(tmp_path, DEFAULT_RULES)


@pytest.mark.parametrize("part", ["faulty", "responding"])
def test_a_summary_of_some_faults_is_refused(whole, part):
    assert len(summary(whole)["faults"]) == len(FAULTS)
    some = {name: runs for name, runs in getattr(whole, part).items() if name != "nan_burst"}
    with pytest.raises(InputError, match="no run of nan_burst"):
        summary(replace(whole, **{part: some}))


def test_a_healthy_run_that_broke_is_no_norm(whole):
    broken = made(BASE, SEED, crashed="RuntimeError: no verdict")
    with pytest.raises(InputError, match="dapo_uniform-01: RuntimeError: no verdict"):
        summary(replace(whole, healthy=[broken]))


def test_every_fault_has_its_runs_in_both_arms():
    assert {condition for _, condition, _ in wanted(PLAIN)} == {BASE, *FAULTS}
    assert [task[1:] for task in wanted(PLAIN)] == [task[1:] for task in wanted(RESPOND)]
    assert trial.Trial.resumes
