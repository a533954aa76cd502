"""What a line of a trainer's log is: a step's row, or none.

- `json_row` — plain JSON: an object with its step and metrics, flat or under ``data`` or ``signals``
- `document` — TRL's `trainer_state.json`, which the Trainer writes into every checkpoint
- `dictionary` — dictionaries, a step each: TRL, Unsloth and ms-swift (``{'loss': 0.1, ...}``), OpenRLHF (``Global step
  3: {...}``), slime (``rollout 3: {...}``, ``step 3: {...}``)
- `verl` — ``step:12 - actor/entropy:0.3 - ...``, also behind Ray's prefix
- `prime_rl` — ``Step 3 | 7.5s | Reward 0.73 | Truncation 1.2% | ...`` of its orchestrator or trainer, in older versions
  ``Reward: 0.73``; evaluations say ``Evaluated <env> (Step 20) | ...`` and are named ``eval/<env>/...`` here
- `nemo_rl` — a heading for each step (``=== Step 3/50 ===``), and a line for each metric (``• Loss: 0.1``)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from components.errors import InputError
from components.files import read_text
from components.health.readers.lines import NUMBER, as_step, json_object
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
STEP_NAMES = ("step", "_step", "global_step", "train/global_step", "train/step", "rollout/step")
OF_ALL = "global_step/max_steps"
"""ms-swift's step: ``12/400``."""
NESTED = ("signals", "data")


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


def json_row(line: str) -> Row | None:
    """The row that a line is, or None."""
    return None if (found := json_object(line)) is None else row_of(found)


def row_of(found: dict[str, Any]) -> Row | None:
    """The row that an object is: its step, and all its other values."""
    key = next((name for name in (*STEP_NAMES, OF_ALL) if name in found), None)
    step = _of_all(found[key]) if key == OF_ALL else as_step(found[key]) if key else None
    if step is None:
        return None
    inner = next((found[name] for name in NESTED if isinstance(found.get(name), dict)), None)
    if inner is None:
        return Row(step, {name: value for name, value in found.items() if name != key})
    notes = found.get("notes")
    back = as_step(notes.get("rolled_back_to")) if isinstance(notes, dict) else None
    return Row(step, inner, back, own=isinstance(found.get("signals"), dict))


def _of_all(value: Any) -> int | None:
    number = str(value).partition("/")[0]
    return as_step(int(number)) if number.isascii() and number.isdigit() and len(number) < 16 else None


HISTORY = "log_history"


def is_document(head: str) -> bool:
    """Whether this is the beginning of a `trainer_state.json`."""
    return head.lstrip().startswith("{") and f'"{HISTORY}"' in head


def document(path: Path) -> Iterator[Row | None]:
    """Every entry of the log history; None for one that is none.

    Entries of one step (training, then evaluation) are brought together. A loss that was NaN is not to be seen: by
    default the Trainer logs the mean of the losses before it (``logging_nan_inf_filter``).

    Raises:
        InputError: the document is cut off or has no history: it is written whole, so there is nothing to save.
    """
    state = json_object(read_text(path))
    history = None if state is None else state.get(HISTORY)
    if not isinstance(history, list):
        how = "take the file of an earlier checkpoint; the Trainer writes one into each"
        raise InputError("not a whole trainer_state.json", where=path, how=how)
    return (row_of(entry) if isinstance(entry, dict) else None for entry in history)
