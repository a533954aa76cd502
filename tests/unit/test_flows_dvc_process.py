"""One process runs the DVC commands of a run; what DVC writes is what it writes by itself."""

from __future__ import annotations

import io
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dpath
import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows.host import dvc_process, dvc_yaml
from flows.host.dvc import environment
from flows.host.dvc_process import one_process, run_dvc

PIPELINE = """\
stages:
  first:
    cmd: cat in.txt > first.txt && echo "first by $PPID"
    deps: [in.txt]
    params: [a, many]
    outs: [first.txt]
  second:
    cmd: cat first.txt > second.txt; echo second
    deps: [first.txt]
    params: [many.lines]
    outs: [second.txt]
  waits:
    cmd: echo $$ > pid.txt; sleep 60
  fails:
    cmd: echo words; exit 3
"""
PARAMS = """\
a: 1.0e-05
many:
  {none: null, nones: [null, 1], lines: "one\\n  two: '3'\\n", text: "yes", empty: {}, list: [1, [2, {x: 'é # ✓'}]],
   ends: 'ends: ', long: "%s"}
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A DVC repository with four stages."""
    root = tmp_path / "one"
    (root / ".dvc").mkdir(parents=True)
    (root / ".dvc/config").write_text("[core]\n    no_scm = True\n", encoding="utf-8")
    (root / "dvc.yaml").write_text(PIPELINE, encoding="utf-8")
    (root / "params.yaml").write_text(PARAMS % ("word " * 40), encoding="utf-8")
    (root / "in.txt").write_text("1", encoding="utf-8")
    return root


def own(root: Path, *arguments: str) -> None:
    """DVC's own command."""
    subprocess.run([sys.executable, "-m", "dvc", *arguments], cwd=root, env=environment(root), check=True)


def repro(root: Path, stage: str, timeout: float | None = None) -> int:
    arguments = ["repro", "--single-item", stage]
    return run_dvc(arguments, root=root, env=environment(root), log=root / "logs" / f"{stage}.log", timeout=timeout)


def of(root: Path) -> psutil.Process:
    """The process that runs the commands, below its guardian."""
    child = dvc_process._open[root]._child
    assert child is not None
    (process,) = psutil.Process(child.pid).children()
    return process


def test_one_process_runs_every_command_and_each_has_its_log_and_exit_code(root: Path) -> None:
    with one_process(root):
        with one_process(root):  # has the same process, and does not end it
            assert repro(root, "first") == 0
            process = of(root)
        assert repro(root, "second") == 0 and repro(root, "fails") != 0 and repro(root, "second") == 0
        assert of(root) == process
        assert f"first by {process.pid}" in (root / "logs/first.log").read_text(encoding="utf-8")
    assert not process.is_running()
    said = (root / "logs/second.log").read_text(encoding="utf-8")
    assert "> cat first.txt" in said and "didn't change" in said and "first by" not in said
    assert "words" in (root / "logs/fails.log").read_text(encoding="utf-8")


def test_why_dvc_cannot_be_loaded_is_in_the_log(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "dvc.py").write_text("raise ImportError('not this one')", encoding="utf-8")
    monkeypatch.setattr(dvc_process, "CODE", root)
    assert repro(root, "first") == 1
    assert "ImportError: not this one" in (root / "logs/first.log").read_text(encoding="utf-8")


def when_it_waits(root: Path, do: Callable[[], object]) -> None:
    """Call ``do`` in a thread once the stage `waits` has begun."""

    def look() -> None:
        while not ((root / "pid.txt").exists() and (root / "pid.txt").read_text(encoding="utf-8")):
            time.sleep(0.05)
        do()

    threading.Thread(target=look, daemon=True).start()


def test_a_process_that_is_killed_ends_its_command_with_the_signal_and_is_replaced_by_the_next_one(root: Path) -> None:
    with one_process(root):
        when_it_waits(root, lambda: of(root).kill())
        assert repro(root, "waits") == 128 + signal.SIGKILL
        assert repro(root, "first") == 0
        process = of(root)
        process.kill()  # between two commands
        process.wait(10)
        assert repro(root, "second") == 0


