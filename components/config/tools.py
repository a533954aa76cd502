"""What a policy may call while it writes."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from components.config.base import Section


class CalculatorTool(Section):
    """A calculator that answers ``<<12*3=`` with ``36>>`` (2110.14168). Its answers are no part of the loss."""

    kind: Literal["calculator"]
    max_turns: int = Field(8, ge=1, description="Calls in one completion; it ends at one more.")


ToolSettings = CalculatorTool
