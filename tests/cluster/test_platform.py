"""The static platform and the training profiles, as a real API server sees them."""

from __future__ import annotations

from typing import Any

import pytest

from components.config import load
from components.launch.kubernetes.api import Cluster
from components.launch.kubernetes.api.errors import Refused
from components.launch.kubernetes.manifests import jobset
from components.launch.kubernetes.permissions import ROLES
from components.launch.kubernetes.plan import plan_run
from tests.cluster.conftest import Place
from tests.kubernetes.building import CLUSTERS, K8S, documents, identity, is_core, objects, overlay
from tests.kubernetes.profiles import PROFILES, ROOT, plan

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]
PARTS = [*(overlay(name) for name in CLUSTERS), *(K8S / "components" / name for name in ("shared-volume", "operators"))]


def moved(manifest: dict[str, Any], namespace: str) -> dict[str, Any]:
    """The same in a namespace that is there."""
    if "namespace" not in manifest["metadata"]:
        return manifest
    return {**manifest, "metadata": {**manifest["metadata"], "namespace": namespace}}


@pytest.mark.parametrize("folder", PARTS, ids=lambda folder: folder.name)
def test_the_server_takes_every_object_of_the_platform(place: Place, folder: Any) -> None:
    from kubernetes import client, dynamic

    server = dynamic.DynamicClient(client.ApiClient())
    taken = []
    for manifest in filter(is_core, objects(folder)):
        body = moved(manifest, place.namespace)
        kind = server.resources.get(api_version=body["apiVersion"], kind=body["kind"])
        space = body["metadata"].get("namespace") if kind.namespaced else None
        server.server_side_apply(
            kind,
            body=body,
            namespace=space,
            dry_run="All",
            field_manager="evenkeel-tests",
            force_conflicts=True,
            field_validation="Strict",
        )
        taken.append(identity(manifest))
    assert len(taken) == len([one for one in objects(folder) if is_core(one)]) > 0


@pytest.mark.parametrize("name", PROFILES)
def test_the_server_takes_every_profile_and_makes_nothing(place: Place, name: str) -> None:
    config, overrides = PROFILES[name]
    settings = load(ROOT / config, [*overrides, f"launch.kubernetes.namespace={place.namespace}"])
    cluster = Cluster.connect(place.namespace)
    manifest = jobset(plan_run(settings, plan(name).submission))
    assert cluster.dry_run(manifest)["metadata"]["name"] == manifest["metadata"]["name"]
    assert cluster.jobset(manifest["metadata"]["name"]) is None


def test_a_field_that_the_server_does_not_know_is_refused(place: Place) -> None:
    settings = load(ROOT / "configs/kubernetes.yaml", [f"launch.kubernetes.namespace={place.namespace}"])
    body = jobset(plan_run(settings, plan("cpu").submission))
    body["spec"]["replicatedJobs"][0]["template"]["spec"]["backofLimit"] = 1
    with pytest.raises(Refused, match="backofLimit"):
        Cluster.connect(place.namespace).dry_run(body)


@pytest.mark.parametrize("role", ["launcher"])
def test_an_account_with_its_role_may_do_what_the_code_does_and_no_more(place: Place, role: str) -> None:
    """As a real authorizer judges the roles of k8s/base."""
    from kubernetes import client

    rbac, auth = client.RbacAuthorizationV1Api(), client.AuthorizationV1Api()
    base = [one for one in documents(K8S / "base" / "launcher.yaml") if one["kind"] in ("Role", "RoleBinding")]
    for one in base:
        body = moved({**one, "metadata": {**one["metadata"], "namespace": ""}}, place.namespace)
        if one["kind"] == "Role":
            rbac.create_namespaced_role(place.namespace, body)
        else:
            body["subjects"] = [{**subject, "namespace": place.namespace} for subject in one["subjects"]]
            rbac.create_namespaced_role_binding(place.namespace, body)
    user = f"system:serviceaccount:{place.namespace}:evenkeel-launcher"

    def may(group: str, resource: str, verb: str) -> bool:
        main, _, sub = resource.partition("/")
        asked = {"group": group, "resource": main, "verb": verb, "namespace": place.namespace}
        spec = {"user": user, "resourceAttributes": {**asked, **({"subresource": sub} if sub else {})}}
        return bool(auth.create_subject_access_review({"spec": spec}).status.allowed)

    allowed = ROLES[role]
    assert {one for one in allowed if may(*one)} == set(allowed)
    verbs = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
    others = {(group, resource, verb) for group, resource, _ in allowed for verb in verbs} - set(allowed)
    others |= {("", "secrets", "get"), ("", "pods/exec", "create"), ("", "configmaps", "get"), ("", "pods", "create")}
    assert {one for one in others if may(*one)} == set()
