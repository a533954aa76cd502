"""The report as one HTML text."""

from __future__ import annotations

from jinja2 import Environment, PackageLoader, StrictUndefined

from components import words
from components.config import dump
from components.health import Ledger
from components.health.telling import RunVerdict, ledger_rows, run_verdict
from components.health.telling.markdown import to_markdown
from components.pages import visible
from components.report import palette
from components.report.attention import attention
from components.report.changes import differences
from components.report.health import figures, watches
from components.report.overlay import overlay_of
from components.report.panels import PANELS
from components.report.plots import draw_all
from components.report.run import Run, dig
from components.report.samples import choose, tally
from components.report.tables import changes_by_slice, measured, overall, triage_limits
from components.report.verdict import headline


def environment() -> Environment:
    """Templates with escaping on everywhere: what a model wrote is untrusted text."""
    templates = Environment(
        loader=PackageLoader("components.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters |= {
        "percent": words.percent,
        "points": words.points,
        "number": words.number,
        "visible": visible,
        "plural": words.plural,
    }
    templates.globals |= {"dig": dig, "figures": figures}
    return templates


def told(run: Run) -> RunVerdict:
    """The run's health in plain words."""
    return run_verdict(run.settings, run.train, run.records or [], run.verdicts or [], run.ledger or Ledger())


def render_verdict(run: Run) -> str:
    """The same as Markdown, with the ledger; equal runs give equal text."""
    return to_markdown(run.settings.name, told(run), ledger_rows(run.ledger or Ledger()))


def render(run: Run) -> str:
    """HTML of the whole page; equal runs give equal text."""
    verdicts, records = run.verdicts or [], run.records or []
    ledger = run.ledger or Ledger()
    plots = draw_all(records, overlay_of(records, verdicts, ledger, run.settings), run.settings)
    drawn = {plot.name for plot in plots}
    template = environment().get_template("report.jinja")
    return template.render(
        run=run,
        settings=run.settings,
        palette=palette,
        headline=headline(run),
        attention=attention(run),
        verdicts=verdicts,
        health=told(run),
        ledger=ledger_rows(ledger),
        watches=watches(run.settings, verdicts),
        plots=plots,
        not_drawn=[panel.title for name, panel in PANELS.items() if name not in drawn],
        limits=triage_limits(run.triage),
        overall=overall(run.evaluation),
        champion=overall(run.evaluation, "champion") if dig(run.evaluation, "champion") else [],
        measured=measured(run.evaluation),
        slices={kind: changes_by_slice(run.evaluation, kind) for kind in ("families", "difficulty")},
        samples=choose(run.samples or []),
        tally=tally(run.samples or []),
        differences=differences(run.settings),
        yaml=dump(run.settings),
    )
