"""The page a person reads before approving a checkpoint: one file, no scripts, no requests, the same bytes every time.

- `run` — what the stages left behind; `load` reads it and says why a part is missing
- `verdict` — the headline and the sentence under it; `attention` — what deserves a second look
- `health` — verdicts as the page shows them; which rules spoke and which stayed silent
- `tables` — triage against its limits, before and after by slice
- `samples` — which completions are shown side by side
- `changes` — settings that differ from their defaults
- `panels` — the plots over steps as data; `plots` draws one, `labels` writes beside it, `overlay` draws the limits of
  rules, verdicts, responses and what was thrown away; `svg` and `palette` fit it into the page
- `pictures` — a few of the plots as PNG images, for a place that shows no page
- `page` — all of it put into `templates/report.jinja`
"""

from components.report.load import load_run
from components.report.page import render, render_verdict
from components.report.run import Run

__all__ = ["Run", "load_run", "render", "render_verdict"]
