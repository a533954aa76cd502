"""Environments beside the project's own."""

from __future__ import annotations

import sys
from pathlib import Path

from components.errors import InputError


def vllm_python(python: Path | None) -> Path:
    """The Python that has vLLM.

    Raises:
        InputError: there is none.
    """
    places = [Path(sys.prefix).parent / ".venv-vllm", Path.cwd() / ".venv-vllm"]
    candidates = [python] if python is not None else [place / "bin" / "python" for place in places]
    for candidate in candidates:
        if candidate.exists():
            return candidate.absolute()  # not resolved: a virtual environment is known by the path of its Python
    raise InputError(
        "no environment with vLLM",
        where=", ".join(str(candidate) for candidate in candidates),
        how="build it with `make vllm-env`, or name its Python in rollout.engine.python",
    )
