"""The result in plain sentences, for the verdict, the form and the terminal. What is missing is said to be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from components.words import number, percent, plural, points

Figures = Mapping[str, Any]


def result_sentences(evaluation: Figures) -> list[str]:
    """`out/evaluation.json` in sentences: the gain over the SFT checkpoint and over a champion, suites, what speaks
    against the figures."""
    lines = [_gain(evaluation, "trained", "gain", "the SFT checkpoint")]
    if "champion" in evaluation:
        lines.append(_gain(evaluation, "trained", "gain_over_champion", "the champion"))
    lines += [f"{name}: {_greedy(suite)}" for name, suite in (evaluation.get("suites") or {}).items()]
    return [*lines, *_reservations(evaluation)]


def comparison_sentences(comparison: Figures) -> list[str]:
    """A candidate against the present champion, see `components.evaluation.against`."""
    if comparison["candidate"] == comparison["champion"]:
        return ["The candidate is the champion: both are the same checkpoint."]
    lines = [_gain({**comparison, **comparison["figures"]}, "candidate", "gain", "the champion")]
    greedy = comparison["greedy_gain"]
    if greedy is not None:
        lines.append(
            f"Greedily it answers {plural(greedy['gained'], 'prompt')} right that the champion does not, and "
            f"{greedy['lost']} the other way round (McNemar's exact p = {number(greedy['mcnemar_p'])})."
        )
    return lines


def _gain(figures: Figures, after: str, key: str, over: str) -> str:
    gain, reached = figures.get(key), figures[after]["pass_at_1"]
    if gain is None or reached is None:
        return f"No prompt could be scored under both, so nothing is known of a gain over {over}."
    level = f"pass@1 {percent(reached)} on {number(figures['prompts'])} prompts"
    return f"{level}, {points(gain['mean'])} points over {over} ({_interval(gain)}); {_power(gain)}."


def _interval(gain: Figures) -> str:
    rough = ", rough for so few prompts" if gain.get("small") else ""
    return f"{percent(gain['confidence'], 0)} interval {points(gain['low'])} to {points(gain['high'])}{rough}"


def _power(gain: Figures) -> str:
    """What the comparison could have seen at all."""
    smallest = gain.get("detectable")
    if smallest is None:
        return "all prompts changed alike, so it cannot be said how small a difference this comparison could have seen"
    return f"this comparison could have seen a difference of {100 * smallest:.1f} points"


def _greedy(suite: Figures) -> str:
    gain = suite["greedy_gain"]
    if gain is None:
        return "no prompt could be scored under both."
    reached = f"greedy accuracy {percent(suite['trained']['greedy'])} on {plural(suite['prompts'], 'prompt')}"
    return f"{reached}, {points(gain['mean'])} points over the SFT checkpoint ({_interval(gain)})."


def _reservations(evaluation: Figures) -> list[str]:
    """Prompts that were trained on, and completions that were cut."""
    lines = []
    for name, found in (evaluation.get("contamination") or {}).get("suites", {}).items():
        if not found["found"]:
            continue
        of = "test prompts" if name == "test" else f"prompts of {name}"
        gain = (found["without"] or {}).get("gain") or (found["without"] or {}).get("greedy_gain")
        left = f"without them the gain is {points(gain['mean'])} points" if gain else "without them nothing is left"
        lines.append(f"{found['found']} of {found['prompts']} {of} occur in the training data; {left}.")
    cut = evaluation["trained"].get("truncated_share")
    if cut:
        lines.append(f"{percent(cut)} of the completions hit the length limit and could not end.")
    return lines
