"""Server and worker are killed at random moments while a run trains; the run goes on to what it would have been."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from components.files import manifest
from tests.served.service import Service, wait_for

pytestmark = pytest.mark.timeout(3600)
KILLS = 5
"""Of one `evenkeel serve`, which gives a part up that dies six times in a row."""
STEPS = 1500
"""Thirty seconds of training, and what each start takes."""


def begun(service: Service, name: str, seed: int) -> tuple[str, Path]:
    """A flow run that is in stage train, and the folder of its run."""
    overrides = [f"name={name}", f"seed={seed}", f"train.steps={STEPS}"]
    run = service.trigger("post-training", config="configs/demo.yaml", overrides=overrides)
    return run, service.wait_until_training(name).parent.parent


@pytest.fixture(scope="module")
def expected(project: Path) -> dict[str, str]:
    """What a run leaves that nothing disturbed."""
    with Service(project) as service:
        run, workspace = begun(service, "whole", 1)
        assert service.wait(run)["state_type"] == "COMPLETED"
        return manifest(workspace / "out/train")


@pytest.mark.parametrize("seed", [2, 3])
def test_a_run_is_finished_however_often_server_and_worker_are_killed(
    project: Path, expected: dict[str, str], seed: int
) -> None:
    drawn, killed = random.Random(seed), 0
    with Service(project) as service:
        run, workspace = begun(service, f"killed-{seed}", seed)
        while killed < KILLS:
            part = drawn.choice(["server", "worker"])
            time.sleep(drawn.uniform(0.5, 8))
            back = service.said().count(f"{part} is back")
            service.part(part).kill()
            killed += 1
            wait_for(lambda part=part, back=back: service.said().count(f"{part} is back") > back, 180, service.said)
        assert service.wait(run, seconds=600)["state_type"] == "COMPLETED"
        assert manifest(workspace / "out/train") == expected
