"""What keeps a policy exploring.

- `selection` — tokens by covariance (Clip-Cov, KL-Cov) or by entropy (`SELECTIONS`)

The entropy bonus is a term of the objective; its adaptive coefficient is in `components.objectives.controllers`.
"""

from components.objectives.exploration.selection import SELECTIONS, SelectionInputs

__all__ = ["SELECTIONS", "SelectionInputs"]
