"""Is the checkpoint harmless to load and the one that was trained and evaluated, and is what the registry has of it
what was proposed, judged as the policy wants, and by whom it says?

Is it known where the checkpoint comes from, and is what is known true of what lies there? The flow writes
`lineage.json` when it proposes a candidate. Here it is held against `dvc.lock`, the settings and the files of the
evidence; nothing in it is taken for granted that can be computed again.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from components.config import Settings
from components.config.governed import Bound, loosened
from components.errors import InputError
from components.files import os_errors
from components.gate.evidence import Answer, Check, Evidence
from components.words import plural

COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
SHA256 = re.compile(r"[0-9a-f]{64}")
DIGESTS = ("code_sha256", "packages_sha256", "checkpoint_sha256")
SETTINGS = "params.yaml"
PIPELINE = ("data", "audit", "sft", "admission", "triage", "clusters", "train", "evaluate", "gate", "report")
"""The stages that every candidate has gone through."""


def _same(evidence: Evidence, _: Settings) -> Answer:
    found = {
        "checkpoint": evidence.read("checkpoint"),
        "train.json": evidence.value("train", "checkpoint_sha256"),
        "evaluation.json": evidence.value("evaluation", "checkpoint_sha256"),
        "canaries.json": evidence.value("canaries", "checkpoint_sha256"),
    }
    if len(set(found.values())) == 1:
        return "pass", "trained, evaluated and proposed checkpoint are the same"
    return "fail", "; ".join(f"{name} {digest!s:.12}" for name, digest in found.items())


def _whole(evidence: Evidence, _: Settings) -> Answer:
    """The record of a candidate is small and can be replaced; its evidence is stored under its digest."""
    omitted, said, kept = (evidence.read(name) for name in ("omitted", "record", "gate"))
    if said != kept:
        return "fail", "the answer of the run's gate in the candidate's record is not the one in its evidence"
    if evidence.value("gate", "result") not in ("pass", "inconclusive"):
        return "fail", f"the run's own gate says {evidence.value('gate', 'result')!r}"
    if omitted:
        return "pass", f"all of it but {plural(len(omitted), 'file')} too large to keep: {', '.join(sorted(omitted))}"
    return "pass", f"whole, {str(evidence.read('evidence'))[:12]}"


def _by_policy(evidence: Evidence, settings: Settings) -> Answer:
    """Did the run judge itself by settings that the policy allows?"""
    bounds: Mapping[str, Bound] = evidence.read("policy_bounds")
    if loose := list(loosened(settings, bounds)):
        return "fail", "; ".join(loose)
    return "pass", f"{plural(len(bounds), 'setting')} that decide checks keep to the policy"


SAVE = "save the checkpoint again as safetensors with a tokenizer, and nothing that can run code"
PROPOSE = "propose it again from its run: evenkeel run --resume RUN-ID"
TRUST = (
    "propose it again where a trusted key is (evenkeel run --resume RUN-ID), or list the signer's public key under "
    "`signers` in configs/promotion/policy.yaml"
)
HARMLESS = Check(
    lambda evidence, _: ("pass", f"safetensors only, {evidence.read('checkpoint'):.12}"), SAVE, missing=SAVE
)
SAME = Check(_same, "run the stages evaluate and gate again on the checkpoint that training left")
WHOLE = Check(_whole, PROPOSE, missing=PROPOSE)
BY_POLICY = Check(
    _by_policy, "train again with settings that the policy allows, or list others for everybody (`runs` in it)"
)
SIGNED = Check(lambda evidence, _: ("pass", f"signed by {evidence.read('signer')}"), TRUST, missing=TRUST)
ATTESTED = Check(lambda evidence, _: ("pass", f"signed by {evidence.read('attester')}"), TRUST, missing=TRUST)


def _known(evidence: Evidence, _: Settings) -> Answer:
    problems = [*_missing_facts(evidence), *_of_stages(evidence), *_of_settings(evidence), *_of_files(evidence)]
    if problems:
        more = f"; and {len(problems) - 3} more" if len(problems) > 3 else ""
        return "fail", "; ".join(problems[:3]) + more
    commit, run = str(evidence.value("lineage", "commit")), evidence.value("lineage", "run")
    text = f"run {run}, commit {commit[:12]}, {plural(len(evidence.value('lineage', 'inputs')), 'input')}"
    if evidence.value("lineage", "committed") is not True:
        return "inconclusive", f"{text}: a snapshot of a working tree, which no branch of the project holds"
    return "pass", f"{text}; every output as dvc.lock has it"


def _missing_facts(evidence: Evidence) -> Iterator[str]:
    """What must be said and is not, and what is not said of this checkpoint."""
    evidence.value("lineage", "run")
    for name in ("commit", "tree"):
        if not COMMIT.fullmatch(str(evidence.value("lineage", name))):
            yield f"{name} is no object of Git"
    for name in DIGESTS:
        if not SHA256.fullmatch(str(evidence.value("lineage", name))):
            yield f"{name} is no sha256"
    if not isinstance(evidence.value("lineage", "committed"), bool):
        yield "it is not said whether the commit is one of the project's history"
    inputs = evidence.value("lineage", "inputs")
    if not isinstance(inputs, list):
        raise InputError("lineage: inputs is no list")
    for one in inputs:
        if not isinstance(one, dict) or not SHA256.fullmatch(str(one.get("sha256"))):
            yield f"an input has no sha256: {one!s:.60}"
    trained = evidence.value("train", "checkpoint_sha256")
    if len({evidence.value("lineage", "checkpoint_sha256"), evidence.read("candidate"), trained}) > 1:
        yield "the checkpoint is not the one that lay in the run's workspace"


def _of_stages(evidence: Evidence) -> Iterator[str]:
    """Every stage is in the lock, every output was found as the lock has it, and each stage read what others wrote."""
    stages = _stages(evidence)
    missing = [name for name in PIPELINE if name not in stages]
    if missing:
        yield f"dvc.lock has no stage {', '.join(missing)}"
    locked = {out["path"]: out["md5"] for stage in stages.values() for out in stage.get("outs") or []}
    found = evidence.value("lineage", "outputs")
    if not isinstance(found, dict):
        raise InputError("lineage: outputs is no mapping")
    for path, md5 in locked.items():
        if found.get(path) != md5:
            yield f"{path} is not what dvc.lock has recorded" if path in found else f"{path} was not looked at"
    for name, stage in stages.items():
        for dep in stage.get("deps") or []:
            if dep["path"] in locked and dep["md5"] != locked[dep["path"]]:
                yield f"the stage {name} read another {dep['path']} than was written"


def _of_settings(evidence: Evidence) -> Iterator[str]:
    """The settings of the evidence are those that the stages ran with."""
    settings = evidence.read("params")
    for name, stage in _stages(evidence).items():
        for key, value in ((stage.get("params") or {}).get(SETTINGS) or {}).items():
            node: Any = settings
            for part in str(key).split("."):
                node = node.get(part) if isinstance(node, dict) else None
            if not _equal(node, value):
                yield f"the stage {name} ran with another {key} than {SETTINGS} says"


def _equal(ours: Any, recorded: Any) -> bool:
    """Whether two values from YAML are one. DVC writes some numbers as this reader takes for text (1e-05)."""
    if isinstance(ours, dict) and isinstance(recorded, dict):
        return ours.keys() == recorded.keys() and all(_equal(value, recorded[key]) for key, value in ours.items())
    if isinstance(ours, list) and isinstance(recorded, list):
        return len(ours) == len(recorded) and all(map(_equal, ours, recorded))
    if isinstance(ours, float) and isinstance(recorded, str):
        try:
            return ours == float(recorded)
        except ValueError:
            return False
    return type(ours) is type(recorded) and bool(ours == recorded)


def _of_files(evidence: Evidence) -> Iterator[str]:
    """The files of the evidence have the digests that the lock has of them."""
    root: Path = evidence.read("root")
    for stage in _stages(evidence).values():
        for out in stage.get("outs") or []:
            name, md5 = str(out["path"]), out["md5"]
            if name.startswith("/") or ".." in PurePosixPath(name).parts:
                yield f"dvc.lock names {name:.60}, which is no place in a run"
            elif _changed(root / name, md5):
                yield f"{name} among the evidence is not what dvc.lock has recorded"


def _changed(path: Path, md5: str) -> bool:
    """Whether a file is there and is another one."""
    with os_errors(f"read {path.name:.60}", path):
        return path.is_file() and hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest() != md5


def _stages(evidence: Evidence) -> Mapping[str, Any]:
    """The stages of the lock, which must be written as DVC writes them."""
    lock = evidence.read("lock")
    stages = lock.get("stages") if isinstance(lock, dict) else None
    if not isinstance(stages, dict):
        raise InputError("lock: dvc.lock has no stages")
    for stage in stages.values():
        entries = [*(stage.get("outs") or []), *(stage.get("deps") or [])] if isinstance(stage, dict) else [None]
        if not all(isinstance(one, dict) and {"path", "md5"} <= set(one) for one in entries):
            raise InputError("lock: dvc.lock names an output without its digest")
    return stages


KNOWN = Check(
    _known,
    "commit the changes and run again from there; `evenkeel run --resume` makes an output anew that was changed",
    missing="propose it again from its run: evenkeel run --resume RUN-ID",
)
