"""Whatever is killed with SIGKILL at a random moment ends, once it is started again, as if it had not been killed.

Waits between kills are exponential, so that each part is hit in proportion to the time that it takes. A seed gives the
same waits; what they hit depends on the machine, and a failure names it. `tests/served/test_serve_kills.py` kills
servers and workers; all together are a hundred kills.
"""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from components.config import dump, load
from components.config.promotion import load_policy
from components.errors import EXIT_LOST
from components.files import manifest
from components.launch import Job
from components.launch.processes import ProcessLauncher
from components.registry import open_store, read_history
from flows.governance.registry import RegistryContext, signing_key
from flows.governance.verification import verify_checkpoint
from flows.host.git import git
from tests import fake_line
from tests.code_graph import ROOT
from tests.integration.ranks import family, running
from tests.integration.runs import kill, prepared, start, trained
from tests.integration.small import NO_LIMITS, SMALL
from tests.project import run_id
from tests.proposals import commit, propose_run, write_run
from tests.s3_server import S3Server

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(3600)]
STAGES = ("data", "audit", "sft", "admission", "triage", "clusters", "train", "evaluate", "gate", "report")
KILLS = {"stages": 50, "runs": 15, "promotions": 15, "ranks": 10}
Start = Callable[[], subprocess.Popen[bytes]]


def waits(seed: int, mean: float) -> Iterator[float]:
    """Seconds between kills; at least half a second, in which a process has hardly begun."""
    drawn = random.Random(seed)
    while True:
        yield max(0.5, drawn.expovariate(1 / mean))


def until_done(begin: Start, left: Iterator[float], most: int) -> tuple[int, int]:
    """Start it again and again, killing it with all that it started after each wait, ``most`` times at the most.

    Returns: how often it was killed, and its exit code in the end.
    """
    killed, wait = 0, next(left)
    while True:
        process = begin()
        try:
            code = process.wait(wait if killed < most else 300)
        except subprocess.TimeoutExpired:
            kill(process)
            assert killed < most, "it does not end"
            killed, wait = killed + 1, next(left)
        else:
            return killed, code


def begin(folder: Path, *words: str) -> subprocess.Popen[bytes]:
    """Python with these arguments, in a session of its own, its output in ``output.txt``."""
    with (folder / "output.txt").open("ab") as output:
        return subprocess.Popen(
            [sys.executable, *words], cwd=folder, stdout=output, stderr=output, start_new_session=True
        )


def line(folder: Path, left: Iterator[float], most: int) -> Counter[str]:
    """Run every stage; stage -> how often it was killed."""
    killed: Counter[str] = Counter()
    for name in STAGES:
        times, code = until_done(lambda name=name: start(folder, ("components", name)), left, most - killed.total())
        killed[name] += times
        assert code == 0, f"{name}, killed {dict(killed)}: {(folder / 'output.txt').read_text()[-2000:]}"
    return killed


def of_line(folder: Path) -> Path:
    """A folder from before the first stage."""
    folder.mkdir()
    (folder / "judge").mkdir()
    (folder / "params.yaml").write_text(dump(load(ROOT / "configs" / "demo.yaml", [*SMALL, *NO_LIMITS])))
    return folder


def test_stages_that_are_killed_leave_the_bytes_of_those_that_are_not(tmp_path: Path) -> None:
    begun = time.monotonic()
    whole = of_line(tmp_path / "whole")
    line(whole, waits(0, 1e9), 0)
    mean, expected = (time.monotonic() - begun) / 8, manifest(whole / "out")
    killed: Counter[str] = Counter()
    for number in range(20):
        if (missing := KILLS["stages"] - killed.total()) <= 0:
            break
        folder = of_line(tmp_path / f"killed-{number}")
        now = line(folder, waits(number + 1, mean), missing)
        found = manifest(folder / "out")
        assert found == expected, (dict(now), sorted(set(found.items()) ^ set(expected.items())))
        shutil.rmtree(folder)
        killed += now
    print(f"killed: {dict(killed)}")
    assert killed.total() == KILLS["stages"]


