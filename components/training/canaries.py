"""Frozen probe sets, answered greedily: what training must not change, and held-out accuracy does not show."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from components.config.judgement import CanarySettings
from components.config.load import check_digest
from components.errors import InputError
from components.files import read_numbered_jsonl
from components.rollout import Collector
from components.types import Prompt

JUMP = 0.3
"""A question's accuracy that rises by more within five steps has the probes taken at once (2606.10931)."""


class Canaries:
    """The probe sets of one run.

    Raises:
        InputError: a file is missing, empty, or not the one that the settings name, or a line of it has no question
            or no answer.
    """

    def __init__(self, collector: Collector, settings: Mapping[str, CanarySettings]) -> None:
        self._collector, self._settings = collector, settings
        for one in settings.values():
            check_digest(one.path, one.sha256)
        self._probes = {name: read_probes(one.path) for name, one in settings.items()}

    def measure(self, progress: int, jump: float) -> dict[str, float]:
        """``canary_<name>`` of the sets that are due: share of right answers among those that could be judged.

        Args:
            jump: the largest rise of one question's accuracy in the step before.
        """
        found = {}
        for name, probes in self._probes.items():
            if progress % self._settings[name].every and jump <= JUMP:
                continue
            groups = self._collector.groups(probes, self._collector.sampling(seed=0, n=1, temperature=0.0))
            judged = [accuracy for group in groups for accuracy in group.accuracies]
            if judged:
                found[f"canary_{name}"] = sum(judged) / len(judged)
        return found


def read_probes(path: Path) -> list[Prompt]:
    """The questions of one file."""
    probes = []
    for number, row in read_numbered_jsonl(path):
        question, answer = row.get("question"), row.get("answer")
        if not isinstance(question, str) or not isinstance(answer, str) or not question or not answer:
            raise InputError(
                "a probe needs `question` and `answer`, both text", where=f"{path}:{number}", how="mend that line"
            )
        probes.append(Prompt(f"canary-{number}", question, answer, solution=answer))
    if not probes:
        raise InputError("no probes", where=path, how="give JSON lines with `question` and `answer`")
    return probes
