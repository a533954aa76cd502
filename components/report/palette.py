"""One colour list for the page and its plots: light and dark values of every role, safe for colour-blind readers.

Plots are drawn with the light values; `svg` then replaces each by the role's CSS variable, so that the reader's theme
colours text and plots alike. The hues follow Okabe and Ito, darkened or lightened until text in them is readable.
"""

from __future__ import annotations

ROLES: dict[str, tuple[str, str]] = {
    "page": ("#fdfdfc", "#14171a"),
    "card": ("#f4f5f3", "#1d2125"),
    "ink": ("#1c2126", "#e7eaec"),
    "muted": ("#5d666f", "#9ba5ae"),
    "rule": ("#d6dad9", "#353c43"),
    "blue": ("#0b64a0", "#63b3ed"),
    "orange": ("#b35300", "#f0954a"),
    "green": ("#0a7354", "#4cc79e"),
    "purple": ("#8f4178", "#d893c2"),
    "red": ("#b3261e", "#ff8a80"),
    "amber": ("#8a6100", "#e5b84b"),
}
"""Role -> (light, dark). Values are distinct within a theme: they are how a plot's colours are found again."""

LIGHT = {role: light for role, (light, _) in ROLES.items()}


def css(theme: int) -> str:
    """CSS declarations of every role; ``theme`` 0 is light, 1 is dark."""
    return " ".join(f"--{role}: {colours[theme]};" for role, colours in ROLES.items())
