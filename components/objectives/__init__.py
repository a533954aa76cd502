"""The loss, as a composition: advantage x ratio x aggregation x KL x sampler correction.

- `advantages` — rewards of a group -> advantages (`ADVANTAGES`)
- `ratios` — trust region per token (`RATIOS`)
- `aggregation` — weight of every token (`AGGREGATIONS`)
- `kl` — distance to the reference as a loss term (`KLS`)
- `corrections` — sampler against trainer (`CORRECTIONS`)
- `objective` — puts one of each together

Everything is a pure function of tensors. Losses are minimised; log-probabilities, entropy and KL are in nats.
"""

from components.objectives.advantages import ADVANTAGES
from components.objectives.aggregation import AGGREGATIONS
from components.objectives.corrections import CORRECTIONS
from components.objectives.kl import KLS
from components.objectives.objective import Terms, TokenInputs, objective
from components.objectives.ratios import RATIOS

__all__ = ["ADVANTAGES", "AGGREGATIONS", "CORRECTIONS", "KLS", "RATIOS", "Terms", "TokenInputs", "objective"]
