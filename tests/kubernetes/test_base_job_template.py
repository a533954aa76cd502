"""The jobs of flow runs: a template that Prefect takes, and jobs that Kubernetes and the policy take."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
import yaml
from prefect.client.schemas.objects import Flow, FlowRun
from prefect.utilities.schema_tools import ValidationError, is_valid_schema, validate
from prefect.utilities.templating import find_placeholders
from prefect.workers.base import BaseJobConfiguration

from components.config.keys import own_key_file, registry_key_file
from components.errors import InputError
from components.launch.kubernetes.submission import OWNER_VARIABLE, submitter
from components.registry.keys import new_key, read_approver_key, read_key, write_key
from flows.serving import flow_run_pod
from tests.kubernetes.building import K8S, by_kind, objects, overlay
from tests.kubernetes.policy import containers, pod_specs, violations
from tests.kubernetes.reaching import matches
from tests.kubernetes.validation import problems

TEMPLATE: dict[str, Any] = json.loads((K8S / "prefect" / "base-job-template.json").read_text(encoding="utf-8"))
PREFECT = K8S / "prefect"
IMAGE = f"ghcr.io/somebody/evenkeel-orchestrator@sha256:{'1' * 64}"
DEMANDED = ("parallelism", "completions")
"""What prefect-kubernetes demands of the pod, where it does not belong; the API server drops it with a warning."""


class Configuration(BaseJobConfiguration):
    """The fields of prefect-kubernetes' own, which is not among our packages."""

    namespace: str
    job_manifest: dict[str, Any]


def configuration(**variables: Any) -> Configuration:
    """What Prefect makes of the template for a flow run."""
    values = {"image": IMAGE, **variables}
    found = asyncio.run(Configuration.from_template_and_values(TEMPLATE, values, client=SimpleNamespace()))  # type: ignore[call-overload]
    run = FlowRun(id=UUID(int=1), flow_id=UUID(int=2), name="brave-otter")
    found.prepare_for_flow_run(run, flow=Flow(id=UUID(int=2), name="post-training"))
    assert isinstance(found, Configuration)
    return found


def job(**variables: Any) -> dict[str, Any]:
    """The job of a flow run: prefect-kubernetes puts environment and labels into the manifest."""
    made = configuration(**variables)
    manifest = made.job_manifest
    labels = {**made.labels, "app.kubernetes.io/part-of": "prefect", "app.kubernetes.io/managed-by": "prefect"}
    template = manifest["spec"]["template"]
    manifest["metadata"] |= {"labels": labels, "generateName": f"{made.name}-"}
    template["metadata"]["labels"] |= labels
    container = template["spec"]["containers"][0]
    container["env"] = [{"name": name, "value": value} for name, value in made.env.items()]
    return manifest


def as_served(manifest: dict[str, Any]) -> dict[str, Any]:
    """Without what the API server drops."""
    pod = manifest["spec"]["template"]["spec"]
    assert [pod.pop(name) for name in DEMANDED] == [1, 1]
    return manifest


def pod(**variables: Any) -> dict[str, Any]:
    found: dict[str, Any] = job(**variables)["spec"]["template"]["spec"]
    return found


def pool_of(template: dict[str, Any]) -> dict[str, Any]:
    """What Prefect's server keeps of a pool that is created with this template."""
    from prefect.server.schemas.actions import WorkPoolCreate  # the server, which takes seconds to import

    pool = WorkPoolCreate(name="kubernetes", type="kubernetes", base_job_template=template)
    return dict(pool.base_job_template)


def test_a_pool_can_be_made_of_it() -> None:
    assert pool_of(TEMPLATE) == TEMPLATE
    assert is_valid_schema(TEMPLATE["variables"], preprocess=False) is None


def test_a_placeholder_without_its_variable_would_be_refused() -> None:
    broken = {**TEMPLATE, "job_configuration": {**TEMPLATE["job_configuration"], "name": "{{ unknown }}"}}
    with pytest.raises(ValueError, match="undeclared variable"):
        pool_of(broken)


def test_every_variable_has_an_effect() -> None:
    used = {one.name for one in find_placeholders(json.dumps(TEMPLATE["job_configuration"]))}
    assert set(TEMPLATE["variables"]["properties"]) == used | {"env"}
    assert configuration(env={"A": "b"}).env["A"] == "b"  # merged with the template's own


def check(**variables: Any) -> None:
    """As Prefect's server does before a flow run."""
    defaults = {name: one["default"] for name, one in TEMPLATE["variables"]["properties"].items() if "default" in one}
    validate({**defaults, **variables}, TEMPLATE["variables"], raise_on_error=True, preprocess=True)


