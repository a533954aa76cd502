"""Readers of prompts, one per kind of source. Each yields candidates in the order of the source, a batch in memory at
a time. What is wrong with the file is an error at once; what is wrong with a row is the row's own fault."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from components.config.environments import VerifiersSource
from components.config.pins import check_digest
from components.config.reasoning_gym import ReasoningGymSource
from components.config.sources import FileSource, PythonSource
from components.config.tasks import Generated
from components.data.candidates import NOTHING, Candidate, Fault, RowReader, as_scalar, missing_columns
from components.data.outside import candidates
from components.environments.prompts import environment_prompts
from components.errors import InputError
from components.files import os_errors, read_json
from components.opening import open_regular
from components.tasks import TASKS, reasoning_gym
from components.types import Prompt

BATCH_ROWS = 4096
MAX_LINE = 2**24
"""Bytes of a JSON line (16 MiB); of a longer one the beginning is quarantined."""


def generated(source: Generated, seed: int) -> Iterator[Candidate]:
    """Problems of a task package."""
    return _made(TASKS[source.task](source, seed))


def gym(source: ReasoningGymSource, seed: int) -> Iterator[Candidate]:
    """Problems of the library reasoning-gym."""
    return _made(reasoning_gym.generate(source, seed))


def _made(prompts: Iterable[Prompt]) -> Iterator[Candidate]:
    for prompt in prompts:
        yield Candidate(prompt, {"question": prompt.text, "answer": prompt.solution}, None)


def jsonl(source: FileSource, _seed: int) -> Iterator[Candidate]:
    """Lines of a JSON-lines file, one at a time.

    Raises:
        InputError: missing or unreadable file, or changed content.
    """
    check_digest(source.path, source.sha256)
    reader = RowReader(source)
    with os_errors("read", source.path), open_regular(source.path) as file:
        for number, line in _lines(file):
            if line.strip():
                yield _parse(line, number, reader)


def _lines(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Numbered lines. One that is too long is cut, and the rest of it skipped."""
    number = 0
    while line := file.readline(MAX_LINE + 1):
        number += 1
        yield number, line
        while len(line) > MAX_LINE and not line.endswith(b"\n"):
            line = file.readline(MAX_LINE + 1)
            if len(line) <= MAX_LINE:
                break


def _parse(line: bytes, number: int, reader: RowReader) -> Candidate:
    def broken(code: str, words: str) -> Candidate:
        return Candidate.broken(number, line[:4096].decode("utf-8", "replace").strip(), Fault(code, words))

    if len(line) > MAX_LINE:
        return broken("too_long", f"the line is longer than {MAX_LINE:,} bytes")
    try:
        row = json.loads(line.decode("utf-8-sig" if number == 1 else "utf-8"))
    except UnicodeDecodeError as error:
        return broken("not_json", f"not UTF-8 text: byte {error.start + 1} of the line")
    except json.JSONDecodeError as error:
        return broken("not_json", f"not valid JSON: {error.msg} at column {error.colno}")
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, or endless nesting
        return broken("not_json", f"not JSON that can be read: {error}")
    if not isinstance(row, dict):
        return broken("not_object", f"expected a JSON object, found {type(row).__name__}")
    return reader.candidate(row, number)


def parquet(source: FileSource, _seed: int) -> Iterator[Candidate]:
    """Rows of a Parquet file; only the named columns are read.

    Raises:
        InputError: missing file, changed content, not Parquet, or a missing column.
    """
    import pyarrow
    from pyarrow import parquet as format_

    check_digest(source.path, source.sha256)
    reader = RowReader(source)
    try:
        with open_regular(source.path) as opened, format_.ParquetFile(opened) as file:
            columns = _columns(reader, file.schema_arrow.names, source.path)
            yield from _numbered(file.iter_batches(BATCH_ROWS, columns=columns), reader)
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError(
            f"not a readable Parquet file: {error}", where=source.path, how="check the file, or data.source.kind"
        ) from error


def arrow(source: FileSource, _seed: int) -> Iterator[Candidate]:
    """Rows of a folder that Hugging Face `datasets` wrote with ``save_to_disk``; no file of it is ever executed.

    Raises:
        InputError: missing folder, changed content, not such a folder, a split to be named, or a missing column.
    """
    import pyarrow

    check_digest(source.path, source.sha256)
    reader = RowReader(source)
    try:
        yield from _numbered(_record_batches(arrow_files(source), reader), reader)
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError(
            f"not a readable arrow file: {error}",
            where=source.path,
            how="save the data set again with save_to_disk, or check data.source.kind",
        ) from error


