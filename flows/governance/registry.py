"""The project's registry: its store and policy, and the gate's present judgement of a candidate."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from components.config import Settings
from components.config.promotion import Policy
from components.gate.candidate import judge_candidate
from components.registry import Candidate, History, PromotionRecord, Store, open_store, read_history
from components.registry.candidates import PREFIX as CANDIDATES
from components.registry.candidates import read_candidate
from components.registry.promotion import final
from components.registry.records import PREFIX as RECORDS
from components.types import Judgement
from flows.run.parameters import DEMO


@dataclass(frozen=True)
class RegistryContext:
    """What a decision needs: the project's folder, its store and its policy. ``config`` names the configuration of the
    store, for commands that are printed."""

    project: Path
    store: Store
    policy: Policy
    config: str = DEMO


def project_store(project: Path, settings: Settings) -> Store:
    """The store the settings name. A relative path starts at the project, so that all runs share it."""
    return open_store(settings.registry.under(project))


def missing_registry(project: Path, settings: Settings) -> Path | None:
    """The folder of a registry without any candidate or record: not created yet, named wrongly, or gone. Else None."""
    named = settings.registry.under(project)
    if named.kind != "directory":
        return None
    store = open_store(named)
    return None if store.keys(CANDIDATES) or store.keys(RECORDS) else named.path


def decision_on(store: Store, digest: str) -> PromotionRecord | None:
    """The final decision about a candidate, if there is one."""
    candidate = read_candidate(store, digest)
    return None if candidate is None else final(read_history(store), candidate)


def judge(context: RegistryContext, candidate: Candidate, history: History, *, compare: bool = True) -> Judgement:
    """The gate's judgement of a candidate by the project's policy, compared with the champion of these records.

    Args:
        compare: evaluate both on the same prompts if that was not done yet, which takes a minute or more. Without it
            the check of the comparison fails.
    """
    from flows.governance.comparison import comparison_with  # slow to import

    champion = history.champion
    comparison = (
        comparison_with(context.project, context.store, candidate, champion.digest, now=compare) if champion else None
    )
    return judge_candidate(context.store, candidate, context.policy, comparison)
