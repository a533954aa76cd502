"""Is the checkpoint better on held-out prompts than the one that training began with, were its answers whole, is it at
least nearly as good as the champion, and does it keep what its probe sets measure?"""

from __future__ import annotations

from components.canaries.comparison import NO_SETS
from components.canaries.verdict import HOW as CANARIES_HOW
from components.canaries.verdict import judge_canaries
from components.config import Settings
from components.errors import InputError
from components.gate.evidence import Answer, Check, Evidence


def _gain(evidence: Evidence, settings: Settings) -> Answer:
    return _large_enough(evidence, settings, settings.gate.min_gain, "", "evaluation", "gain")


def _large_enough(evidence: Evidence, settings: Settings, limit: float, over: str, *gain: str) -> Answer:
    """Whether the lower end of a gain's interval exceeds its limit, and whether so many prompts can tell."""
    mean, low, high = evidence.gain(*gain)
    prompts, wanted = evidence.number(*gain, "n"), settings.gate.min_prompts
    interval = f"pass@1 {100 * mean:+.1f} points{over}, 95 % interval {100 * low:+.1f} to {100 * high:+.1f}"
    needed = f"{interval}; the lower end must exceed {100 * limit:+.1f}"
    if prompts >= wanted:
        return "pass" if low > limit else "fail", needed
    few = f"{prompts:g} prompts scorable under both are too few to tell, it takes {wanted}"
    return "inconclusive" if low > limit else "fail", f"{needed}; {few}"


def _at_most(share: float, limit: float, of: str) -> Answer:
    return "pass" if share <= limit else "fail", f"{share:.1%} of {of}, limit {limit:.1%}"


def _truncated(evidence: Evidence, settings: Settings) -> Answer:
    share = evidence.share("evaluation", "trained", "truncated_share")
    return _at_most(share, settings.gate.max_truncated, "test completions truncated")


def _unscorable(evidence: Evidence, settings: Settings) -> Answer:
    shares = [evidence.share("evaluation", side, "unscorable_share") for side in ("sft", "trained")]
    return _at_most(max(shares), settings.gate.max_unscorable, "test completions unscorable")


def _contaminated(evidence: Evidence, settings: Settings) -> Answer:
    share = evidence.share("evaluation", "contamination", "worst_share")
    suite = evidence.value("evaluation", "contamination", "worst")
    where = "the test prompts" if suite == "test" else f"the prompts of {suite}"
    return _at_most(share, settings.gate.max_contaminated, f"{where} found in the training data")


def _over_champion(evidence: Evidence, settings: Settings) -> Answer:
    """By the run's own evaluation, against the champion that its settings name."""
    limit, gain = settings.gate.min_gain_over_champion, ("evaluation", "gain_over_champion")
    enough, interval = _large_enough(evidence, settings, limit, " over the champion", *gain)
    share = evidence.share("evaluation", "champion", "unscorable_share")
    scorable, judged = _at_most(share, settings.gate.max_unscorable, "its completions unscorable")
    return enough if scorable == "pass" else "fail", f"{interval}; {judged}"


def _over_present_champion(evidence: Evidence, settings: Settings) -> Answer:
    """When it is to be promoted: by a comparison with whoever is champion now."""
    champion, candidate = evidence.read("champion"), evidence.read("candidate")
    if champion is None:
        return "pass", "there is no champion to be compared with"
    if champion == candidate:
        return "pass", "it is the champion"
    comparison = evidence.read("comparison")
    if comparison is None or "pending" in comparison:
        raise InputError(f"it was not compared with the present champion {champion[:12]} yet")
    if "problem" in comparison:
        return "fail", f"it cannot be compared with the present champion {champion[:12]}: {comparison['problem']}"
    try:
        return _compared(evidence, settings, candidate, champion)
    except InputError as error:
        return "fail", error.what


def _compared(evidence: Evidence, settings: Settings, candidate: str, champion: str) -> Answer:
    compared = [evidence.value("comparison", name) for name in ("candidate", "champion")]
    if compared != [candidate, champion]:
        text = " with ".join(f"{digest!s:.12}" for digest in compared)
        return "fail", f"the comparison is of {text}, and this is {candidate[:12]} with {champion[:12]}"
    limit, over = settings.gate.min_gain_over_champion, f" over {champion[:12]}"
    enough, interval = _large_enough(evidence, settings, limit, over, "comparison")
    share = evidence.share("comparison", "unscorable_share")
    scorable, judged = _at_most(share, settings.gate.max_unscorable, "the champion's completions unscorable")
    return enough if scorable == "pass" else "fail", f"{interval}; {judged}"


def _kept(evidence: Evidence, settings: Settings) -> Answer:
    """Every set that the run's settings have or the policy's `gate.canaries` requires. Whoever starts a run chooses its
    sets; a policy that wants some must name them."""
    found = evidence.read("canaries")
    if not settings.health.canaries and not settings.gate.canaries:
        return "pass", NO_SETS
    return judge_canaries(found, settings.health.canaries, settings.gate.canaries)


TO_BE_COMPARED = "the two compared, which `evenkeel show DIGEST --page FILE` and `evenkeel approve` do where they can"

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
OVER_CHAMPION = Check(
    _over_champion,
    "a checkpoint that is not clearly worse than the champion, or more test prompts for a narrower interval",
)
OVER_PRESENT_CHAMPION = Check(_over_present_champion, OVER_CHAMPION.how, missing=TO_BE_COMPARED)
CANARIES_KEPT = Check(_kept, CANARIES_HOW)
