"""`evenkeel doctor`: what could stop a run on this machine, and how to fix it."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import sys
import sysconfig
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import InvalidVersion, Version

from components.checks import Check, State
from components.config import Settings, load
from components.config.inputs import MODEL_FOLDER
from components.config.policy import CheckpointModel
from components.config.shipped import install
from components.errors import EvenkeelError, InputError
from components.files import read_text
from components.installed import FOLDER
from components.processes.environments import ENVIRONMENT, REBUILD, problem_of
from components.processes.memory import GIB, HOW, available, largest_need, parameters_in
from components.sinks import chosen_sinks, missing_packages
from components.stages import wanted
from flows.host.dvc import rwlock_holders
from flows.host.git import EVERYTHING, git, project_root, resolve
from flows.prefect_runtime.server import PrefectServer, ServerUnavailable
from flows.serving.service import served
from flows.starting.project import version_of

FOREIGN = "work in a clone of Evenkeel, or restore the file: git checkout"


def examine(start: Path, config: Path | None = None) -> Iterator[Check]:
    """Every check, cheapest first. Those of the project are left out where there is none, that of the registry where
    there is no configuration that names one.
    """
    yield python()
    yield memory()
    try:
        project = project_root(start)
    except InputError as error:
        yield Check("project", "fail", error.what, error.how or "")
        return
    for check in (packages, servers, disk, writable, git_state, dvc_state, prefect_api):
        yield _answered(check, project)
    if config is not None:
        try:
            settings = load(config)
        except EvenkeelError as error:
            yield _failed("registry", error)
            return
        yield from sinks(settings)
        yield registry(project, settings)
        yield from model(settings)


def _answered(check: Callable[[Path], Check], project: Path) -> Check:
    """The result of a check; a file that it cannot read is a failure."""
    try:
        return check(project)
    except InputError as error:
        return _failed(check.__name__, error)


def _failed(name: str, error: EvenkeelError) -> Check:
    return Check(name, "fail", f"{error.what} ({error.where})", error.how or "")


def python() -> Check:
    version = f"{sys.version_info.major}.{sys.version_info.minor}.{sys.version_info.micro}"
    if not (3, 11) <= sys.version_info < (3, 14):
        return Check("python", "fail", version, "build the environment with 3.11 to 3.13, e.g. make PYTHON=python3.12")
    if not keeps_bytecode():
        finding = f"{version}, which compiles what it imports in every process: PYTHONDONTWRITEBYTECODE is set"
        fix = f"unset it, or compile what is installed: python -m compileall -q {sysconfig.get_path('purelib')}"
        return Check("python", "warn", finding, fix)
    return Check("python", "ok", version)


def keeps_bytecode(package: str = "torch") -> bool:
    """Whether Python writes bytecode, or the installation of a large package has."""
    found = find_spec(package)
    return not sys.dont_write_bytecode or bool(found and found.cached and Path(found.cached).exists())


def memory() -> Check:
    free = available() / GIB
    finding = f"{free:.1f} GiB available, {os.cpu_count()} cores"
    if free >= 3:
        return Check("memory", "ok", finding)
    return Check("memory", "warn", finding, "the demo needs up to 3 GiB: close something")


def packages(project: Path) -> Check:
    """Requirements that are missing, then versions that differ from the tested set."""
    missing = [name for name in _declared(project) if version_of(name) is None]
    fix = install()
    if missing:
        return Check("packages", "fail", f"missing: {', '.join(missing)}", fix)
    pins = re.findall(r"^([\w.\-]+)==(\S+)", read_text(project / "constraints.txt", how=FOREIGN), re.MULTILINE)
    found = {name: version_of(name) for name, _ in pins}
    different = [f"{name} {found[name]}, tested {pin}" for name, pin in pins if not _same(found[name], pin)]
    if different:
        shown = "; ".join(different[:3]) + (f" and {len(different) - 3} more" if len(different) > 3 else "")
        return Check("packages", "warn", shown, f"{fix} gives the tested set")
    return Check("packages", "ok", f"as in constraints.txt ({len(pins)} pinned)")


def _declared(project: Path) -> list[str]:
    """What is required: of a checkout by its file, in a project of one's own by the installed package, extras apart."""
    if (project / FOLDER).is_dir():
        lines = importlib.metadata.requires("evenkeel") or []
    else:
        lines = tomllib.loads(read_text(project / "pyproject.toml", how=FOREIGN))["project"]["dependencies"]
    needed = [Requirement(line) for line in lines]
    return [one.name for one in needed if one.marker is None or one.marker.evaluate({"extra": ""})]


def _same(found: str | None, pinned: str) -> bool:
    """Builds of one version (``2.13.0+cpu``) count as that version; what is not installed cannot be wrong."""
    if found is None:
        return True
    try:
        return Version(Version(found).public) == Version(pinned)
    except InvalidVersion:
        return found == pinned


