"""Checkpoints of a run: written in the background, whole or not at all, and enough to go on from to the bit."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from factories import group, policy, settings, workspace
from training_runs import EVERY_STEP, assert_goes_on_from, judged_by_parity, killed, outputs, train

from components.config.reading import merge
from components.config.training import CheckpointSettings
from components.errors import CorrectableError, InputError, MachineError
from components.files import manifest, read_json, write_jsonl, write_text
from components.health.responses import Saved
from components.layout import Layout
from components.learner.base import Learner
from components.learner.batch import build_batch
from components.learner.build import build_learner
from components.resume import ResumeState
from components.stages import train as stage
from components.training.checkpoints import CheckpointWriter, retained_checkpoints, rollback_candidates
from components.training.run import RunState
from tests.tiers import slow_but

__all__ = ["judged_by_parity"]  # of every test here


def writer(folder: Path, *, asynchronous: bool = True) -> CheckpointWriter:
    return CheckpointWriter(ResumeState(folder, {}), asynchronous=asynchronous)


# What is said


def broken(what: str, how: str | None) -> Callable[[Path], Callable[[], None]]:
    """A checkpoint whose second half fails."""

    def finish() -> None:
        raise InputError(what, how=how)

    return lambda _: finish


@pytest.mark.parametrize(("how", "said"), [("fix it", "fix it; started again, "), (None, "started again, ")])
def test_a_checkpoint_that_was_not_written_is_named_with_where_the_run_goes_on(how, said, tmp_path):
    writing = writer(tmp_path / "train")
    writing.write(1, lambda _: lambda: None, keep={1})
    writing.write(2, broken("the rank has gone", how), keep={1, 2})
    with pytest.raises(InputError) as caught:
        writing.wait()
    assert caught.value.what == "the checkpoint of step 2 was not written: the rank has gone"
    assert caught.value.how == f"{said}the run goes on from the checkpoint of step 1, which is whole"
    writing.close()


def test_a_checkpoint_that_was_written_is_not_said_to_be_missing_where_an_older_one_cannot_go(tmp_path, monkeypatch):
    resume = ResumeState(tmp_path / "train", {})
    writer = CheckpointWriter(resume, asynchronous=True)
    writer.write(1, lambda _: lambda: None, keep={1})
    writer.wait()

    def denied(path: Path) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr("components.resume.shutil.rmtree", denied)
    writer.write(2, lambda _: lambda: None, keep={2})
    with pytest.raises(InputError) as caught:
        writer.wait()
    assert caught.value.what == ("cannot remove checkpoints before that of step 2, which is whole: Permission denied")
    assert caught.value.where == str(resume.folder(1))
    assert resume.steps() == [1, 2]
    writer.close()


# Which ones stay


def made(*rows: tuple[int, bool, float | None]) -> list[Saved]:
    return [Saved(step, step, healthy, dev) for step, healthy, dev in rows]


SEVEN = made(
    (0, True, 0.3), (1, True, 0.5), (2, False, 0.9), (3, True, 0.9), (4, False, None), (5, True, 0.4), (6, False, 0.1)
)


@pytest.mark.parametrize(
    ("chosen", "kept"),
    [
        pytest.param({}, [0, 1, 2, 3, 5, 6], id="by default the last two, every healthy one, and the best"),
        pytest.param({"keep_healthy": 0, "keep_best": 0}, [5, 6], id="the last two"),
        pytest.param({"keep_last": 1, "keep_healthy": 0, "keep_best": 0}, [6], id="the last"),
        pytest.param({"keep_last": 1, "keep_healthy": 2, "keep_best": 0}, [3, 5, 6], id="the last two healthy ones"),
        pytest.param({"keep_last": 1, "keep_healthy": 0}, [2, 6], id="of equally good ones the older"),
        pytest.param({"keep_last": 1, "keep_healthy": 0, "keep_best": 3}, [1, 2, 3, 6], id="the best three"),
    ],
)
def test_which_checkpoints_are_kept(chosen, kept):
    assert [one.step for one in retained_checkpoints(SEVEN, CheckpointSettings(**chosen), judged=True)] == kept


def test_where_health_is_not_judged_no_checkpoint_counts_as_healthy():
    assert [one.step for one in retained_checkpoints(SEVEN, CheckpointSettings(), judged=False)] == [2, 5, 6]


def test_what_a_roll_back_may_need_is_the_start_the_last_healthy_ones_and_two_that_are_far_apart():
    saved = made(*((step, step != 60, None) for step in range(0, 110, 10)))
    assert [one.step for one in rollback_candidates(saved, healthy=2, apart=30)] == [0, 70, 90, 100]
    assert [one.step for one in rollback_candidates(saved[:8], healthy=1, apart=30)] == [0, 40, 70]


def steps_on_disk(layout: Layout) -> list[int]:
    return [int(path.name.removeprefix("step-")) for path in sorted((layout.state / "train").glob("step-*"))]


@pytest.mark.parametrize(
    ("chosen", "health", "kept"),
    [
        ({}, {}, [0, 1, 2, 3, 4, 5]),
        ({"keep_healthy": 1, "keep_best": 0}, {"responses": {"keep": 1}}, [0, 1, 4, 5]),
        ({"keep_best": 0}, {"enabled": False}, [4, 5]),
    ],
)
def test_a_run_leaves_those_on_disk(tmp_path, chosen, health, kept):
    layout = train(tmp_path, settings(health=health, train={"checkpoint_every": 1, "checkpoints": chosen}))
    assert steps_on_disk(layout) == kept


@pytest.mark.parametrize("chosen", [{"asynchronous": False}, {"keep_last": 1, "keep_healthy": 0, "keep_best": 0}])
def test_how_checkpoints_are_kept_changes_no_byte_and_can_change_while_a_run_is_under_way(tmp_path, chosen):
    expected = outputs(train(tmp_path / "plain"))
    layout = workspace(tmp_path / "changed")
    with killed("checkpoint", 2):
        stage.run(settings(), layout)
    assert outputs(train(tmp_path / "changed", settings(train={"checkpoints": chosen}))) == expected


# In the background


def test_one_is_written_in_the_background_and_the_next_one_waits_for_it(tmp_path):
    writing, go_on, order = writer(tmp_path / "state"), threading.Event(), []

    def begin(name: str, *, held: bool) -> Callable[[Path], Callable[[], None]]:
        def finish(directory: Path) -> None:
            if held:
                go_on.wait(10)
            write_text(directory / "value", name)
            order.append(name)

        return lambda directory: lambda: finish(directory)

    writing.write(1, begin("first", held=True), keep={1})
    assert not (tmp_path / "state" / "step-000001").exists()  # it is held, and this thread is not
    writing.check()
    threading.Timer(0.05, go_on.set).start()
    writing.write(2, begin("second", held=False), keep={2})
    assert order[0] == "first"
    writing.wait()
    assert [path.name for path in sorted((tmp_path / "state").glob("step-*"))] == ["step-000002"]
    writing.close()


@pytest.mark.parametrize("asynchronous", [True, False])
def test_what_is_written_is_what_was_there_when_it_began(tmp_path, asynchronous):
    learner = build_learner(policy(), settings())
    for name in ("then", "later"):
        (tmp_path / name).mkdir()
    learner.save(tmp_path / "then")
    finish = learner.snapshot(tmp_path / "later") if asynchronous else Learner.snapshot(learner, tmp_path / "later")
    for weight in learner._policy.weights().values():
        weight.add_(1.0)
    finish()
    assert manifest(tmp_path / "later") == manifest(tmp_path / "then")


def test_a_snapshot_after_a_return_to_the_start_holds_no_moments_of_later_steps(tmp_path):
    learner = build_learner(policy(), settings())
    for name in ("start", "later", "back"):
        (tmp_path / name).mkdir()
    learner.snapshot(tmp_path / "start")()
    groups = [group([1.0, 0.0])]
    batch = build_batch(groups, pad_id=0)
    learner.step(replace(batch, advantages=torch.where(batch.member[:, None] == 0, 1.0, -1.0).expand(2, 2)), seed=0)
    learner.snapshot(tmp_path / "later")()
    learner.load(tmp_path / "start")
    learner.snapshot(tmp_path / "back")()
    assert manifest(tmp_path / "back") == manifest(tmp_path / "start") != manifest(tmp_path / "later")


def test_an_older_checkpoint_goes_only_once_the_new_one_is_whole(tmp_path):
    writing, seen = writer(tmp_path / "state"), []
    writing.write(1, lambda directory: lambda: None, keep={1})
    writing.wait()
    writing.write(2, lambda _: lambda: seen.append((tmp_path / "state" / "step-000001").exists()), keep={2})
    writing.close()
    assert seen == [True]
    assert not (tmp_path / "state" / "step-000001").exists()


@pytest.mark.parametrize("seen_by", ["check", "wait", "write"])
@pytest.mark.parametrize("asynchronous", [True, False])
def test_an_error_of_the_writer_ends_the_run_and_says_where_it_goes_on(tmp_path, seen_by, asynchronous):
    writing = writer(tmp_path / "state", asynchronous=asynchronous)
    writing.write(10, lambda directory: lambda: None, keep={10})

    def full(directory: Path) -> Callable[[], None]:
        def finish() -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), directory / "shard-00001-of-00001.safetensors")

        return finish

    with pytest.raises(MachineError) as caught:
        writing.write(20, full, keep={20})
        with suppress(TimeoutError):
            writing._writing.exception(10)
        writing.write(30, full, {30}) if seen_by == "write" else getattr(writing, seen_by)()
    said = str(caught.value)
    assert "the checkpoint of step 20 was not written: cannot write: No space left on device" in said
    assert "shard-00001-of-00001.safetensors" in said
    assert "goes on from the checkpoint of step 10, which is whole" in said
    assert [path.name for path in (tmp_path / "state").iterdir()] == ["identity.json", "step-000010"]
    writing.close()


def test_an_error_that_comes_after_another_one_is_shown_and_does_not_hide_it(tmp_path, capsys):
    writing = writer(tmp_path / "state")

    def broken() -> None:
        raise OSError(errno.EIO, "the disk is broken")

    writing.write(1, lambda directory: broken, keep=())
    writing.close()
    assert "the checkpoint of step 1 was not written: cannot write: the disk is broken" in capsys.readouterr().err


def test_no_thread_is_left_when_a_run_is_over(tmp_path):
    before = set(threading.enumerate())
    train(tmp_path)
    left = set(threading.enumerate()) - before
    for thread in left:
        thread.join(5)  # that of the bar ends a little later than the bar
    assert not [thread for thread in left if thread.is_alive()]


# A full disk


@contextmanager
def full_disk(root: Path) -> Iterator[None]:
    """Almost all room that the disk has left is taken: a line of the log fits, a checkpoint does not."""
    ballast = root / "ballast"
    with ballast.open("wb", buffering=0) as file, suppress(OSError):
        while file.write(bytes(1024)):
            pass
    os.truncate(ballast, ballast.stat().st_size - 2**15)
    yield
    ballast.unlink()


@contextmanager
def small_files(root: Path) -> Iterator[None]:
    """No file may be larger than a log."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**15, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "none", str(disk)], capture_output=True)
    if mounted.returncode:
        pytest.skip("this machine mounts nothing")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


