"""The report as one HTML text."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader

from components import pages, words
from components.config import dump
from components.health.responses import Ledger
from components.health.summaries import RunVerdict, ledger_rows, run_verdict
from components.health.summaries.markdown import to_markdown
from components.report.attention import attention
from components.report.canaries import CHECK, canary_rows
from components.report.changes import changed, differences
from components.report.curve import pass_curve
from components.report.decision import afterwards, commands, facts, not_judged, question, rollback
from components.report.drawing import css
from components.report.gains import forests
from components.report.lineage import origins
from components.report.overlay import overlay_of
from components.report.panels import PANELS
from components.report.plots import draw_all
from components.report.run import Run, dig
from components.report.samples import choose, folded, tally
from components.report.tables import last_values, other_figures, triage_limits
from components.report.verdict import check_named, grouped, headline, open_checks, read_checks
from components.report.verdict import tally as tally_of_checks


@cache
def environment() -> Environment:
    """The report's templates, with what they call."""
    templates = pages.environment(PackageLoader("components.report"))
    templates.filters |= {
        "percent": words.percent,
        "points": words.points,
        "signed": words.signed,
        "number": words.number,
        "plural": words.plural,
    }
    templates.globals |= {"dig": dig, "last_values": last_values}
    return templates


def run_health(run: Run) -> RunVerdict:
    """The summary of the run's health."""
    return run_verdict(run.settings, run.train, run.records or [], run.verdicts or [], run.ledger or Ledger())


def render_verdict(run: Run) -> str:
    """The same as Markdown, with the ledger; equal runs give equal text."""
    return to_markdown(run.settings.name, run_health(run), ledger_rows(run.ledger or Ledger()))


def sections() -> list[tuple[str, str]]:
    """Anchor and title of every section, in reading order."""
    return [
        ("gate", "Gate"), ("changed", "What changed"), ("comparison", "Comparison"), ("samples", "Completions"),
        ("canaries", "Canaries"), ("health", "Health"), ("training", "Training"), ("triage", "Triage"),
        ("verifier", "Verifier"), ("data", "Data"), ("lineage", "Lineage"), ("settings", "Settings"),
        ("deciding", "Deciding"),
    ]  # fmt: skip


def render(run: Run) -> str:
    """HTML of the whole page; equal runs give equal text."""
    return environment().get_template("report.jinja").render(
        run=run, settings=run.settings, css=css, sections=sections(),
        yaml=dump(run.settings, without={"sinks"}),
        **_decision(run), **_comparison(run), **_training(run), **_origin(run),
    )  # fmt: skip


def _decision(run: Run) -> dict[str, Any]:
    head, checks, health = headline(run), read_checks(run), run_health(run)
    return {
        "headline": head,
        "question": question(run, head),
        "commands": commands(run, head),
        "rollback": rollback(run),
        "afterwards": afterwards(run),
        "facts": facts(run, health),
        "open_checks": open_checks(checks),
        "checks": grouped(checks),
        "tally_of_checks": tally_of_checks(checks),
        "attention": attention(run),
        "not_judged": list(not_judged(run, health)),
        "health": health,
    }


def _comparison(run: Run) -> dict[str, Any]:
    return {
        "evaluation": run.measured,
        "forests": forests(run.measured, run.settings.evaluation.small),
        "curve": pass_curve(run.measured),
        "other_figures": other_figures(run.measured),
        "samples": choose(run.samples or []),
        "tally": tally(run.samples or []),
        "folded": folded,
        "canaries": canary_rows(run),
        "canary_check": check_named(run, CHECK),
    }


def _training(run: Run) -> dict[str, Any]:
    verdicts, records, ledger = run.verdicts or [], run.records or [], run.ledger or Ledger()
    plots = draw_all(records, overlay_of(records, verdicts, ledger, run.settings), run.settings)
    drawn = {plot.name for plot in plots}
    return {
        "verdicts": verdicts,
        "ledger": ledger_rows(ledger),
        "fired": Counter(verdict.rule for verdict in verdicts),
        "plots": plots,
        "not_drawn": [panel.title for name, panel in PANELS.items() if name not in drawn],
        "limits": triage_limits(run.triage),
    }


def _origin(run: Run) -> dict[str, Any]:
    found = origins(run)
    return {
        "origins": found,
        "began": [one for one in found if one.name.startswith(("Code, commit", "Data", "Checkpoint that"))],
        "changed": changed(run),
        "differences": differences(run.settings),
    }
