"""Rows of a probe file, and fields of a row that state where they stand when they are wrong."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from components.errors import InputError
from components.files import read_numbered_jsonl, read_text


@dataclass(frozen=True)
class Row:
    """One row with the line it begins on, from 1."""

    path: Path
    line: int
    fields: Mapping[str, Any]

    def error(self, what: str, how: str = "fix or remove that line") -> InputError:
        return InputError(what, where=f"{self.path}:{self.line}", how=how)

    def text(self, name: str) -> str:
        """A field that is text and not empty.

        Raises:
            InputError: it is missing, empty or no text.
        """
        value = self.fields.get(name)
        if not isinstance(value, str) or not value.strip():
            raise self.error(f"a probe needs `{name}`, text that is not empty")
        return value

    def label(self, name: str) -> str:
        """A field that may be missing; "" where it is no text."""
        value = self.fields.get(name)
        return value if isinstance(value, str) else ""

    def texts(self, name: str, least: int) -> tuple[str, ...]:
        """A list of at least so many different texts.

        Raises:
            InputError: it is anything else.
        """
        value = self.fields.get(name)
        good = isinstance(value, list) and all(isinstance(one, str) and one.strip() for one in value)
        if not good or len(set(value)) != len(value) or len(value) < least:  # type: ignore[arg-type]
            raise self.error(f"`{name}` is a list of {least} or more different texts")
        return tuple(value)  # type: ignore[arg-type]

    def place(self, name: str, count: int) -> int:
        """The place of one of ``count`` options: a number from 0, or a letter from A.

        Raises:
            InputError: it is none of them.
        """
        value = self.fields.get(name)
        if isinstance(value, str) and len(value.strip()) == 1 and value.strip().isalpha():
            value = ord(value.strip().upper()) - ord("A")
        elif isinstance(value, str) and value.strip().isdecimal():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < count:
            raise self.error(f"`{name}` is none of the {count} options", "give a number from 0, or a letter from A")
        return value


def read_rows(path: Path) -> Iterator[Row]:
    """Rows of a JSON-lines file, or of a ``.csv`` file with a heading.

    Raises:
        InputError: the file is missing or malformed; names the line.
    """
    if path.suffix.lower() == ".csv":
        yield from _read_csv(path)
    else:
        yield from (Row(path, line, fields) for line, fields in read_numbered_jsonl(path))


def _read_csv(path: Path) -> Iterator[Row]:
    reader = csv.DictReader(io.StringIO(read_text(path), newline=""), strict=True)
    line = 2
    try:
        for fields in reader:
            row, line = Row(path, line, fields), reader.line_num + 1
            if None in fields or None in fields.values():
                raise row.error(f"another number of columns than the heading's {len(reader.fieldnames or ())}")
            yield row
    except csv.Error as error:
        raise InputError(f"not CSV: {error}", where=f"{path}:{line}", how="close the quotes of that line") from error
