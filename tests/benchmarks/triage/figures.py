"""The table over all pairs that are there. Verdicts are those of the present rule on the recorded figures. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from components.config.policy import TriageSettings
from components.sft.triage import LIMITS, judged
from tests.benchmarks.lines import source
from tests.benchmarks.section import Row
from tests.benchmarks.spread import table

FIGURES = ("pairs", "chosen", "reported", "count", "source")
GAIN = 0.05
"""Held-out pass@1 that training must gain before a pair counts as one that RL can train."""
HEAD = "pair|task|SFT steps|pass@1, %|pass@16, %|entropy, nats|groups with a gradient|triage|after, %|gain, points"


def figures(rows: Sequence[Row]) -> dict[str, str]:
    """`FIGURES`; "not measured" where there is no row."""
    if not rows:
        return dict.fromkeys(FIGURES, "not measured")
    ordered = sorted(rows, key=lambda row: row["pair"])
    return {
        "pairs": table(HEAD.split("|"), [_line(row) for row in ordered]),
        "chosen": rates([row for row in ordered if row["pair"] % 2 == 0]),
        "reported": rates([row for row in ordered if row["pair"] % 2 == 1]),
        "count": str(len(rows)),
        "source": source("make triage", ordered),
    }


def gain(row: Row) -> float:
    """Of held-out pass@1 by training."""
    return float(row["after"] - row["before"])


def judgement(row: Row) -> dict[str, Any]:
    """What triage says of a pair with the present limits."""
    return judged({**row["triage"], "limits": TriageSettings().model_dump(include=LIMITS)})


def rates(rows: Sequence[Row]) -> str:
    """How many of the refused and of the accepted pairs gained `GAIN` or more."""
    refused, accepted = (
        [gain(row) >= GAIN for row in rows if judgement(row)["verdict"] == verdict] for verdict in ("refuse", "accept")
    )
    return (
        f"of {len(refused)} refused pairs {sum(refused)} gained {100 * GAIN:.0f} points or more, "
        f"of {len(accepted)} accepted pairs {sum(accepted)}"
    )


def _line(row: Row) -> list[str]:
    found = row["triage"]
    verdict = judgement(row)
    return [
        str(row["pair"]),
        row["task"],
        str(row["sft"]),
        f"{100 * row['before']:.0f}",
        f"{100 * found['pass_at_k']:.0f}",
        f"{found['entropy']:.2f}",
        f"{verdict['teaching']:.2f}",
        verdict["verdict"],
        f"{100 * row['after']:.0f}",
        f"{100 * gain(row):+.0f}",
    ]
