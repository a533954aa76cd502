"""What happens to runs when the worker, the server or `evenkeel serve` itself is killed or stopped under them."""

from __future__ import annotations

import signal
import zlib
from pathlib import Path

import psutil
import pytest
import yaml

from components.files import read_json
from components.processes.living import lives
from flows.serving.service import last_service, served
from tests.served.service import Service, wait_for

LONG = "train.steps=400"
"""Eight seconds in stage train: time to interfere."""


@pytest.fixture(scope="module", autouse=True)
def deployments(project: Path) -> None:
    """One run at a time, and one more is cancelled, as for the nightly run: no slot may be lost or kept."""
    path = project / "prefect.yaml"
    found = yaml.safe_load(path.read_text(encoding="utf-8"))
    (entry,) = (entry for entry in found["deployments"] if entry["name"] == "post-training")
    entry["concurrency_limit"] = {"limit": 1, "collision_strategy": "CANCEL_NEW"}
    path.write_text(yaml.safe_dump(found), encoding="utf-8")


def start_long_run(service: Service, name: str) -> tuple[str, Path]:
    """A flow run that is in stage train, and the folder of its run."""
    seed = f"seed={zlib.crc32(name.encode()) % 1000}"  # not trained before
    run = service.trigger("post-training", config="configs/demo.yaml", overrides=[f"name={name}", seed, LONG])
    mark = service.wait_until_training(name)
    return run, mark.parent.parent


def starts_of_training(workspace: Path) -> list[int]:
    """At which step stage train began, each time."""
    log = (workspace / "logs/train.log").read_text(encoding="utf-8")
    return [int(line.split()[-1]) for line in log.splitlines() if line.startswith("train starts at")]


def assert_continued(workspace: Path) -> None:
    """Training was interrupted once, and went on where it was."""
    first, second = starts_of_training(workspace)
    assert first == 0
    assert second > 0
    assert read_json(workspace / "out/train.json")["steps"] == 400


def gone(processes: list[psutil.Process]) -> bool:
    return not any(map(lives, processes))


def test_a_run_whose_worker_is_killed_is_continued_by_the_next_worker(service: Service) -> None:
    run, workspace = start_long_run(service, "worker-killed")
    below = service.part("worker").children(recursive=True)
    assert len(below) >= 3, "the flow run, DVC and the stage"
    service.part("worker").kill()
    wait_for(lambda: gone(below), 10, service.said)
    assert service.wait(run)["state_type"] == "COMPLETED"
    assert_continued(workspace)
    assert "AwaitingRetry" in service.states(run)
    assert "worker was ended by SIGKILL" in service.said()
    assert "worker is back" in service.said()


def test_a_run_outlives_its_server(service: Service) -> None:
    run, workspace = start_long_run(service, "server-killed")
    service.part("server").kill()
    wait_for(lambda: "server is back" in service.said(), 180, service.said)
    assert service.wait(run)["state_type"] == "COMPLETED"
    assert starts_of_training(workspace) == [0]


def test_stopped_in_order_nothing_is_left_and_the_next_serve_continues_the_run(project: Path, service: Service) -> None:
    service.stop()  # that of the tests above
    with Service(project) as first:
        run, workspace = start_long_run(first, "stopped")
        family = first.family()
        assert first.stop(signal.SIGINT) == 0
        assert gone(family)
        assert "next `evenkeel serve` continues it" in first.said()
        assert last_service(project) is None
    with Service(project, "--port", first.port) as second:
        assert second.api_url == first.api_url
        assert second.wait(run)["state_type"] == "COMPLETED"
    assert_continued(workspace)


def test_killed_outright_nothing_is_left_and_the_next_serve_continues_the_run(project: Path, service: Service) -> None:
    service.stop()
    with Service(project) as first:
        run, workspace = start_long_run(first, "killed")
        family = first.family()
        first.process.kill()
        first.process.wait()
        assert last_service(project) is not None
        assert served(project) is None, "a stale file is no server"
        with Service(project, "--port", first.port) as second:
            assert gone(family)
            assert second.wait(run)["state_type"] == "COMPLETED"
    assert_continued(workspace)