def arrow_files(source: FileSource) -> list[Path]:
    """The files of the data set in their order, as its `state.json` lists them."""
    folder, how = source.path, "name a folder that Dataset.save_to_disk or DatasetDict.save_to_disk wrote"
    splits_file = folder / "dataset_dict.json"
    if splits_file.is_file():
        splits = _listed(splits_file, "splits", how)
        if source.split is None or source.split not in splits:
            what = f"there is no split {source.split!r}" if source.split else "the folder holds several splits"
            raise InputError(what, where="data.source.split", how=f"name one of: {', '.join(map(str, splits))}")
        folder = folder / source.split
    elif source.split:
        raise InputError("the folder holds one data set and no splits", where=folder, how="leave data.source.split out")
    state = folder / "state.json"
    if not state.is_file():
        raise InputError("not a saved data set: there is no state.json", where=folder, how=how)
    entries = _listed(state, "_data_files", how)
    names = [entry.get("filename") if isinstance(entry, dict) else None for entry in entries]
    if bad := [name for name in names if not isinstance(name, str) or Path(name).name != name]:
        raise InputError(f"names a file outside its folder: {bad[0]!r}", where=state, how=how)
    return [folder / str(name) for name in names]


def _listed(file: Path, key: str, how: str) -> list[Any]:
    """A list in a JSON file of the folder."""
    value = read_json(file, how=how)
    found = value.get(key) if isinstance(value, dict) else None
    if not isinstance(found, list):
        raise InputError(f"not a saved data set: it has no list named {key}", where=file, how=how)
    return found


def _record_batches(files: Sequence[Path], reader: RowReader) -> Iterator[Any]:
    import pyarrow

    for path in files:
        with open_regular(path) as file, pyarrow.ipc.open_stream(file) as stream:
            columns = _columns(reader, stream.schema.names, path)
            for batch in stream:
                read = batch.select(columns)
                _check_offsets(read)
                for start in range(0, read.num_rows, BATCH_ROWS):
                    yield read.slice(start, BATCH_ROWS)


def _check_offsets(batch: Any) -> None:
    """See that the offsets of a batch stay inside of it: pyarrow follows them wherever they lead.

    Text is looked at as bytes, for a row that is not UTF-8 is that row's own fault.

    Raises:
        ArrowException: they do not.
    """
    import pyarrow

    as_bytes = {pyarrow.string(): pyarrow.binary(), pyarrow.large_string(): pyarrow.large_binary()}
    for column in batch.columns:
        found = column.view(as_bytes[column.type]) if column.type in as_bytes else column
        found.validate(full=True)


def _columns(reader: RowReader, names: list[str], path: Path) -> list[str]:
    """The columns to read, each once; one that the whole file lacks is an error."""
    if missing := [column for column in reader.columns if column not in names]:
        raise missing_columns(missing, names, str(path))
    return list(dict.fromkeys(reader.columns))


def _numbered(batches: Iterator[Any], reader: RowReader) -> Iterator[Candidate]:
    rows = (row for batch in batches for row in _rows(batch))
    for line, (cells, fault) in enumerate(rows, start=1):
        if fault is None:
            yield reader.candidate(cells, line)
        else:
            yield Candidate(NOTHING, {name: as_scalar(cell) for name, cell in cells.items()}, line, fault)


UNREADABLE = (ValueError, OverflowError, KeyError, NotImplementedError)
"""What a cell raises that is no value of Python: text that is not UTF-8, a time before year 1 or after 9999, a time
zone that there is not. Parquet and Arrow check none of that."""


def _rows(batch: Any) -> Iterator[tuple[dict[str, Any], Fault | None]]:
    """The rows of a batch as dictionaries; one by one where a cell of it cannot be read, which is its row's fault."""
    try:
        rows = batch.to_pylist()
    except UNREADABLE:
        yield from (_row(batch, at) for at in range(batch.num_rows))
    else:
        yield from ((row, None) for row in rows)


def _row(batch: Any, at: int) -> tuple[dict[str, Any], Fault | None]:
    cells: dict[str, Any] = {}
    fault = None
    for name in batch.schema.names:
        try:
            cells[name] = batch[name][at].as_py()
        except UNREADABLE as error:
            cells[name] = None
            fault = fault or _fault(name, batch.schema.field(name).type, error)
    return cells, fault


def _fault(column: str, kind: Any, error: Exception) -> Fault:
    if isinstance(error, UnicodeDecodeError):
        return Fault("not_utf8", f"the column {column!r} is not UTF-8 text")
    return Fault("not_text", f"the column {column!r} holds a {kind} that cannot be read: {error}")


def python(source: PythonSource, seed: int) -> Iterator[Candidate]:
    """Rows that code from outside the project makes."""
    return candidates(source, seed, source.name or source.target)


def verifiers(source: VerifiersSource, _seed: int) -> Iterator[Candidate]:
    """Tasks of an environment of the library verifiers."""
    for prompt in environment_prompts(source):
        yield Candidate(prompt, {"question": prompt.text, "answer": prompt.answer}, None)


SOURCES: dict[str, Callable[..., Iterator[Candidate]]] = {
    "generated": generated,
    "reasoning_gym": gym,
    "jsonl": jsonl,
    "parquet": parquet,
    "arrow": arrow,
    "python": python,
    "verifiers": verifiers,
}
