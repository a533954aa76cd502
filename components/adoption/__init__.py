"""A checkpoint that another trainer made takes the place of what stage `train` would have made.

- `checkpoint` — the folder it left: what of it is taken, and an adapter merged into its base
- `history` — its log as the records and verdicts of a run of ours
"""

from components.adoption.checkpoint import adopt_checkpoint
from components.adoption.history import History, adopt_log

__all__ = ["History", "adopt_checkpoint", "adopt_log"]
