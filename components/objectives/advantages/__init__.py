"""Advantage estimators: rewards of each group -> one advantage per completion.

- `rewards` — the rectangle of rewards they work on
- `groups` — means and deviations of groups with members that do not count
- `centred` — GRPO and Dr. GRPO; one deviation for the whole batch (Lite PPO, ScaleRL); RLOO
- `maxrl` — relative to the mean, so that hard prompts weigh more
- `gdpo` — every part of the reward normalised by itself
- `hras` — task and consistency normalised apart, for CORA
- `entry` — what `ADVANTAGES` holds of each, and the contract that is tried on all of them
- `cap` — a bound on all of them
- `segments`, `redistribution` — RREDCoT: from one advantage per completion to one per token

Each of `ADVANTAGES` takes `Rewards` and its settings and returns ``[N, G]`` fp32. Unscorable completions take no part
in any statistic and get advantage 0; so does a whole group with equal rewards or fewer than two scorable completions.
No rewards, however odd, give NaN.
"""

from components.catalog import Catalog
from components.config.advantages import (
    BatchStdAdvantage,
    GdpoAdvantage,
    GrpoAdvantage,
    HrasAdvantage,
    LeaveOneOutAdvantage,
    MaxRlAdvantage,
)
from components.objectives.advantages.cap import cap
from components.objectives.advantages.centred import batch_std, grpo, leave_one_out
from components.objectives.advantages.entry import AdvantageEntry
from components.objectives.advantages.gdpo import gdpo
from components.objectives.advantages.hras import hras
from components.objectives.advantages.maxrl import maxrl
from components.objectives.advantages.rewards import Rewards, rewards_of

ADVANTAGES = Catalog(
    AdvantageEntry,
    {
        "grpo": AdvantageEntry(grpo, GrpoAdvantage, centred=True),
        "batch_std": AdvantageEntry(batch_std, BatchStdAdvantage, centred=True),
        "leave_one_out": AdvantageEntry(leave_one_out, LeaveOneOutAdvantage, centred=True),
        "maxrl": AdvantageEntry(maxrl, MaxRlAdvantage),
        "gdpo": AdvantageEntry(gdpo, GdpoAdvantage),
        "hras": AdvantageEntry(hras, HrasAdvantage),
    },
)

__all__ = ["ADVANTAGES", "AdvantageEntry", "Rewards", "cap", "rewards_of"]
