"""`python -m components <stage>`: exit codes, messages, and what it leaves for whoever started it."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from components import command as cli
from components.config import Settings, dump
from components.errors import InputError, NoCandidate
from components.layout import Layout
from components.status import StageStatus, clear_status, read_status, write_status

Stage = Callable[[], None]
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Runs the command line in an empty workspace, with ``stage`` in place of the real one."""
    monkeypatch.chdir(tmp_path)
    for name in (*THREADS, "TOKENIZERS_PARALLELISM", "HF_HUB_OFFLINE"):
        monkeypatch.setenv(name, "unset")
    (tmp_path / "params.yaml").write_text(dump(Settings(threads=3)), encoding="utf-8")

    def start(stage: Stage, *arguments: str, name: str = "data") -> int:
        def replaced(stage_name: str, settings: Settings, layout: Layout) -> None:
            stage()

        monkeypatch.setattr(cli, "run_stage", replaced)
        return cli.main([name, *arguments])

    return start


def raising(error: BaseException) -> Stage:
    def stage() -> None:
        raise error

    return stage


def status(stage: str = "data") -> StageStatus | None:
    return read_status(Layout(), stage)


def test_success_is_recorded(run: Callable[..., int]) -> None:
    assert run(lambda: None) == 0
    assert status() == StageStatus(0)


@pytest.mark.parametrize("name", ["data", "train"])
@pytest.mark.parametrize(
    ("error", "code"), [(InputError("bad line", where="a.jsonl:3", how="fix it"), 2), (NoCandidate("refused"), 3)]
)
def test_expected_failures_are_one_block_without_traceback(
    run: Callable[..., int], capsys: pytest.CaptureFixture[str], error: Exception, code: int, name: str
) -> None:
    assert run(raising(error), name=name) == code
    said = capsys.readouterr().err
    assert said == f"\n{name}: {error}\n"
    assert status(name) == StageStatus(code, str(error))


def test_debug_shows_the_traceback_and_keeps_the_exit_code(
    run: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(raising(NoCandidate("refused")), "--debug") == 3
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ZeroDivisionError("by zero"), "ZeroDivisionError: by zero"),
        (SystemExit(0), "SystemExit: 0"),  # code from outside that ends the process
    ],
)
def test_a_bug_keeps_its_traceback(
    run: Callable[..., int], capsys: pytest.CaptureFixture[str], error: BaseException, said: str
) -> None:
    assert run(raising(error)) == 1
    assert "Traceback" in capsys.readouterr().err
    assert status() == StageStatus(1, said)


def test_an_interrupt_says_how_to_go_on(run: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(raising(KeyboardInterrupt())) == 130
    assert "the same command continues" in capsys.readouterr().err


class OutOfMemoryError(RuntimeError):
    """Named like torch's."""


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (MemoryError(), "out of memory"),
        (OutOfMemoryError("CUDA"), "out of memory"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried"), "out of memory"),
        (OSError(errno.ENOSPC, "No space left on device", "/x"), "No space left on device"),
        (OSError(errno.EROFS, "Read-only file system", "/x"), "Read-only file system"),
        (PermissionError(errno.EACCES, "Permission denied", "/x"), "Permission denied"),
    ],
)
def test_what_the_machine_refuses_is_no_bug(
    run: Callable[..., int], capsys: pytest.CaptureFixture[str], error: Exception, said: str
) -> None:
    assert run(raising(error)) == 2
    shown = capsys.readouterr().err
    assert said in shown
    assert "fix:" in shown
    assert "Traceback" not in shown


def test_a_wrong_setting_is_refused_before_the_stage_runs(
    run: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(raising(AssertionError("must not run")), "--set", "train.stepz=1") == 2
    assert "train.stepz: unknown setting" in capsys.readouterr().err


def test_threads_come_from_the_settings_and_not_from_the_machine(run: Callable[..., int]) -> None:
    seen = {}
    assert run(lambda: seen.update(os.environ), "--set", "threads=5") == 0
    assert {seen[name] for name in THREADS} == {"5"}
    assert seen["HF_HUB_OFFLINE"] == "1"


def test_an_unwritable_workspace_is_reported_and_not_hidden(
    run: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    Path(".state").write_text("a file where a folder must be", encoding="utf-8")
    assert run(raising(AssertionError("must not run"))) == 2
    said = capsys.readouterr().err
    assert "cannot remove" in said
    assert "Traceback" not in said


def test_a_status_holds_until_it_is_cleared(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    assert read_status(layout, "sft") is None
    write_status(layout, "sft", StageStatus(2, "bad"))
    assert read_status(layout, "sft") == StageStatus(2, "bad")
    clear_status(layout, "sft")
    assert read_status(layout, "sft") is None


def test_a_malformed_health_rule_is_refused_before_the_first_stage_runs(
    run: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    must_not_run = raising(AssertionError("must not run"))
    assert run(must_not_run, "--set", "health.rules={odd: {when: 'entropyy < 1', why: a misspelt signal}}") == 2
    said = capsys.readouterr().err
    assert "odd" in said
    assert "entropyy" in said
    assert "Traceback" not in said


CHECKPOINT = {"kind": "checkpoint", "path": "anywhere"}


@pytest.mark.parametrize(
    ("sections", "elsewhere"),
    [
        ({}, ("train",)),
        ({"learner": {"kind": "fsdp2"}, "dpo": {"steps": 1}}, ("sft", "train", "dpo")),
        ({"learner": {"kind": "fsdp2"}}, ("sft", "train")),
        ({"learner": {"kind": "fsdp2"}, "sft": {"steps": 0}, "policy": {"model": CHECKPOINT}}, ("train",)),
    ],
    ids=["one", "ranks", "no dpo", "no sft"],
)
def test_stages_whose_learner_has_several_ranks_and_learns_go_where_the_launcher_starts_them(
    sections, elsewhere
) -> None:
    """Where nothing is learned rank 0 ends at once, and the others would wait for it."""
    chosen = Settings.model_validate({"name": "x", "launch": {"kind": "processes"}, **sections})
    assert cli.launched(chosen) == elsewhere