def servers(project: Path) -> Check:
    """The environment of inference servers that a run starts itself, if it was built; a run without them needs none."""
    folder = project / ENVIRONMENT
    found = [path.name for path in folder.glob("lib/python*/site-packages/vllm*.dist-info")]
    if not found:
        return Check("servers", "ok", "no environment with vLLM; rollout.engine.kind vllm needs one (make vllm-env)")
    problem = problem_of(folder / "bin" / "python")
    if problem:
        return Check("servers", "fail", f"the environment with vLLM does not work: {problem}", REBUILD)
    pins = read_text(project / "constraints-vllm.txt", how=FOREIGN)
    tested = dict(re.findall(r"^(vllm[\w\-]*)==(\S+)", pins, re.MULTILINE))
    name, _, version = found[0].removesuffix(".dist-info").replace("_", "-").rpartition("-")
    if _same(version, next(iter(tested.values()), version)):
        return Check("servers", "ok", f"{name} {version}")
    return Check("servers", "warn", f"{name} {version}, tested {' '.join(tested.values())}", "make vllm-env")


def disk(project: Path) -> Check:
    free = shutil.disk_usage(project).free / GIB
    if free >= 5:
        return Check("disk", "ok", f"{free:.1f} GiB free")
    state: State = "warn" if free >= 1 else "fail"
    return Check("disk", state, f"{free:.1f} GiB free", "remove old runs (runs/) or unused cache (dvc gc --workspace)")


def writable(project: Path) -> Check:
    refused = []
    for name in ("runs", ".state", ".dvc", "registry"):
        folder = project / name
        try:
            with tempfile.TemporaryFile(dir=folder if folder.exists() else project):
                pass
        except OSError as error:
            refused.append(f"{name}: {error.strerror}")
    if refused:
        return Check("writable", "fail", "; ".join(refused), "work in a folder that you may write to")
    return Check("writable", "ok", "runs, .state, .dvc, registry")


def git_state(project: Path) -> Check:
    if not resolve(project, "HEAD"):
        return Check("git", "warn", "no commit yet; runs record snapshots", "git add -A && git commit")
    changed = git(project, "status", "--porcelain", *EVERYTHING).splitlines()
    if changed:
        return Check("git", "warn", f"{len(changed)} uncommitted changes; a run records a snapshot", "git commit")
    return Check("git", "ok", f"clean at {git(project, 'rev-parse', '--short', 'HEAD')}")


def dvc_state(project: Path) -> Check:
    """Initialised, and free. Locks of dead processes are ignored by DVC."""
    if not (project / ".dvc" / "config").is_file():
        return Check("dvc", "fail", "not initialised", "git checkout .dvc, or dvc init")
    if holders := rwlock_holders(project):
        return Check("dvc", "warn", f"busy in process {', '.join(map(str, holders))}", "wait for it")
    return Check("dvc", "ok", f"{version_of('dvc')}, free")


def prefect_api(project: Path) -> Check:
    """The server that ``PREFECT_API_URL`` names, or that of `evenkeel serve`."""
    named, service = os.environ.get("PREFECT_API_URL"), served(project)
    url = named or (service.api_url if service else "")
    if not url:
        return Check("prefect", "ok", f"{version_of('prefect')}, with a temporary server of its own")
    try:
        with PrefectServer(url, timeout=5) as server:
            version = server.get("/admin/version")
    except ServerUnavailable as error:
        fix = "start it (evenkeel serve) or unset PREFECT_API_URL" if named else "look into .state/serve/server.log"
        return Check("prefect", "fail", f"{url}: {error.what}", error.how or fix)
    if version != version_of("prefect"):
        return Check("prefect", "warn", f"server {version}, here {version_of('prefect')}", "use one version on both")
    return Check("prefect", "ok", f"{url}, {version}{'' if named else ', evenkeel serve'}")


def registry(project: Path, settings: Settings) -> Check:
    """Whether the store that a configuration names can keep a registry. It is written to, and cleaned again."""
    named = settings.registry.under(project)
    try:
        if named.kind == "directory":
            from components.registry import directory

            directory.probe(named.path)
            there = "" if named.path.exists() else ", which is not there yet"
            return Check("registry", "ok", f"folder {named.address}{there}")
        from components.registry.s3.bucket import Bucket
        from components.registry.s3.examined import HOW, examined  # loads boto3

        return examined("registry", Bucket(named), named.address, HOW)
    except EvenkeelError as error:
        return _failed("registry", error)


def sinks(settings: Settings) -> Iterator[Check]:
    """Whether the packages of the sinks that a configuration names are there."""
    missing = list(missing_packages(settings))
    for where, how in missing:
        yield Check("sinks", "fail", f"the package of {where} is not installed", how)
    if not missing:
        yield Check("sinks", "ok", ", ".join(name for name, _ in chosen_sinks(settings)) or "none")


def model(settings: Settings) -> Iterator[Check]:
    """Whether memory holds the weights of the checkpoint that a configuration names."""
    if not isinstance(settings.policy.model, CheckpointModel):
        return
    folder = settings.policy.model.path
    parameters = parameters_in(folder)
    if not parameters:
        yield Check("model", "fail", f"no safetensors in {folder}", MODEL_FOLDER)
        return
    stage, needed = largest_need(settings, wanted(settings), parameters)
    finding = f"{parameters:,} parameters: stage {stage} needs at least {needed / GIB:.1f} GiB of memory"
    room = available()
    if needed <= room:
        yield Check("model", "ok", finding)
    else:
        yield Check("model", "fail", f"{finding}, {room / GIB:.1f} GiB are available", HOW)
