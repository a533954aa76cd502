"""Where a completion is cut into steps. No torch."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate


def natural_ends(pieces: Sequence[str], separators: Sequence[str]) -> tuple[int, ...]:
    """Where the segments of a completion end: indices into its tokens, rising, the last one their number.

    A separator that starts with a letter is a keyword and begins a segment; any other ends one, and the token that
    holds it belongs to the segment that it closes. A run of separators cuts once, and none cuts at the end of the text:
    what follows the answer decides nothing.

    Args:
        pieces: text of each token.
        separators: what cuts, e.g. a newline or "Wait".
    """
    text = "".join(pieces).rstrip()
    places = list(accumulate(map(len, pieces)))  # where each token's text ends
    closing = "|".join(re.escape(s) for s in separators if not s[0].isalpha())
    opening = "|".join(re.escape(s) for s in separators if s[0].isalpha())
    found = {len(pieces)}
    if closing:
        ends = (match.end() for match in re.finditer(f"(?:{closing})+", text))
        found |= {bisect_left(places, end) + 1 for end in ends if end < len(text)}
    if opening:
        found |= {bisect_right(places, match.start()) for match in re.finditer(rf"\b(?:{opening})\b", text)}
    return tuple(sorted(found - {0}))


def merge(ends: Sequence[int], entropy: Sequence[float], most: int) -> tuple[int, ...]:
    """At most ``most`` segments: again and again the two neighbours that hold the least entropy become one.

    So what remains are segments in which about as much was decided. The first pair goes first among equals.

    Args:
        ends: as `natural_ends` returns them.
        entropy: nats of each token; its surprisal under the sampler is an estimate that costs nothing.
        most: how many segments may remain, 1 or more.
    """
    total = [0.0, *accumulate(entropy)]
    kept = [0, *ends]
    while len(kept) - 1 > most:
        nats = [total[kept[i + 1]] - total[kept[i - 1]] for i in range(1, len(kept) - 1)]
        del kept[1 + nats.index(min(nats))]
    return tuple(kept[1:])
