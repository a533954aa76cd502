"""Problems of the library reasoning-gym (`components.reasoning_gym`), each with the entry that its own scorer needs.

`process` makes entries in a process of its own, where neither hash order nor earlier draws count.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from components.config import Settings
from components.config.evaluation import ReasoningGymSuite
from components.config.pins import check_version
from components.config.reasoning_gym import ReasoningGymSource
from components.content_id import content_id
from components.errors import InputError
from components.reasoning_gym.entries import dumps, loads
from components.reasoning_gym.library import refused
from components.seeds import derive
from components.tasks.reasoning_gym.process import BEGUN, SECONDS
from components.types import Prompt

Request = dict[str, Any]
Entry = dict[str, Any]


def generate(source: ReasoningGymSource, seed: int) -> Iterator[Prompt]:
    """``source.rows`` prompts with distinct questions, one data set after the other; the same seed, the same prompts.

    Raises:
        InputError: the library is missing or of another version, or see `process.draw`.
    """
    check_version(source.version)
    for name, made in made_by_library(_requests(source, seed)):
        if isinstance(made, InputError):
            raise made
        yield as_prompt(source, name, made)


def generate_each(source: ReasoningGymSource, seed: int) -> dict[str, list[Prompt] | InputError]:
    """The prompts of each data set, or why it is refused, so that one does not stand for the others."""
    found: dict[str, list[Prompt] | InputError] = {}
    for name, made in made_by_library(_requests(source, seed)):
        prompts = found.setdefault(name, [])
        if isinstance(made, InputError) or isinstance(prompts, InputError):
            found[name] = made if isinstance(made, InputError) else prompts
        else:
            prompts.append(as_prompt(source, name, made))
    return found


def check_sources(settings: Settings) -> None:
    """`check_source` of the run's own problems and of its suites."""
    if isinstance(source := settings.data.source, ReasoningGymSource):
        check_source(source, settings.seed)
    for name, suite in settings.evaluation.suites.items():
        if isinstance(suite, ReasoningGymSuite):
            try:
                check_source(suite.source, suite.seed)
            except InputError as error:
                where = str(error.where).replace("data.source", f"evaluation.suites.{name}.source", 1)
                raise InputError(error.what, where=where, how=error.how) from error


def check_source(source: ReasoningGymSource, seed: int) -> None:
    """Make the first problem of each data set.

    Raises:
        InputError: as `generate`, but for data sets that run out of problems.
    """
    check_version(source.version)
    for _, made in made_by_library([{**request, "rows": 1} for request in _requests(source, seed)]):
        if isinstance(made, InputError):
            raise made


def as_prompt(source: ReasoningGymSource, name: str, entry: Entry) -> Prompt:
    """The prompt of an entry, which travels along for the scorer."""
    dataset, answer = source.datasets[name], entry["answer"]
    text = entry["question"] + dataset.suffix
    solution = source.solution.replace("{answer}", answer)
    return Prompt(
        id=content_id(name, text),
        text=text,
        answer=answer,
        solution=solution,
        demonstration=solution,
        task=name,
        source=source.kind,
        family=name,
        difficulty=difficulty(entry.get("metadata")),
        reference=dumps({"dataset": name, "settings": dataset.settings, "entry": entry}),
    )


def difficulty(metadata: Any) -> float:
    """How hard an entry is, from the library's own figures; 0 where it gives none.

    A number stands for itself. Ranges, such as 2 to 6 terms, are what the data set drew from: the mean place of what it
    drew in them, from 0 (the easiest) to 1, in tenths.
    """
    given = metadata.get("difficulty") if isinstance(metadata, dict) else None
    if isinstance(given, int | float):
        return float(given)
    ranges = given if isinstance(given, dict) else {}
    places = [place for key, ends in ranges.items() if (place := _place(metadata.get(key), ends)) is not None]
    return round(sum(places) / len(places), 1) if places else 0.0


def _place(value: Any, ends: Any) -> float | None:
    if not isinstance(ends, tuple | list) or len(ends) != 2:
        return None
    low, high = ends
    if not all(isinstance(number, int | float) for number in (value, low, high)) or not low <= value <= high != low:
        return None
    return float((value - low) / (high - low))


def _requests(source: ReasoningGymSource, seed: int) -> list[Request]:
    return [
        {
            "name": name,
            "settings": source.datasets[name].settings,
            "seed": derive(seed, "reasoning_gym", name) % 2**31,  # some add the entry's number and seed 32-bit streams
            "rows": rows,
        }
        for name, rows in source.shares().items()
        if rows
    ]


def made_by_library(requests: Sequence[Request]) -> Iterator[tuple[str, Entry | InputError]]:
    """Data set and entry for all requests, in order, as they are made; the reason in place of what cannot be made."""
    root = Path(__file__).resolve().parents[3]
    command = (sys.executable, "-P", "-m", "components.tasks.reasoning_gym.process")
    environment = {**os.environ, "PYTHONPATH": str(root), "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"}
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env=environment, text=True
        ) as process,
    ):
        try:
            assert process.stdin and process.stdout
            process.stdin.write(json.dumps(requests))
            process.stdin.close()
            for reply in map(loads, process.stdout):
                yield reply["of"], InputError(**reply["error"]) if "error" in reply else reply["entry"]
            if code := process.wait():
                errors.seek(0)
                raise _died(code, errors.read())
        finally:
            process.kill()


def _died(code: int, said: str) -> InputError:
    lines = said.splitlines()
    name = next((line.removeprefix(BEGUN) for line in reversed(lines) if line.startswith(BEGUN)), "")
    if code == -signal.SIGALRM:
        what = f"{name} made no problem within {SECONDS} s"
    else:
        what = f"the process that makes problems of {name} ended with code {code}: {lines[-1] if lines else ''}"
    return refused(name, what, "make its settings easier, or leave it out")


__all__ = ["check_sources", "generate"]
