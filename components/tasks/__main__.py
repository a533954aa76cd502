"""Writes generated problems as JSON lines, to try out what reads files: ``python -m components.tasks arithmetic``.

The problems of one task and seed are all distinct and in a fixed order, so that files of different parts of them have
none in common. The answer column is the written-out solution with the final answer in its last line.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from components.config.data import DataSettings
from components.errors import EvenkeelError, InputError
from components.files import write_jsonl
from components.tasks import TASKS
from components.types import Prompt


def problems(task: str, levels: int, total: int, seed: int) -> list[Prompt]:
    """All distinct problems, by a teacher who forgets nothing."""
    source = DataSettings.model_validate(
        {"source": {"kind": "generated", "task": task, "rows": total, "levels": levels}}
    ).source
    return TASKS[task](source, seed)


def row(prompt: Prompt) -> dict[str, str | float]:
    """The columns of a file of prompts."""
    return {
        "question": prompt.text,
        "answer": prompt.solution,
        "family": prompt.family,
        "difficulty": prompt.difficulty,
    }


def main() -> int:
    options = _parser().parse_args()
    try:
        found = problems(options.task, options.levels, options.total, options.seed)
        part = found[options.skip : options.skip + options.rows]
        if len(part) < options.rows:
            how = f"there are {len(found)} problems in all (--total)"
            raise InputError(f"only {len(part)} problems are left after {options.skip}", where="--rows", how=how)
        write_jsonl(options.out, map(row, part))
    except EvenkeelError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    print(f"{len(part)} problems in {options.out}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m components.tasks", description="Write problems as JSON lines.")
    parser.add_argument("task", choices=TASKS)
    parser.add_argument("--out", type=Path, required=True, help="the file")
    parser.add_argument("--rows", type=int, default=8000, help="problems to write (default: 8000)")
    parser.add_argument("--skip", type=int, default=0, help="problems before the first of them (default: 0)")
    parser.add_argument("--total", type=int, default=12000, help="distinct problems in all (default: 12000)")
    parser.add_argument("--levels", type=int, default=2, help="difficulty levels (default: 2)")
    parser.add_argument("--seed", type=int, default=0, help="of all of them (default: 0)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
