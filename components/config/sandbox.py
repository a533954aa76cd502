"""The fence around a verifier: how many processes, and what each of them may use."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from components.config.base import Section


class SandboxSettings(Section):
    """Verifiers run in worker processes of their own. What overruns a limit is unscorable, and its worker replaced."""

    workers: int = Field(2, ge=1, le=256, description="Processes; they are started at first use and kept.")
    timeout: float = Field(10.0, gt=0, description="Seconds of wall time for one completion.")
    cpu_seconds: float = Field(5.0, gt=0, description="Seconds of processor time for one, all threads together.")
    memory_mb: int = Field(512, ge=64, description="Address space of a worker.")
    network: Literal["refused", "open"] = Field(
        "refused",
        description="refused: no sockets (Linux on x86_64 or aarch64; elsewhere an error); open: no such fence.",
    )
