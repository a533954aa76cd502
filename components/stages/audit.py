"""Stage `audit`: what the verifier and the reward functions make of answers that are known to be right or wrong."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from components.audit.functions import measure_functions
from components.audit.measure import measure, timing
from components.audit.probes import make_probes
from components.audit.verdict import judge_audit, render, unaudited
from components.config import Settings
from components.config.environments import EnvironmentVerifier
from components.config.extensions import FunctionSet
from components.data.prompts import read_prompts, subset
from components.files import write_json, write_text
from components.layout import Layout
from components.progress import progress
from components.rewards import build_verifier
from components.rewards.sandbox import Sandbox
from components.seeds import derive


def run(settings: Settings, layout: Layout) -> None:
    """Write `out/audit.json` and `out/audit.html`; how long it took goes to `.state`, for it is never the same twice.

    A failed audit is a result, not an error: the train stage acts on it.
    """
    if isinstance(settings.reward.verifier, EnvironmentVerifier):
        result, times = unaudited(settings.audit), dict[str, Any]()
    else:
        result, times = audited(settings, layout)
    write_json(layout.audit_timing, times)
    write_text(layout.audit_page, render(result, settings))
    write_json(layout.audit, result)


def audited(settings: Settings, layout: Layout) -> tuple[dict[str, Any], dict[str, Any]]:
    """The result for the prompts of all splits, and how long it took."""
    chosen = settings.audit
    prompts = [prompt for split in ("train", "dev", "test") for prompt in read_prompts(layout.split(split))]
    prompts = subset(prompts, chosen.prompts, derive(settings.seed, "audit"))
    section, limits = settings.reward.verifier, settings.reward.sandbox
    functions = FunctionSet(functions=settings.reward.functions)
    probes = make_probes(build_verifier(section), prompts, section.answers)
    seconds = limits.timeout if section.answers == "code" else min(limits.timeout, chosen.quick_seconds)
    quick = limits.model_copy(update={"timeout": seconds})
    with ExitStack() as stack, progress("audit", 3) as bar:
        second = stack.enter_context(Sandbox(chosen.second, limits)) if chosen.second else None
        bar.advance(1, f"{len(probes)} answers")
        audit = measure(
            probes, lambda: Sandbox(section, limits), chosen.repeats, second, lambda: Sandbox(section, quick)
        )
        bar.advance(2, "judged")
        paid = measure_functions(probes, settings.reward, lambda: Sandbox(functions, limits))
        usual = [probe for probe in probes if not probe.quick]
        times = timing(usual, stack.enter_context(Sandbox(section, limits)))
        bar.advance(3, f"{times['per_second']:.0f} a second")
    return judge_audit(audit, chosen, paid), times
