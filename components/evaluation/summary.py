"""From the results of single prompts to figures.

`out/evaluation.json` holds, of the run's own test prompts (accuracies and shares in [0, 1], lengths in tokens; null is
what nothing defines, never 0):

- ``prompts``, ``samples``, ``k`` (= samples) and ``ks``
- ``sft``, ``trained`` and, where one is named, ``champion``: the figures of one policy, see `summarise`
- ``gain``: of trained over sft in sampled pass@1: mean, low and high of the paired bootstrap interval and its
  ``confidence``, the ``n`` prompts that were scorable under both, whether that is a ``small`` number of them, and
  ``detectable``, the smallest true difference that so many prompts with this spread show with the ``power`` given
  with it
- ``greedy_gain``: the same in greedy accuracy, with the prompts ``gained`` and ``lost``, and ``mcnemar_p``
- ``gain_over_champion``, ``greedy_gain_over_champion``: likewise
- ``suites``: name -> all of the above, of another set of prompts
- ``contamination``: ``worst_share`` over the test prompts and all suites, the name of the ``worst``, and under
  ``suites`` (the run's own prompts are ``test``) what `components.evaluation.contamination` found; ``without`` are the
  figures with the prompts left out that were found, null where none was
- ``checkpoint_sha256``: of the trained policy; ``prompts_sha256``: of the prompts that were used, of each suite too
- ``words``: the result in plain sentences, see `components.evaluation.sentences`

``sft`` holds ``pass_at_1`` and ``greedy``; ``pass_at_k``; ``pass_at`` and ``maj_at``, k -> figure; ``truncated_share``,
``unscorable_share`` and ``length_mean`` of the samples; ``reward``, ``parts`` (what each part other than accuracy adds
to it) and ``metrics``; ``families``, ``difficulty``, ``prompt_length`` and ``sources``, slice -> ``prompts``,
``small``, ``pass_at_1``, ``greedy``, and of ``trained`` also ``gain`` and ``gain_over_champion``, paired; and
``calibration`` with ``length``, ``truncation`` and ``agreement``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from components.config.evaluation import EvaluationSettings
from components.evaluation.calibration import SLICES, calibration, pairs, slices
from components.evaluation.pairing import gains, sampled_gain
from components.evaluation.passing import accuracies, comparable, passing
from components.evaluation.results import PromptResult
from components.evaluation.statistics import mean
from components.seeds import derive
from components.types import mean_by_name

Results = Sequence[PromptResult]


def summarise(
    results: Results, k: int, ks: Sequence[int] = (), small: int = 1, others: Sequence[Results] = ()
) -> dict[str, Any]:
    """One policy's figures, over all prompts and by slice.

    Args:
        k: number of samples of each prompt.
        others: policies on the same prompts, with which pass@k and maj@k are compared.
    """
    return {
        **accuracies(results),
        **_of_several([results, *others], k, ks),
        "truncated_share": mean(float(cut) for result in results for cut in result.truncated),
        "unscorable_share": mean(float(a is None) for result in results for a in result.accuracies),
        "length_mean": mean(float(length) for result in results for length in result.lengths),
        "reward": mean(result.reward for result in results),
        "parts": mean_by_name(result.parts for result in results),
        "metrics": mean_by_name(result.metrics for result in results),
        **slices(results, small),
        "calibration": calibration(results, small),
    }


def _of_several(sides: Sequence[Results], k: int, ks: Sequence[int]) -> dict[str, Any]:
    """pass@k and maj@k of the first side, over the prompts for which all sides have them: an unscorable sample takes a
    prompt out, and figures of different prompts do not compare."""
    found = {size: passing(comparable(sides, size)[0], [size]) for size in {k, *ks} if size}
    parts = {part: {str(size): found[size][part][str(size)] for size in ks} for part in ("pass_at", "maj_at")}
    return {"pass_at_k": found[k]["pass_at"][str(k)] if k else None, **parts}


def compare(
    before: Results, after: Results, settings: EvaluationSettings, seed: int, samples: int | None = None
) -> dict[str, Any]:
    """The SFT checkpoint and the trained policy on the same prompts, paired.

    Args:
        samples: of each prompt, where it is not what the settings say.

    Raises:
        ValueError: the two sides are not the same prompts in the same order.
    """
    k = settings.samples if samples is None else samples
    ks = settings.sizes(k)
    gain, greedy_gain = gains(before, after, settings, derive(seed, "bootstrap"))
    trained = summarise(after, k, ks, settings.small, [before])
    return {
        "prompts": len(before),
        "samples": k,
        "k": k,
        "ks": list(ks),
        "sft": summarise(before, k, ks, settings.small, [after]),
        "trained": _with_gains(trained, "gain", before, after, settings, seed),
        "gain": gain,
        "greedy_gain": greedy_gain,
    }


def against_champion(
    figures: dict[str, Any], champion: Results, trained: Results, settings: EvaluationSettings, seed: int
) -> dict[str, Any]:
    """The ``figures`` of `compare` with those of a champion, and the gains over it.

    Raises:
        ValueError: the two sides are not the same prompts in the same order.
    """
    gain, greedy_gain = gains(champion, trained, settings, derive(seed, "bootstrap"))
    return {
        **figures,
        "trained": _with_gains(figures["trained"], "gain_over_champion", champion, trained, settings, seed),
        "champion": summarise(champion, figures["k"], figures["ks"], settings.small, [trained]),
        "gain_over_champion": gain,
        "greedy_gain_over_champion": greedy_gain,
    }


def _with_gains(
    figures: dict[str, Any], key: str, before: Results, after: Results, settings: EvaluationSettings, seed: int
) -> dict[str, Any]:
    """The figures of ``after`` with the gain of every slice under ``key``."""
    found = {**figures, **{kind: dict(figures[kind]) for kind in SLICES}}
    for kind, name, old, new in pairs(before, after):
        gain = sampled_gain(old, new, settings, derive(seed, "bootstrap"))
        found[kind][name] = {**found[kind][name], key: gain}
    return found


def headline(before: Results, after: Results, settings: EvaluationSettings, seed: int) -> dict[str, Any]:
    """The few figures that state whether a comparison stands: both sides' accuracies, and the gains.

    Raises:
        ValueError: the two sides are not the same prompts in the same order.
    """
    gain, greedy_gain = gains(before, after, settings, derive(seed, "bootstrap"))
    return {
        "prompts": len(before),
        "sft": accuracies(before),
        "trained": accuracies(after),
        "gain": gain,
        "greedy_gain": greedy_gain,
    }
