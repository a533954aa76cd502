"""The health monitor inside verl's trainer: a backend of its `Tracking`, which logs every step from the driver.

::

    from components.health.verl_callback import watch_verl

    watch_verl("health", stop=True)     # in the process of the trainer, before `fit()`
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from components.errors import EvenkeelError
from components.health.in_process import InProcess
from components.health.monitor import GRAVE, worst
from components.health.readers.lines import as_number
from components.health.readers.steps import Row

BACKEND = "evenkeel"


class GraveVerdict(EvenkeelError):
    """A rule of level rollback or stop fired, and the training was to stop then."""


class VerlLogger(InProcess):
    """What verl calls with the metrics of every step; see `InProcess`. With ``stop`` a grave verdict raises
    `GraveVerdict` out of the training loop."""

    trainer = "verl"

    def log(self, data: Mapping[str, Any], step: int) -> None:
        """Judge one step. verl logs a step once, but for a validation before the first one.

        Raises:
            GraveVerdict: with ``stop`` alone.
        """
        before = len(self.verdicts)
        self._attempt("monitor", lambda: self._take(data, int(step)))
        said = self.verdicts[before:]
        if self._stop and worst(said) in GRAVE:
            grave = next(verdict for verdict in said if verdict.level in GRAVE)
            raise GraveVerdict(f"{grave.rule} says {grave.level}: {grave.reason}", where=f"step {grave.step}")

    def _take(self, data: Mapping[str, Any], step: int) -> None:
        numbers = {name: _number(value) for name, value in data.items() if self._names.reads(name)}
        values = {name: value for name, value in numbers.items() if value is not None}
        if not values:
            return
        if step <= self._last:
            self._complain(f"metrics of step {step} came after it was judged and were left out")
            return
        record = self._translated(Row(step, values))
        verdicts = self._judge(record)
        self._attempt("output", lambda: self._report(record, verdicts, self._stop))


def watch_verl(folder: str | Path | None = None, **how: Any) -> VerlLogger:
    """Add a `VerlLogger` to every `Tracking` that verl makes in this process from now on.

    Raises:
        ImportError: verl is not installed.
        InputError: as `InProcess`.
    """
    from verl.utils.tracking import Tracking

    logger, make = VerlLogger(folder, **how), Tracking.__init__

    def with_ours(tracking: Any, *args: Any, **named: Any) -> None:
        make(tracking, *args, **named)
        tracking.logger[BACKEND] = logger

    Tracking.__init__ = with_ours
    return logger


def _number(value: Any) -> float | None:
    """A number of Python, NumPy or torch; None for everything else, an array of several too."""
    if getattr(value, "size", 1) == 1 and hasattr(value, "item"):
        value = value.item()
    return as_number(value)