@pytest.mark.parametrize(
    ("shortage", "asynchronous"),
    slow_but(
        [(full_disk, True), (full_disk, False), (small_files, True), (small_files, False)],
        (full_disk, True),
        (small_files, False),
    ),
)
@pytest.mark.parametrize("times", slow_but([1, 2, 3], 2))
def test_without_room_for_a_checkpoint_the_run_stops_with_the_reason_and_goes_on_once_there_is_room(
    tmp_path, monkeypatch, request, capsys, shortage, asynchronous, times
):
    chosen = settings(train={"checkpoints": {"asynchronous": asynchronous}})
    expected = outputs(train(tmp_path / "whole", chosen))
    root = request.getfixturevalue("small_disk") if shortage is full_disk else tmp_path / "files"
    layout, write, calls = workspace(root), CheckpointWriter.write, []
    with monkeypatch.context() as patch, ExitStack() as outage:

        def short(self: CheckpointWriter, step: int, *args: Any, **more: Any) -> None:
            self.wait()
            calls.append(step)
            if len(calls) == times:
                outage.enter_context(shortage(root))
            write(self, step, *args, **more)

        patch.setattr(CheckpointWriter, "write", short)
        with pytest.raises(CorrectableError, match=r"No space left on device|File too large") as stopped:
            stage.run(chosen, layout)
    # While the checkpoint fills the disk in the background, the line of the next step may be the first not to fit.
    shown = f"{stopped.value}\n{capsys.readouterr().err}"
    assert f"the checkpoint of step {calls[-1]} was not written: cannot write: " in shown
    assert steps_on_disk(layout) == calls[: times - 1]
    assert not list((layout.state / "train").glob(".step-*"))
    assert outputs(train(root, chosen)) == expected


