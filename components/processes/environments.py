"""What a run takes from its surroundings: environments beside the project's own, and secrets."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from components.errors import InputError

LEARNER_KEY = "EVENKEEL_LEARNER_KEY"
LEARNER_KEY_HOW = f"set {LEARNER_KEY} to the same secret here and where the ranks are started"


def learner_key() -> str:
    """The secret that this run and a learner's ranks elsewhere share.

    Raises:
        InputError: there is none.
    """
    key = os.environ.get(LEARNER_KEY, "")
    if not key:
        raise InputError(f"{LEARNER_KEY} is not set", where="learner.ranks.address", how=LEARNER_KEY_HOW)
    return key


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
