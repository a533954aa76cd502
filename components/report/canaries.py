"""What training must not change: each probe set before, while and after it, against its limit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from components.canaries.verdict import Finding, findings
from components.config.canaries import RequiredCanary
from components.health.limits import limits
from components.report.plots import points_of
from components.report.run import Part, Run, dig
from components.words import plural

Result = Literal["held", "lost", "not sure", "missing"]
PREFIX, DROP = "canary_", "canary_drop"
CHECK = "canaries"
"""What the gate calls its check of them."""
RESULTS: Mapping[str, Result] = {"pass": "held", "fail": "lost", "inconclusive": "not sure"}


@dataclass(frozen=True)
class CanaryRow:
    """One way in which one probe set was scored; scores are shares in [0, 1], margins nats.

    ``change`` is the one that was judged, in the part of the set that fell most (``part``, "" for all of it), with its
    95 % interval where there is one; ``limit`` is the largest fall. ``lowest`` was seen while training, at ``step``.
    ``margin`` is how far the lead of the right answers changed where it fell most, ``lost`` of how many probes it is no
    number any more. ``missing``: it was not scored as it was to be, ``note`` states why.
    """

    name: str
    way: str
    result: Result
    before: float | None = None
    lowest: float | None = None
    step: int | None = None
    after: float | None = None
    change: float | None = None
    limit: float | None = None
    low: float | None = None
    high: float | None = None
    probes: int | None = None
    part: str = ""
    margin: float | None = None
    margin_limit: float | None = None
    lost: int = 0
    note: str = ""
    champion: float | None = None


def canary_rows(run: Run) -> list[CanaryRow]:
    """From `out/canaries.json`, by the limits that the gate goes by; where there is none, from what was probed while
    training. A set that is required and absent has a row too.

    Raises:
        InputError: a figure is missing or no number.
    """
    chosen, required = run.settings.health.canaries, _required(run)
    if run.canaries is not None:
        found = {"sets": {}, **run.canaries}
        return [_judged(found, one, run) for one in findings(found, chosen, required)]
    absent = {name: wanted for name, wanted in required.items() if name not in chosen}
    return [*_seen(run), *(_judged({}, one, run) for one in findings({"sets": {}}, {}, absent))]


def _required(run: Run) -> Mapping[str, RequiredCanary]:
    """What the gate required: the policy, where it is known, or else the run's own settings."""
    return run.settings.gate.canaries if run.required is None else run.required


def _judged(canaries: Part, one: Finding, run: Run) -> CanaryRow:
    if one.drop is None or one.limit is None:
        why = one.text.removeprefix(f"{one.name}: ")
        return CanaryRow(one.name, f"by {one.by}" if one.by else "", "missing", note=why)
    way, drop, margin = dig(canaries, "sets", one.name, "by", one.by), one.drop.to_dict(), one.margin
    return CanaryRow(
        name=one.name,
        way=f"by {one.by}",
        result=RESULTS[one.verdict],
        before=dig(way, "sft", "score"),
        lowest=dig(way, "while_training", "score"),
        step=dig(way, "while_training", "step"),
        after=dig(way, "trained", "score"),
        change=-drop["mean"],
        limit=one.limit.max_drop,
        low=None if drop["high"] is None else -drop["high"],
        high=None if drop["low"] is None else -drop["low"],
        probes=one.drop.n,
        part=one.drop.stratum,
        margin=-margin.mean if margin is not None and margin.n else None,
        margin_limit=run.settings.health.canaries[one.name].max_margin_drop if one.by == "likelihood" else None,
        lost=0 if margin is None else margin.lost,
        note=_note(way),
        champion=dig(way, "champion", "score"),
    )


def _note(way: Part) -> str:
    """How many probes say nothing about the bias that the set measures."""
    without = dig(way, "trained", "bias", "without")
    return f"{plural(without, 'probe')} without a stereotyped answer" if without else ""


def _seen(run: Run) -> Iterator[CanaryRow]:
    """The last step that probed stands for the time after training; nothing states how sure the figures are."""
    records = run.records or []
    signals = {signal for record in records for signal in record.signals if signal.startswith(PREFIX)}
    for name in sorted(signals - {DROP}):
        limit = _limit(run, name.removeprefix(PREFIX))
        steps, values = points_of(records, name)
        change, lowest = values[-1] - values[0], min(values)
        result: Result = "not sure" if limit is None or len(values) < 2 else "held" if -change <= limit else "lost"
        yield CanaryRow(
            name.removeprefix(PREFIX), "while training", result, before=values[0], lowest=lowest,
            step=steps[values.index(lowest)], after=values[-1], change=change, limit=limit,
        )  # fmt: skip


def _limit(run: Run, name: str) -> float | None:
    """Of the probe set, or of a rule about all of them."""
    health, wanted = run.settings.health, _required(run).get(name)
    if name in health.canaries:
        own = health.canaries[name].max_drop
        return own if wanted is None or wanted.max_drop is None else min(own, wanted.max_drop)
    rules = limits(health.rules) if health.enabled else ()
    return min((rule.value for rule in rules if rule.signal == DROP and rule.above), default=None)
