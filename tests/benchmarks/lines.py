"""Result files of benchmarks that are not sections: a row a line, each with date, commit, machine and versions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from components.files import read_jsonl
from tests.benchmarks.machine import machine, versions
from tests.benchmarks.measured_code import Code
from tests.benchmarks.section import Row


def rows_of(path: Path) -> list[Row]:
    """What is measured already; nothing where there is no file."""
    return list(read_jsonl(path)) if path.exists() else []


def provenance(code: Code) -> Row:
    """Columns that every row has; ``code`` is that of the beginning of the measurement."""
    date = datetime.now(UTC).isoformat(timespec="seconds")
    return {"date": date, "commit": code.until(Code.now()), "machine": machine(), "versions": versions()}


def source(command: str, rows: Sequence[Row]) -> str:
    """One line for below the tables: the command, the time, the machine, the versions."""
    dates = sorted({row["date"][:10] for row in rows})
    when = " to ".join(dict.fromkeys([dates[0], dates[-1]]))
    machines = {f"{row['machine']['processor']}, {row['machine']['cores']} cores" for row in rows}
    packages = {", ".join(f"{name} {row['versions'][name]}" for name in ("torch", "transformers")) for row in rows}
    commits = ", ".join(dict.fromkeys(row["commit"] for row in rows if row["commit"]))
    return f"`{command}`, {when}, on {'; '.join(sorted(machines))}; commit {commits}; {'; '.join(sorted(packages))}."
