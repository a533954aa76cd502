"""One checkpoint of the registry with everything known about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from components import registry
from components.errors import InputError
from components.gate.checks.evaluation import TO_BE_COMPARED
from components.registry import Approval, Candidate, History, PromotionRecord, Standing
from components.registry.candidates import SHORTEST
from components.registry.records import gate_of
from flows.governance.comparison import judge
from flows.governance.registry import RegistryContext


@dataclass(frozen=True)
class CheckpointView:
    """``names`` are the aliases that point to it, ``checks`` those of the gate: as it was decided by them, or now.

    ``decision`` is final; until there is one, ``standing`` holds the approvals so far. ``champion`` is the record that
    made the present champion.
    """

    candidate: Candidate
    names: tuple[str, ...]
    result: str
    checks: Sequence[Mapping[str, str]]
    decision: PromotionRecord | None = None
    standing: Standing | None = None
    champion: PromotionRecord | None = None

    @property
    def stands_on(self) -> PromotionRecord | None:
        """The record that made it the present champion."""
        return self.champion if self.champion and self.champion.digest == self.candidate.digest else None

    @property
    def state(self) -> str:
        """Its state as text."""
        if self.decision is None and self.refused:
            return f"refused by the gate: {', '.join(self.refused)}"
        if self.decision is None:
            return f"awaiting approval: {self.standing.lines()[0]}" if self.standing else "awaiting approval"
        if self.stands_on is not None and self.stands_on.number != self.decision.number:
            return f"{self.decision.says}; champion again: {self.stands_on.says}"
        if self.decision.effective and self.stands_on is None and self.champion is not None:
            return f"{self.decision.says}; the champion is {self.champion.digest[:12]} now, {self.champion.says}"
        return self.decision.says

    @property
    def refused(self) -> list[str]:
        """The checks that fail regardless of approvals, without a comparison with the champion that is still to be
        made."""
        return [check["name"] for check in self.checks if check["result"] == "fail" and check["how"] != TO_BE_COMPARED]

    @property
    def approvals(self) -> list[tuple[Approval, str]]:
        """Each with the reason why it does not count, or ""; once decided, those that it was decided by."""
        if self.decision is not None:
            return [(one, "") for one in self.decision.approvals]
        if self.standing is None:
            return []
        return [*((one, "") for one in self.standing.counted), *self.standing.others]

    def to_dict(self) -> dict[str, Any]:
        return {
            "digest": self.candidate.digest,
            "evidence": self.candidate.evidence,
            "names": list(self.names),
            "run": dict(self.candidate.run),
            "state": self.state,
            "gate": {"result": self.result, "checks": list(self.checks)},
            "decision": self.decision.to_dict() if self.decision else None,
            "approvals": [
                {
                    "by": one.statement.by,
                    "at": one.statement.at,
                    "reason": one.statement.reason,
                    "signed": one.signed,
                    "counts": not why,
                    "why_not": why,
                }
                for one, why in self.approvals
            ],
        }


def look_up(context: RegistryContext, which: str) -> CheckpointView:
    """A checkpoint by an alias or by its digest. Nothing is evaluated, and nothing written.

    Raises:
        InputError: there is none, or it was never proposed.
    """
    history = registry.sound_history(context.store)
    aliases = _aliases(context, history)
    candidate = _candidate(context, which, aliases)
    names = tuple(name for name, digest in aliases.items() if digest == candidate.digest)
    if (made := registry.decided(history, candidate, history.base)) is not None:
        return CheckpointView(
            candidate, names, made.gate["result"], made.gate["checks"], made, champion=history.stands_on
        )
    judgement = judge(context, candidate, history, compare=False)
    standing = registry.standing_on(context.store, candidate, judgement, context.policy)
    return CheckpointView(candidate, names, judgement.result, gate_of(judgement)["checks"], standing=standing)


def find_candidate(context: RegistryContext, which: str) -> Candidate:
    """A candidate by an alias or by the first digits of its digest.

    Raises:
        InputError: there is none, or more than one fits.
    """
    named = which in ("champion", "challenger")
    return _candidate(context, which, _aliases(context, registry.sound_history(context.store)) if named else {})


def _aliases(context: RegistryContext, history: History) -> dict[str, str]:
    """Name -> digest, of those that there are."""
    found = {"champion": history.champion, "challenger": registry.challenger(context.store)}
    return {name: alias.digest for name, alias in found.items() if alias}


def _candidate(context: RegistryContext, which: str, aliases: Mapping[str, str]) -> Candidate:
    if which in ("champion", "challenger"):
        if which not in aliases:
            how = "approve a candidate" if which == "champion" else "a run whose gate passes proposes one"
            raise InputError(f"there is no {which} yet", where=which, how=how)
        if (candidate := registry.read_candidate(context.store, aliases[which])) is None:
            raise InputError("its candidate record is gone", where=aliases[which], how="restore the registry")
        return candidate
    if len(which) < SHORTEST:
        how = f"write champion, challenger, or {SHORTEST} digits of a digest"
        raise InputError("names no checkpoint", where=which, how=how)
    return registry.find(context.store, which)
