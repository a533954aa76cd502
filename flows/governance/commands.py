"""The commands that a person types to decide, as the project's policy and the place of its registry need them."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from components.config.promotion import Action, PromotionPolicy, load_policy
from components.errors import InputError
from components.files import read_json
from components.layout import Layout
from flows.governance.registry import DEFAULT, RegistryContext
from flows.run.parameters import DEMO
from flows.run.workspace import UNKNOWN_REQUEST
from flows.watching.execution import read

SHORT = 12
"""Digits of a digest, as they are shown and typed."""


@dataclass(frozen=True)
class DecisionCommands:
    """``--key`` stands in them where only a signature counts, ``--config`` where ``config`` is not the default one."""

    policy: PromotionPolicy
    config: str = DEMO

    @classmethod
    def of(cls, context: RegistryContext) -> DecisionCommands:
        """Those for this registry."""
        return cls(context.policy.settings, context.config)

    def read(self, digest: str) -> str:
        """The page to read first; it compares with the champion where that was not done yet."""
        return f"evenkeel show {digest[:SHORT]} --page report.html{self._config}"

    def approve(self, digest: str, *, doubtful: bool = False) -> str:
        """``doubtful``: the gate is inconclusive, so that a reason is needed."""
        return self._line("promote", f"approve {digest[:SHORT]}", why=doubtful)

    def reject(self, digest: str) -> str:
        return self._line("reject", f"reject {digest[:SHORT]}", why=True)

    def rollback(self, to: str = "") -> str:
        """``to``: digest or number of a record; the champion before this one if empty."""
        return self._line("rollback", f"rollback --to {to[:SHORT]}" if to else "rollback", why=True)

    def adopt(self) -> str:
        return self._line("adopt", "adopt-policy", why=False)

    def _line(self, action: Action, command: str, *, why: bool) -> str:
        reason = " --reason WHY" if why else ""
        key = " --key YOUR-KEY" if self.policy.quorum(action).signed else ""
        return f"evenkeel {command} --by YOUR-NAME{reason}{key}{self._config}"

    @property
    def _config(self) -> str:
        return "" if self.config == DEMO else f" --config {shlex.quote(self.config)}"


def approval_of_run(project: Path, run_id: str, digest: str) -> str:
    """The line that approves the candidate of a run that has its workspace."""
    gate = Layout(project / "runs" / run_id).gate
    doubtful = gate.exists() and read_json(gate)["result"] == "inconclusive"
    lines = DecisionCommands(load_policy(project).settings, config_of(project, run_id))
    return lines.approve(digest, doubtful=doubtful)


def config_of(project: Path, run_id: str, registry: str = DEFAULT) -> str:
    """The configuration that names the registry of a run's candidate: the run's own; its resolved settings where these
    name another registry; without a workspace the default one, or a placeholder where that has another registry."""
    params = project / "runs" / run_id / "params.yaml"
    try:
        execution = read(params.parent)
    except InputError:  # damaged
        execution = None
    request = execution.request if execution else UNKNOWN_REQUEST
    if request.config and not any(one.startswith("registry") for one in request.overrides):
        return request.config
    if params.exists():
        return params.relative_to(project).as_posix()
    return DEMO if registry == DEFAULT else "YOUR-CONFIG"
