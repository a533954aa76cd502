"""What a run takes from its surroundings: the environment of vLLM, what variables are called, and a free port."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

from components.errors import InputError

LOOPBACK = "127.0.0.1"
ENVIRONMENT = ".venv-vllm"
TORCH_AND_VLLM = "import importlib.util, sys, torch; importlib.util.find_spec('vllm') or sys.exit('it has no vLLM')"
"""Loads torch, where builds that do not fit the machine show, and no vLLM, which takes long."""
REBUILD = f"remove {ENVIRONMENT} and `make vllm-env` again, with the CPU build of torch (see constraints-vllm.txt)"
PATIENCE = 120.0
"""Seconds that may take; two where the disk is warm."""
RUN, ATTEMPT = "EVENKEEL_RUN", "EVENKEEL_ATTEMPT"
"""Name the run of a pod, and which start of it this is."""
DEVICE = "EVENKEEL_DEVICE"
"""Names what the process computes on: ``device`` of the settings. Without it: auto."""
RANK_LOGS = "EVENKEEL_RANK_LOGS"
"""Names the folder in which ranks 1 and up write their logs; without it they write to standard output."""


def vllm_python(python: Path | None, folder: Path | None = None) -> Path:
    """The Python that has vLLM: the one that is named, or else of the environment `ENVIRONMENT` next to the one that
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
        how="build it with `make vllm-env` in a checkout, or name its Python in rollout.engine.python",
    )


def problem_of(python: Path) -> str:
    """Why a Python cannot start servers, in one line; empty where nothing speaks against it."""
    try:
        subprocess.run([python, "-c", TORCH_AND_VLLM], capture_output=True, timeout=PATIENCE, check=True)
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode(errors="replace").strip().splitlines()
        return said[-1] if said else f"it ended with exit code {error.returncode}"
    except subprocess.TimeoutExpired:
        return f"it did not load torch within {PATIENCE:g} s"
    except OSError as error:
        return str(error.strerror)
    return ""


def check_vllm_python(python: Path) -> None:
    """Raise unless servers can be started with this Python, as far as that shows within some seconds.

    Raises:
        InputError: torch does not load in its environment, or vLLM is not there.
    """
    problem = problem_of(python)
    if problem:
        raise InputError(f"the environment with vLLM does not work: {problem}", where=python, how=REBUILD)


def free_port() -> int:
    """A port that no process listens on at this moment. Another process may take it before it is used: who uses it must
    notice that, and may choose another one."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port
