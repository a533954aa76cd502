"""Is the checkpoint at least nearly as good as the present champion?"""

from __future__ import annotations

from components.config import Settings
from components.errors import InputError
from components.gate.checks.base import Answer, Check
from components.gate.checks.evaluation import large_enough
from components.gate.evidence import Evidence


def _evaluated(evidence: Evidence, settings: Settings) -> Answer:
    """By the run's own evaluation, against the champion that its settings name."""
    gain = evidence.gain("evaluation", "gain_over_champion")
    mean, low, high = (f"{100 * value:+.1f}" for value in gain)
    share, limit = evidence.share("evaluation", "champion", "unscorable_share"), settings.gate.max_unscorable
    prompts = evidence.number("evaluation", "gain_over_champion", "n")
    answer, needed = large_enough(gain[1], settings.gate.min_gain_over_champion, prompts, settings)
    interval = f"pass@1 {mean} points over the champion, 95 % interval {low} to {high}"
    judged = f"{share:.1%} of its completions unscorable, limit {limit:.1%}"
    return answer if share <= limit else "fail", f"{interval}; {needed}; {judged}"


EVALUATED = Check(
    _evaluated, "a checkpoint that is not clearly worse than the champion, or more test prompts for a narrower interval"
)


def _present(evidence: Evidence, settings: Settings) -> Answer:
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
    mean, low, high = evidence.gain("comparison")
    share, limit = evidence.share("comparison", "unscorable_share"), settings.gate.max_unscorable
    prompts = evidence.number("comparison", "n")
    answer, needed = large_enough(low, settings.gate.min_gain_over_champion, prompts, settings)
    interval = (
        f"pass@1 {100 * mean:+.1f} points over {champion[:12]}, 95 % interval {100 * low:+.1f} to {100 * high:+.1f}"
    )
    judged = f"{share:.1%} of the champion's completions unscorable, limit {limit:.1%}"
    return answer if share <= limit else "fail", f"{interval}; {needed}; {judged}"


TO_BE_COMPARED = "the two compared, which `evenkeel show DIGEST --page FILE` and `evenkeel approve` do where they can"

PRESENT = Check(_present, EVALUATED.how, missing=TO_BE_COMPARED)