# Nothing that a step changes is missing

GAE = {"kind": "gae", "policy_lambda": "adaptive", "fallback": "batch"}
HALVE = {"knob": "learner.lr", "times": 0.5}
FIRE = {
    "slow": {"when": "progress > 0.5 and progress < 1.5", "level": "intervene", "action": [HALVE], "why": "w"},
    "note": {"when": "mean(entropy, 3) > 0", "cooldown": 2, "level": "warn", "why": "w"},
}
WITH_STATE = {
    "ads, dynamic sampling and several updates": {},
    "difficulty pools": {"schedule": {"kind": "difficulty_pools"}},
    "uniform": {"schedule": {"kind": "uniform"}},
    "an adaptive KL": {
        "objective": {"kl": {"kind": "k2", "beta": 0.01, "target": {"value": 0.001, "horizon": 8}}, "correction": None}
    },
    "an adaptive entropy bonus": {"objective": {"entropy": {"coef": 0.001, "target": {"value": 3.0}}}},
    "a critic": {"objective": {"advantage": GAE}, "rollout": {"dynamic_sampling": None}},
    "mixing and a selection": {
        "rollout": {"mixing": {"prob": 0.5, "neighbours": 2}},
        "objective": {"selection": {"kind": "kl_cov", "share": 0.1}},
    },
    "responses and a canary": {"health": {"rules": FIRE, "responses": {"judge_after": 2, "norm_window": 5}}},
}


