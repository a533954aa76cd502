"""Environments beside the project's own."""

from __future__ import annotations

import sys
from pathlib import Path

from components.errors import InputError

ENVIRONMENT = ".venv-vllm"


def vllm_python(python: Path | None, folder: Path | None = None) -> Path:
    """The Python that has vLLM: the one that is named, or else of the environment `ENVIRONMENT` beside the one that
    runs, in ``folder`` (None: the working folder), or above it, as a project is above the folders of its runs.

    Raises:
        InputError: there is none.
    """
    here = (folder or Path.cwd()).absolute()
    folders = [Path(sys.prefix).parent, here, *here.parents]
    candidates = [python] if python is not None else [place / ENVIRONMENT / "bin" / "python" for place in folders]
    for candidate in candidates:
        if candidate.exists():
            return candidate.absolute()  # not resolved: a virtual environment is known by the path of its Python
    raise InputError(
        "no environment with vLLM",
        where=python or f"{ENVIRONMENT} in {folders[0]}, in {here} or above it",
        how="build it with `make vllm-env`, or name its Python in rollout.engine.python",
    )
