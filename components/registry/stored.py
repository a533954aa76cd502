"""What is looked at again before a stored checkpoint is promoted or gone back to."""

from __future__ import annotations

from components.checkpoints.checks import check_stored
from components.config.promotion import Policy
from components.registry.base import Store
from components.registry.signing import verify
from components.types import GateCheck


def recheck(store: Store, digest: str, evidence: str | None, policy: Policy) -> GateCheck:
    """Read a stored checkpoint, and its evidence, whole, hold it to what may be loaded, and verify its signature.

    Returns:
        The check, which passes.

    Raises:
        InputError: something is missing, is not what its digest says, has a file that no checkpoint may have, or was
            not signed by a key that the policy trusts.
    """
    check_stored(store.tree(digest))
    if evidence is not None:
        store.tree(evidence)
    signer = verify(store, digest, policy.signers)
    return GateCheck("stored checkpoint", "pass", f"{digest[:12]} is stored as it was proposed, signed by {signer}")
