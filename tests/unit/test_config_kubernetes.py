"""Settings of a run on Kubernetes."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from components.config import Settings, load, quantities
from components.config.quantities import amount, size
from components.errors import InputError

ROOT = Path(__file__).parents[2]
CPU = ROOT / "configs/kubernetes.yaml"
HOW = "launch.kubernetes"


def refused(*overrides: str) -> str:
    with pytest.raises(InputError) as refusal:
        load(CPU, list(overrides))
    return str(refusal.value)


@pytest.mark.parametrize(("text", "expected"), [("2", 2), ("500m", Decimal("0.5")), ("0.25", Decimal("0.25"))])
def test_cores_are_read_as_kubernetes_writes_them(text: str, expected: Decimal) -> None:
    assert amount(text) == expected


@pytest.mark.parametrize(("kind", "text"), [("CPU", "9" * 400), ("CPU", "9" * 400 + "m"), ("BYTES", "9" * 400 + "Gi")])
def test_an_amount_of_hundreds_of_digits_is_none(kind: str, text: str) -> None:
    assert re.match(getattr(quantities, kind), text) is None


@pytest.mark.parametrize(("text", "amount"), [("1", 1), ("512Mi", 2**29), ("1.5Gi", 3 * 2**29), ("2G", 2 * 10**9)])
def test_memory_is_read_as_kubernetes_writes_it(text: str, amount: int) -> None:
    assert size(text) == amount


@pytest.mark.parametrize("amount", ["0", "-1", "1e3", "two", "1.5.2", "0m", "2 "])
def test_an_amount_that_is_none_is_refused(amount: str) -> None:
    assert "launch.kubernetes.learner.cpu" in refused(f"{HOW}.learner.cpu='{amount}'")


@pytest.mark.parametrize(("number", "text"), [("2", "2"), ("0.5", "0.5")])
def test_a_number_of_cores_needs_no_quotes(number: str, text: str) -> None:
    chosen = load(CPU, [f"{HOW}.learner.cpu={number}"]).launch.kubernetes
    assert chosen is not None and chosen.learner.cpu == text


def test_only_the_kind_changes_between_this_machine_and_a_cluster() -> None:
    here, there = load(CPU, ["launch.kind=processes"]), load(CPU)
    different = {name for name in Settings.model_fields if getattr(here, name) != getattr(there, name)}
    assert different == {"launch"}


@pytest.mark.parametrize(
    "image",
    [
        "registry.example.com/evenkeel/learner",
        "registry.example.com/evenkeel/learner:1.2",
        "registry.example.com/evenkeel/learner:latest",
        "registry.example.com/evenkeel/learner@sha256:abc",
        f"registry.example.com/evenkeel/learner:latest@sha256:{'a' * 64}",
    ],
)
def test_an_image_is_named_by_its_digest(image: str) -> None:
    assert "images.learner" in refused(f"{HOW}.images.learner={image}")


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (["rollout.engine.processes=0", "rollout.engine.urls=[]"], "needs either urls"),
        (["rollout.engine.python=/usr/bin/python3"], "rollout.engine.python are for servers on this machine"),
        (["rollout.engine.devices=['0']"], "rollout.engine.devices"),
        ([f"{HOW}.rollout.gpus=2"], "must be rollout.engine.tensor_parallel (1)"),
        ([f"{HOW}.learner.gpus=4"], "processes (1) must be gpus (4)"),
        ([f"{HOW}.learner.shm=8Gi"], "must be less than memory"),
        ([f"{HOW}.shared={{kind: s3, uri: 's3://bucket/runs'}}"], "transfer broadcast"),
        ([f"{HOW}.shared={{kind: s3, uri: 'bucket/runs'}}"], "shared.s3.uri"),
        ([f"{HOW}.shared={{kind: s3, uri: 's3://bucket/a/../b'}}"], "shared.s3.uri"),
        ([f"{HOW}.shared={{kind: s3, uri: 's3://bucket/.runs'}}"], "shared.s3.uri"),
        (
            [f"{HOW}.shared={{kind: s3, uri: 's3://b-b/r', endpoint_url: 'http://u:hunter2@host:9000'}}"],
            "holds a name or a password",
        ),
        ([f"{HOW}.shared={{kind: volume, claim: data, path: relative}}"], "must be the absolute path"),
        ([f"{HOW}.shared={{kind: volume, claim: data, path: //}}"], "must be the absolute path"),
        ([f"{HOW}.shared={{kind: volume, claim: data, path: /.}}"], "must be the absolute path"),
        ([f"{HOW}.deadline=1000000000000"], "less than or equal to 100000000"),
        ([f"{HOW}.shared={{kind: volume, claim: data, path: /dev/shm/x}}"], "a folder of the pods' own"),
        ([f"{HOW}.namespace=Big_Name"], "namespace"),
        ([f"{HOW}.owner='a b'"], "owner"),
        ([f"{HOW}.grace=5"], "grace"),
    ],
)
def test_what_could_not_run_is_refused_before_it_is_submitted(overrides: list[str], said: str) -> None:
    text = refused(*overrides)
    assert said in text and "hunter2" not in text


@pytest.mark.parametrize(
    ("override", "said"),
    [
        (f"{HOW}.driver={{cpu: '2'}}", "launch.kubernetes.driver: rank 0 of the learner runs the loop now: give"),
        (f"{HOW}.images.driver=a", "launch.kubernetes.images.driver: rank 0 of the learner runs the loop now: name"),
        ("learner.ranks.address=learner-0:29400", "learner.ranks.address: rank 0 of the learner runs the loop now"),
        ("learner.ranks.shared_folder=false", "learner.ranks.shared_folder: ranks get policy, batches and checkpoints"),
    ],
)
def test_settings_of_the_time_when_the_loop_had_a_pod_of_its_own_say_what_replaces_them(
    override: str, said: str
) -> None:
    assert said in refused(override)


def test_where_a_run_works_is_no_part_of_what_it_is() -> None:
    from components.config.root import substance

    there: dict[str, Any] = substance(load(CPU))
    assert there == substance(load(CPU, ["launch.kind=processes", f"{HOW}=null"]))
