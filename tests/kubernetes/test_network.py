"""Who may reach whom, for every pair of pods and every port that matters."""

from __future__ import annotations

from itertools import product

import pytest

from tests.kubernetes.building import K8S, by_kind, objects, overlay
from tests.kubernetes.reaching import End, reaches

POLICIES = [
    *by_kind(objects(overlay("cpu")), "NetworkPolicy").values(),
    *by_kind(objects(K8S / "prefect" / "namespace"), "NetworkPolicy").values(),
]
COMPONENT = "app.kubernetes.io/component"
HTTP, RENDEZVOUS, METRICS, EPHEMERAL = 8000, 29500, 9400, 45678
PORTS = (HTTP, RENDEZVOUS, METRICS, EPHEMERAL, 22)


def pod(component: str) -> End:
    return End({COMPONENT: component}, "evenkeel")


ROLES = {name: pod(name) for name in ("learner", "rollout", "orchestrator", "worker")}
STRANGER = End({"app": "stranger"}, "evenkeel")
ELSEWHERE = End({COMPONENT: "learner"}, "another-team")
"""A pod of another namespace that gives itself the right label."""
SERVER = End({"app.kubernetes.io/name": "prefect-server"}, "prefect")
PROMETHEUS = End({}, "monitoring", {"evenkeel/prometheus": "true"})
DNS = End({"k8s-app": "kube-dns"}, "kube-system")
OUTSIDE, METADATA = End(address="203.0.113.7"), End(address="169.254.169.254")
TRAINING = {("learner", "learner"), ("learner", "rollout"), ("rollout", "learner")}


@pytest.mark.parametrize(("source", "target"), list(product(ROLES, ROLES)))
def test_pods_of_a_run_reach_each_other_as_training_needs_it_and_no_others(source: str, target: str) -> None:
    reached = {port for port in PORTS if reaches(POLICIES, ROLES[source], ROLES[target], port)}
    assert reached == (set(PORTS) if (source, target) in TRAINING else set())


@pytest.mark.parametrize("who", [*ROLES, "stranger", "elsewhere", "prometheus", "server", "outside"])
def test_weights_are_taken_from_the_learner_only(who: str) -> None:
    everybody = {**ROLES, "stranger": STRANGER, "elsewhere": ELSEWHERE, "prometheus": PROMETHEUS}
    everybody |= {"server": SERVER, "outside": OUTSIDE}
    assert reaches(POLICIES, everybody[who], ROLES["rollout"], HTTP) is (who == "learner")


def test_servers_do_not_reach_each_other() -> None:
    assert not any(reaches(POLICIES, ROLES["rollout"], ROLES["rollout"], port) for port in PORTS)


@pytest.mark.parametrize("target", list(ROLES))
def test_prometheus_reaches_the_figures_of_learners_and_nothing_else(target: str) -> None:
    reached = [port for port in PORTS if reaches(POLICIES, PROMETHEUS, ROLES[target], port)]
    assert reached == ([METRICS] if target == "learner" else [])


def test_a_namespace_without_the_label_gets_no_figures() -> None:
    assert not reaches(POLICIES, End({}, "monitoring"), ROLES["learner"], METRICS)


@pytest.mark.parametrize("source", [*ROLES.values(), STRANGER])
def test_every_pod_resolves_names_only_through_the_cluster_dns(source: End) -> None:
    assert reaches(POLICIES, source, DNS, 53, "UDP") and reaches(POLICIES, source, DNS, 53, "TCP")
    assert not reaches(POLICIES, source, OUTSIDE, 53, "UDP")


@pytest.mark.parametrize("source", ["learner", "rollout", "orchestrator"])
def test_object_storage_is_reached_over_https_and_the_node_s_credentials_are_not(source: str) -> None:
    assert reaches(POLICIES, ROLES[source], OUTSIDE, 443)
    assert reaches(POLICIES, ROLES[source], End(address="2001:db8::7"), 443)
    assert not reaches(POLICIES, ROLES[source], OUTSIDE, 80)
    assert not any(reaches(POLICIES, ROLES[source], METADATA, port) for port in (80, 443))
    assert not reaches(POLICIES, ROLES[source], End(address="fd00:ec2::254"), 443)


@pytest.mark.parametrize("source", list(ROLES))
def test_only_what_starts_flow_runs_reaches_prefect_and_kubernetes(source: str) -> None:
    orchestrates = source in ("orchestrator", "worker")
    assert reaches(POLICIES, ROLES[source], SERVER, 4200) is orchestrates
    assert reaches(POLICIES, ROLES[source], OUTSIDE, 6443) is orchestrates
    assert not reaches(POLICIES, SERVER, ROLES[source], 4200)


def test_the_server_of_prefect_reaches_its_database_and_nothing_else_outside() -> None:
    assert reaches(POLICIES, SERVER, OUTSIDE, 5432)
    assert not any(reaches(POLICIES, SERVER, OUTSIDE, port) for port in (80, 443, 6443))


@pytest.mark.parametrize("target", [*ROLES.values(), STRANGER, SERVER])
def test_nothing_is_reached_from_outside(target: End) -> None:
    assert not any(reaches(POLICIES, OUTSIDE, target, port) for port in (*PORTS, 80, 443, 4200))


def test_without_policies_everything_would_be_reached() -> None:
    assert reaches([], STRANGER, ROLES["rollout"], HTTP)
