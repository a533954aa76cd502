"""Does the offline difficulty agree with success, where both are known?

ADS walks from prompts with a low negative log-likelihood of their solution to those with a high one. That can be
unrelated to what the policy solves; then the walk is random, and this reports it before a run is spent on it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import atanh, sqrt, tanh
from typing import Any

import numpy as np
from scipy.stats import spearmanr

BINS = ("0", "0 to 1/5", "1/5 to 2/5", "2/5 to 3/5", "3/5 to 4/5", "4/5 to 1", "1")
"""Of success; others hold their lower end. Prompts in the first and in the last bin carry no gradient."""
FEWEST = 30
"""Measured prompts below which nothing is reported about the order."""
WEAK = 0.1
"""Rank correlation below which an order means nothing."""
Z = 1.959964


def difficulty_report(rows: Sequence[Mapping[str, Any]], success: Mapping[str, float]) -> dict[str, Any]:
    """What the clusters' order is worth.

    Args:
        rows: of `out/clusters.jsonl`: id, cluster, rank in the cluster, nll.
        success: id -> measured success in [0, 1], of some of them.

    Returns:
        ``measured`` prompts, ``histogram`` of their success, Spearman's rho of success with ``nll`` and with the
        relative ``rank`` inside the cluster (the walk itself; negative is as it should be), and a ``warning`` or "".
    """
    sizes = Counter(row["cluster"] for row in rows)
    known = [row for row in rows if row["id"] in success]
    rates = [success[row["id"]] for row in known]
    nll = correlation([row["nll"] for row in known], rates)
    places = [row["rank"] / sizes[row["cluster"]] for row in known]
    rank = correlation(places, rates)
    return {
        "measured": len(known),
        "histogram": histogram(rates),
        "nll": nll,
        "rank": rank,
        "warning": warning(places, rates, rank),
    }


def histogram(rates: Sequence[float]) -> list[dict[str, Any]]:
    """``success`` and ``prompts`` of every bin, in the order of `BINS`."""
    counts = Counter(0 if rate == 0 else 6 if rate == 1 else 1 + int(5 * rate) for rate in rates)
    return [{"success": name, "prompts": counts[place]} for place, name in enumerate(BINS)]


def correlation(order: Sequence[float], rates: Sequence[float]) -> dict[str, float] | None:
    """Spearman's ``rho`` with its 95 % interval; None where it does not exist (a constant, or fewer than 4 pairs).

    The interval is Fisher's, with the standard error sqrt((1 + rho^2 / 2) / (n - 3)) of Bonett and Wright (2000).
    """
    if len(order) < 4 or len(set(order)) == 1 or len(set(rates)) == 1:
        return None
    rho = float(np.clip(spearmanr(order, rates).statistic, -1, 1))
    inner = float(np.clip(rho, -1 + 1e-12, 1 - 1e-12))
    reach = Z * sqrt((1 + rho**2 / 2) / (len(order) - 3))
    low, high = tanh(atanh(inner) - reach), tanh(atanh(inner) + reach)
    return {"rho": round(rho, 6), "low": round(low, 6), "high": round(high, 6)}


def warning(places: Sequence[float], rates: Sequence[float], rank: Mapping[str, float] | None) -> str:
    """What is wrong with the order inside the clusters, as a sentence; empty where nothing is.

    Args:
        places: relative rank in its cluster of every measured prompt.
        rates: their success.
        rank: the `correlation` of the two.
    """
    measured, unknown = len(rates), "whether the clusters' order agrees with what the policy solves"
    if measured < FEWEST:
        return f"the success of {measured} training prompts is too little to tell {unknown}; raise triage.prompts"
    if rank is None:
        constant = f"success {rates[0]:g}" if len(set(rates)) == 1 else "the same rank in their clusters"
        return f"all {measured} training prompts that were measured have {constant}: it is unknown {unknown}"
    rho = f"Spearman {rank['rho']:+.2f}, 95 % {rank['low']:+.2f} to {rank['high']:+.2f}, {measured} prompts"
    if abs(rank["rho"]) < WEAK:
        return f"the clusters' order is unrelated to success ({rho}): a walk along it is random"
    if rank["rho"] > 0:
        return f"the clusters' order is upside down ({rho}): prompts that it ranks hard are solved more often"
    return ""
