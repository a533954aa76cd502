"""Checkpoints of an unfinished stage: whole, of this run, and only the newest."""

from __future__ import annotations

import pytest

from components.code_digest import code_digest
from components.errors import InputError, Stopped
from components.files import write_text
from components.processes.stopping import STOPPING
from components.resume import KEEP, ResumeState, identity, run_steps

IDENTITY = {"settings": "a", "inputs": {"data": "b"}, "code": "c"}


def save(state: ResumeState, step: int) -> None:
    state.save(step, lambda folder: write_text(folder / "value", str(step)))


def test_the_newest_checkpoint_is_found_again(tmp_path):
    state = ResumeState(tmp_path / "state", IDENTITY)
    assert state.latest() is None
    for step in (5, 10, 100):
        save(state, step)
    step, folder = ResumeState(tmp_path / "state", IDENTITY).latest()
    assert (step, (folder / "value").read_text()) == (100, "100")


def test_only_a_few_checkpoints_are_kept(tmp_path):
    state = ResumeState(tmp_path / "state", IDENTITY)
    for step in range(1, 6):
        save(state, step)
    assert len(list(state.directory.glob("step-*"))) == KEEP


def test_other_folders_next_to_the_checkpoints_are_not_removed(tmp_path):
    state = ResumeState(tmp_path / "state", IDENTITY)
    aside = [state.directory / name for name in ("step-000010.bak", "step-10", "step-old")]
    for folder in aside:
        folder.mkdir()
    for step in (5, 10, 1_000_000):
        save(state, step)
    assert state.steps() == [10, 1_000_000]
    assert all(folder.is_dir() for folder in aside)


@pytest.mark.parametrize("key", list(IDENTITY))
def test_a_state_of_another_run_is_discarded(tmp_path, key):
    old = ResumeState(tmp_path / "state", IDENTITY)
    save(old, 5)
    write_text(old.directory / "log.jsonl", "{}")
    new = ResumeState(tmp_path / "state", {**IDENTITY, key: "other"})
    assert new.latest() is None
    assert [path.name for path in new.directory.iterdir()] == ["identity.json"]


def test_a_state_of_another_kind_of_device_is_refused_and_kept(tmp_path):
    there = {**IDENTITY, "device": "cuda"}
    save(ResumeState(tmp_path / "state", there), 5)
    with pytest.raises(InputError, match=r"made on cuda, and this process computes on cpu"):
        ResumeState(tmp_path / "state", {**IDENTITY, "device": "cpu"})
    assert ResumeState(tmp_path / "state", there).latest() is not None


def test_a_state_that_differs_in_more_than_the_device_is_discarded(tmp_path):
    save(ResumeState(tmp_path / "state", {**IDENTITY, "device": "cuda"}), 5)
    assert ResumeState(tmp_path / "state", {**IDENTITY, "code": "other", "device": "cpu"}).latest() is None


def test_a_state_without_identity_is_discarded(tmp_path):
    old = ResumeState(tmp_path / "state", IDENTITY)
    save(old, 5)
    (old.directory / "identity.json").unlink()
    assert ResumeState(tmp_path / "state", IDENTITY).latest() is None


def test_a_checkpoint_that_was_being_written_is_ignored(tmp_path):
    state = ResumeState(tmp_path / "state", IDENTITY)
    save(state, 5)

    def torn(folder):
        write_text(folder / "value", "10")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        state.save(10, torn)
    (state.directory / ".step-000015.killed").mkdir()  # left behind by SIGKILL, which runs no cleanup
    assert ResumeState(tmp_path / "state", IDENTITY).latest()[0] == 5


def test_the_identity_depends_on_settings_and_on_the_content_of_the_inputs(tmp_path):
    write_text(tmp_path / "data", "1")
    write_text(tmp_path / "folder" / "weights", "1")
    inputs = {"data": tmp_path / "data", "checkpoint": tmp_path / "folder"}
    before = identity({"lr": 1}, inputs)
    assert identity({"lr": 1}, inputs) == before
    assert identity({"lr": 2}, inputs) != before
    write_text(tmp_path / "folder" / "weights", "2")
    assert identity({"lr": 1}, inputs) != before


def test_the_identity_depends_on_the_code():
    assert identity({}, {})["code"] == code_digest()
    assert len(code_digest()) == 64


def test_what_a_kill_left_of_a_checkpoint_is_removed(tmp_path):
    old = ResumeState(tmp_path / "state", IDENTITY)
    save(old, 5)
    (old.directory / ".step-000010.torn").mkdir()
    new = ResumeState(tmp_path / "state", IDENTITY)
    assert sorted(path.name for path in new.directory.iterdir()) == ["identity.json", "step-000005"]


# Steps


class Counter:
    """A trainer whose state is the sum of the steps it has done."""

    def __init__(self, dies_at: int = -1) -> None:
        self.total, self.done, self._dies_at = 0, [], dies_at

    def step(self, step):
        if step == self._dies_at:
            raise KeyboardInterrupt
        self.total += step
        self.done.append(step)
        return {"total": float(self.total)}

    def save(self, directory):
        write_text(directory / "total", str(self.total))

    def load(self, directory):
        self.total = int((directory / "total").read_text())


def steps(folder, trainer, count=7):
    return run_steps(trainer, ResumeState(folder, IDENTITY), count, 2, lambda row: None)


@pytest.mark.parametrize(("dies_at", "repeated_from"), [(0, 0), (1, 0), (2, 2), (3, 2), (6, 6)])
def test_steps_go_on_from_the_newest_checkpoint_with_the_log_of_an_undisturbed_run(tmp_path, dies_at, repeated_from):
    expected = steps(tmp_path / "whole", Counter())
    with pytest.raises(KeyboardInterrupt):
        steps(tmp_path / "killed", Counter(dies_at))
    again = Counter()
    assert steps(tmp_path / "killed", again) == expected
    assert again.done == list(range(repeated_from, 7))
    logs = [(tmp_path / name / "log.jsonl").read_bytes() for name in ("whole", "killed")]
    assert logs[0] == logs[1]


@pytest.mark.parametrize("asked_at", [0, 2, 6])
def test_asked_to_stop_it_saves_the_step_that_it_is_at_and_repeats_none(tmp_path, asked_at):
    class Asked(Counter):
        def step(self, step):
            if step == asked_at:
                STOPPING.request()
            return super().step(step)

    expected = steps(tmp_path / "whole", Counter())
    with pytest.raises(Stopped, match=f"the checkpoint of step {asked_at + 1} is whole"), STOPPING.on_signal():
        steps(tmp_path / "stopped", Asked())
    again = Counter()
    assert steps(tmp_path / "stopped", again) == expected
    assert again.done == list(range(asked_at + 1, 7))


def test_finished_steps_are_not_repeated_and_every_new_row_is_announced(tmp_path):
    announced = []
    state = ResumeState(tmp_path / "state", IDENTITY)
    log = run_steps(Counter(), state, 3, 2, announced.append)
    assert announced == log == [{"step": i, "total": float(total)} for i, total in enumerate((0, 1, 3))]
    again = Counter()
    assert steps(tmp_path / "state", again, count=3) == log
    assert again.done == []
