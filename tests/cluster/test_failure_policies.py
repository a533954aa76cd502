"""What ends mean, to the real controllers: exit codes, evictions, servers that die."""

from __future__ import annotations

from typing import Any

import pytest

from components.launch.kubernetes.manifests import jobset
from components.launch.kubernetes.names import GROUP, PLURAL, VERSION
from tests.cluster.conftest import Place
from tests.cluster.runs import (
    ALONE,
    SMALL_PODS,
    Commands,
    await_,
    jobset_of,
    on,
    planned,
    pods_of,
    with_commands,
    without_volume,
)

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]
FOREVER = ["python", "-c", "import signal, time; signal.signal(15, lambda *_: exit(143)); time.sleep(3600)"]


def ends_with(code: int) -> list[str]:
    return ["python", "-c", f"raise SystemExit({code})"]


def start(place: Place, image: str, name: str, commands: Commands, *overrides: str) -> str:
    alone = ALONE if list(commands) == ["learner"] else []
    plan = planned(name, [*alone, *SMALL_PODS, *on(place, image), *overrides])
    body = without_volume(jobset(with_commands(plan, commands)))
    for replicated in body["spec"]["replicatedJobs"]:
        container = replicated["template"]["spec"]["template"]["spec"]["containers"][0]
        for probe in ("startupProbe", "readinessProbe", "livenessProbe", "lifecycle"):
            container.pop(probe, None)
    place.custom.create_namespaced_custom_object(GROUP, VERSION, place.namespace, PLURAL, body)
    return plan.name


def condition(place: Place, name: str, kind: str) -> dict[str, Any] | None:
    found = jobset_of(place, name).get("status", {}).get("conditions", [])
    return next((one for one in found if one["type"] == kind and one["status"] == "True"), None)


def await_end(place: Place, name: str) -> str:
    await_(f"{name} ends", lambda: bool(condition(place, name, "Completed") or condition(place, name, "Failed")), 240)
    return "Completed" if condition(place, name, "Completed") else "Failed"


def restarts(place: Place, name: str) -> tuple[int, int]:
    """All of them, and those that count."""
    status = jobset_of(place, name).get("status", {})
    return status.get("restarts", 0), status.get("restartsCountTowardsMax", 0)


def evict(place: Place, pod: str) -> None:
    place.core.create_namespaced_pod_eviction(pod, place.namespace, {"metadata": {"name": pod}})


def phases(place: Place, name: str) -> list[str]:
    return [pod.status.phase for pod in pods_of(place, name)]


def uids(place: Place, name: str) -> list[str]:
    return [pod.metadata.uid for pod in pods_of(place, name)]


def await_running(place: Place, name: str, role: str = "learner", but: str = "") -> str:
    def running() -> list[str]:
        return [p.metadata.name for p in pods_of(place, name, role) if p.status.phase == "Running"]

    await_(f"a {role} of {name} runs", lambda: any(pod != but for pod in running()))
    return next(pod for pod in running() if pod != but)


def test_a_learner_that_is_done_ends_the_run_and_its_servers(place: Place, image: str) -> None:
    name = start(place, image, "done", {"learner": ends_with(0), "rollout": FOREVER})
    assert await_end(place, name) == "Completed"
    await_("the servers are gone", lambda: not pods_of(place, name, "rollout"))


@pytest.mark.parametrize("code", [2, 3])
def test_bad_input_and_a_no_fail_at_once(place: Place, image: str, code: int) -> None:
    name = start(place, image, f"code-{code}", {"learner": ends_with(code)})
    assert await_end(place, name) == "Failed"
    assert restarts(place, name) == (0, 0)


def test_anything_else_is_tried_again_as_often_as_the_settings_say(place: Place, image: str) -> None:
    name = start(place, image, "broken", {"learner": ends_with(1)}, "launch.kubernetes.max_restarts=2")
    assert await_end(place, name) == "Failed"
    assert restarts(place, name) == (2, 2)


