"""A run that its cluster would refuse is refused before the first stage, and nothing is made by asking."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from components.config import Settings, load
from components.errors import InputError
from components.launch.kubernetes.api import Cluster, Refused
from components.launch.kubernetes.submission import rehearse
from components.stages import wanted
from flows.post_training import check_resources
from flows.run.inputs import Input, check_links
from tests.kubernetes.conftest import QUICK
from tests.kubernetes.fake_api import FakeApi, Fault, answers
from tests.kubernetes.profiles import CPU, ROOT


def connect(namespace: str, context: str | None) -> Cluster:
    return Cluster.connect(namespace, context, QUICK)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    state = f"launch.kubernetes.shared={{kind: volume, claim: shared, path: {tmp_path}}}"
    return load(ROOT / CPU, [state, "launch.kubernetes.user=1000"])


@pytest.fixture
def rehearsed(config: Path, settings: Settings, tmp_path: Path) -> Callable[..., None]:
    """Goes through the motions of submitting these stages."""

    def go(*stages: str, workspace: Path = tmp_path / "runs" / "demo-1") -> None:
        rehearse(settings, workspace, stages, connect)

    return go


def test_every_stage_is_asked_for_and_nothing_is_made(api: FakeApi, rehearsed: Any, tmp_path: Path) -> None:
    rehearsed("triage", "train")
    assert api.count("create", "jobsets") == 2
    assert api.store.objects == {}
    assert not (tmp_path / "runs").exists()


def test_what_the_cluster_refuses_is_raised(api: FakeApi, rehearsed: Any) -> None:
    api.faults.add(Fault("status", "POST", "dryRun", 9, body=answers.status(422, "Invalid", "spec: too many")))
    with pytest.raises(Refused, match="too many"):
        rehearsed("train")


def test_a_run_that_is_there_already_is_no_obstacle(api: FakeApi, rehearsed: Any) -> None:
    api.put("jobsets", {"metadata": {"name": "demo-1", "namespace": "evenkeel"}})
    rehearsed("train")


def test_a_folder_that_pods_cannot_see_is_refused_without_asking_anybody(api: FakeApi, rehearsed: Any) -> None:
    with pytest.raises(InputError, match="is not below"):
        rehearsed("train", workspace=Path("/elsewhere/runs/demo-1"))
    assert api.requests == []


def test_the_line_does_not_begin_without_its_cluster(settings: Settings, tmp_path: Path) -> None:
    assert "train" in wanted(settings)
    with pytest.raises(InputError, match="no cluster is configured"):
        check_resources(settings, tmp_path / "runs" / "demo-1")


def test_an_input_that_is_not_on_the_volume_is_refused(settings: Settings, tmp_path: Path) -> None:
    def link(origin: Path) -> Input:
        return Input("inputs/0123/rows.jsonl", "0" * 64, "link", origin)

    check_links(settings, [link(tmp_path / "rows.jsonl"), Input("rows.jsonl", "0" * 64, "git")])
    with pytest.raises(InputError, match="pods could not read this input"):
        check_links(settings, [link(tmp_path.parent / "rows.jsonl")])


def test_a_line_that_stays_here_asks_for_no_cluster(settings: Settings, tmp_path: Path) -> None:
    here = {"launch": {**settings.launch.model_dump(), "kind": "inline"}, "rollout": {"engine": {"kind": "torch"}}}
    here["learner"] = {"kind": "torch"}
    check_resources(Settings.model_validate({**settings.model_dump(), **here}), tmp_path)
