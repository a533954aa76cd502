"""Which prompts may be drawn at all, by what is known of them before they are sampled.

A group whose completions are all right or all wrong has no advantage and teaches nothing (2503.14476). Dynamic sampling
finds that out by sampling it; a gate by remembering.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from components.config.scheduling import GradientGate
from components.scheduling.measured import Measured
from components.scheduling.packing import Marks

Gate = Callable[[Measured, int], Marks]
"""What is known of N prompts and the number of the draw to come -> which of them it may take, ``[N]``."""


def gradient(settings: GradientGate) -> Gate:
    """Closed to prompts that carried no gradient, for ``retry`` draws: the policy has moved on by then.

    Prompts never measured are admitted; one that carried a gradient sits out ``rest`` draws, so that the refill of a
    step does not take it again under the same policy.
    """

    def admits(measured: Measured, draw: int) -> Marks:
        carried = (measured.success > settings.low) & (measured.success < settings.high)
        waited = draw - measured.at
        return ~measured.known | (waited > np.where(carried, settings.rest, settings.retry))

    return admits


def everyone(_settings: object) -> Gate:
    """Open to all."""
    return lambda measured, _draw: np.ones(len(measured.success), bool)


GATES: dict[str, Callable[[Any], Gate]] = {"gradient": gradient, "open": everyone}
"""``schedule.gate.kind`` -> its builder, which takes that section."""
