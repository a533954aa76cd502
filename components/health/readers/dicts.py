"""Consoles that print a dictionary a step: TRL, Unsloth and ms-swift (``{'loss': 0.1, ...}``), OpenRLHF (``Global step
3: {...}``), slime (``rollout 3: {...}``, ``step 3: {...}``).

The dictionary is searched for names and numbers and never evaluated. transformers 5 prints its numbers in quotes. TRL
and Unsloth print no step: their entries are counted, each of which has a loss or an epoch. Other dictionaries without a
step are a program's own: settings, or what a reward function prints of one completion.
"""

from __future__ import annotations

import re

from components.health.readers.numbers import NUMBER, as_step
from components.health.readers.steps import Row

ENTRY = {"loss", "epoch", "eval_loss", "train_loss"}
_PRINTED = re.compile(r"(?:\b(?:[Gg]lobal step|rollout|step|eval|perf) (?P<step>\d{1,15}): )?(?P<inner>\{'.*)")
_PAIR = re.compile(
    rf"'(?P<name>[^']{{1,200}})': (?:np\.\w+\()?(?P<quote>'?)(?P<value>{NUMBER.pattern})(?P=quote)(?=[,)}}])", re.I
)
_OF_ALL = re.compile(r"'global_step/max_steps': '(\d{1,15})/\d{1,15}'")


def row(line: str) -> Row | None:
    """The row that a line of the console is, or None."""
    printed = _PRINTED.search(line) if "{'" in line else None
    if printed is None:
        return None
    values = {pair["name"]: float(pair["value"]) for pair in _PAIR.finditer(printed["inner"])}
    stated = printed["step"] or (of_all[1] if (of_all := _OF_ALL.search(printed["inner"])) else None)
    step = as_step(values.pop("step", None)) if stated is None else int(stated)
    entry = step is not None or not ENTRY.isdisjoint(values)
    return Row(step, values) if values and entry else None
