"""May approval be requested, and may a checkpoint be promoted? No torch, and nothing that runs is trusted: only what is
on record.

- `evidence` — what a run left, each part as read or as the error that reading it gave
- `checks` — the checks, a concept a file, in the dict `CHECKS`
- `judge` — every check on some evidence, and what follows from them together
- `bundle` — the evidence of a run as a folder that is kept with the candidate
- `candidate` — a stored candidate judged again, by the policy of the project
- `comparison` — what is known of a candidate compared with the present champion
"""

from components.gate.bundle import gather
from components.gate.candidate import judge_candidate
from components.gate.comparison import comparison_of, recorded_comparison
from components.gate.evidence import Evidence, collect
from components.gate.judge import conclude, judge, policy_sha256

__all__ = [
    "Evidence",
    "collect",
    "comparison_of",
    "conclude",
    "gather",
    "judge",
    "judge_candidate",
    "policy_sha256",
    "recorded_comparison",
]
