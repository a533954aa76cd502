"""A process that a person starts ends as the forked one does: some cases of every kind."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.hostile import (
    test_checkpoints,
    test_command_lines,
    test_configurations,
    test_data_files,
    test_health_logs,
    test_overrides,
    test_policies,
    test_registries,
)
from tests.hostile.cases import Case, End, check, sample
from tests.hostile.runner import process_of

KINDS = {
    test_checkpoints: 3,
    test_command_lines: 10,
    test_configurations: 8,
    test_data_files: 3,
    test_health_logs: 5,
    test_overrides: 5,
    test_policies: 5,
    test_registries: 8,
}
"""How many of each."""
CASES = [
    pytest.param(case, id=f"{kind.__name__.rpartition('test_')[2]}-{case.name}")
    for kind, count in KINDS.items()
    for case in sample(list(kind.cases()), count, "processes")
]


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_a_process_ends_as_the_forked_one_does(
    case: Case, hostile: Callable[[Case], End], project: Path, tmp_path: Path
) -> None:
    forked = hostile(case)
    with tempfile.TemporaryDirectory(dir=project, prefix="case-") as other:
        process = process_of(case, Path(other), tmp_path)
    check(process)
    assert process.code == forked.code
