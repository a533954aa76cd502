"""Tries every ``kind: python`` entry of a configuration before anything runs, in a process of its own.

``python -m components.extensions < params.yaml``: imports each entry except verifiers and reward functions, validates
its settings and tries the contract of its registry. A verifier is imported only by its fenced worker, which the first
stage starts; reward functions by one that is started here.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from components.catalog import Catalog
from components.config import Settings, dump
from components.config.advantages import PythonAdvantage
from components.config.documents import foreign
from components.config.environments import EnvironmentVerifier, VerifiersSource
from components.config.evaluation import PythonSuite
from components.config.extensions import FunctionSet, PythonEntry, RewardFunction, python_entries
from components.config.ratios import PythonRatio
from components.config.reading import validate
from components.config.reward import RewardSettings
from components.config.scheduling import PythonSchedule
from components.config.sinks import PythonSink
from components.config.sources import PythonSource
from components.config.targets import check_code, locate
from components.config.verifiers import PythonVerifier
from components.environments.prompts import check_rubric
from components.errors import EvenkeelError, InputError
from components.rewards.sandbox import Sandbox
from components.types import Prompt

SECONDS = 120.0


def check_extensions(settings: Settings) -> None:
    """Refuse a run of which an entry from outside cannot be used. Imports nothing into this process.

    Raises:
        InputError: with every entry that cannot, and why.
    """
    if not any(python_entries(settings)):
        return
    command = [sys.executable, "-m", "components.extensions"]
    # The same path as in stages: code that only a shell's PYTHONPATH has would be missing there.
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[1])}
    try:
        done = subprocess.run(
            command, input=dump(settings), env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise InputError(
            f"code from outside did not load within {SECONDS:.0f} seconds", where="kind: python", how="run its module"
        ) from error
    if done.returncode:
        what = f"code from outside cannot be used:\n{done.stdout.strip() or done.stderr.strip()}"
        how = "correct the code or the settings; docs/extend.md has an example of each"
        raise InputError(what, where="the settings with kind: python", how=how)


def problems(settings: Settings) -> list[str]:
    """A message for every entry that cannot be used, with the setting that names it."""
    found: list[str] = []

    def attempt(where: str, check: Callable[[], object]) -> None:
        try:
            check()
        except EvenkeelError as error:
            found.append(f"{where}{error}")

    for path, entry in python_entries(settings):
        attempt(f"{'.'.join(path)}: ", partial(_try, entry))
    if not found and settings.reward.functions:
        attempt("reward.functions: ", partial(_start, settings.reward))
    source, verifier = settings.data.source, settings.reward.verifier
    if not found and isinstance(source, VerifiersSource) and isinstance(verifier, EnvironmentVerifier):
        attempt("", partial(check_rubric, source, verifier))
    if not found and isinstance(settings.objective.ratio, PythonRatio):
        attempt("objective.ratio: ", partial(_check_correction, settings))
    return found


def _start(reward: RewardSettings) -> None:
    """Start a worker process, which imports the functions and looks at the arguments that they take."""
    with Sandbox(FunctionSet(functions=reward.functions), reward.sandbox) as sandbox:
        sandbox.values([(name, Prompt("", "", "", ""), ()) for name in [*reward.functions][:1]])


def _check_correction(settings: Settings) -> None:
    from components.objectives.ratios import check_correction  # loads torch

    check_correction(settings.objective)


def _try(entry: PythonEntry) -> None:
    if isinstance(entry, PythonVerifier | RewardFunction | VerifiersSource):
        check_code(entry, locate(entry))
    else:
        _catalog(entry).choose(entry)


def _catalog(entry: PythonEntry) -> Catalog[Any]:
    """What the entry adds to. Each is imported for its own entries alone: two of these packages load torch."""
    if isinstance(entry, PythonSource | PythonSuite):
        from components.data.outside import OUTSIDE as SOURCES

        return SOURCES
    if isinstance(entry, PythonSchedule):
        from components.scheduling import OUTSIDE as SCHEDULES

        return SCHEDULES
    if isinstance(entry, PythonSink):
        from components.sinks import SINKS

        return SINKS
    if isinstance(entry, PythonAdvantage):
        from components.objectives.advantages import ADVANTAGES

        return ADVANTAGES
    if isinstance(entry, PythonRatio):
        from components.objectives.ratios import RATIOS

        return RATIOS
    raise KeyError(type(entry).__name__)


def main() -> int:
    """Read settings from standard input; write what is wrong to standard output."""
    found = problems(validate(foreign(sys.stdin.read(), "standard input"), where="standard input"))
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
