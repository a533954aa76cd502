"""Figures under the names that dashboards of the field expect: the mapping files of `components.health.readers`, in
reverse. What has no name there is shown under ours alone, `evenkeel/<signal>`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from components.health.readers.names import NAMES_FOLDER, Metric, load_names

Translate = Callable[[Mapping[str, float]], dict[str, float]]
OURS = "evenkeel/"


def translator(dialect: str) -> Translate:
    """From signals to all figures of a step. ``dialect`` is a mapping file's name, or "none"."""
    known = {} if dialect == "none" else load_names(NAMES_FOLDER / f"{dialect}.yaml").signals

    @cache
    def theirs(signal: str) -> tuple[str, Metric] | None:
        for ours, metric in known.items():
            stem, star, _ = ours.partition("*")
            name, stars = metric.name[0], metric.name[0].count("*")
            if star and stars == 1 and signal.startswith(stem):
                return _placed(name.replace("*", signal.removeprefix(stem)), dialect), metric
            if ours == signal and not stars:
                return _placed(name, dialect), metric
        return None

    def translate(signals: Mapping[str, float]) -> dict[str, float]:
        figures = {f"{OURS}{signal}": value for signal, value in signals.items()}
        for signal, value in signals.items():
            if (found := theirs(signal)) is not None:
                name, metric = found
                figures[name] = 1 - value if metric.one_minus else (value - metric.offset) / metric.scale
        return figures

    return translate


def _placed(name: str, dialect: str) -> str:
    """As trackers get it: Hugging Face's Trainer puts ``train/`` before a name, or makes ``eval_x`` into ``eval/x``."""
    if dialect != "trl":
        return name
    return f"eval/{name.removeprefix('eval_')}" if name.startswith("eval_") else f"train/{name}"
