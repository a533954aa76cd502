"""A log of whatever trainer, read whole; and of the names that it was not read by a mapping to begin with, guessed from
their words: for a person to look over and paste."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import yaml

from components.errors import InputError
from components.health.other_runs import on_own_scale
from components.health.readers import formats
from components.health.readers.lines import lines, read_head
from components.health.readers.names import NAMES_FOLDER, Names, load_names, own_names
from components.health.readers.steps import Row, Steps
from components.health.signals import find_signal
from components.types import StepRecord

Read = Callable[[str], Row | None]
GUESSES: dict[str, str] = {
    "reward": r"reward(s?/mean|_mean|/total|_total)?$|(^|[/_])(score|return)s?(/mean|_mean)?$",
    "accuracy": r"(accura|correct|pass_rate|(^|[/_])acc([/_]|$))(?!.*(std|eval|val))",
    "length_mean": r"(len(gth)?|tokens)([/_].*)?(mean|avg)|(mean|avg).*(len(gth)?|tokens)|response_?len(gth)?s?$",
    "truncated_share": r"trunc|clipped_ratio|overlong",
    "entropy": r"entropy(?!.*coef)",
    "kl_ref": r"(^|[/_])kl(_loss|_penalty|_div|_mean|/mean|_ref)?$|ref_?kl",
    "grad_norm": r"grad(ient)?_?norm",
    "lr": r"(^|[/_])(lr|learning_rate)$",
    "loss": r"(policy|pg|actor)_?loss|(^|/)loss(/mean)?$",
    "value_loss": r"(value|vf|critic)_?loss",
    "zero_variance_share": r"zero_(std|variance|adv)",
    "dev_pass_at_1": r"^(eval|val|test)[/_].*(accura|correct|reward|score|pass@1)",
}
"""Our signal: what a name of theirs for it looks like."""
_SPREAD = re.compile(r"(std|min|max|var|median|p\d\d)(_|/|$)", re.IGNORECASE)
_HELD_OUT = re.compile(r"^(eval|val|test|validation)[/_-]")


def _or_json(console: Read) -> Read:
    """JSON lines, and what a console prints."""
    return lambda line: formats.json_row(line) or console(line)


READERS: dict[str, Callable[[], Read]] = {
    "trl": lambda: _or_json(formats.dictionary),
    "verl": lambda: _or_json(formats.verl),
    "prime-rl": lambda: _or_json(formats.prime_rl),
    "openrlhf": lambda: _or_json(formats.dictionary),
    "nemo-rl": lambda: _or_json(formats.nemo_rl()),
    "slime": lambda: _or_json(formats.dictionary),
    "jsonl": lambda: formats.json_row,
}
"""What makes a row of a line, by the name of the format; a new one for each log."""

PRINTED = "printed"
"""A form that several trainers share; its names tell which."""
SAMPLE = 200
"""Rows by whose names a format is recognised."""
ROUNDING = 1e-3
"""How far beyond its bounds a value may be without a remark; logs are rounded, and estimates are noisy."""

_NAME_IT = f"name the format: --format {'|'.join(READERS)}"


@dataclass(frozen=True)
class Log:
    """What a file holds: its format, whose names it uses, a record a step, and what was not as it should be.

    ``unread`` are the names of numbers that no signal comes from, ``proposal`` a mapping of some of them, to be looked
    over and pasted; empty where there is nothing to propose. ``ours`` are records of a run of ours, or of the callback:
    metrics with our names below ``signals``.
    """

    format: str
    trainer: str
    records: list[StepRecord]
    remarks: list[str]
    unread: list[str]
    proposal: str
    ours: bool


def read_log(path: Path, format: str = "auto", names: Path | Names | None = None) -> Log:
    """Read a log of ``format`` (a key of `READERS`, or ``auto``) by the mapping ``names`` or its file, else the
    shipped one.

    Raises:
        InputError: no such file or format; a mapping that is wrong; no step in the file, or none that a rule could
            read. What is wrong with single lines is stated in `Log.remarks`; the rest is read.
    """
    if format not in (*READERS, "auto"):
        raise InputError(f"unknown format {format!r}", where="--format", how=f"use auto, {', '.join(READERS)}")
    head = read_head(path)
    chosen = detect(path, head) if format == "auto" else format
    given = load_names(names) if isinstance(names, Path) else names
    mapping = given or names_of(chosen)
    steps = Steps(mapping)
    remarks: list[str] = []
    seen = unread = 0
    own = False
    for row in _rows(path, head, chosen, remarks):
        if row is None:
            unread += 1
        else:
            seen += 1
            own |= row.own
            steps.add(row)
    records, unread_names = steps.records(), sorted(steps.unread)
    if not records:
        raise _nothing(path, head, chosen, seen, propose(chosen, unread_names, ()))
    ours = chosen == "jsonl" and names is None and own
    if not ours:
        records = list(on_own_scale(records))
    if unread:
        remarks.append(f"lines passed over, which are no metrics of {chosen}: {unread}")
    proposal = "" if ours else propose(chosen, unread_names, {name for record in records for name in record.signals})
    said = [*steps.remarks(), *doubts(records), *remarks]
    return Log(chosen, mapping.trainer or chosen, records, said, unread_names, proposal, ours)


def _rows(path: Path, head: str, format: str, remarks: list[str]) -> Iterator[Row | None]:
    """Every row, and None for what is none. A last line without its end is used only if it is a whole JSON object."""
    if format == "trl" and formats.is_document(head):
        yield from formats.document(path)
        return
    read = READERS[format]()
    for line, ended in lines(path):
        if ended or formats.json_row(line) is not None:
            yield read(line)
        else:
            remarks.append("the last line is cut off and was left out")


def names_of(format: str) -> Names:
    """The mapping that is shipped for a format; our own names for plain JSON lines."""
    return own_names() if format == "jsonl" else load_names(NAMES_FOLDER / f"{format}.yaml")


def detect(path: Path, head: str) -> str:
    """The format of a log, by its form and then by the names in it.

    Raises:
        InputError: it is none of them.
    """
    if formats.is_document(head):
        return "trl"
    recognise = recogniser()
    found = list(islice(filter(None, (recognise(line) for line, _ in lines(path))), SAMPLE))
    if not found:
        how = f"{_NAME_IT}; known are trainer_state.json, what the trainers print, and JSON lines with a step"
        raise InputError("no line of it is a step in a known format", where=path, how=how)
    return likeliest(found)[0]


def likeliest(found: Sequence[tuple[str, Row]]) -> tuple[str, int]:
    """The format of these lines, one at least, by their form and then by their names; and how many names it reads."""
    used = {name for _, row in found for name in row.values}
    consoles = [name for name, _ in found if name in READERS and name != "jsonl"]
    printed = any(name == PRINTED for name, _ in found)  # our own logs are not
    tried = consoles[:1] or [name for name in ("jsonl", *READERS) if name != "jsonl" or not printed]
    counts = {name: names_of(name).count(used) for name in tried}
    best = max(counts, key=lambda name: counts[name])
    return best, counts[best]


def recogniser() -> Callable[[str], tuple[str, Row] | None]:
    """What finds the form of one line after the other; JSON is ``jsonl``, a printed dictionary `PRINTED`."""
    forms: tuple[tuple[str, Read], ...] = (
        ("jsonl", formats.json_row),
        ("verl", formats.verl),
        ("prime-rl", formats.prime_rl),
        (PRINTED, formats.dictionary),
        ("nemo-rl", formats.nemo_rl()),
    )
    return lambda line: next(((name, row) for name, reader in forms if (row := reader(line))), None)


def _nothing(path: Path, head: str, format: str, seen: int, proposal: str) -> InputError:
    """Why there is nothing to judge: another format, no step, or no metric that is known."""
    try:
        other = detect(path, head)
    except InputError as error:
        return InputError(f"no step in it as {format}", where=path, how=error.how)
    if seen:
        what = f"{seen} rows read as {format}, and in them no metric that a rule could read"
        how = "map their names to ours: --names mapping.yaml; configs/health/names has examples"
        how += f"; look this over to begin with:\n{proposal}" if proposal else ""
    else:
        what, how = f"no step in it as {format}", "wait until the trainer has logged a step"
    if other != format:
        what, how = f"{what}; it looks like {other}", f"--format {other}"
    return InputError(what, where=path, how=how)


def doubts(records: Iterable[StepRecord]) -> Iterator[str]:
    """One remark a signal: values that are not finite, and those that its range excludes, most likely another unit."""
    broken: dict[str, list[int]] = {}
    excluded: dict[str, list[tuple[int, float]]] = {}
    for record in records:
        for name, value in record.signals.items():
            if not math.isfinite(value):
                broken.setdefault(name, []).append(record.step)
            elif (known := find_signal(name)) and not known.low - ROUNDING <= value <= known.high + ROUNDING:
                excluded.setdefault(name, []).append((record.step, value))
    for name, steps in broken.items():
        yield f"{name} is NaN or infinite, first in step {steps[0]}, in {len(steps)} in all"
    for name, values in excluded.items():
        step, value = values[0]
        yield f"{name} cannot be {value:.4g}, as in step {step} and {len(values)} in all; check the unit in the mapping"


def propose(format: str, unread: Iterable[str], known: Container[str]) -> str:
    """A mapping file for the signals that are not ``known``, each with the names that look like it; "" without any."""
    names = [name for name in unread if not _SPREAD.search(name) and len(name) < 200]
    found: dict[str, str | list[str]] = {}
    for ours, like in GUESSES.items():
        held_out = ours.startswith("dev_")
        if ours not in known:
            fits = [n for n in names if bool(_HELD_OUT.match(n)) == held_out and re.search(like, n, re.IGNORECASE)]
            if fits:
                found[ours] = fits[0] if len(fits) == 1 else sorted(fits, key=len)[:4]
    if not found:
        return ""
    shipped = f"extends: configs/health/names/{format}.yaml  # its path, seen from your file\n"
    text = yaml.safe_dump({"signals": found}, sort_keys=False, allow_unicode=True, width=200)
    return text if format == "jsonl" else shipped + text
