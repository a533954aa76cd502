"""Which prompts may be drawn at all, by what is known of them before they are sampled.

A group whose completions are all right or all wrong has no advantage and teaches nothing (2503.14476). Dynamic sampling
finds that out by sampling it; a gate by remembering.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from components.config.scheduling import GradientGate
from components.scheduling.packing import Array, Marks

Gate = Callable[[Array, Array], Marks]
"""Success of M prompts when last drawn, and how many draws ago that was (1: the last one) -> who is let in, ``[M]``.

Success is NaN where nothing could be scored.
"""


def gradient(settings: GradientGate) -> Gate:
    """Closed to prompts that carried no gradient, for ``retry`` draws: the policy has moved on by then.

    Those that could not be scored carried none either.

    One that carried a gradient sits out ``rest`` draws, so that the refill of a step does not take it again under the
    same policy.
    """

    def admits(success: Array, waited: Array) -> Marks:
        carried = (success > settings.low) & (success < settings.high)
        return (waited > settings.retry) | (carried & (waited > settings.rest))

    return admits


def everyone(_settings: object) -> Gate:
    """Open to all."""
    return lambda success, _waited: np.ones(len(success), bool)


GATES: dict[str, Callable[[Any], Gate]] = {"gradient": gradient, "open": everyone}
"""``schedule.gate.kind`` -> its builder, which takes that section. A prompt that was never drawn is always admitted."""