def test_defaults_are_valid_and_an_image_is_all_that_has_to_be_said() -> None:
    check(image=IMAGE)
    check(image=IMAGE, **{"env": {"EVENKEEL_START_WITHIN": "900"}, "env.MORE": "1"})
    assert "default" not in TEMPLATE["variables"]["properties"]["image"]
    with pytest.raises(ValidationError, match="image"):
        check()


@pytest.mark.parametrize(
    "image", ["evenkeel", "evenkeel:latest", "evenkeel:1.0", "evenkeel@sha256:12", f"{IMAGE} --privileged", ""]
)
def test_an_image_without_a_digest_is_refused(image: str) -> None:
    with pytest.raises(ValidationError):
        check(image=image)


@pytest.mark.parametrize("variable", ["service_account_name", "command", "finished_job_tll", "image_pull_policy"])
def test_a_variable_that_is_not_there_is_refused_and_not_ignored(variable: str) -> None:
    with pytest.raises(ValidationError, match=variable):
        check(image=IMAGE, **{variable: "1"})


def test_the_job_is_valid_but_for_what_prefect_demands_in_the_wrong_place() -> None:
    said = problems(job())
    assert len(said) == 1 and all(name in said[0] for name in DEMANDED)
    assert problems(as_served(job())) == []


@pytest.mark.parametrize("claim", [False, True])
def test_the_job_follows_the_policy(claim: bool) -> None:
    volume = {"name": "workspace", "persistentVolumeClaim": {"claimName": "evenkeel-shared"}}
    made = job(workspace_volume=volume, workspace_path="/shared") if claim else job()
    assert violations(made) == []
    assert problems(as_served(made)) == []


def test_only_the_flow_run_s_own_container_gets_a_token() -> None:
    made = pod()
    assert (made["serviceAccountName"], made["automountServiceAccountToken"]) == ("evenkeel-launcher", False)
    with_token = [
        one["name"]
        for one in containers(made)
        if any(mount["mountPath"].startswith("/var/run/secrets") for mount in one["volumeMounts"])
    ]
    assert with_token == ["prefect-job"]


def test_it_runs_the_module_that_skips_what_is_late_under_the_image_s_own_first_process() -> None:
    container = pod()["containers"][0]
    assert "command" not in container  # or it would replace tini
    assert container["args"] == ["python", "-m", flow_run_pod.__name__]


def test_the_job_ends_by_itself_and_goes() -> None:
    spec = job(deadline_seconds=600, finished_job_ttl=60)["spec"]
    assert (spec["activeDeadlineSeconds"], spec["ttlSecondsAfterFinished"], spec["backoffLimit"]) == (600, 60, 0)


def test_it_writes_to_folders_of_its_own_only() -> None:
    made = pod()
    container = made["containers"][0]
    mounted = {mount["mountPath"] for mount in container["volumeMounts"] if not mount.get("readOnly")}
    assert mounted == {"/tmp", "/work", "/dev/shm"}
    env = {one["name"]: one["value"] for one in container["env"]}
    assert env["HOME"] == "/tmp" and env["PREFECT_HOME"].startswith("/tmp/")
    assert container["workingDir"] == env["PYTHONPATH"] == "/work/project"


def test_what_a_flow_run_says_wins_over_the_template_and_the_template_over_the_worker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Configuration, "_base_environment", lambda _: {"PREFECT_HOME": "/home/prefect"})
    assert configuration().env["PREFECT_HOME"] == "/tmp/prefect"
    assert configuration(env={"PREFECT_HOME": "/work/prefect"}).env["PREFECT_HOME"] == "/work/prefect"


