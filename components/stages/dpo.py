"""Stage `dpo`, outside the pipeline: no stage depends on it, and its outputs are empty where it has no steps.

Every run that is recorded has these, so what they need is imported only where there is something to do.
"""

from __future__ import annotations

from components.config import Settings
from components.directories import write_directory
from components.files import write_json, write_jsonl
from components.layout import Layout
from components.working import working


def run(settings: Settings, layout: Layout) -> None:
    """Train on stored pairs, see `components.stages.preferences`."""
    if settings.dpo.steps == 0:
        write_directory(layout.dpo, lambda directory: write_jsonl(directory / "log.jsonl", []))
        write_json(layout.dpo_metrics, {"steps": 0})
        return
    with working("loading the code"):
        from components.stages.preferences import optimize
    optimize(settings, layout)
