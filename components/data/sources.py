"""Readers of prompts, one per kind of source. Each yields candidates in the order of the source."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from components.config.load import check_digest
from components.config.sources import FileSource
from components.config.tasks import Generated
from components.data.candidates import Candidate, RowReader, missing_columns
from components.errors import InputError
from components.files import read_numbered_jsonl
from components.tasks import TASKS

BATCH_ROWS = 4096


def generated(source: Generated, seed: int) -> Iterator[Candidate]:
    """Problems of a task package."""
    for prompt in TASKS[source.task](source, seed):
        yield Candidate(prompt, {"question": prompt.text, "answer": prompt.solution}, None)


def jsonl(source: FileSource, _seed: int) -> Iterator[Candidate]:
    """Lines of a JSON-lines file, one at a time.

    Raises:
        InputError: missing file, changed content, a malformed line or a missing column (the line is named).
    """
    check_digest(source.path, source.sha256)
    reader = RowReader(source)
    for line, row in read_numbered_jsonl(source.path):
        yield reader.candidate(row, line)


def parquet(source: FileSource, _seed: int) -> Iterator[Candidate]:
    """Rows of a Parquet file, a batch in memory at a time; only the named columns are read.

    Raises:
        InputError: missing file, changed content, not Parquet, or a missing column.
    """
    import pyarrow
    from pyarrow import parquet as format_

    check_digest(source.path, source.sha256)
    reader = RowReader(source)
    try:
        with format_.ParquetFile(source.path) as file:
            names = file.schema_arrow.names
            missing = [column for column in reader.columns if column not in names]
            if missing:
                raise missing_columns(missing, names, str(source.path))
            line = 0
            for batch in file.iter_batches(BATCH_ROWS, columns=list(dict.fromkeys(reader.columns))):
                for row in batch.to_pylist():
                    line += 1
                    yield reader.candidate(row, line)
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError(
            f"not a readable Parquet file: {error}", where=source.path, how="check the file, or data.source.kind"
        ) from error


SOURCES: dict[str, Callable[..., Iterator[Candidate]]] = {"generated": generated, "jsonl": jsonl, "parquet": parquet}
