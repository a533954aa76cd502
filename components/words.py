"""Numbers and untrusted text as a reader sees them. None is a dash: what was not measured is not 0."""

from __future__ import annotations

ABSENT = "–"
NBSP = "\u00a0"
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def percent(share: float | None, digits: int = 1) -> str:
    """A share in [0, 1] as per cent."""
    return ABSENT if share is None else f"{100 * share:.{digits}f}{NBSP}%"


def points(difference: float | None, digits: int = 1) -> str:
    """A difference of two shares in percentage points, signed."""
    return ABSENT if difference is None else signed(100 * difference, digits)


def signed(value: float, digits: int = 1) -> str:
    """A number with its sign; a true minus, and no sign on what rounds to zero."""
    text = f"{abs(value):.{digits}f}"
    if float(text) == 0:
        return text
    return ("+" if value > 0 else "−") + text


def number(value: float | None) -> str:
    """Three significant digits; whole numbers with thousands separators, tiny ones with a power of ten."""
    if value is None:
        return ABSENT
    if value == int(value) or abs(value) >= 1000:
        return f"{value:,.0f}".replace("-", "−")
    if abs(value) >= 1e-3:
        return f"{value:.3g}".replace("-", "−")
    mantissa, exponent = f"{value:.1e}".split("e")
    return f"{mantissa}·10{str(int(exponent)).translate(_SUPERSCRIPT)}".replace("-", "−")


def plural(amount: int | None, noun: str) -> str:
    """``1 rule``, ``2 rules``."""
    return f"{number(amount)} {noun}{'' if amount == 1 else 's'}"
