"""The Grafana dashboard of the signals that can make a run act, made from the rules so that it cannot drift from them.

``python -m components.health.grafana > configs/health/grafana.json`` writes it; a test fails when that is due.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from components.config import load
from components.config.judgement import RuleSettings
from components.files import dump_json
from components.health.limits import Limit, limits
from components.health.monitor import LEVELS
from components.health.rules import compile_rule
from components.health.signals import SIGNALS, find_signal
from components.sinks.prometheus import metric_of
from components.types import Level

Json = dict[str, Any]
SCHEMA = 42
"""Version of the classic dashboard model, which every Grafana since 12 reads and upgrades."""
SOURCE: Json = {"type": "prometheus", "uid": "${source}"}
COLOURS: dict[Level, str] = {"warn": "yellow", "intervene": "purple", "rollback": "orange", "stop": "red"}
WIDTH, HEIGHT, COLUMNS = 8, 7, 3
RUN = '{run=~"$run"}'


def acting_signals(rules: Mapping[str, RuleSettings]) -> dict[str, list[str]]:
    """Signal -> the rules that read it and do more than warn; in the order of the catalogue, prefixes last."""
    compiled = [compile_rule(name, rule) for name, rule in rules.items() if rule.level != "warn"]
    known = [*SIGNALS, *sorted({signal for rule in compiled for signal in rule.signals} - set(SIGNALS))]
    found = {signal: [rule.name for rule in compiled if signal in rule.signals] for signal in known}
    return {signal: names for signal, names in found.items() if names}


def dashboard(rules: Mapping[str, RuleSettings]) -> Json:
    """The dashboard for these rules."""
    panels = [_state_panel(), _events_panel("verdicts"), _events_panel("responses")]
    drawn = limits(rules)
    panels += [
        _signal_panel(signal, names, [limit for limit in drawn if limit.signal == signal and limit.alone])
        for signal, names in acting_signals(rules).items()
    ]
    for index, panel in enumerate(panels):
        row, column = divmod(index, COLUMNS)
        panel |= {"id": index + 1, "gridPos": {"x": column * WIDTH, "y": row * HEIGHT, "w": WIDTH, "h": HEIGHT}}
    return {
        "uid": "evenkeel-health", "title": "Evenkeel: training health", "tags": ["evenkeel"], "schemaVersion": SCHEMA,
        "editable": True, "graphTooltip": 1, "refresh": "10s", "time": {"from": "now-3h", "to": "now"},
        "timezone": "browser", "panels": panels, "templating": {"list": _variables()},
        "annotations": {"list": [_annotation(level) for level in COLOURS if level != "warn"]},
    }  # fmt: skip


def _variables() -> list[Json]:
    runs = "label_values(evenkeel_running, run)"
    return [
        {"name": "source", "label": "Data source", "type": "datasource", "query": "prometheus"},
        {"name": "run", "label": "Run", "type": "query", "datasource": SOURCE, "definition": runs,
         "query": {"query": runs, "refId": "run"}, "refresh": 2, "multi": True, "includeAll": True},
    ]  # fmt: skip


def _annotation(level: Level) -> Json:
    """A mark where something was done. ``changes`` sees the first one too: every counter begins at 0."""
    return {
        "name": f"Response: {level}", "datasource": SOURCE, "enable": True, "iconColor": COLOURS[level],
        "expr": f'changes(evenkeel_responses_total{{run=~"$run", level="{level}"}}[$__rate_interval]) > 0',
        "titleFormat": "{{level}}: {{rule}}", "textFormat": "{{run}}", "tagKeys": "rule,level",
    }  # fmt: skip


def _state_panel() -> Json:
    return {
        "type": "stat", "title": "Step", "description": "Latest step, and whether the run still trains.",
        "datasource": SOURCE, "fieldConfig": {"defaults": {"unit": "none"}, "overrides": []},
        "options": {"reduceOptions": {"calcs": ["lastNotNull"]}, "colorMode": "none"},
        "targets": [_target("A", f"evenkeel_step{RUN}", "{{run}} step"),
                    _target("B", f"evenkeel_running{RUN}", "{{run}} running")],
    }  # fmt: skip


def _events_panel(kind: str) -> Json:
    return {
        "type": "timeseries", "title": f"{kind.capitalize()} so far", "datasource": SOURCE,
        "description": f"{kind.capitalize()} by rule and level; rules that were silent are left out.",
        "fieldConfig": {"defaults": {"unit": "none", "decimals": 0, "min": 0}, "overrides": []},
        "targets": [_target("A", f"evenkeel_{kind}_total{RUN} > 0", "{{rule}} ({{level}})")],
    }  # fmt: skip


def _signal_panel(signal: str, names: Sequence[str], drawn: Sequence[Limit]) -> Json:
    known = find_signal(signal)
    if known is None:
        raise ValueError(f"undocumented signal: {signal}")
    metric, name = metric_of(signal)
    expression = f"{metric}{RUN}" if name is None else f'{metric}{{run=~"$run", name="{name}"}}'
    share = (known.low, known.high) in {(0, 1), (-1, 1)}
    defaults: Json = {"unit": "percentunit" if share else "none", "custom": {"thresholdsStyle": {"mode": "off"}}}
    if drawn:
        defaults["thresholds"] = {"mode": "absolute", "steps": thresholds(drawn)}
        defaults["custom"]["thresholdsStyle"]["mode"] = "line+area"
    return {
        "type": "timeseries", "title": signal, "datasource": SOURCE,
        "description": f"{known.meaning} ({known.unit}). Rules that act on it: {', '.join(names)}.",
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "targets": [_target("A", expression, "{{run}}")],
    }  # fmt: skip


def thresholds(drawn: Sequence[Limit]) -> list[Json]:
    """Grafana's steps, each a colour from its value upwards: the gravest limit that a value in it lies beyond."""
    edges = sorted({limit.value for limit in drawn})
    steps = [{"color": _colour(drawn, edges[0] - 1), "value": None}]
    middles = [(low + high) / 2 for low, high in pairwise([*edges, edges[-1] + 2])]
    return steps + [
        {"color": _colour(drawn, middle), "value": edge} for edge, middle in zip(edges, middles, strict=True)
    ]


def _colour(drawn: Sequence[Limit], value: float) -> str:
    crossed = [limit.level for limit in drawn if (value > limit.value if limit.above else value < limit.value)]
    return COLOURS[max(crossed, key=LEVELS.index)] if crossed else "transparent"


def _target(ref: str, expression: str, legend: str) -> Json:
    return {"refId": ref, "expr": expression, "legendFormat": legend, "datasource": SOURCE}


if __name__ == "__main__":
    sys.stdout.write(dump_json(dashboard(load(Path("configs/demo.yaml")).health.rules)))
