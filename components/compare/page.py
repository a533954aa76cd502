"""All of the page as JSON values, and as one HTML text: the report's head, styles and macros around sections of its
own.

Runs go by their letters, in the order in which they were named.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict
from functools import cache
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader

from components.compare.curves import SIGNALS, draw_all
from components.compare.entry import Entry
from components.compare.evaluation import MEASURES, Pair, every_suite, over_sft, pairs, score_of
from components.report.changes import UNSET, across, shown
from components.report.drawing import css
from components.report.gains import Forest
from components.report.page import environment
from components.report.plots import points_of
from components.working import clock

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


def sections() -> list[tuple[str, str]]:
    """Anchor and title of every section, in reading order."""
    return [
        ("runs", "Runs"), ("settings", "Settings"), ("curves", "Curves"), ("evaluation", "Evaluation"),
        ("costs", "Costs"),
    ]  # fmt: skip


def render(entries: Sequence[Entry]) -> str:
    """HTML of the whole page; equal runs give equal text."""
    found = settings_that_differ(entries)
    return _environment().get_template("compare.jinja").render(
        entries=entries, css=css, sections=sections(),
        settings={key: list(map(shown, values)) for key, values in found.items()},
        suites={name: [score_of(entry, name) for entry in entries] for name in every_suite(entries)},
        measures=MEASURES, over_sft=over_sft(entries), pairs=pairs(entries), curves=draw_all(entries),
        stages=list(dict.fromkeys(name for entry in entries for name in entry.stages)), zip=zip,
    )  # fmt: skip


@cache
def _environment() -> Environment:
    own, shared = PackageLoader("components.compare"), PackageLoader("components.report")
    templates = environment().overlay(loader=ChoiceLoader([own, shared]))
    templates.filters = {**templates.filters, "clock": clock}
    return templates
