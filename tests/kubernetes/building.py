"""The objects of a kustomization.

Ours only add up: resources, components and ConfigMaps made of files, under one namespace, and no patches. So what they
say can be read without kustomize; where kustomize is at hand, a test holds the two against each other.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml

Manifest = dict[str, Any]
ROOT = Path(__file__).parents[2]
K8S = ROOT / "k8s"
CLUSTERS = ("cpu", "gpu")
FOREIGN = {"kueue.x-k8s.io", "monitoring.coreos.com"}
"""API groups of components that are not Kubernetes' own."""
CLUSTER_WIDE = {"Namespace", "ClusterRole", "ClusterRoleBinding", "PriorityClass"}
READ = {
    "apiVersion", "kind", "namespace", "resources", "components", "configMapGenerator", "generatorOptions",
}  # fmt: skip
"""The fields of a kustomization that are read here; with others the objects would be other ones."""


def overlay(cluster: str) -> Path:
    return K8S / "overlays" / cluster


@cache
def objects(folder: Path) -> list[Manifest]:
    """What a kustomization adds up to. Kept for the next who asks, so it is not to be changed."""
    found = yaml.safe_load((folder / "kustomization.yaml").read_text(encoding="utf-8"))
    assert set(found) <= READ, f"{folder}: {set(found) - READ} is not read here"
    return [_placed(manifest, found.get("namespace")) for manifest in _parts(folder, found)]


def is_core(manifest: Manifest) -> bool:
    return str(manifest["apiVersion"]).split("/")[0] not in FOREIGN


def documents(path: Path) -> list[Manifest]:
    return [document for document in yaml.safe_load_all(path.read_text(encoding="utf-8")) if document]


def by_kind(manifests: list[Manifest], kind: str) -> dict[str, Manifest]:
    return {manifest["metadata"]["name"]: manifest for manifest in manifests if manifest["kind"] == kind}


def identity(manifest: Manifest) -> tuple[str, str, str]:
    metadata = manifest["metadata"]
    return manifest["kind"], metadata.get("namespace", ""), metadata["name"]


def _parts(folder: Path, found: Manifest) -> Iterator[Manifest]:
    for name in [*found.get("resources", []), *found.get("components", [])]:
        path = folder / name
        yield from objects(path) if path.is_dir() else documents(path)
    for generator in found.get("configMapGenerator", []):
        yield _config_map(folder, generator)


def _config_map(folder: Path, generator: Manifest) -> Manifest:
    data = {}
    for entry in generator["files"]:
        key, _, name = entry.rpartition("=")
        data[key or Path(name).name] = (folder / name).read_text(encoding="utf-8")
    metadata: Manifest = {"name": generator["name"]}
    if labels := generator.get("options", {}).get("labels"):
        metadata["labels"] = labels
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def _placed(manifest: Manifest, namespace: str | None) -> Manifest:
    if namespace is None or manifest["kind"] in CLUSTER_WIDE:
        return manifest
    return {**manifest, "metadata": {**manifest["metadata"], "namespace": namespace}}


def kustomize() -> list[str] | None:
    """The command that builds a kustomization: `kustomize`, or a `kubectl` that is not too old; None without either."""
    made = ROOT / "build" / "kustomize" / "kustomize"
    if found := shutil.which("kustomize") or shutil.which(made):
        return [found, "build"]
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        return None
    version = subprocess.run(
        [kubectl, "version", "--client", "-o", "json"], capture_output=True, text=True, check=False
    )
    modern = version.returncode == 0 and "kustomizeVersion" in json.loads(version.stdout)
    return [kubectl, "kustomize"] if modern else None


def built(command: list[str], folder: Path) -> list[Manifest]:
    """What kustomize makes of a folder."""
    done = subprocess.run([*command, str(folder)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [document for document in yaml.safe_load_all(done.stdout) if document]
