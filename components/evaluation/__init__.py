"""How good is a policy, and is it better than another? No torch, no I/O.

- `statistics` — pass@k, the paired bootstrap interval over prompts, Wilson's interval, McNemar's exact test
- `summary` — results of single prompts to the figures of `out/evaluation.json`, with slices
"""

from components.evaluation.statistics import Interval, mcnemar, paired_gain, pass_at_k
from components.evaluation.summary import PromptResult, against_champion, compare, summarise

__all__ = [
    "Interval",
    "PromptResult",
    "against_champion",
    "compare",
    "mcnemar",
    "paired_gain",
    "pass_at_k",
    "summarise",
]
