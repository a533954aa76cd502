"""The promotion policy of a project, and the health rules that it names."""

from __future__ import annotations

import shutil
from base64 import b64encode
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from components.config.promotion import FILE
from flows.host.git import git
from tests.code_graph import ROOT
from tests.hostile.cases import Case, End, chosen, seeded
from tests.hostile.ground import written
from tests.hostile.mutations import broken, replacements, reshaped
from tests.hostile.test_configurations import TEXTS

KEYS = [Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32).public_key() for number in (1, 2)]
LINES = ["ed25519:" + b64encode(key.public_bytes_raw()).decode() for key in KEYS]
SIGNER = (ROOT / "tests/corpus/schema-2/signer.pem").read_text(encoding="utf-8")
POLICY: dict[str, Any] = {
    "version": 1,
    "gate": {"canaries": {"refusals": {"sha256": "5" * 64, "format": "refusal", "max_drop": 0.02}}},
    "runs": {"triage.min_entropy": {"at_least": 0.1}, "evaluation.samples": {"at_least": 8}},
    "rules": "default",
    "promote": {"approvals": 1, "signed": False, "own_approval": None},
    "rollback": {"approvals": 1},
    "valid_days": 14,
    "approvers": {
        "ada": {"key": LINES[0], "also": ["ada@example.org"]},
        "grace": {"key": LINES[1], "also": []},
    },
    "signers": {"lab": SIGNER},
}
PLAIN: dict[str, Any] = {**POLICY, "gate": {}, "runs": {}, "approvers": {}, "signers": {}}
"""One that lets a candidate be approved."""
COMMANDS = (
    ("history",),
    ("show", "challenger"),
    ("verify", "--all"),
    ("approve", "{challenger}", "--by", "ada", "--reason", "hostile"),
    ("adopt", "--by", "ada"),
    ("rollback", "--by", "ada", "--reason", "hostile"),
)
LEFT_OUT = ("many-keys", "too-large", "long-line", "deep-blocks", "many-items")
"""Slow, and read by the same reader as configurations."""


def project_with(policy: Any, folder: Path) -> None:
    """A copy of the project with this policy, committed."""
    shutil.copytree(folder.parent, folder, ignore=shutil.ignore_patterns("case-*"), dirs_exist_ok=True)
    written({str(FILE): policy})(folder)
    git(folder, "commit", "--quiet", "--all", "--allow-empty", "--message=policy")


def case(name: str, policy: Any, shown: object = "") -> Case:
    command = seeded(name).choice(COMMANDS)
    return Case(f"{name}-{command[0]}", command, partial(project_with, policy), needs_registry=True, shown=shown)


def cases() -> Iterator[Case]:
    for name, text in TEXTS.items():
        if name not in LEFT_OUT:
            yield case(f"yaml-{name}", text, text)
    for name, tree in (*replacements(POLICY, seeded("policy"), 3), *reshaped(POLICY, seeded("policy"), 20)):
        yield case(name, tree)
    for name, tree in replacements(PLAIN, seeded("plain"), 4):
        yield case(f"plain-{name}", tree)
    for name, data in broken(written_text(PLAIN), seeded("bytes"), 20):
        yield case(f"bytes-{name}", data, data)


def written_text(tree: Any) -> bytes:
    return "".join(f"{key}: {value!r}\n" for key, value in tree.items()).replace("None", "null").encode()


@pytest.mark.parametrize("case", chosen(cases(), 4))
def test_a_bad_policy_decides_nothing(case: Case, hostile: Callable[[Case], End]) -> None:
    hostile(case)
