"""What the Prefect UI shows of a run, how a run is stopped, and what is left of it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
import zlib
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from components.files import read_json
from components.processes.living import lives
from flows.host.processes import OWNER_VARIABLE, mark_of, marked
from tests.served.service import Service, environment, evenkeel, wait_for

LONG = "train.steps=1500"
"""Half a minute in stage train: time to look, and to interfere."""
BUSY = 300.0
"""Seconds that a machine with much else to do may need for a run of the fake line."""


def named(name: str) -> list[str]:
    """Settings of a run that takes nothing from the cache of another."""
    return [f"name={name}", f"seed={zlib.crc32(name.encode()) >> 1}"]


def start(service: Service, name: str, *settings: str) -> str:
    """A run of the deployment that trains by the time this returns."""
    run = service.trigger("post-training", config="configs/demo.yaml", overrides=[*named(name), LONG, *settings])
    service.wait_until_training(name, BUSY)
    return run


def workspace(project: Path, name: str) -> Path:
    (found,) = project.glob(f"runs/{name}-*")
    return found


def execution(project: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = read_json(workspace(project, name) / ".state/execution.json")
    return found


def family(project: Path, pid: int) -> list[psutil.Process]:
    """Everything alive that the flow of this process started, whatever sessions and parents it has."""
    return [one for one in marked(OWNER_VARIABLE) if one.pid != pid and _belongs(one, pid, project) and lives(one)]


def _belongs(process: psutil.Process, pid: int, project: Path) -> bool:
    mark = mark_of(process, OWNER_VARIABLE)
    return mark.startswith(f"{pid}:") and mark.endswith(f":{project}")


def by_hand(project: Path, *settings: str, **extra: str) -> subprocess.Popen[bytes]:
    """`evenkeel run` of somebody at a terminal."""
    command = [sys.executable, "-c", "from flows.cli import main; main()", "run"]
    options = [word for setting in settings for word in ("--set", setting)]
    env, nowhere = environment(**extra), subprocess.DEVNULL
    return subprocess.Popen(
        [*command, *options],
        cwd=project,
        env=env,
        stdout=nowhere,
        stderr=nowhere,
        start_new_session=True,
    )


def test_a_run_is_shown_while_it_works_and_stays_one_version_of_each_artifact(service: Service) -> None:
    run = start(service, "shown")
    shown = wait_for(lambda: {"stage-train", "run-signals"} <= service.artifacts(run).keys(), BUSY)
    assert shown
    first = service.artifacts(run)
    rows = json.loads(first["run-signals"]["data"])
    assert rows[0].keys() >= {"Step", "Accuracy", "Entropy", "LR", "Verdicts", "Acted"}
    assert int(rows[0]["Step"]) > int(rows[-1]["Step"])
    assert "acc 0." in first["run-signals"]["description"]
    assert 0 < first["stage-train"]["data"] < 100
    assert first["stage-train"]["task_run_id"]

    wait_for(lambda: service.artifacts(run)["stage-train"]["data"] > first["stage-train"]["data"], BUSY)
    wait_for(lambda: service.artifacts(run)["run-signals"]["data"] != first["run-signals"]["data"], BUSY)
    assert service.artifacts(run)["run-signals"]["id"] == first["run-signals"]["id"]

    service.wait(run, "COMPLETED", seconds=BUSY)
    last = service.artifacts(run)
    assert last["stage-train"]["data"] == 100
    assert "done in" in last["stage-train"]["description"]
    assert json.loads(last["run-signals"]["data"])[0]["Step"] == "1500"


def test_the_report_of_a_run_links_to_pages_that_are_served(service: Service) -> None:
    run = service.trigger("post-training", config="configs/demo.yaml", overrides=named("linked"))
    service.wait(run, "COMPLETED", seconds=BUSY)
    text = service.artifacts(run)["run-report"]["data"]
    assert text.startswith("# linked-")
    assert "+40.0 points" in text
    urls = [part.partition(")")[0] for part in text.split("](")[1:]]
    assert len(urls) == 3
    for url in urls:
        assert httpx.get(url, trust_env=False).status_code == 200, url


def test_status_and_logs_need_no_server(service: Service, project: Path) -> None:
    run = start(service, "looked-at")
    out = {"PREFECT_API_URL": "http://127.0.0.1:9/api"}
    (row,) = [row for row in json.loads(evenkeel(project, "status", "--json", **out).stdout) if row["stage"] == "train"]
    assert (row["state"], row["flow_run"], row["total"]) == ("running", run, 1500)
    assert row["run"] in evenkeel(project, "status", **out).stdout
    one = evenkeel(project, "status", "looked-at", **out).stdout
    assert f"evenkeel cancel {row['run']}" in one
    assert "components train" in one

    command = [sys.executable, "-c", "from flows.cli import main; main()", "logs", "-f", "-n", "0", "looked-at"]
    with subprocess.Popen(command, cwd=project, env=environment(), stdout=subprocess.PIPE, text=True) as following:
        said, _ = following.communicate(timeout=BUSY)
    assert "train 1500/1500" in said
    assert "Running stage 'report'" in said
    assert service.wait(run, seconds=BUSY)["state_type"] == "COMPLETED"


@pytest.mark.parametrize("launcher", ["inline", "processes"])
def test_a_cancelled_run_is_cancelled_and_nothing_of_it_lives(service: Service, project: Path, launcher: str) -> None:
    name = f"cancelled-{launcher}"
    run = start(service, name, f"launch.kind={launcher}")
    pid = execution(project, name)["pid"]
    assert family(project, pid)
    service.post(f"/flow_runs/{run}/set_state", state={"type": "CANCELLING"})
    assert service.wait(run, seconds=BUSY)["state_type"] == "CANCELLED", service.logs(run)
    assert not lives(pid)
    assert family(project, pid) == []
    assert execution(project, name)["state"] == "stopped"


def test_cancelling_at_the_terminal_stops_a_run_of_the_worker(service: Service, project: Path) -> None:
    run = start(service, "by-command")
    pid = execution(project, "by-command")["pid"]
    done = evenkeel(project, "cancel", "by-command")
    assert done.returncode == 0, done.stderr
    assert f"evenkeel run --resume {workspace(project, 'by-command').name}" in done.stdout
    assert family(project, pid) == []
    assert service.flow_run(run)["state_type"] == "CANCELLED"
    assert service.states(run)[-1] == "Cancelled"

    again = evenkeel(project, "cancel", "by-command")
    assert again.returncode == 2
    assert "does not run: it is stopped" in again.stderr


def test_a_run_that_does_not_end_when_asked_is_killed(service: Service, project: Path) -> None:
    process = by_hand(project, *named("stubborn"), LONG)
    service.wait_until_training("stubborn", BUSY)
    started = family(project, process.pid)
    process.send_signal(signal.SIGSTOP)
    done = evenkeel(project, "cancel", "stubborn", "--grace", "1")
    assert done.returncode == 0, done.stderr
    assert f"killing process {process.pid}" in done.stdout
    assert process.wait(10) == -signal.SIGKILL
    assert not any(map(lives, started))
    found = execution(project, "stubborn")
    assert service.flow_run(found["flow_run"])["state_type"] == "CANCELLED"


def test_a_killed_flow_takes_its_stage_with_it_and_the_janitor_ends_its_flow_run_and_no_other(
    service: Service, project: Path
) -> None:
    living = start(service, "living")
    process = by_hand(project, *named("killed"), LONG)
    service.wait_until_training("killed", BUSY)
    process.kill()
    process.wait()
    wait_for(lambda: not family(project, process.pid), BUSY)
    dead = execution(project, "killed")["flow_run"]

    run = service.trigger("janitor")
    assert service.wait(run, seconds=BUSY)["state_type"] == "COMPLETED", service.logs(run)
    assert service.flow_run(dead)["state_type"] == "CRASHED"
    table = json.loads(service.artifacts(run)["janitor"]["data"])
    assert {row["kind"] for row in table} == {"flow run"}
    # It also renews questions about candidates that were proposed again since.
    assert all(str(process.pid) in row["why"] for row in table if not row["why"].startswith("since the request"))

    assert service.flow_run(living)["state_type"] == "RUNNING"
    assert family(project, execution(project, "living")["pid"])
    assert service.wait(living, seconds=BUSY)["state_type"] == "COMPLETED", service.logs(living)


def test_a_server_that_stands_still_for_a_while_gets_the_rest_later(project: Path) -> None:
    from prefect.server.api.server import SubprocessASGIServer

    server = SubprocessASGIServer()
    server.start(timeout=120)
    assert server.server_process is not None
    try:
        process = by_hand(project, *named("unheard"), "train.steps=1000", PREFECT_API_URL=server.api_url)
        mark = wait_for(lambda: next(iter(project.glob("runs/unheard-*/.state/train.done")), None), BUSY)
        server.server_process.send_signal(signal.SIGSTOP)
        done = int(mark.read_text(encoding="utf-8"))
        time.sleep(8)
        assert int(mark.read_text(encoding="utf-8")) > done + 20, "the stage goes on"
        server.server_process.send_signal(signal.SIGCONT)
        assert process.wait(BUSY) == 0
        wanted = {"artifacts": {"key": {"any_": ["stage-train"]}}}
        (shown,) = httpx.post(f"{server.api_url}/artifacts/filter", json=wanted, timeout=30).json()
        assert shown["data"] == 100
    finally:
        server.server_process.send_signal(signal.SIGCONT)
        server.stop()
