"""Putting the checkpoint of a run into the registry: at its end, and again when a finished run is resumed.

A candidate is proposed again where its record or its evidence in the registry is damaged or unsigned: the messages of
`components.gate.checks` advise it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable

from components.config.promotion import load_policy
from components.files import read_json
from components.gate.bundle import gather
from components.registry import propose
from components.working import working
from flows.governance.registry import project_store
from flows.governance.signers import signing_key
from flows.recording.lineage import trace
from flows.run.workspace import Workspace


def propose_run(workspace: Workspace, warn: Callable[[str], None]) -> str:
    """Store the checkpoint with its evidence; returns its digest. Proposing twice changes nothing.

    Args:
        warn: receives what is left out, and that the checkpoint is unsigned.

    Raises:
        NoCandidate: the gate failed.
        InputError: the checkpoint is refused or cannot be stored.
    """
    layout, evidence, lineage = workspace.layout, workspace.layout.state / "evidence", trace(workspace)
    origin = {name: lineage[name] for name in ("run", "commit", "tree", "started_by")}
    omitted = gather(layout, lineage, evidence)
    key = signing_key(workspace.project, load_policy(workspace.project))
    if omitted:
        warn(f"too large to be kept with the candidate: {', '.join(sorted(omitted))}")
    if key is None:
        warn("the checkpoint is not signed: no key of a signer that the policy lists is here")
    store = project_store(workspace.project, workspace.settings)
    with working("copying the checkpoint to the registry"):
        digest = propose(store, layout.train_checkpoint, evidence, read_json(layout.gate), origin, key=key).digest
    shutil.rmtree(evidence)
    return digest
