"""Does the answer follow from the thinking? The consistency reward of CORA (2606.14691).

- `base` — premise and hypothesis; what every such verifier does
- `embedded` — a small classifier without files or libraries; `components.data.consistency` makes it
- `reading`, `features` — what it looks at
- `nli` — a sequence-pair classifier from a Hugging Face folder; it loads torch when it is built

Both are verifiers whose accuracy is P(consistent); the scorer makes it the reward part ``consistency``.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from components.checkpoints.checks import check_checkpoint
from components.config.consistency import Consistency, EmbeddedConsistency
from components.config.pins import check_digest
from components.rewards.consistency.embedded import EmbeddedVerifier, read_weights
from components.rewards.consistency.nli import NliVerifier


def read_model(settings: Consistency, weights: Path | None) -> Mapping[str, Any] | None:
    """What the classifier has learned, for its worker; None for a folder that the worker reads by itself.

    Args:
        weights: the file that the data stage wrote, for the embedded kind.

    Raises:
        InputError: the file or the folder is missing, not what it should be, or holds anything that could run code.
    """
    if isinstance(settings, EmbeddedConsistency):
        return read_weights(weights)
    check_digest(settings.path, settings.sha256)
    check_checkpoint(settings.path)
    return None


__all__ = ["EmbeddedVerifier", "NliVerifier", "read_model"]
