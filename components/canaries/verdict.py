"""What `out/canaries.json` means for a promotion: was anything lost that must not be?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from components.canaries.drops import GRAVITY, ROUNDING, Drop, Limit, gravest, margin_limit, score_limit
from components.config.canaries import CanarySettings, RequiredCanary
from components.errors import InputError
from components.types import GateResult

Answer = tuple[GateResult, str]
HOW = (
    "a checkpoint that keeps what the probe sets ask for; more probes where there are too few to tell; or, if the loss "
    "is meant, another set or limit under health.canaries"
)


class Finding(NamedTuple):
    """What one set, measured in one way, comes to. ``used`` is its fall as a share of its limit."""

    result: GateResult
    text: str
    used: float = 0.0


def judge_canaries(
    found: Mapping[str, Any], settings: Mapping[str, CanarySettings], required: Mapping[str, RequiredCanary]
) -> Answer:
    """Every configured and every required set, of which there is one at least: the worst result, and what made it so.

    The verdict is made anew from the falls on record, by the run's own limits or the tighter ones of a policy.

    Args:
        found: the content of `out/canaries.json`.

    Raises:
        InputError: a figure is missing or no number.
    """
    findings = list(_findings(found, settings, required))
    result = max((finding.result for finding in findings), key=GRAVITY.index)
    if result == "pass":
        nearest = max(findings, key=lambda finding: finding.used)
        return result, f"{len(settings)} probe sets kept; nearest to its limit: {nearest.text}"
    return result, "; ".join(finding.text for finding in findings if finding.result == result)


def _findings(
    found: Mapping[str, Any], settings: Mapping[str, CanarySettings], required: Mapping[str, RequiredCanary]
) -> Iterator[Finding]:
    sets = found.get("sets")
    if not isinstance(sets, dict):
        raise InputError("canaries: there are no sets")
    for name in sorted({*settings, *required}):
        asked = required.get(name)
        if name not in settings:
            yield Finding("fail", f"{name}: the policy asks for this probe set, and the run has none of that name")
        elif not isinstance(sets.get(name), dict):
            yield Finding("fail", f"{name}: it was not scored")
        elif asked is not None and asked.sha256 not in (None, sets[name].get("sha256")):
            yield Finding("fail", f"{name}: it is not the probe set that the policy asks for ({asked.sha256:.12})")
        elif asked is not None and (other := _judged_otherwise(settings[name], asked)):
            yield Finding("fail", f"{name}: {', '.join(other)} of health.canaries must be as gate.canaries has it")
        else:
            yield from _ways(name, sets[name], settings[name], asked)


def _judged_otherwise(settings: CanarySettings, asked: RequiredCanary) -> list[str]:
    """The settings in which a run judged the file that a policy names in another way than it says."""
    if asked.sha256 is None:
        return []
    ours, theirs = settings.judged_by(), asked.judged_by()
    return [name for name in theirs if ours[name] != theirs[name]]


def _ways(
    name: str, one: Mapping[str, Any], settings: CanarySettings, asked: RequiredCanary | None
) -> Iterator[Finding]:
    limit, ways = score_limit(settings), settings.by
    if asked is not None:
        bound = limit.max_drop if asked.max_drop is None else min(limit.max_drop, asked.max_drop)
        limit = Limit(bound, min(limit.max_drop_se, asked.max_drop_se))
        ways = tuple(dict.fromkeys((*ways, *asked.by)))
    failed: GateResult = "inconclusive" if settings.level == "warn" and asked is None else "fail"
    for by in ways:
        way = one.get("by", {}).get(by)
        if not isinstance(way, dict) or not way.get("drops"):
            yield Finding("fail", f"{name}: it was not scored by {by}")
            continue
        drop = gravest([_drop(name, row) for row in way["drops"]], limit)
        result, used = drop.verdict(limit), drop.mean / max(limit.max_drop, ROUNDING)
        yield Finding(failed if result == "fail" else result, _said(f"{name} by {by}", drop, limit), used)
        for margin in (_drop(name, row) for row in way.get("margin_drops", ())):
            if margin.beyond(margin_limit(settings)):
                fell = f"the margin fell by {margin.mean:.2f} nats, limit {settings.max_margin_drop:.2f}"
                yield Finding(failed, f"{name} by {by}: {fell}")


def _drop(name: str, row: Any) -> Drop:
    """A fall as it is on record.

    Raises:
        InputError: a figure is missing or no finite number.
    """
    values = [row.get(key) if isinstance(row, dict) else None for key in ("mean", "se", "n")]
    good = all(isinstance(v, (int, float)) and not isinstance(v, bool) and math.isfinite(v) for v in values)
    if not good or values[1] < 0 or values[2] < 0:  # type: ignore[operator]
        raise InputError(f"canaries: the fall of {name} is not recorded in finite numbers: {values}")
    return Drop(float(values[0]), float(values[1]), int(values[2]), str(row.get("stratum", "")))  # type: ignore[arg-type]


def _said(what: str, drop: Drop, limit: Limit) -> str:
    where = f" ({drop.stratum})" if drop.stratum else ""
    if not drop.n:
        return f"{what}{where}: no probe could be judged"
    change = f"{what}{where} {0.0 - 100 * drop.mean:+.1f} points, limit -{100 * limit.max_drop:.1f}"
    if drop.verdict(limit) == "inconclusive":
        return f"{change}; {drop.n} probes show no fall below {100 * drop.detectable:.1f} points"
    return change
