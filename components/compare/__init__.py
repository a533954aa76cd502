"""Runs side by side on one page: what differs in their settings, how they trained, what they are worth, what they cost.

- `entry` — one of the runs, with its letter and colour, what is missing of it, and what it cost: seconds, completions
  and tokens
- `curves` — the plots, over steps and over completions
- `evaluation` — pass@1 of every run with its interval, and the paired difference of every two runs
- `page` — all of it as JSON values, and the page, drawn and styled by `components.report`
"""

from components.compare.entry import Entry, StageTime, lettered
from components.compare.page import render, to_dict

__all__ = ["Entry", "StageTime", "lettered", "render", "to_dict"]
