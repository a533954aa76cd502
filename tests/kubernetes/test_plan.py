"""What a run needs of a cluster, from its settings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from components.config import load
from components.config.root import substance
from components.errors import InputError
from components.launch.kubernetes.cost import amounts, hours, table
from components.launch.kubernetes.manifests import jobset
from components.launch.kubernetes.names import LONGEST, jobset_name, labels
from components.launch.kubernetes.plan import plan_run
from tests.kubernetes.profiles import CPU, PROFILES, ROOT, plan


@pytest.mark.parametrize("name", PROFILES)
def test_the_pods_run_the_very_run_that_was_submitted(name: str) -> None:
    config, overrides = PROFILES[name]
    assert substance(plan(name).settings) == substance(load(ROOT / config, overrides))


def test_a_runs_id_is_the_name_where_it_can_be() -> None:
    assert jobset_name("demo-0f3a99bc") == "demo-0f3a99bc"


@pytest.mark.parametrize("run", ["a" * 60, "0-begins-with-a-digit", "with_underscore", "Capital", "9" * 63])
def test_other_ids_give_a_name_of_their_own_that_every_pod_can_bear(run: str) -> None:
    name = jobset_name(run)
    assert len(name) <= LONGEST and name != jobset_name(run + "x")
    assert name.replace("-", "").isalnum() and name == name.lower() and name[0].isalpha()


def test_the_longest_name_leaves_room_for_a_thousand_pods() -> None:
    assert len(f"{'a' * LONGEST}-rollout-0-9999-abcde") <= 63


@pytest.mark.parametrize(("run", "owner"), [("x" * 64, "ada"), ("run", "Ada Lovelace"), ("run", "")])
def test_what_cannot_be_a_label_is_refused_with_a_way_out(run: str, owner: str) -> None:
    with pytest.raises(InputError) as refusal:
        labels(run, owner)
    assert refusal.value.how


def test_a_workspace_that_pods_cannot_see_is_refused() -> None:
    settings = load(ROOT / CPU)
    elsewhere = replace(plan("cpu").submission, workspace=Path("/home/ada/project/runs/arithmetic-1"))
    with pytest.raises(InputError, match="not below /shared"):
        plan_run(settings, elsewhere)


def test_what_a_run_asks_for_is_added_up() -> None:
    rows = {row.what: row for row in amounts(plan("gpu"))}
    assert (rows["learner"].pods, rows["learner"].gpus, rows["learner"].cpu) == (2, 16, 128)
    assert (rows["rollout"].pods, rows["rollout"].gpus) == (8, 8)
    assert rows["total"].gpus == 24 and rows["total"].memory == 1024 + 512


def test_its_price_is_that_of_cores_memory_and_gpus() -> None:
    total = amounts(plan("gpu"))[-1]
    assert float(total.hourly) == pytest.approx(192 * 0.03 + 1536 * 0.004 + 24 * 2.5)
    assert hours(plan("gpu")) == (24, 96)
    assert f"{float(total.hourly) * 24:.2f} to {float(total.hourly) * 96:.2f} USD" in table(plan("gpu"))


@pytest.mark.parametrize("change", ["cpu=100m", "memory=300Mi"])
def test_what_fetches_the_files_asks_for_no_more_than_the_table_says(change: str) -> None:
    """A node reserves what the largest container of a pod's beginning asks for, if that is more."""
    roles = ("learner", "rollout")
    small = plan("s3", *(f"launch.kubernetes.{role}.{one}" for role in roles for one in (change, "shm=64Mi")))
    for replicated in jobset(small)["spec"]["replicatedJobs"]:
        pod = replicated["template"]["spec"]["template"]["spec"]
        (fetch,), (main,) = pod["initContainers"], pod["containers"]
        for kind in ("requests", "limits"):
            assert fetch["resources"][kind].items() <= main["resources"][kind].items()


def test_without_prices_nothing_is_said_of_cost() -> None:
    assert "no prices are set" in table(plan("cpu"))
