"""What makes a mechanism one that is held back."""

from __future__ import annotations

from typing import ClassVar


class HeldBack:
    """Stands before the mechanism's own base, so that `drawing.half_of` never shows the kind to those who design."""

    held_back: ClassVar[bool] = True
