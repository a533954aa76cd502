"""`evenkeel cluster`: what it shows of a run, its pods' logs, and its end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from components.errors import InputError
from components.launch.kubernetes.manifests import jobset
from components.launch.kubernetes.names import OWNER, RUN, STAGE
from flows.cli import app
from tests.kubernetes.fake_api import FakeApi
from tests.kubernetes.profiles import plan

NAME, SPACE = "arithmetic-1", "evenkeel"


@pytest.fixture
def submitted(api: FakeApi, config: Path) -> FakeApi:
    """A cluster with a run of three pods, of which only the first is there, and fits on no node."""
    made = api.put("jobsets", {**jobset(plan("cpu")), "status": {"restarts": 0}})
    labels = {
        "jobset.sigs.k8s.io/jobset-name": NAME,
        "jobset.sigs.k8s.io/jobset-uid": made["metadata"]["uid"],
        "jobset.sigs.k8s.io/replicatedjob-name": "learner",
    }
    refused = {"type": "PodScheduled", "status": "False", "message": "0/5 nodes are available: 5 Insufficient memory."}
    status = {"phase": "Pending", "conditions": [refused]}
    api.put("pods", {"metadata": {"name": f"{NAME}-learner-0-0-x", "labels": labels}, "status": status})
    api.put("jobs", {"metadata": {"name": f"{NAME}-learner-0", "labels": labels}, "status": {"active": 1}})
    return api


def cluster(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["cluster", *arguments])


def test_all_runs_of_the_namespace_are_a_line_each(submitted: FakeApi) -> None:
    shown = cluster("status").output
    assert [part in shown for part in (NAME, "train", "ada", "pending", "0/3")] == [True] * 5


def test_a_namespace_without_runs_says_so(api: FakeApi, config: Path) -> None:
    assert cluster("status", "-n", "empty").output == "no runs in namespace empty\n"
    assert json.loads(cluster("status", "-n", "empty", "--json").output) == []


def test_a_problem_of_a_run_is_reported_once_with_its_fix(submitted: FakeApi) -> None:
    done = cluster("status", NAME)
    assert done.exit_code == 0
    assert done.output.count("Insufficient memory") == 1
    assert "launch.kubernetes.learner.memory" in done.output


def test_as_json_a_run_has_its_findings(submitted: FakeApi) -> None:
    found = json.loads(cluster("status", NAME, "--json").output)
    assert (found["run"], found["state"], found["pods"]["learner"]) == (NAME, "pending", [0, 2])
    assert [sorted(one) for one in found["findings"]] == [["how", "what", "where"]]


def test_a_log_is_printed_as_it_is(submitted: FakeApi) -> None:
    submitted.logs[f"{NAME}-learner-0-0-x", "learner"] = "step 1 [acc]\nstep 2\n"
    assert cluster("logs", NAME).output == "step 1 [acc]\nstep 2\n"


def test_where_a_pod_is_missing_those_that_are_there_are_named(submitted: FakeApi) -> None:
    error = cluster("logs", NAME, "learner", "1").exception
    assert isinstance(error, InputError)
    assert (error.what, error.how) == ("no pod learner 1 is there", "there are: learner 0")


def test_a_run_that_is_not_there_is_said_with_the_command_that_lists_them(submitted: FakeApi) -> None:
    for command in (("status",), ("logs",), ("cancel",)):
        error = cluster(*command, "other-1", "-n", SPACE).exception
        assert isinstance(error, InputError)
        assert "other-1" in error.what and f"evenkeel cluster status -n {SPACE}" in str(error.how)


def test_cancelling_deletes_the_jobset_and_nothing_else(submitted: FakeApi) -> None:
    submitted.put("jobsets", {"metadata": {"name": "other-1", "labels": {RUN: "other-1", OWNER: "ada"}}})
    done = cluster("cancel", NAME)
    assert done.exit_code == 0 and f"evenkeel cluster status -n {SPACE}" in done.output
    assert [key[1:] for key in submitted.store.objects if key[0] == "jobsets"] == [(SPACE, "other-1")]


def test_another_stage_of_a_run_is_found_by_its_name(submitted: FakeApi) -> None:
    body = jobset(plan("cpu"))
    body["metadata"] |= {"name": f"{NAME}-sft", "annotations": {**body["metadata"]["annotations"], STAGE: "sft"}}
    submitted.put("jobsets", body)
    assert json.loads(cluster("status", NAME, "--stage", "sft", "--json").output)["stage"] == "sft"
