"""The page as one HTML text: the report's head, styles and macros around sections of its own."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from jinja2 import ChoiceLoader, Environment, PackageLoader

from components.compare.curves import draw_all
from components.compare.data import settings_that_differ
from components.compare.entry import Entry
from components.compare.evaluation import MEASURES, every_suite, over_sft, pairs, score_of
from components.report.changes import shown
from components.report.drawing import css
from components.report.page import environment
from components.working import clock


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
