"""What a run has written, for its sinks: steps from the log of the training, notes from the ledger, and the results;
figures under the names that dashboards of the field expect: the mapping files of `components.health.readers`, in
reverse. What has no name there is shown under ours alone, `evenkeel/<signal>`.

The training does nothing for it. Its log is appended to, a whole line a step; a resumed run cuts it back to its newest
checkpoint and writes the same steps again. Steps are numbered without a gap, those that a roll-back undid included.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

from components.errors import InputError
from components.files import read_json, read_jsonl, read_text, sha256_bytes
from components.health.readers.names import NAMES_FOLDER, Metric, load_names
from components.health.records import ENTRY
from components.health.summaries.phrases import changes
from components.layout import Layout
from components.sinks.base import Note, Results, Step
from components.types import Outcome, Response, Verdict

TABLES = 200
"""Rows of the table at the end."""
LONGEST = 4000
"""Characters of a text in a table."""
REPEATS = 10
"""Steps in which a rule that only warns is noted once."""
SIDES = ("sft", "trained", "champion", "gain", "greedy_gain", "gain_over_champion")
"""Parts of out/evaluation.json."""
PAIR = ("prompt_id", "prompt", "chosen", "chosen_reward", "rejected", "rejected_reward")
"""What is shown of the completions of a step."""
Translate = Callable[[Mapping[str, float]], dict[str, float]]
OURS = "evenkeel/"


class Rows:
    """The rows of a growing JSON-lines file, the first there is, by their number; read once each, in little memory."""

    def __init__(self, paths: Sequence[Path], offset: int = 0, digest: str = "") -> None:
        self._paths, self.offset = paths, offset
        self.digest = digest
        """Of the signals of the last row that was given."""
        self.remade = False
        """Whether that row was written again with other signals."""

    def read(self, wanted: int, most: int) -> list[dict[str, Any]]:
        """Up to ``most`` rows whose ``step`` is ``wanted`` and the numbers after it; none where they are not there yet.

        Raises:
            InputError: the file has later steps and not the wanted one.
        """
        if (path := first_of(self._paths)) is None:
            return []
        if path.stat().st_size < self.offset:
            self.offset = 0
        try:
            return self._read(path, wanted, most)
        except (LookupError, ValueError):  # cut back and grown beyond the offset: no place in it is known any more
            self.offset = 0
        try:
            return self._read(path, wanted, most)
        except (LookupError, ValueError) as error:
            raise InputError(f"cannot read step {wanted}: {error}", where=path) from error

    def _read(self, path: Path, wanted: int, most: int) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        with path.open("rb") as file:
            file.seek(self.offset)
            while len(found) < most and (line := file.readline()).endswith(b"\n"):
                row = json.loads(line)
                expected = wanted + len(found)
                if row["step"] > expected:
                    raise LookupError(f"step {row['step']} comes before it")
                if row["step"] == expected:
                    found.append(row)
                elif row["step"] == wanted - 1 and self.digest not in ("", _digest(row)):
                    self.remade = True
                self.offset = file.tell()
        self.digest = _digest(found[-1]) if found else self.digest
        return found


def first_of(paths: Sequence[Path]) -> Path | None:
    """The first that exists."""
    return next((path for path in paths if path.exists()), None)


def _digest(row: Mapping[str, Any]) -> str:
    return sha256_bytes(json.dumps(row["signals"], sort_keys=True).encode())[:16]


class Notes:
    """The entries of a growing ledger, each given once; of warnings that repeat only some."""

    def __init__(self, paths: Sequence[Path], repeats: int = REPEATS) -> None:
        self._paths, self._repeats = paths, repeats
        self._begin()

    def _begin(self) -> None:
        self._offset, self._count = 0, 0
        self._spoke: dict[str, int] = {}

    def read(self) -> Iterator[Note]:
        """What was entered since the last call; everything where the ledger was cut back."""
        if (path := first_of(self._paths)) is None:
            return
        if path.stat().st_size < self._offset:
            self._begin()
        with path.open("rb") as file:
            file.seek(self._offset)
            while (line := file.readline()).endswith(b"\n"):
                entry = ENTRY.validate_json(line)
                self._offset, self._count = file.tell(), self._count + 1
                if (said := self._said(entry)) is not None:
                    yield Note(self._count - 1, entry.step, *said, entry)

    def _said(self, entry: Response | Outcome) -> tuple[str, str, bool] | None:
        """Title and text, and whether it is more than a warning."""
        if isinstance(entry, Outcome):
            came = {True: "recovered", False: "did not recover", None: "not judged"}[entry.recovered]
            return f"response {entry.of}: {came}", "", False
        warns = entry.level == "warn"
        if warns and entry.step - self._spoke.get(entry.rule, -self._repeats) < self._repeats:
            return None
        self._spoke[entry.rule] = entry.step
        back = [] if entry.back_to is None else [f"back to step {entry.returns_to}"]
        text = "; ".join(filter(None, [entry.reason, *back, *changes(entry), entry.did]))
        return f"{entry.rule}: {entry.level}", text, not warns


class Feed:
    """Everything that one sink is given.

    Args:
        tables: completions are shown of every so manieth step; 0: of none.
        offset: in the log, as a `Rows` before had it, with its ``digest``.
        repeats: steps in which a rule that only warns is noted once.
    """

    def __init__(
        self,
        layout: Layout,
        translate: Translate,
        tables: int,
        offset: int = 0,
        digest: str = "",
        *,
        repeats: int = REPEATS,
    ) -> None:
        self._layout, self._translate, self._every = layout, translate, tables
        folders = layout.state / "train", layout.train  # the second has them only when the stage has ended
        self.rows = Rows([folder / layout.records.name for folder in folders], offset, digest)
        self._notes = Notes([folder / layout.ledger.name for folder in folders], repeats)
        self._early: list[Note] = []

    def steps(self, wanted: int, most: int) -> tuple[Step, ...]:
        """Steps from ``wanted`` on, as far as they are made."""
        return tuple(self._step(row) for row in self.rows.read(wanted, most))

    def _step(self, row: Mapping[str, Any]) -> Step:
        signals, notes, number = row["signals"], row.get("notes", {}), int(row["step"])
        shown = self._every and number % self._every == 0
        return Step(
            number,
            self._translate(signals),
            signals,
            tuple(Verdict(**verdict) for verdict in notes.get("verdicts", ())),
            tuple(_cut({name: pair.get(name) for name in PAIR}) for pair in notes.get("pairs", ())[:1] if shown),
        )

    def notes(self, after: int, before_step: int) -> tuple[Note, ...]:
        """Notes numbered ``after`` or higher on steps that are shown already, or will be together with them."""
        waiting = [one for one in (*self._early, *self._notes.read()) if one.number >= after]
        self._early = [one for one in waiting if one.step >= before_step]
        return tuple(one for one in waiting if one.step < before_step)

    def results(self) -> Results | None:
        """None until there is a report."""
        layout = self._layout
        if not layout.report.exists():
            return None
        evaluation = read_json(layout.evaluation) if layout.evaluation.exists() else {}
        samples = read_jsonl(layout.samples) if self._every and layout.samples.exists() else iter(())
        return Results(
            dict(_figures(evaluation)),
            read_text(layout.verdict) if layout.verdict.exists() else "",
            layout.report,
            tuple(map(_cut, islice(samples, TABLES))),
        )


def _cut(row: Mapping[str, Any]) -> dict[str, Any]:
    """Texts at most so long, and what is no plain value as JSON."""
    plain = {key: one if isinstance(one, str | int | float) else json.dumps(one) for key, one in row.items()}
    return {key: one[:LONGEST] if isinstance(one, str) else one for key, one in plain.items()}


def _figures(evaluation: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """The figures of whole policies; those of slices are in the report."""
    for side in SIDES:
        for name, value in (evaluation.get(side) or {}).items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                yield f"eval/{side}/{name}", float(value)


def translator(dialect: str) -> Translate:
    """From signals to all figures of a step. ``dialect`` is a mapping file's name, or "none"."""
    known = {} if dialect == "none" else load_names(NAMES_FOLDER / f"{dialect}.yaml").signals

    @cache
    def theirs(signal: str) -> tuple[str, Metric] | None:
        for ours, metric in known.items():
            stem, star, _ = ours.partition("*")
            name, stars = metric.name[0], metric.name[0].count("*")
            if star and stars == 1 and signal.startswith(stem):
                return _placed(name.replace("*", signal.removeprefix(stem)), dialect), metric
            if ours == signal and not stars:
                return _placed(name, dialect), metric
        return None

    def translate(signals: Mapping[str, float]) -> dict[str, float]:
        figures = {f"{OURS}{signal}": value for signal, value in signals.items()}
        for signal, value in signals.items():
            if (found := theirs(signal)) is not None:
                name, metric = found
                figures[name] = 1 - value if metric.one_minus else (value - metric.offset) / metric.scale
        return figures

    return translate


def _placed(name: str, dialect: str) -> str:
    """As trackers get it: Hugging Face's Trainer puts ``train/`` before a name, or makes ``eval_x`` into ``eval/x``."""
    if dialect != "trl":
        return name
    return f"eval/{name.removeprefix('eval_')}" if name.startswith("eval_") else f"train/{name}"
