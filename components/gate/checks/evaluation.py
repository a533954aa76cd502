"""Is the checkpoint better on held-out prompts than the one that training began with, and were its answers whole?"""

from __future__ import annotations

from components.config import Settings
from components.gate.checks.base import Answer, Check
from components.gate.evidence import Evidence


def _gain(evidence: Evidence, settings: Settings) -> Answer:
    mean, low, high = evidence.gain("evaluation", "gain")
    prompts = evidence.number("evaluation", "gain", "n")
    answer, needed = large_enough(low, settings.gate.min_gain, prompts, settings)
    return answer, f"pass@1 {100 * mean:+.1f} points, 95 % interval {100 * low:+.1f} to {100 * high:+.1f}; {needed}"


def large_enough(low: float, limit: float, prompts: float, settings: Settings) -> Answer:
    """Whether the lower end of a gain's interval exceeds its limit, and whether so many prompts can tell."""
    wanted, needed = settings.gate.min_prompts, f"the lower end must exceed {100 * limit:+.1f}"
    if prompts >= wanted:
        return "pass" if low > limit else "fail", needed
    few = f"{prompts:g} prompts scorable under both are too few to tell, it takes {wanted}"
    return "inconclusive" if low > limit else "fail", f"{needed}; {few}"


def _truncated(evidence: Evidence, settings: Settings) -> Answer:
    share, limit = evidence.share("evaluation", "trained", "truncated_share"), settings.gate.max_truncated
    return "pass" if share <= limit else "fail", f"{share:.1%} of test completions truncated, limit {limit:.1%}"


def _unscorable(evidence: Evidence, settings: Settings) -> Answer:
    shares = [evidence.share("evaluation", side, "unscorable_share") for side in ("sft", "trained")]
    share, limit = max(shares), settings.gate.max_unscorable
    return "pass" if share <= limit else "fail", f"{share:.1%} of test completions unscorable, limit {limit:.1%}"


def _contaminated(evidence: Evidence, settings: Settings) -> Answer:
    share, limit = evidence.share("evaluation", "contamination", "worst_share"), settings.gate.max_contaminated
    suite = evidence.value("evaluation", "contamination", "worst")
    where = "test prompts" if suite == "test" else f"prompts of {suite}"
    text = f"{share:.1%} of the {where} found in the training data, limit {limit:.1%}"
    return "pass" if share <= limit else "fail", text


GAIN = Check(
    _gain,
    "a checkpoint that is better on held-out prompts, or more test prompts where the interval is wide or they are few",
)
TRUNCATED = Check(_truncated, "more room for an answer (rollout.max_new_tokens), or training that keeps answers short")
UNSCORABLE = Check(
    _unscorable, "see why the verifier could not judge them (out/samples.jsonl), mend that, and run again"
)
CONTAMINATED = Check(
    _contaminated, "take out of the training data what out/evaluation.json names (contamination), or name another suite"
)
