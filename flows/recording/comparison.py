"""Compares a reproduction with the record: outputs by their digests, metrics number by number."""

from __future__ import annotations

import json
import math
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from components.config.documents import foreign
from components.errors import EXIT_NO_CANDIDATE
from components.files import read_json, read_text
from flows.host.dvc import declared, locked, locked_in
from flows.host.git import git, succeeds
from flows.recording.record import LOCK, PIPELINE, is_number, leaves

OUTCOME = "outcome"
DIGEST = re.compile(r"[0-9a-f]{32,64}")


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference from the record: an output, or a number of a metric file."""

    stage: str
    what: str
    recorded: str
    found: str


@dataclass
class Comparison:
    """All that was compared, and what differs."""

    run_id: str
    commit: str
    tolerance: float
    outputs: dict[str, int] = field(default_factory=dict)
    """Stage -> how many outputs were compared."""
    metrics: dict[str, int] = field(default_factory=dict)
    """Stage -> how many values of metric files were compared."""
    differences: list[Difference] = field(default_factory=list)
    machine: list[str] = field(default_factory=list)
    """What is different about this machine, a line each."""

    @property
    def equal(self) -> bool:
        return not self.differences

    @property
    def exit_code(self) -> int:
        """0 equal, 3 not."""
        return 0 if self.equal else EXIT_NO_CANDIDATE

    def of(self, stage: str) -> list[Difference]:
        """What differs in one stage."""
        return [one for one in self.differences if one.stage == stage]

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON values."""
        return {**asdict(self), "equal": self.equal}


def compare_stage(into: Comparison, stage: str, project: Path, root: Path, recorded_state: str, state: str) -> None:
    """Add one stage that was executed again in ``root``.

    With a tolerance digests are not compared, including those inside metric files: digests have no nearness.
    """
    into.outputs[stage] = into.metrics[stage] = 0
    if (recorded_state == "refused") != (state == "refused"):
        into.differences.append(Difference(stage, OUTCOME, recorded_state or "not executed", state))
        return
    declaring = foreign(read_text(root / PIPELINE), PIPELINE)["stages"][stage]
    for path in (name for name in declared(declaring, "metrics") if (root / name).exists()):
        _compare_metrics(into, stage, path, project, root)
    before = locked(git(project, "show", f"{into.commit}:{LOCK}")).get(stage, {})
    after = locked_in(root).get(stage, {})
    if into.tolerance == 0:
        seen = {one.what.partition(" ")[0] for one in into.of(stage)}
        for path in sorted({*before, *after}):
            into.outputs[stage] += 1
            old, new = before.get(path, "nothing"), after.get(path, "nothing")
            if old != new and path not in seen:
                into.differences.append(Difference(stage, path, old, new))


def _compare_metrics(into: Comparison, stage: str, path: str, project: Path, root: Path) -> None:
    recorded = f"{into.commit}:{path}"
    if not succeeds(project, "cat-file", "-e", recorded):
        into.differences.append(Difference(stage, path, "nothing", "a file"))
        return
    before = dict(leaves(json.loads(git(project, "show", recorded)), ""))
    after = dict(leaves(read_json(root / path), ""))
    for key in sorted({*before, *after}):
        old, new = before.get(key, "nothing"), after.get(key, "nothing")
        if into.tolerance and _is_digest(old) and _is_digest(new):
            continue
        into.metrics[stage] += 1
        if not agree(into.tolerance, old, new):
            into.differences.append(Difference(stage, f"{path} {key.removeprefix('.')}", str(old), str(new)))


def agree(tolerance: float, old: Any, new: Any) -> bool:
    """Whether two values count as equal: numbers within the tolerance, absolutely or relatively."""
    if tolerance and is_number(old) and is_number(new):
        return math.isclose(old, new, rel_tol=tolerance, abs_tol=tolerance)
    return bool(old == new)


def _is_digest(value: Any) -> bool:
    return isinstance(value, str) and DIGEST.fullmatch(value) is not None
