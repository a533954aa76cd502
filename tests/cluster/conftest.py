"""Tests against a real API server: they run where KUBECONFIG names one that has JobSet, and skip where it does not.

They make a namespace of their own and remove it. Those that start pods need to know more:

- ``EVENKEEL_TEST_IMAGE``: an image, by digest, whose `python` has the packages of constraints.txt
- ``EVENKEEL_TEST_NODES``: labels of the nodes that can run it, such as ``kubernetes.io/os=linux``
- ``EVENKEEL_TEST_FOLDER``: a folder that this machine and those nodes have in common, for the shared volume
- ``EVENKEEL_TEST_HOST``: an address of this machine that pods reach, for the bucket
- ``EVENKEEL_TEST_CODE_IMAGE``: for the bucket, an image that has the project's `components` as well, where Python finds
  them, like those of k8s/images
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from components.config.kubernetes import IMAGE

pytestmark = pytest.mark.cluster


@dataclass(frozen=True)
class Place:
    """Where tests work: a namespace, and the plain client in addition to the one under test."""

    namespace: str
    core: Any
    custom: Any
    batch: Any
    nodes: dict[str, str] = field(default_factory=dict)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if os.environ.get("KUBECONFIG"):
        return
    for item in items:
        if item.get_closest_marker("cluster"):
            item.add_marker(pytest.mark.skip(reason="KUBECONFIG names no cluster"))


def labels(text: str) -> dict[str, str]:
    return dict(pair.split("=", 1) for pair in text.split(",") if pair)


@pytest.fixture(scope="session")
def place() -> Iterator[Place]:
    """A namespace as k8s/base makes it: restricted pods, and the account that runs them."""
    from kubernetes import client, config

    config.load_kube_config()
    core = client.CoreV1Api()
    name = f"evenkeel-test-{secrets.token_hex(4)}"
    enforced = {"pod-security.kubernetes.io/enforce": "restricted"}
    core.create_namespace({"metadata": {"name": name, "labels": enforced}})
    try:
        core.create_namespaced_service_account(name, {"metadata": {"name": "evenkeel-run"}})
        nodes = labels(os.environ.get("EVENKEEL_TEST_NODES", ""))
        yield Place(name, core, client.CustomObjectsApi(), client.BatchV1Api(), nodes)
    finally:
        core.delete_namespace(name)


@pytest.fixture(scope="session")
def image() -> str:
    """An image that runs the project's code."""
    return image_of("EVENKEEL_TEST_IMAGE", "the packages of constraints.txt")


@pytest.fixture(scope="session")
def code_image() -> str:
    """An image that has the project's code, too."""
    return image_of("EVENKEEL_TEST_CODE_IMAGE", "the project's code and the packages of constraints.txt")


def image_of(variable: str, content: str) -> str:
    named = os.environ.get(variable, "")
    if not named:
        pytest.skip(f"{variable} names no image with {content}")
    assert re.fullmatch(IMAGE, named), f"{variable} must name its digest: {named}"
    return named


@pytest.fixture(scope="session")
def shared(place: Place) -> Iterator[tuple[str, Path]]:
    """A claim for many pods, and its folder on this machine, which is removed with all that is in it."""
    import shutil

    folder = os.environ.get("EVENKEEL_TEST_FOLDER", "")
    if not folder:
        pytest.skip("EVENKEEL_TEST_FOLDER names no folder that this machine and the nodes share")
    own = Path(folder) / place.namespace
    own.mkdir(parents=True)
    own.chmod(0o777)
    name, room = place.namespace, {"storage": "10Gi"}
    common = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
    reference = {"namespace": place.namespace, "name": "shared"}
    volume = {"capacity": room, "hostPath": {"path": str(own)}, "claimRef": reference, **common}
    place.core.create_persistent_volume(
        {"metadata": {"name": name}, "spec": {**volume, "persistentVolumeReclaimPolicy": "Retain"}}
    )
    try:
        claim = {"volumeName": name, "resources": {"requests": room}, **common}
        place.core.create_namespaced_persistent_volume_claim(
            place.namespace, {"metadata": {"name": "shared"}, "spec": claim}
        )
        yield "shared", own
    finally:
        place.core.delete_persistent_volume(name)
        shutil.rmtree(own, ignore_errors=True)
