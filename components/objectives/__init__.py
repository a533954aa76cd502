"""The loss, as a composition: advantage x ratio x aggregation x KL x sampler correction.

- `advantages` — rewards of groups -> advantages (`ADVANTAGES`)
- `gae` — values of a critic -> advantages, for PPO
- `ratios` — trust region per token (`RATIOS`)
- `aggregation` — weight of every token (`AGGREGATIONS`)
- `kl` — distance to the reference as a loss term (`KLS`)
- `corrections` — sampler against trainer (`CORRECTIONS`)
- `exploration` — tokens that are singled out (`SELECTIONS`)
- `controllers` — coefficients that follow a measurement
- `objective` — puts one of each together
- `tokens` — what all of them work on
- `dpo` — next to the composition: the loss of a pair of completions

Everything is a pure function of tensors. Losses are minimised; log-probabilities, entropy and KL are in nats.
"""

from components.objectives.advantages import ADVANTAGES, Rewards
from components.objectives.aggregation import AGGREGATIONS
from components.objectives.controllers import Coefficients
from components.objectives.corrections import CORRECTIONS
from components.objectives.exploration import SELECTIONS, SelectionInputs
from components.objectives.kl import KLS
from components.objectives.objective import Terms, objective
from components.objectives.ratios import RATIOS
from components.objectives.tokens import TokenInputs, TokenLoss

__all__ = [
    "ADVANTAGES",
    "AGGREGATIONS",
    "CORRECTIONS",
    "KLS",
    "RATIOS",
    "SELECTIONS",
    "Coefficients",
    "Rewards",
    "SelectionInputs",
    "Terms",
    "TokenInputs",
    "TokenLoss",
    "objective",
]