@pytest.fixture
def interruptible() -> Iterator[None]:
    """The background job of a shell ignores SIGINT."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interruption_ends_all_that_the_command_started(root: Path, interruptible: None) -> None:
    with one_process(root):
        when_it_waits(root, lambda: os.kill(os.getpid(), signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):
            repro(root, "waits")
        left = int((root / "pid.txt").read_text(encoding="utf-8"))
        deadline = time.monotonic() + 30
        while psutil.pid_exists(left):
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_a_command_without_time_left_ends_and_the_next_one_works(root: Path) -> None:
    with one_process(root):
        with pytest.raises(subprocess.TimeoutExpired):
            repro(root, "waits", timeout=0.1)
        assert repro(root, "first") == 0


def test_the_time_of_a_command_includes_that_of_loading(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "dvc.py").write_text("import time; time.sleep(60)", encoding="utf-8")
    monkeypatch.setattr(dvc_process, "CODE", root)
    began = time.monotonic()
    with pytest.raises(subprocess.TimeoutExpired):
        repro(root, "first", timeout=0.1)
    assert time.monotonic() - began < 30


def test_a_command_sees_the_environment_of_its_call(root: Path) -> None:
    (root / "dvc.yaml").write_text('stages: {says: {cmd: "echo says $SAYS $PYTHONPATH."}}', encoding="utf-8")
    log = root / "says.log"
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with one_process(root):
        for word in ("one", "two"):
            run_dvc(["repro", "--force", "says"], root=root, env=env | {"SAYS": word}, log=log)
            assert f"says {word} ." in log.read_text(encoding="utf-8")


def test_the_lock_is_dvcs_and_the_cache_but_for_the_places_where_long_texts_are_broken(root: Path) -> None:
    other = root.with_name("other")
    shutil.copytree(root, other)
    with one_process(root):
        for text in ("1", "2", "1"):
            for folder in (root, other):
                (folder / "in.txt").write_text(text, encoding="utf-8")
            assert repro(root, "first") == repro(root, "second") == 0
            own(other, "repro", "--single-item", "first", "second")
            assert (root / "dvc.lock").read_bytes() == (other / "dvc.lock").read_bytes()
    kept = [{path.relative_to(one): path.read_bytes().split() for path in cached(one)} for one in (root, other)]
    assert kept[0] == kept[1] and any("runs" in path.parts for path in kept[0])


def cached(root: Path) -> list[Path]:
    return [path for path in (root / ".dvc/cache").rglob("*") if path.is_file()]


@pytest.mark.parametrize(
    "text",
    ["", "a: 2020-01-01\n", dvc_yaml.HEAD, dvc_yaml.HEAD + "  a: &x\n    b: 1\n  c: *x\n", PARAMS % "x", PIPELINE],
    ids=["nothing", "a date", "no stages", "an alias", "parameters", "a pipeline"],
)
def test_what_is_read_is_what_dvc_reads(text: str) -> None:
    from dvc.utils.serialize import parse_yaml

    for _ in range(2):
        assert dvc_yaml.parse(text, "file.yaml") == parse_yaml(text, "file.yaml")


texts = st.text(" :-#'\"ab7\né✓😀", max_size=120)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts.filter(bool), inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(st.text("abc", min_size=1), values, max_size=3))
def test_what_is_written_is_read_as_it_was(data: dict[str, Any]) -> None:
    from dvc.utils.serialize import parse_yaml

    written = io.StringIO()
    dvc_yaml.dump(data, written)
    assert parse_yaml(written.getvalue(), "file.yaml") == data


SETTINGS = {"a": {"b": None, "c": {}, "d": [{"e": 1}], "1": 2, "x*": 3, "xy": 4}, "f": 0}


@pytest.mark.parametrize("key", ["f", "a", "a.b", "a.c", "a.d", "a.1", "a.d.0.e", "a.xy", "a.d*", "*.b"])
def test_a_setting_that_is_looked_up_is_what_dpath_finds(key: str) -> None:
    assert dvc_yaml.get(SETTINGS, key, ".") == dpath.get(SETTINGS, key, separator=".")


@pytest.mark.parametrize(("key", "error"), [("a.z", KeyError), ("f.b", KeyError), ("a.x*", ValueError)])
def test_a_setting_that_is_missing_or_not_the_only_one_is_dpaths_error(key: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        dvc_yaml.get(SETTINGS, key, ".")


def test_a_lock_of_another_form_is_left_to_dvc(tmp_path: Path) -> None:
    lock = tmp_path / "dvc.lock"
    lock.write_text("# by hand\nschema: '2.0'\nstages:\n  a: {cmd: x}  # kept\n", encoding="utf-8")
    with dvc_yaml.modify_lock(lock) as data:
        data["stages"]["b"] = {"cmd": "y"}
    assert lock.read_text(encoding="utf-8").startswith("# by hand\nschema: '2.0'\nstages:\n  a: {cmd: x}  # kept\n")