def chosen_with_state(root: Path, name: str) -> Any:
    sections = merge(WITH_STATE[name], {"train": EVERY_STEP})
    if "health" in sections:
        write_jsonl(root / "probe.jsonl", [{"question": "1+1=", "answer": "2"}])
        likely = {"generated": "carries", "items": 8, "by": ["likelihood"], "every": 2}
        sets = {"p": {"path": str(root / "probe.jsonl"), "every": 2}, "c": likely}
        sections["health"] = {**sections["health"], "canaries": sets}
    return settings(**sections)


@pytest.mark.parametrize("name", slow_but(WITH_STATE, "a critic", "responses and a canary"))
def test_from_the_checkpoint_of_any_step_a_run_goes_on_to_the_same_bytes(tmp_path, name):
    whole = assert_goes_on_from(range(5), tmp_path, chosen_with_state(tmp_path, name))
    assert steps_on_disk(whole) == list(range(6))


def going_back(asynchrony: Any) -> Any:
    rules = {"sick": {"when": "progress > 2.5 and step < 3.5", "level": "rollback", "why": "w"}}
    how = {"rollout": {"asynchrony": asynchrony}, "health": {"rules": rules}}
    return settings(**how, train={"steps": 4, "checkpoint_every": 1})


@pytest.fixture(scope="module", params=[None, {"max_staleness": 2}], ids=["in turns", "ahead"])
def undisturbed(request: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, dict[str, str]]:
    """Settings of a run with a roll-back, and what it leaves."""
    chosen = going_back(request.param)
    return chosen, outputs(train(tmp_path_factory.mktemp("whole"), chosen))


@pytest.mark.parametrize("lost", slow_but(range(1, 7), 4))
def test_a_run_killed_before_a_checkpoint_was_complete_goes_on_from_the_one_before(
    undisturbed, tmp_path, monkeypatch, lost
):
    """What is killed is the loop, one step further on, and the thread that writes: its folder stays as it is."""
    chosen, expected = undisturbed
    layout, complete, append, calls = workspace(tmp_path / "killed"), CheckpointWriter._complete, RunState.append, []

    def unfinished(self: CheckpointWriter, step: int, *args: Any) -> None:
        calls.append(step)
        if len(calls) != lost:
            complete(self, step, *args)

    def late(self: RunState, record: Any) -> None:
        append(self, record)
        self.writer.wait()
        if len(calls) == lost:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch, suppress(KeyboardInterrupt):
        patch.setattr(CheckpointWriter, "_complete", unfinished)
        patch.setattr(RunState, "append", late)
        stage.run(chosen, layout)
        assert lost == 6, "the last one is written after the last step"
    assert calls[-1] not in steps_on_disk(layout)
    assert [int(path.name[6:12]) for path in (layout.state / "train").glob(".step-*")] == calls[-1:]
    assert outputs(train(tmp_path / "killed", chosen)) == expected


def test_a_checkpoint_knows_only_of_checkpoints_that_are_there(tmp_path):
    layout = train(tmp_path, settings(train=EVERY_STEP))
    for step in steps_on_disk(layout):
        state = read_json(layout.state / "train" / f"step-{step:06d}" / "state.json")
        assert [one["step"] for one in state["saved"]] == list(range(step + 1))
