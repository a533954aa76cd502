"""The page a person reads before approving a checkpoint: one file, no scripts, no requests, the same bytes every time.

- `run` — what the stages left behind; `load` reads it, also of a candidate from what is stored with it, states why a
  part is missing and refuses NaN; `comparison` — with the champion, and nothing of another one
- `verdict` — the headline and the sentence under it; the gate's checks by question, and what would change them
- `decision` — the box at the top: question, facts, commands, what nothing can answer; `attention` — what deserves a
  second look
- `changes` — settings against the champion's run or the defaults; `lineage` — where the checkpoint comes from
- `gains` — the forest plot's rows over SFT and champion; `curve` — pass@k
- `samples` — which completions are shown side by side, and where they differ
- `canaries` — what it must not unlearn, before, while and after
- `tables` — triage against its limits, figures other than accuracy, what a verdict saw
- `panels` — the plots over steps as data; `plots` draws one, also as PNG for a place that shows no page, `overlay` the
  limits of rules, verdicts, responses and what was thrown away; `drawing` has colours, labels and axes, and fits it
  into the page
- `page` — all of it put into `templates/report.jinja`, a section a file, with `style.css`, `plots.css`, `print.css`
"""

from components.report.load import champion_of, load_evidence, load_run
from components.report.page import render, render_verdict
from components.report.run import Run

__all__ = ["Run", "champion_of", "load_evidence", "load_run", "render", "render_verdict"]