def test_runs_that_are_killed_end_with_the_candidate_of_one_that_is_not(tmp_path: Path) -> None:
    project = fake_line.build(tmp_path / "project")

    def go(name: str) -> subprocess.Popen[bytes]:
        (project / "output.txt").unlink(missing_ok=True)
        command = "from flows.cli import main; main()"
        return begin(project, "-c", command, "run", "--set", f"name={name}", "--set", "train.steps=150")

    def said() -> str:
        return (project / "output.txt").read_text()

    def out() -> dict[str, str]:
        return manifest(project / "runs" / run_id(said()) / "out" / "train")

    begun = time.monotonic()
    assert until_done(lambda: go("whole"), waits(0, 1e9), 0) == (0, 0), said()[-2000:]
    mean, killed, expected = (time.monotonic() - begun) / 4, 0, out()
    for number in range(20):
        if killed >= KILLS["runs"]:
            break
        name = f"killed-{number}"
        now, code = until_done(lambda name=name: go(name), waits(number, mean), KILLS["runs"] - killed)
        assert code == 0, (name, now, said()[-2000:])
        assert out() == expected, (name, now)
        killed += now
    assert killed == KILLS["runs"]


def test_approvals_over_s3_that_are_killed_promote_once(
    s3_server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The candidate lies in a bucket, and the command dies anywhere between its first import and its last request."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    project = tmp_path / "project"
    shutil.copytree(ROOT / "configs", project / "configs")
    (project / "dvc.yaml").write_text("stages: {}\n")
    git(project, "init", "--quiet")
    commit(project)
    key, command = signing_key(project, load_policy(project)), "from flows.cli import main; main()"
    killed, mean = 0, 1e9
    for number in range(40):
        if killed >= KILLS["promotions"]:
            break
        registry = s3_server.settings(tmp_path, f"kills-{number}")
        settings = load(ROOT / "configs" / "demo.yaml").model_copy(update={"registry": registry})
        (project / "bucket.yaml").write_text(dump(settings))
        store = open_store(registry)
        digest = propose_run(store, write_run(tmp_path / f"run-{number}", float(number)), key).digest
        words = ("-c", command, "approve", digest, "--by", "ada", "--config", "bucket.yaml")
        begun, left = time.monotonic(), waits(number, mean)
        now, code = until_done(lambda words=words: begin(project, *words), left, KILLS["promotions"] - killed)
        said = (project / "output.txt").read_text()[-2000:]
        assert code == 0, (now, said)
        history = read_history(store)
        assert [record.outcome for record in history.records] == ["promoted"], (now, said)
        found = verify_checkpoint(RegistryContext(project, store, load_policy(project)), "champion")
        assert all(one.holds for one in found)
        mean, killed = min(mean, (time.monotonic() - begun) / 2), killed + now
    assert killed == KILLS["promotions"]


def test_ranks_that_are_killed_end_the_run_which_goes_on_to_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of two ranks at a time. Either all ends as lost, or the rank had nothing left to do."""

    def made(name: str) -> Path:
        (root := tmp_path / name).mkdir()
        learner = {"kind": "fsdp2", "ranks": {"processes": 2, "reply_timeout": 60}}
        train = {"steps": 60, "checkpoint_every": 5}
        prepared(root, train=train, learner=learner, rollout={"dynamic_sampling": None}, launch={"kind": "processes"})
        return root

    def attempt(root: Path, wait: float) -> tuple[int, float]:
        """Exit code of a job of which a rank is killed so long after the first one began, and seconds from there."""
        monkeypatch.setenv("PYTHONPATH", f"{root / 'judge'}:{ROOT}")
        launcher = ProcessLauncher()
        job = launcher.submit(Job("train", load(root / "settings.yaml"), root))

        def goes_on() -> bool:
            time.sleep(0.05)
            return launcher.status(job).state == "running"

        while goes_on() and not family():
            pass
        begun = time.monotonic()
        while time.monotonic() < begun + wait and goes_on():
            pass
        if left := family():
            drawn.choice(left).kill()
        code = launcher.wait(job, poll=0.1).exit_code
        assert not running(family())
        return -1 if code is None else code, time.monotonic() - begun

    drawn, whole, killed = random.Random(7), made("whole"), 0
    code, lasts = attempt(whole, 1e9)
    assert code == 0
    for number in range(20):
        root, fresh = made(f"killed-{number}"), True
        while killed < KILLS["ranks"]:
            code, took = attempt(root, drawn.uniform(0, lasts))
            if code == 0:
                lasts = min(lasts, took) if fresh else lasts  # the machine is quicker by now
                break
            assert code == EXIT_LOST
            killed, fresh = killed + 1, False
        if killed == KILLS["ranks"]:
            break
    assert attempt(root, 1e9)[0] == 0
    assert trained(root) == trained(whole)
    assert killed == KILLS["ranks"]
