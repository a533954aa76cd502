"""What `out/canaries.json` means for a promotion: was anything lost that must not be?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from components.canaries.figures import GRAVITY, ROUNDING, Drop, Limit, gravest, margin_limit, score_limit
from components.config.canaries import CanarySettings, RequiredCanary
from components.errors import InputError
from components.types import GateResult
from components.words import plural

Answer = tuple[GateResult, str]
HOW = (
    "a checkpoint that keeps what the probe sets ask for; more probes where there are too few to tell; or, if the loss "
    "is meant, another set or limit under health.canaries"
)


@dataclass(frozen=True, slots=True)
class Finding:
    """What one set, measured in one way, comes to. ``verdict`` is what was measured, ``result`` what the gate makes of
    it. ``by`` is "" and there is no ``drop`` where it was not scored as it was to be; ``margin`` is the gravest fall of
    its margin, None where none is on record."""

    name: str
    by: str
    verdict: GateResult
    result: GateResult
    text: str
    limit: Limit | None = None
    drop: Drop | None = None
    margin: Drop | None = None

    @property
    def used(self) -> float:
        """The fall as a share of its limit."""
        return 0.0 if self.drop is None or self.limit is None else self.drop.mean / max(self.limit.max_drop, ROUNDING)


def judge_canaries(
    found: Mapping[str, Any], settings: Mapping[str, CanarySettings], required: Mapping[str, RequiredCanary]
) -> Answer:
    """Every configured and every required set, of which there is one at least: the worst result, and what made it so.

    Args:
        found: the content of `out/canaries.json`.

    Raises:
        InputError: a figure is missing or no number.
    """
    every = findings(found, settings, required)
    result = max((finding.result for finding in every), key=GRAVITY.index)
    if result == "pass":
        nearest = max(every, key=lambda finding: finding.used)
        return result, f"{len(settings)} probe sets kept; nearest to its limit: {nearest.text}"
    return result, "; ".join(finding.text for finding in every if finding.result == result)


def findings(
    found: Mapping[str, Any], settings: Mapping[str, CanarySettings], required: Mapping[str, RequiredCanary]
) -> list[Finding]:
    """Every configured and every required set, in every way in which it was to be scored.

    The verdict is computed again from the recorded falls, by the run's own limits or the tighter ones of a policy.

    Args:
        found: the content of `out/canaries.json`.

    Raises:
        InputError: a figure is missing or no number.
    """
    sets = found.get("sets")
    if not isinstance(sets, dict):
        raise InputError("canaries: there are no sets")
    every: list[Finding] = []
    for name in sorted({*settings, *required}):
        if problem := _not_scored(name, sets.get(name), settings.get(name), required.get(name)):
            every.append(_failed(name, "", problem))
        else:
            every += _ways(name, sets[name], settings[name], required.get(name))
    return every


def _not_scored(name: str, one: Any, settings: CanarySettings | None, required: RequiredCanary | None) -> str:
    """Why a set is not the one that was to be scored, or ""."""
    if settings is None:
        return "the policy asks for this probe set, and the run has none of that name"
    if not isinstance(one, dict):
        return "it was not scored"
    if required is None or required.sha256 is None:
        return ""
    if one.get("sha256") != required.sha256:
        return f"it is not the probe set that the policy asks for ({required.sha256:.12})"
    ours, theirs = settings.judged_by(), required.judged_by()
    other = [key for key in theirs if ours[key] != theirs[key]]
    return f"{', '.join(other)} of health.canaries must be as gate.canaries has it" if other else ""


def _ways(
    name: str, one: Mapping[str, Any], settings: CanarySettings, required: RequiredCanary | None
) -> Iterator[Finding]:
    limit, nats, ways = score_limit(settings), margin_limit(settings), settings.by
    if required is not None:
        bound = limit.max_drop if required.max_drop is None else min(limit.max_drop, required.max_drop)
        limit = Limit(bound, min(limit.max_drop_se, required.max_drop_se))
        ways = tuple(dict.fromkeys((*ways, *required.by)))
    needs_a_person = settings.level == "warn" and required is None
    for by in ways:
        way = one.get("by", {}).get(by)
        if not isinstance(way, dict) or not way.get("drops"):
            yield _failed(name, by, f"it was not scored by {by}")
            continue
        drops = [_drop(name, row) for row in way["drops"]]
        drop, margin = gravest(drops, limit), _margin(name, way.get("margin_drops"), drops, nats)
        verdict, text = drop.verdict(limit), _said(f"{name} by {by}", drop, limit)
        if by == "likelihood" and settings.max_margin_drop is not None:
            verdict = max(verdict, _of_margin(margin, nats), key=GRAVITY.index)
            text = "; ".join(filter(None, (text, _margin_text(margin, nats))))
        result: GateResult = "inconclusive" if verdict == "fail" and needs_a_person else verdict
        yield Finding(name, by, verdict, result, text, limit, drop, margin)


def _failed(name: str, by: str, why: str) -> Finding:
    return Finding(name, by, "fail", "fail", f"{name}: {why}")


def _margin(name: str, rows: Any, drops: Sequence[Drop], limit: Limit) -> Drop | None:
    """The gravest fall of the margin; None where it is not on record for every part of the set."""
    if not isinstance(rows, list) or not all(isinstance(row, dict) and "lost" in row for row in rows):
        return None
    margins = [_drop(name, row) for row in rows]
    if {margin.stratum for margin in margins} != {drop.stratum for drop in drops}:
        return None
    return max(margins, key=lambda margin: (GRAVITY.index(_of_margin(margin, limit)), margin.far))


def _of_margin(margin: Drop | None, limit: Limit) -> GateResult:
    if margin is None or margin.beyond(limit):
        return "fail"
    return "pass" if margin.n > 1 else "inconclusive"


def _margin_text(margin: Drop | None, limit: Limit) -> str:
    """Why it is no pass, or ""."""
    if margin is None:
        return "its margin is not on record: run the stage evaluate again"
    if margin.lost:
        return f"the margin of {plural(margin.lost, 'probe')} is no finite number any more"
    if margin.beyond(limit):
        return f"the margin fell by {margin.mean:.2f} nats, limit {limit.max_drop:.2f}"
    return "" if margin.n > 1 else f"{margin.n or 'no'} margin could be compared, which is too few"


def _drop(name: str, row: Any) -> Drop:
    """A fall as it is on record; ``lost`` is on record for margins.

    Raises:
        InputError: a figure is missing or no finite number.
    """
    values = [{"lost": 0, **row}.get(key) if isinstance(row, dict) else None for key in ("mean", "se", "n", "lost")]
    good = all(isinstance(v, (int, float)) and not isinstance(v, bool) and math.isfinite(v) for v in values)
    if not good or min(values[1:]) < 0:  # type: ignore[type-var,operator]
        raise InputError(f"canaries: the fall of {name} is not recorded in finite numbers: {values}")
    mean, se, n, lost = (float(value) for value in values)  # type: ignore[arg-type]
    return Drop(mean, se, int(n), str(row.get("stratum", "")), int(lost))


def _said(what: str, drop: Drop, limit: Limit) -> str:
    where = f" ({drop.stratum})" if drop.stratum else ""
    if not drop.n:
        return f"{what}{where}: no probe could be judged"
    change = f"{what}{where} {0.0 - 100 * drop.mean:+.1f} points, limit -{100 * limit.max_drop:.1f}"
    if drop.verdict(limit) == "inconclusive":
        return f"{change}; {drop.n} probes show no fall below {100 * drop.detectable:.1f} points"
    return change
