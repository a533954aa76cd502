"""A run's health in sentences, the same in the terminal, on the page, in the ledger's table and in the artifacts.

- `line` — one live line per step, and the ledger behind it, read as it is written
- `phrases` — a response and its outcome in a few words, and the rows of the ledger's table
- `verdict` — `run_verdict`, the whole run on one page, of a headline and the `answers` to six questions
- `markdown` — the verdict and the ledger as text; imported by its own name, as it needs what pages are made of
"""

from components.health.summaries.line import LiveLedger, health_line
from components.health.summaries.phrases import Row, ledger_rows
from components.health.summaries.verdict import RunVerdict, run_verdict

__all__ = ["LiveLedger", "Row", "RunVerdict", "health_line", "ledger_rows", "run_verdict"]
