"""All of the page as JSON values. Runs go by their letters, in the order in which they were named."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from components.compare.curves import SIGNALS
from components.compare.entry import Entry
from components.compare.evaluation import Pair, every_suite, over_sft, pairs, score_of
from components.report.changes import UNSET, across
from components.report.gains import Forest
from components.report.plots import points_of

ASIDE = re.compile(r"sinks\.|health\.rules\.\w+\.(why|source)$")
"""Settings that are no part of a run, and words about a rule."""


def settings_that_differ(entries: Sequence[Entry]) -> dict[str, list[Any]]:
    """Dotted path -> the value in each run, defaults resolved; `UNSET` where a run has no such setting."""
    found = across([entry.run.settings.model_dump(mode="json") for entry in entries])
    return {key: values for key, values in found.items() if not ASIDE.match(key)}


def to_dict(entries: Sequence[Entry]) -> dict[str, Any]:
    """``runs``, ``settings`` (dotted path -> run -> value), ``curves`` (signal -> run -> ``step``, ``completions`` and
    ``value``), ``evaluation`` and ``costs``. Null is what a run does not have."""
    forest = over_sft(entries)
    return {
        "runs": {entry.letter: _entry(entry) for entry in entries},
        "settings": {
            key: {one.letter: value for one, value in zip(entries, values, strict=True) if value is not UNSET}
            for key, values in settings_that_differ(entries).items()
        },
        "curves": {signal: {entry.letter: _curve(entry, signal) for entry in entries} for signal in SIGNALS},
        "evaluation": {
            "suites": {
                suite: {entry.letter: _score(entry, suite) for entry in entries} for suite in every_suite(entries)
            },
            "over_sft": _rows(forest),
            "pairs": [_pair(pair) for pair in pairs(entries)],
        },
        "costs": {entry.letter: _costs(entry) for entry in entries},
    }


def _entry(entry: Entry) -> dict[str, Any]:
    return {
        "run": entry.name,
        "state": entry.state,
        "commit": entry.commit,
        "headline": entry.headline.title,
        "sentence": entry.headline.sentence,
        "steps": entry.steps,
        "missing": [{"path": one.path, "reason": one.reason} for one in entry.missing],
    }


def _curve(entry: Entry, signal: str) -> dict[str, Any] | None:
    steps, values = points_of(entry.run.records or (), signal)
    counts = entry.completions
    return {"step": steps, "completions": [counts.get(step) for step in steps], "value": values} if steps else None


def _score(entry: Entry, suite: str) -> dict[str, Any] | None:
    score = score_of(entry, suite)
    return None if score is None else asdict(score)


def _rows(forest: Forest | None) -> list[dict[str, Any]]:
    groups = forest.groups if forest else {}
    return [{"suite": title, **asdict(row)} for title, rows in groups.items() for row in rows]


def _pair(pair: Pair) -> dict[str, Any]:
    names = {"before": pair.one.letter, "after": pair.other.letter, "sentence": pair.sentence}
    return {**names, "rows": _rows(pair.forest), "other_prompts": pair.apart}


def _costs(entry: Entry) -> dict[str, Any]:
    stages = {name: asdict(one) for name, one in entry.stages.items()}
    total = {"seconds": entry.seconds, "hours": entry.hours, "gpu_hours": entry.gpu_hours}
    return {"stages": stages, **total, **asdict(entry.sampled), "processor": entry.processor}
