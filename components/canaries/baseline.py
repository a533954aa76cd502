"""What a run's probe sets were like at its beginning, and how far they have fallen since: the signals of a step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from components.canaries.figures import falls, figures, margin_falls, margin_limit, score_limit
from components.canaries.items import Measured
from components.config.canaries import CanarySettings


class CanaryBaseline:
    """Remembers the score of every probe the first time."""

    def __init__(self, settings: Mapping[str, CanarySettings]) -> None:
        self._settings = settings
        self._first: dict[str, list[float | None]] = {}

    def observe(self, measured: Iterable[Measured]) -> dict[str, float]:
        """The signals of the sets that were probed in this step; {} where none was.

        ``canary_<name>`` is the score by generation, ``likelihood_<name>`` that by likelihood, ``margin_<name>`` its
        margin. ``canary_drop`` is the largest fall of a set, or of a stratum of one, below its own beginning; one that
        rose does not hide one that fell, and where all of them rose it is 0. ``canaries_beyond_<level>`` counts the
        sets of that level that are beyond their own limits.
        """
        found: dict[str, float] = {}
        largest: list[float] = []
        beyond: Counter[str] = Counter()
        for one in measured:
            limits, signals = self._settings[one.set.name], _signals(one)
            if not signals:
                continue
            found |= signals
            scores = [outcome.score for outcome in one.outcomes]
            leads = [outcome.margin for outcome in one.outcomes]
            drops = falls(one.set, self._before(one, "score", scores), scores)
            margins = margin_falls(one.set, self._before(one, "margin", leads), leads)
            largest += [drop.mean for drop in drops]
            far = any(drop.beyond(score_limit(limits)) for drop in drops)
            beyond[limits.level] += far or any(drop.beyond(margin_limit(limits)) for drop in margins)
        if largest:
            found["canary_drop"] = max(0.0, *largest)
        return found | {f"canaries_beyond_{level}": float(count) for level, count in beyond.items()}

    def _before(self, measured: Measured, what: str, values: list[float | None]) -> list[float | None]:
        return self._first.setdefault(f"{measured.set.name}/{measured.by}/{what}", values)

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs, as JSON values."""
        return {"first": {name: list(scores) for name, scores in self._first.items()}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state_dict`.

        Raises:
            ValueError: another set of fields.
        """
        if set(state) != {"first"}:
            raise ValueError(f"state of the canaries has {sorted(state)}")
        self._first = {str(name): list(scores) for name, scores in state["first"].items()}


def _signals(measured: Measured) -> dict[str, float]:
    """{} where nothing could be judged."""
    shown, name = figures(measured), measured.set.name
    if shown["score"] is None:
        return {}
    if measured.by == "generation":
        return {f"canary_{name}": shown["score"]}
    margin = {} if shown["margin"] is None else {f"margin_{name}": shown["margin"]}
    return {f"likelihood_{name}": shown["score"], **margin}
