"""Rewards for structure: code skeletons as an intermediate representation (P4IR, 2606.22402). No code is executed.

- `skeleton` — the small language, its parser and its limits
- `trees` — tree edit distance
- `verifier` — the `Verifier` that compares a skeleton with the reference
"""

from components.rewards.structure.verifier import StructureVerifier

__all__ = ["StructureVerifier"]
