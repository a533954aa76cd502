"""What Prometheus scrapes, and the dashboard."""

from __future__ import annotations

import json
from typing import Any

import yaml

from components.launch.kubernetes.manifests import jobset
from components.launch.kubernetes.names import COMPONENT, METRICS_PORT, OWNER, RUN
from tests.kubernetes.building import K8S, ROOT, by_kind, objects, overlay
from tests.kubernetes.profiles import plan


def scrape() -> dict[str, Any]:
    (found,) = yaml.safe_load((K8S / "prometheus" / "scrape.yaml").read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def learner() -> dict[str, Any]:
    """The pod template of a run's learner."""
    (found,) = [job for job in jobset(plan("cpu"))["spec"]["replicatedJobs"] if job["name"] == "learner"]
    template: dict[str, Any] = found["template"]["spec"]["template"]
    return template


def meta(label: str) -> str:
    return "__meta_kubernetes_pod_label_" + "".join(c if c.isalnum() else "_" for c in label)


def test_pods_are_found_by_labels_that_the_first_of_a_learner_has() -> None:
    (discovery,) = scrape()["kubernetes_sd_configs"]
    assert discovery["namespaces"]["names"] == ["evenkeel"]
    (selector,) = discovery["selectors"]
    wanted = dict(part.split("=") for part in selector["label"].split(","))
    first = {**learner()["metadata"]["labels"], "batch.kubernetes.io/job-completion-index": "0"}  # the controller's
    assert wanted.items() <= first.items() and wanted[COMPONENT] == "learner"
    assert wanted["batch.kubernetes.io/job-completion-index"] == "0"


def test_only_the_port_with_the_figures_is_kept() -> None:
    keep = {rule["source_labels"][0]: rule["regex"] for rule in scrape()["relabel_configs"] if "action" in rule}
    name = keep["__meta_kubernetes_pod_container_port_name"]
    ports = {port["name"]: port["containerPort"] for port in learner()["spec"]["containers"][0]["ports"]}
    assert ports[name] == METRICS_PORT


def test_series_bear_the_run_and_its_owner() -> None:
    labels = {rule["source_labels"][0]: rule["target_label"] for rule in scrape()["relabel_configs"] if len(rule) == 2}
    assert labels[meta(RUN)] == "evenkeel_run" and labels[meta(OWNER)] == "evenkeel_owner"
    (monitor,) = objects(K8S / "components" / "pod-monitor")
    assert monitor["spec"]["podTargetLabels"] == [RUN, OWNER]


def test_the_dashboard_is_the_one_that_the_rules_make_where_grafana_s_sidecar_finds_it() -> None:
    found = by_kind(objects(overlay("cpu")), "ConfigMap")["evenkeel-dashboard"]
    assert found["metadata"]["labels"] == {"grafana_dashboard": "1"}
    (board,) = found["data"].values()
    assert json.loads(board) == json.loads((ROOT / "configs/health/grafana.json").read_text(encoding="utf-8"))
    assert len(board) < 2**20  # what a ConfigMap holds
