"""The deployments on a cluster, and the process of a flow run there."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from prefect.exceptions import ObjectNotFound
from prefect.utilities.schema_tools import validate

from components.errors import EXIT_BAD_INPUT, InputError
from flows.serving import cluster, flow_run_pod
from flows.serving.cluster import POOL, elsewhere
from flows.serving.register import read_entries
from tests.code_graph import ROOT

IMAGE = f"registry.example.com/evenkeel/orchestrator@sha256:{'a' * 64}"
ENTRIES = read_entries(ROOT)
TEMPLATE = json.loads((ROOT / "k8s/prefect/base-job-template.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: str(entry.name))
def test_a_deployment_is_the_same_but_for_its_pool_and_what_the_pool_takes(entry: Any) -> None:
    there = elsewhere(entry, IMAGE)
    assert there.model_dump(exclude={"work_pool"}) == entry.model_dump(exclude={"work_pool"})
    assert there.work_pool.name == POOL
    assert there.work_pool.job_variables.items() >= {**entry.work_pool.job_variables, "image": IMAGE}.items()
    defaults = {name: one["default"] for name, one in TEMPLATE["variables"]["properties"].items() if "default" in one}
    validate({**defaults, **there.work_pool.job_variables}, TEMPLATE["variables"], raise_on_error=True)


def test_background_deployments_have_the_lowest_priority() -> None:
    classes = {entry.name: elsewhere(entry, IMAGE).work_pool.job_variables.get("priority_class") for entry in ENTRIES}
    assert {name for name, found in classes.items() if found} == {"nightly", "janitor"}
    assert set(filter(None, classes.values())) == {"evenkeel-nightly"}


def test_the_pool_is_the_one_that_the_worker_takes_runs_from() -> None:
    values = yaml.safe_load((ROOT / "k8s/prefect/worker.yaml").read_text(encoding="utf-8"))["worker"]["config"]
    assert (values["workPool"], values["type"]) == (POOL, POOL)


@pytest.mark.parametrize("arguments", [[], ["orchestrator:1.0"], ["orchestrator"], [IMAGE, IMAGE]])
def test_without_one_image_by_digest_nothing_is_asked_of_the_server(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(cluster, "get_client", lambda **_: pytest.fail("the server was asked"))
    assert cluster.main(arguments) == EXIT_BAD_INPUT
    assert "@sha256:" in capsys.readouterr().err


class Server:
    """A Prefect server with one work pool, or none."""

    def __init__(self, type: str | None) -> None:
        self.type = type

    def read_work_pool(self, name: str) -> SimpleNamespace:
        if self.type is None:
            raise ObjectNotFound(http_exc=Exception(name))
        return SimpleNamespace(name=name, type=self.type)


@pytest.mark.parametrize(("type", "said"), [(None, "no work pool kubernetes"), ("process", "of type process")])
def test_a_pool_that_is_missing_or_of_another_type_is_named(type: str | None, said: str) -> None:
    with pytest.raises(InputError, match=said) as refused:
        cluster._find_pool(Server(type))  # type: ignore[arg-type]
    assert refused.value.how


@pytest.mark.parametrize(("within", "late", "runs"), [(None, True, True), ("900", False, True), ("900", True, False)])
def test_a_scheduled_run_that_is_late_is_skipped_in_a_pod_too(
    within: str | None, late: bool, runs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[list[str]] = []
    monkeypatch.delenv("EVENKEEL_START_WITHIN", raising=False)
    if within:
        monkeypatch.setenv("EVENKEEL_START_WITHIN", within)
    monkeypatch.setenv("PREFECT__FLOW_RUN_ID", "a-run")
    monkeypatch.setattr(flow_run_pod, "skip_if_late", lambda run, seconds: (run, seconds) == ("a-run", 900.0) and late)
    monkeypatch.setattr(flow_run_pod.os, "execv", lambda program, arguments: started.append(arguments[1:]))
    flow_run_pod.main()
    assert started == ([["-m", "prefect", "flow-run", "execute"]] if runs else [])
