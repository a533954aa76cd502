"""PPO and GRPO over several turns: what the table says of rows."""

from __future__ import annotations

from typing import Any

from tests.benchmarks.horizon.figures import AT, figures


def row(method: str, seed: int, *success: float, seconds: float = 10.0) -> dict[str, Any]:
    curve = [list(pair) for pair in zip(AT, success, strict=True)]
    return {"method": method, "seed": seed, "curve": curve, "turns": [7.0, 5.0], "seconds": seconds}


def test_differences_are_those_of_the_same_seed():
    rows = [row("grpo", 1, 0.1, 0.2, 0.3, 0.4), row("grpo", 2, 0.1, 0.4, 0.5, 0.6)]
    rows += [row("ppo", 1, 0.1, 0.3, 0.4, 0.4, seconds=15.0), row("ppo", 2, 0.1, 0.5, 0.4, 0.6, seconds=25.0)]
    (*_, grpo, ppo, apart) = figures(rows)["doors"].splitlines()
    assert grpo == "| grpo | 2 | 10% | 30% | 40% | 50% | 6.00 | 100% |"
    assert ppo == "| ppo | 2 | 10% | 40% | 40% | 50% | 6.00 | 200% |"
    assert apart == "| ppo - grpo, points | 2 | - | +10 (+10 to +10) | +0 (-10 to +10) | +0 (+0 to +0) | - | - |"


def test_a_seed_of_one_method_alone_counts_nowhere():
    assert figures([row("grpo", 1, 0, 0, 0, 0), row("ppo", 2, 0, 0, 0, 0)]) == {}
