"""Writes generated problems as JSON lines, to try out what reads files: ``python -m components.tasks arithmetic``.

The problems of one task and seed are all distinct and in a fixed order, so that files of different parts of them have
none in common. The answer column is the written-out solution, the final answer included.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from components.config.data import DataSettings
from components.errors import EvenkeelError
from components.files import write_jsonl
from components.tasks import TASKS
from components.types import Prompt

FEWEST = 16
"""Problems that a generator can make."""


def problems(task: str, levels: int, rows: int, seed: int) -> list[Prompt]:
    """The first ``rows`` problems; more of them extend the list at its end."""
    section = {"kind": "generated", "task": task, "rows": max(rows, FEWEST), "levels": levels}
    return TASKS[task](DataSettings.model_validate({"source": section}).source, seed)[:rows]


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
        part = problems(options.task, options.levels, options.skip + options.rows, options.seed)[options.skip :]
        write_jsonl(options.out, map(row, part))
    except EvenkeelError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    print(f"{len(part)} problems in {options.out}")
    return 0


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no number of problems")
    return int(text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m components.tasks", description="Write problems as JSON lines.")
    parser.add_argument("task", choices=TASKS)
    parser.add_argument("--out", type=Path, required=True, help="the file")
    parser.add_argument("--rows", type=_count, default=8000, help="problems to write (default: 8000)")
    parser.add_argument("--skip", type=_count, default=0, help="problems before the first of them (default: 0)")
    parser.add_argument(
        "--levels", type=int, choices=range(1, 6), metavar="1-5", default=2, help="difficulty levels (default: 2)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of all of them (default: 0)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
