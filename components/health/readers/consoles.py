"""Consoles of trainers, of which a line is a step's row or none.

- `dictionary` — dictionaries, a step each: TRL, Unsloth and ms-swift (``{'loss': 0.1, ...}``), OpenRLHF (``Global step
  3: {...}``), slime (``rollout 3: {...}``, ``step 3: {...}``)
- `verl` — ``step:12 - actor/entropy:0.3 - ...``, also behind Ray's prefix
- `prime_rl` — ``Step 3 | 7.5s | Reward 0.73 | Truncation 1.2% | ...`` of its orchestrator or trainer, in older versions
  ``Reward: 0.73``; evaluations say ``Evaluated <env> (Step 20) | ...`` and are named ``eval/<env>/...`` here
- `nemo_rl` — a heading for each step (``=== Step 3/50 ===``), and a line for each metric (``• Loss: 0.1``)
"""

from __future__ import annotations

import re
from collections.abc import Callable

from components.health.readers.lines import NUMBER, as_step
from components.health.readers.steps import Row

ENTRY = {"loss", "epoch", "eval_loss", "train_loss"}
_PRINTED = re.compile(r"(?:\b(?:[Gg]lobal step|rollout|step|eval|perf) (?P<step>\d{1,15}): )?(?P<inner>\{'.*)")
_PAIR = re.compile(
    rf"'(?P<name>[^']{{1,200}})': (?:np\.\w+\()?(?P<quote>'?)(?P<value>{NUMBER.pattern})(?P=quote)(?=[,)}}])", re.I
)
_OF_ALL = re.compile(r"'global_step/max_steps': '(\d{1,15})/\d{1,15}'")

_VERL = re.compile(r"(?:^|[\s)\]])step:(\d{1,15}) - (\S.*)$")
_WRAPPED = re.compile(r"(?:np\.|numpy\.)?\w+\((.*)\)")
"""How NumPy 2 prints a number of its own: ``np.float64(0.5)``."""

_STEP = re.compile(r"\bStep (?P<step>\d{1,15}) \| (?P<rest>.+)$")
_EVALUATED = re.compile(r"\bEvaluated (?P<env>\S+) \(Step (?P<step>\d{1,15})\) \| (?P<rest>.+)$")
_PART = re.compile(
    rf"(?P<name>[a-z][a-z .-]{{0,40}}?):?\s+(?P<value>{NUMBER.pattern})(?P<percent>%)?(?=\s|$)", re.IGNORECASE
)

_HEADING = re.compile(r"=+ Step (\d{1,15})/\d{1,15} =+")
_METRIC = re.compile(rf"•\s+(?P<name>[A-Za-z][\w /.-]{{0,60}}?): (?P<value>{NUMBER.pattern})\s*$", re.IGNORECASE)


def dictionary(line: str) -> Row | None:
    """A printed dictionary, which is searched for names and numbers and never evaluated.

    transformers 5 prints its numbers in quotes. TRL and Unsloth print no step: their entries are counted, each of which
    has a loss or an epoch. Other dictionaries without a step are a program's own: settings, or what a reward function
    prints of one completion.
    """
    printed = _PRINTED.search(line) if "{'" in line else None
    if printed is None:
        return None
    values = {pair["name"]: float(pair["value"]) for pair in _PAIR.finditer(printed["inner"])}
    stated = printed["step"] or (of_all[1] if (of_all := _OF_ALL.search(printed["inner"])) else None)
    step = as_step(values.pop("step", None)) if stated is None else int(stated)
    entry = step is not None or not ENTRY.isdisjoint(values)
    return Row(step, values) if values and entry else None


def verl(line: str) -> Row | None:
    """A line of verl's. What is no number in it is left out: it may be another process's."""
    header = _VERL.search(line)
    if header is None:
        return None
    pairs = (part.rpartition(":") for part in header[2].split(" - "))
    values = {name.strip(): number for name, _, text in pairs if (number := _number(text)) is not None}
    return Row(int(header[1]), values) if values else None


def _number(text: str) -> float | None:
    wrapped = _WRAPPED.fullmatch(text.strip())
    found = NUMBER.fullmatch(wrapped[1] if wrapped else text.strip())
    return float(found[0]) if found else None


def prime_rl(line: str) -> Row | None:
    """A line of prime-rl's; per cent become shares. A value that is not finite prime-rl leaves out of `metrics.jsonl`
    itself."""
    evaluated, step = _EVALUATED.search(line), _STEP.search(line)
    found = evaluated or step
    if found is None:
        return None
    prefix = f"eval/{evaluated['env']}/" if evaluated else ""
    matches = (match for part in found["rest"].split("|") if (match := _PART.match(part.strip())))
    values = {prefix + m["name"]: float(m["value"]) / (100 if m["percent"] else 1) for m in matches}
    return Row(int(found["step"]), values) if values else None


def nemo_rl() -> Callable[[str], Row | None]:
    """A reader of NeMo RL's lines, which remembers the latest heading."""
    step: int | None = None

    def row(line: str) -> Row | None:
        nonlocal step
        if heading := _HEADING.search(line):
            step = int(heading[1])
        metric = _METRIC.search(line) if step is not None and "•" in line else None
        return None if metric is None or step is None else Row(step, {metric["name"]: float(metric["value"])})

    return row