def test_a_flow_run_can_submit_although_the_image_has_no_name_for_its_user(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME", OWNER_VARIABLE):  # where getpass looks
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", lambda _: {}[10001])
    with pytest.raises(InputError, match="this user has no name"):
        submitter()
    for one in pod()["containers"][0]["env"]:
        monkeypatch.setenv(one["name"], one["value"])
    assert submitter() == "evenkeel"


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """The project as the image has it."""
    folder = tmp_path / "image"
    folder.mkdir()
    (folder / "file").touch()
    for command in ("init --quiet", "add file", "-c user.name=a -c user.email=a@b commit --quiet --message first"):
        subprocess.run(["git", *command.split()], cwd=folder, check=True)
    return folder


def prepare(tmp_path: Path) -> Path:
    """What the pod's first container does, with folders of the test in place of those of the image and of the pod."""
    script = pod()["initContainers"][0]["command"][2]
    for inside, here in ((" /opt/evenkeel", " {}/image"), (" /keys/", " {}/keys/")):
        assert inside in script
        script = script.replace(inside, here.format(tmp_path))
    project = tmp_path / "work" / "project"
    subprocess.run(["sh", "-c", script], env={**os.environ, "PROJECT": str(project)}, check=True)
    return project


def test_the_project_is_cloned_whole_and_once(image: Path, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    project = prepare(tmp_path)
    assert (project / "file").exists() and project.stat().st_mode & 0o777 == 0o755
    (project / "file").write_text("changed", encoding="utf-8")
    assert (prepare(tmp_path) / "file").read_text(encoding="utf-8") == "changed"
    assert not (project / ".state").exists()
    assert [path.name for path in project.parent.iterdir()] == ["project"]


def test_keys_of_the_secret_are_where_flow_runs_look_for_them_and_can_be_read(image: Path, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    for name, purpose in (("checkpoints.pem", "checkpoints"), ("registry.pem", "registry")):
        write_key(new_key(purpose), tmp_path / "keys" / name).chmod(0o440)  # as Kubernetes mounts them
    project = prepare(tmp_path)
    read_key(own_key_file(project))
    read_approver_key(registry_key_file(project))
    (tmp_path / "keys" / "checkpoints.pem").unlink()
    renewed = write_key(new_key("checkpoints"), tmp_path / "keys" / "checkpoints.pem")
    assert own_key_file(prepare(tmp_path)).read_bytes() == renewed.read_bytes()


def test_network_policies_know_a_flow_run_s_pod_by_a_label_that_prefect_leaves_alone() -> None:
    labels = job()["spec"]["template"]["metadata"]["labels"]
    assert labels["prefect.io/flow-run-id"] == str(UUID(int=1))
    policies = by_kind(objects(overlay("cpu")), "NetworkPolicy")
    assert matches(policies["orchestrator"]["spec"]["podSelector"], labels)
    assert not matches(policies["learner"]["spec"]["podSelector"], labels)


def test_what_the_job_names_is_in_the_platform() -> None:
    platform = objects(overlay("cpu"))
    for _, made in pod_specs(job()):
        assert made["serviceAccountName"] in by_kind(platform, "ServiceAccount")
        assert made["priorityClassName"] in by_kind(platform, "PriorityClass")
    assert job()["metadata"]["namespace"] in by_kind(platform, "Namespace")


def worker() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((PREFECT / "worker.yaml").read_text(encoding="utf-8"))
    return found


def test_the_worker_brings_the_template_of_the_platform_to_its_pool() -> None:
    name = worker()["worker"]["config"]["baseJobTemplate"]["existingConfigMapName"]
    data = by_kind(objects(overlay("cpu")), "ConfigMap")[name]["data"]
    assert json.loads(data["baseJobTemplate.json"]) == TEMPLATE  # the key that the chart asks for


def test_the_worker_has_the_platform_s_account_and_role_and_not_the_wider_ones_of_its_chart() -> None:
    values = worker()
    assert values["serviceAccount"] == {"create": False, "name": "evenkeel-prefect-worker"}
    assert not values["role"]["create"] and not values["rolebinding"]["create"]
    assert values["worker"]["config"]["jobNamespace"] == "evenkeel"


def test_every_secret_that_is_named_is_one_that_the_readme_says_how_to_make() -> None:
    server = yaml.safe_load((PREFECT / "server.yaml").read_text(encoding="utf-8"))
    named = {
        server["server"]["basicAuth"]["existingSecret"],
        server["externalDatabase"]["existingSecret"],
        worker()["worker"]["selfHostedServerApiConfig"]["basicAuth"]["existingSecret"],
        *(source["secretRef"]["name"] for one in containers(pod()) for source in one.get("envFrom", [])),
        *(volume["secret"]["secretName"] for volume in pod()["volumes"] if "secret" in volume),
    }
    readme = (K8S / "README.md").read_text(encoding="utf-8")
    assert named == {"prefect-auth", "prefect-database", "evenkeel-store", "evenkeel-keys"}
    assert all(f"create secret generic {name} " in readme for name in named)


def test_pods_of_the_worker_have_no_privileges_either() -> None:
    values = worker()["worker"]
    for one in (values["containerSecurityContext"], values["initContainer"]["containerSecurityContext"]):
        assert one["readOnlyRootFilesystem"] and one["runAsNonRoot"]
        assert not one["allowPrivilegeEscalation"] and one["capabilities"] == {"drop": ["ALL"]}
