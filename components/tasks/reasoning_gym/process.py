"""Makes entries: reads requests from standard input as JSON, and writes a line for each entry.

A process of its own, because some data sets draw from Python's global stream, iterate over sets, or print: here that
stream is seeded for each entry, PYTHONHASHSEED is 0, and what is printed goes nowhere. So an entry depends on its data
set, settings, seed and number alone.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from components.content_id import normalise
from components.errors import InputError
from components.reasoning_gym.entries import dumps
from components.reasoning_gym.library import open_dataset, refused

BEGUN = "data set: "
"""Begins the line of standard error that names the data set of what follows, should this process not survive it."""
SECONDS = 60
"""To open a data set, and to make one entry."""
REPEATS = 500
"""Entries in a row whose questions there were before, after which a data set has no new one."""


def draw(name: str, settings: Mapping[str, Any], seed: int, rows: int) -> Iterator[dict[str, Any]]:
    """``rows`` entries with distinct questions.

    Raises:
        InputError: wrong name or settings, no reference answer, or fewer distinct questions.
    """
    print(f"{BEGUN}{name}", file=sys.stderr, flush=True)
    size = rows + REPEATS
    with _limited():
        dataset = open_dataset(name, {**settings, "seed": seed, "size": size})
    seen: set[str] = set()
    index = last = 0
    while len(seen) < rows and index - last < REPEATS and index < 2 * size:
        entry = _entry(dataset, name, seed, index)
        index += 1
        if (question := normalise(entry["question"])) not in seen:
            seen.add(question)
            last = index
            yield entry
    if len(seen) < rows:
        what = f"{name} has only {len(seen)} distinct problems with these settings, {rows} are needed"
        raise refused(name, what, "lower rows or its weight, or widen its settings")


@contextmanager
def _limited() -> Iterator[None]:
    """The kernel ends this process when the block takes more than `SECONDS`."""
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)


def _entry(dataset: Any, name: str, seed: int, index: int) -> dict[str, Any]:
    random.seed(f"{seed}/{index}")  # for those that draw from the global stream
    try:
        with _limited():
            entry: dict[str, Any] = dataset[index]
    except Exception as error:
        what = f"{name} cannot make problem {index}: {type(error).__name__}: {error}"
        raise refused(name, what, "correct its settings, or leave it out") from error
    for part in ("question", "answer"):
        if not isinstance(entry.get(part), str):  # an empty text is the row's own fault: the data stage says so
            how = "leave it out: an answer that is known to be right is needed to audit the scorer and to teach"
            raise refused(name, f"{name} has no {'reference answer' if part == 'answer' else part}", how)
    return entry


def _line(name: str, entry: dict[str, Any]) -> str:
    try:
        return dumps({"of": name, "entry": entry})
    except TypeError as error:
        what = f"{name} has problems that cannot be handed to its scorer: {error}"
        raise refused(name, what, "leave it out") from error


def serve() -> None:
    """Answer the requests in order, each with its entries or, in the end, with the error."""
    replies = os.dup(sys.stdout.fileno())
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    with os.fdopen(replies, "w", encoding="ascii") as out:
        for request in json.load(sys.stdin):
            try:
                for entry in draw(**request):
                    out.write(f"{_line(request['name'], entry)}\n")
            except InputError as error:
                said = {"what": error.what, "where": error.where, "how": error.how}
                out.write(f"{dumps({'of': request['name'], 'error': said})}\n")


if __name__ == "__main__":
    serve()
