"""The looks that a run takes at itself. One that breaks must not end a training that may be days old."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TypeVar

from components.errors import EvenkeelError
from components.training.run import RunState
from components.types import StepRecord, Verdict

T = TypeVar("T")


def looked(state: RunState, look: Callable[[], T], otherwise: T) -> T:
    """What a look at the present step finds, or ``otherwise`` where it breaks: then the run goes on unwatched, the
    record states since when and why, and the gate fails.

    Raises:
        EvenkeelError: a server or a rank was lost, or the run is to stop; that is no fault of the look.
    """
    if state.blind:
        return otherwise
    try:
        return look()
    except EvenkeelError:
        raise
    except Exception as error:
        state.blind, state.blind_since = f"{type(error).__name__}: {error}", state.step
        print(f"the health monitor broke at step {state.step} and is off: {state.blind}", file=sys.stderr)
        return otherwise


def watch(state: RunState, record: StepRecord) -> list[Verdict]:
    """What the rules say of a step; nothing where the monitor is off."""
    nothing: list[Verdict] = []
    return looked(state, lambda: state.monitor.observe(record), nothing)


def as_note(state: RunState) -> dict[str, str]:
    """That the monitor broke, in the record of the step in which it did."""
    return {"monitor_failed": state.blind} if state.blind_since == state.step else {}
