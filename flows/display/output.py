"""Printing for commands: control characters from records, names and logs are escaped, and an output that cannot be
written is an error like any other."""

from __future__ import annotations

import errno
import io
import json
import os
import sys
from codecs import getincrementaldecoder
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from components.errors import EXIT_BAD_INPUT, EvenkeelError
from components.files import dump_json
from components.health.summaries.markdown import plain
from components.printing import block, printable

EXIT_NO_READER = 141
"""The reader of the output has exited, as with `| head`: the exit code that a shell gives for SIGPIPE."""


class OutputLost(EvenkeelError):
    """Standard output cannot be written. ``quiet``: its reader has exited, so no message is needed."""

    def __init__(self, error: OSError) -> None:
        super().__init__(
            f"cannot write what was found: {error.strerror}",
            where="standard output",
            how="make room there, or send the output elsewhere",
        )
        self.quiet = error.errno == errno.EPIPE
        self.exit_code = EXIT_NO_READER if self.quiet else EXIT_BAD_INPUT


class _Output(io.FileIO):
    """A file whose errors are `OutputLost`: `click` and `rich` would make exit code 1 of them."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError as error:
            raise OutputLost(error) from error


@contextmanager
def guarded_output() -> Iterator[None]:
    """Standard output is written at the end of the block at the latest, and what cannot be is `OutputLost`.

    Characters that its encoding lacks are spelled out. Where it is no file of this process (closed, or a test's own)
    it stays as it is.
    """
    before = sys.stdout
    if before is None or before is not sys.__stdout__ or not isinstance(before, io.TextIOWrapper):
        yield
        return
    raw = _Output(before.fileno(), "wb", closefd=False)
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(raw), before.encoding, "backslashreplace", line_buffering=before.line_buffering
    )
    try:
        yield
    finally:
        try:
            sys.stdout.flush()
        except OutputLost:
            os.dup2(os.open(os.devnull, os.O_WRONLY), before.fileno())  # else the interpreter tries again at its end
            raise


class PlainConsole(Console):
    """Text is text: no markup, no emoji codes, and no control character but line breaks reaches the terminal."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for one in super().render(renderable, options):
            yield one if one.control else Segment(block(one.text), one.style)


def field(value: object, style: str = "") -> Text:
    """Text from a record, a name or a file, as one line without control characters."""
    return Text(printable(value), style)


def say(console: Console, *lines: object, style: str = "") -> None:
    """Print each as one line without control characters, however long it is."""
    for line in lines:
        console.print(field(line, style), soft_wrap=True)


def plain_table(*columns: str, right: Collection[str] = (), no_wrap: Collection[str] = ()) -> Table:
    """A table without a frame; columns in ``right`` are aligned to the right, those in ``no_wrap`` never wrapped."""
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name in columns:
        table.add_column(name, no_wrap=name in no_wrap, justify="right" if name in right else "left")
    return table


def markdown_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table for a Markdown page; cells are shown as they are."""
    lines = [heads, ["---"] * len(heads), *([plain(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def print_json(value: Any) -> None:
    """A value as JSON. Control characters are escaped, which changes no value."""
    text = dump_json(value)
    if text != block(text):
        text = f"{json.dumps(value, indent=2, sort_keys=True, allow_nan=False)}\n"
    print(text, end="")


def log_writer(write: Callable[[str], object]) -> Callable[[bytes], None]:
    """A function that takes the bytes of a log as they arrive and writes them as text without control characters."""
    decoder = getincrementaldecoder("utf-8")("backslashreplace")

    def take(data: bytes) -> None:
        write(block(decoder.decode(data).replace("\r\n", "\n")))

    return take
