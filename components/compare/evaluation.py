"""What the trained policies are worth: every run by itself, and every two runs on the prompts that both answered."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from components.compare.entry import Entry
from components.config.evaluation import TEST
from components.evaluation.cache import Cache
from components.evaluation.pairing import gains
from components.evaluation.passing import accuracies
from components.evaluation.results import PromptResult
from components.report.gains import SLICE, Forest, Gain, axis_of, forests, score_interval
from components.report.run import Part, dig
from components.seeds import derive
from components.words import percent, plural, points

MEASURES = {"pass_at_1": "pass@1", "greedy": "accuracy, greedy"}
"""Of a suite whose answers are greedy alone there is only the second."""

UNKNOWN: Part = {"sft": {"pass_at_1": None}, "trained": {"pass_at_1": None}}
"""Of test prompts that were not both answered."""


@dataclass(frozen=True)
class Score:
    """What one trained policy came to on a suite: ``measure`` is a key of `MEASURES`, the ends those of Wilson's 95 %
    interval over the prompts."""

    measure: str
    share: float
    low: float
    high: float
    prompts: int


@dataclass(frozen=True)
class Pair:
    """Two runs: the forest plot has rows for the suites whose prompts both answered, or there is none. ``apart`` are
    the suites that both answered with other prompts, or with prompts that are not known to be the same."""

    one: Entry
    other: Entry
    forest: Forest | None
    apart: list[str]

    @property
    def gain(self) -> Gain | None:
        """In pass@1 on the test prompts."""
        rows = self.forest.groups.get("All test prompts") if self.forest else None
        return rows[0] if rows else None

    @property
    def paired(self) -> bool:
        """Whether the first row of every suite is: of pass@k no run keeps what is needed for that."""
        return all(rows[0].paired for rows in (self.forest.groups.values() if self.forest else ()))

    @property
    def sentence(self) -> str:
        """The comparison on the test prompts in a sentence."""
        names = f"{self.other.letter} and {self.one.letter}"
        lacking = [entry.letter for entry in (self.one, self.other) if not dig(entry.run.measured, "trained")]
        if lacking:
            return f"{names} cannot be compared: no evaluation of {' and '.join(lacking)}."
        if self.gain is None or self.gain.before is None or self.gain.after is None:
            return f"{names} were not evaluated on the same test prompts."
        than = {1: f"better than {self.one.letter}", -1: f"worse than {self.one.letter}"}
        said = than.get(self.gain.direction, f"neither clearly better nor clearly worse than {self.one.letter}")
        shares = f"{percent(self.gain.after)} against {percent(self.gain.before)}"
        figures = f"{shares}, {points(self.gain.mean)} points, {self.gain.interval}"
        paired = "" if self.gain.paired else ", not paired"
        return f"{self.other.letter} is {said} on {plural(self.gain.prompts, 'test prompt')}: {figures}{paired}."


def suites_of(entry: Entry) -> dict[str, Part]:
    """Suite -> its part of the evaluation; the run's own held-out prompts come first."""
    found = entry.run.measured
    return {} if not dig(found, "trained") else {TEST: found or {}, **(dig(found, "suites") or {})}


def every_suite(entries: Sequence[Entry]) -> list[str]:
    """The suites that some run answered."""
    return list(dict.fromkeys(name for entry in entries for name in suites_of(entry)))


def score_of(entry: Entry, suite: str) -> Score | None:
    """None where nothing was measured, or nothing could be scored."""
    part = suites_of(entry).get(suite)
    prompts = dig(part, "prompts")
    known = ((name, dig(part, "trained", name)) for name in MEASURES)
    measure, share = next(((name, share) for name, share in known if share is not None), ("", None))
    return Score(measure, share, *score_interval(share, prompts), prompts) if share is not None and prompts else None


def over_sft(entries: Sequence[Entry]) -> Forest | None:
    """What each run gained over its own SFT checkpoint, a group of rows a suite."""
    groups: dict[str, list[Gain]] = {}
    for entry in entries:
        plot = next((one for one in forests(entry.run.measured, _small(entry)) if one.name == "sft"), None)
        for title, rows in plot.groups.items() if plot else ():
            if rows and not title.startswith(SLICE):
                greedy = ", greedy" if "greedy" in rows[0].name else ""
                groups.setdefault(title, []).append(replace(rows[0], name=f"{entry.title}{greedy}"))
    return Forest("sft", "SFT", groups, axis_of(groups)) if groups else None


def pairs(entries: Sequence[Entry]) -> list[Pair]:
    """Every two runs, the later one against the earlier one."""
    return [_pair(one, other) for one, other in combinations(entries, 2)]


def _pair(one: Entry, other: Entry) -> Pair:
    before, after = suites_of(one), suites_of(other)
    both = [name for name in before if name in after]
    same = [name for name in both if _digest(before[name]) and _digest(before[name]) == _digest(after[name])]
    parts = {name: _together(one, other, before[name], after[name]) for name in same}
    (plot,) = forests({**parts.pop(TEST, UNKNOWN), "suites": parts}, _small(one, other))
    forest = replace(plot, name="pair", before=one.letter, after=other.letter) if plot.groups else None
    return Pair(one, other, forest, [name for name in both if name not in same])


def _digest(part: Part) -> str:
    return str(dig(part, "prompts_sha256") or "")


def _together(one: Entry, other: Entry, before: Part, after: Part) -> Part:
    """The two policies as `out/evaluation.json` has SFT checkpoint and trained policy. The gains are paired where the
    answers of both are kept."""
    same_k = dig(before, "k") == dig(after, "k")
    keys = ("pass_at_1", "greedy", *(("pass_at_k", "maj_at") if same_k else ()))
    found: dict[str, Any] = {"prompts": dig(after, "prompts"), "k": dig(after, "k") if same_k else None}
    found["sft"], found["trained"] = ({key: dig(side, "trained", key) for key in keys} for side in (before, after))
    old, new = _kept(one, before), _kept(other, after)
    if old and new and [result.id for result in old] == [result.id for result in new]:
        settings = other.run.settings
        seed = derive(settings.seed, "bootstrap")
        found["gain"], found["greedy_gain"] = gains(old, new, settings.evaluation, seed)
    return found


def _kept(entry: Entry, part: Part) -> list[PromptResult] | None:
    """The kept results of single prompts from which these figures come: code or settings may have changed since, and
    then other results are kept as well."""
    digest, prompts = dig(entry.run.evaluation, "checkpoint_sha256"), _digest(part)
    for folder in entry.kept:
        for results in Cache(folder).results(str(digest), prompts):
            measured = accuracies(results)
            if all(_equal(measured[name], dig(part, "trained", name)) for name in MEASURES):
                return results
    return None


def _equal(one: float | None, other: float | None) -> bool:
    return one is other if one is None or other is None else math.isclose(one, other, abs_tol=1e-12)


def _small(*entries: Entry) -> int:
    return max(entry.run.settings.evaluation.small for entry in entries)
