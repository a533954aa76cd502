"""Which questions a step had. A question is its text: copies under other ids are the same question."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from components.files import sha256_bytes
from components.types import Group

SPAN = 5
"""Steps within which a rise of a question's accuracy counts as a jump (2606.10931)."""


def question_signals(groups: Sequence[Group]) -> dict[str, float]:
    """How many different questions there were, and the share of the most frequent one."""
    if not groups:
        return {}
    counts = Counter(group.prompt.text for group in groups)
    return {
        "distinct_prompts": float(len(counts)),
        "top_prompt_share": counts.most_common(1)[0][1] / len(groups),
    }


class Jumps:
    """Remembers how well each question was answered in the last `SPAN` steps."""

    def __init__(self) -> None:
        self._recent: deque[dict[str, float]] = deque(maxlen=SPAN)
        self.latest = 0.0

    def observe(self, groups: Sequence[Group]) -> dict[str, float]:
        """``accuracy_jump``: the largest rise over the last steps' lowest; {} where no question came again."""
        found: dict[str, list[float]] = {}
        for group in groups:
            if group.accuracies:
                found.setdefault(sha256_bytes(group.prompt.text.encode())[:16], []).extend(group.accuracies)
        now = {question: fmean(values) for question, values in found.items()}
        rises = [now[q] - min(before) for q in now if (before := [step[q] for step in self._recent if q in step])]
        self._recent.append(now)
        self.latest = max(rises, default=0.0)
        return {"accuracy_jump": self.latest} if rises else {}

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs, as JSON values."""
        return {"recent": [dict(step) for step in self._recent], "latest": self.latest}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state_dict`.

        Raises:
            ValueError: another set of fields.
        """
        if set(state) != {"recent", "latest"}:
            raise ValueError(f"state of jumps has {sorted(state)}")
        self._recent = deque(({str(q): float(a) for q, a in step.items()} for step in state["recent"]), maxlen=SPAN)
        self.latest = float(state["latest"])
