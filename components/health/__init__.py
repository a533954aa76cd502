"""Is this run healthy? Signals in, verdicts out; no torch, no I/O besides `records`.

- `signals` — `SIGNALS`, what every number of a step means, and how those of its groups are computed
- `windows` — `WINDOWS`, the functions over history that a rule may call
- `rules` — from the text of a rule to a checked condition
- `monitor` — applies rules step by step; the same code replays a saved run
- `records` — reads a saved run back
- `limits` — the constants that rules compare signals with; `lineage` — the steps that roll-backs threw away
- `telling` — a run's health in words; `prometheus` — its figures for Prometheus, `grafana` — their dashboard

A new signal is one entry in `SIGNALS`, a new function one in `WINDOWS`, a new rule one in `configs/health/`.
"""

from components.health.ledger import Ledger, read_ledger
from components.health.monitor import LEVELS, Monitor, check_rules, replay, worst
from components.health.records import read_records, read_verdicts
from components.health.signals import PREFIXES, SIGNALS, Jumps, Signal, dev_signals, find_signal, like_gap, step_signals
from components.health.windows import WINDOWS

__all__ = [
    "LEVELS",
    "PREFIXES",
    "SIGNALS",
    "WINDOWS",
    "Jumps",
    "Ledger",
    "Monitor",
    "Signal",
    "check_rules",
    "dev_signals",
    "find_signal",
    "like_gap",
    "read_ledger",
    "read_records",
    "read_verdicts",
    "replay",
    "step_signals",
    "worst",
]
