"""From verdicts to what is done about them, within bounds and budgets. No torch: `components.training` carries it out.

- `knobs` — `KNOBS`, the settings that a rule may change, and how far
- `ladder` — `Responder`: intervene, roll back, stop; and what is spent
- `repairs` — `REPAIRS`, what can be repaired of each part of a run
- `turning` — the settings as responses have left them, and knobs that did not help, to be turned back
- `under_watch` — whether the policy is at fault, or a part that it is trained or measured by; going on with a fault
  that nothing repairs, as long as it does no harm
- `pending` — whether a run has recovered after a response
- `checkpoints` — which checkpoint was healthy, then and in hindsight
- `guard` — the gradient norm above which an update is not made

The record of all that, append-only, is read by `components.health.records`.
"""

from components.health.records import Ledger, read_ledger
from components.health.responses.checkpoints import Saved, healthiest
from components.health.responses.guard import Guard
from components.health.responses.knobs import KNOBS
from components.health.responses.ladder import Plan, Responder

__all__ = ["KNOBS", "Guard", "Ledger", "Plan", "Responder", "Saved", "healthiest", "read_ledger"]