def test_one_node_that_refuses_its_input_fails_the_run(place: Place, image: str) -> None:
    script = "import os, time; os.environ['JOB_COMPLETION_INDEX'] == '1' and exit(2); time.sleep(3600)"
    name = start(place, image, "refused", {"learner": ["python", "-c", script], "rollout": FOREVER})
    assert await_end(place, name) == "Failed"
    assert restarts(place, name) == (0, 0)


@pytest.mark.parametrize("node", [0, 1])
def test_an_eviction_starts_the_run_again_and_costs_no_restart(place: Place, image: str, node: int) -> None:
    commands: Commands = {"learner": FOREVER, "rollout": FOREVER}
    name = start(place, image, f"evicted-{node}", commands, "launch.kubernetes.max_restarts=0")
    await_("both nodes run", lambda: phases(place, name) == ["Running"] * 2)
    evict(place, pods_of(place, name)[node].metadata.name)
    await_("it begins again", lambda: restarts(place, name) == (1, 0))
    await_running(place, name)


def test_a_disruption_costs_no_restart_although_others_of_the_job_take_their_time_to_end(
    place: Place, image: str
) -> None:
    """A job has failed when the last of its pods has ended: until then whoever has lost it must not say so."""
    stubborn = "import os, signal, time; signal.signal(15, lambda *_: None)"
    lingering = "time.sleep(float(os.environ['EVENKEEL_LINGER'])); exit(75)"
    lost = f"time.sleep(5 if os.environ['EVENKEEL_ATTEMPT'] == '0' else 3600); {lingering}"
    script = f"{stubborn}; exec({lost!r} if os.environ['JOB_COMPLETION_INDEX'] == '0' else 'time.sleep(3600)')"
    commands: Commands = {"learner": ["python", "-c", script], "rollout": FOREVER}
    name = start(place, image, "stubborn", commands, "launch.kubernetes.max_restarts=1")
    await_("both nodes run", lambda: phases(place, name) == ["Running"] * 2)
    evict(place, pods_of(place, name)[1].metadata.name)
    await_("it begins again", lambda: restarts(place, name)[0] == 1, 240)
    assert restarts(place, name) == (1, 0)


def test_a_server_that_refuses_its_arguments_fails_the_run(place: Place, image: str) -> None:
    name = start(place, image, "arguments", {"learner": FOREVER, "rollout": ends_with(2)})
    assert await_end(place, name) == "Failed"
    assert restarts(place, name) == (0, 0)


def test_a_learner_that_stopped_on_request_goes_on_and_it_costs_no_restart(place: Place, image: str) -> None:
    """As the first attempt stops with 143 and the second one is done."""
    script = "import os; raise SystemExit(0 if os.environ['EVENKEEL_ATTEMPT'] == '1' else 143)"
    name = start(place, image, "stopped", {"learner": ["python", "-c", script]}, "launch.kubernetes.max_restarts=0")
    assert await_end(place, name) == "Completed"
    assert restarts(place, name) == (1, 0)


def test_a_server_that_is_evicted_or_dies_is_replaced_while_the_run_goes_on(place: Place, image: str) -> None:
    name = start(place, image, "server", {"learner": FOREVER, "rollout": FOREVER})
    await_("both nodes run", lambda: phases(place, name) == ["Running"] * 2)
    nodes, first = uids(place, name), await_running(place, name, "rollout")
    evict(place, first)
    second = await_running(place, name, "rollout", but=first)
    assert second != first and restarts(place, name) == (0, 0)
    assert uids(place, name) == nodes


def test_a_run_that_takes_too_long_is_ended(place: Place, image: str) -> None:
    name = start(place, image, "late", {"learner": FOREVER}, "launch.kubernetes.deadline=60")
    assert await_end(place, name) == "Failed"
    assert restarts(place, name) == (0, 0)
