"""Times in statements and records: ISO 8601, whole seconds, UTC."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

Clock = Callable[[], datetime]

SKEW = timedelta(minutes=1)
"""What the clocks of two machines may differ by. A clock that is further behind was set back, or never set."""


def utc_now() -> datetime:
    """The present, in whole seconds."""
    return datetime.now(UTC).replace(microsecond=0)


def stamp(time: datetime) -> str:
    """A time as text.

    Raises:
        ValueError: it has no time zone, or is in no year from 1 to 9999 by UTC.
    """
    if time.tzinfo is None:
        raise ValueError("a time must have a time zone")
    try:
        return time.astimezone(UTC).replace(microsecond=0).isoformat()
    except OverflowError as error:
        raise ValueError(f"{time.isoformat()} is beyond the calendar") from error


def parse(text: str) -> datetime:
    """The time that `stamp` wrote.

    Raises:
        ValueError: it is not a time in that form.
    """
    time = datetime.fromisoformat(text)
    if time.tzinfo is None or stamp(time) != text:
        raise ValueError(f"{text!r} is not a time such as 2026-08-01T12:00:00+00:00")
    return time
