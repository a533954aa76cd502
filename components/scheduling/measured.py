"""What is known of each prompt: its success when it was last measured, and when that was."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from components.scheduling.packing import Array, pack, unpack

FIELDS = ("measured", "success", "measured_at")
NEVER = -1


class Measured:
    """Last success ``success [N]`` in [0, 1] and the draw ``at [N]`` that measured it.

    Success is NaN where the last draw could not be scored, and where there was none; there ``at`` is `NEVER`.
    """

    def __init__(self, count: int) -> None:
        self.success: Array = np.full(count, np.nan, np.float64)
        self.at: Array = np.full(count, NEVER, np.int32)

    def note(self, outcomes: Mapping[int, float | None], draw: int) -> None:
        """Place of a prompt -> its success in draw number ``draw``; None: it could not be scored."""
        places = list(outcomes)
        self.success[places] = [np.nan if success is None else success for success in outcomes.values()]
        self.at[places] = draw

    def state_dict(self) -> dict[str, str]:
        """As large as the prompts drawn are many, whatever the number of all."""
        places = np.flatnonzero(self.at != NEVER)
        packed = (pack(places, "i4"), pack(self.success[places], "f8"), pack(self.at[places], "i4"))
        return dict(zip(FIELDS, packed, strict=True))

    def load_state_dict(self, state: Mapping[str, Any], draws: int) -> None:
        """Take over a state that was saved before draw number ``draws``.

        Raises:
            ValueError: places or values that cannot be.
        """
        kinds = ("i4", "f8", "i4")
        places, success, at = (unpack(state, name, kind) for name, kind in zip(FIELDS, kinds, strict=True))
        possible = (
            len(places) == len(success) == len(at)
            and bool((np.diff(places) > 0).all())
            and bool(((places >= 0) & (places < len(self.success)) & (at >= 0) & (at < max(draws, 1))).all())
            and bool((((success >= 0) & (success <= 1)) | np.isnan(success)).all())
        )
        if not possible:
            raise ValueError(f"state does not fit: {', '.join(FIELDS)} are measurements that cannot be")
        self.success[:], self.at[:] = np.nan, NEVER
        self.success[places], self.at[places] = success, at
