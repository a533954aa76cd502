"""The page of a candidate, from the evidence that is stored with it: what a run knew, and what is known since."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from components.config import load
from components.config.canaries import RequiredCanary
from components.config.promotion import Action
from components.files import read_json
from components.layout import Layout
from components.report.load import load_run
from components.report.run import Part, Run


def load_evidence(
    evidence: Layout,
    *,
    origin: Mapping[str, Any] | None = None,
    decided: Part | None = None,
    judgement: Part | None = None,
    required: Mapping[str, RequiredCanary] | None = None,
    signed: frozenset[Action] | None = None,
    config: str | None = None,
    comparison: Part | None = None,
    champion: Part | None = None,
) -> Run:
    """Everything that a person should see who decides on approval, or later asks why it was approved.

    The same arguments give the same page.

    Args:
        evidence: the stored folder of the candidate.
        origin: what the candidate's record says of where it comes from (`Candidate.run`).
        decided: what came of it, see `Run`; None where nothing has.
        judgement: the gate's answer by the project's policy (`Judgement.to_dict`).
        required: `gate.canaries` of that policy; None where it is not known any more.
        signed: what the project's policy of now counts only with a signature.
        config: the configuration to decide with, see `Run`.
        comparison: with the present champion, of `components.evaluation.against`.
        champion: see `champion_of`; None where there is, or was, none.

    Raises:
        InputError: the settings or an output cannot be read.
    """
    run = load_run(load(evidence.params), evidence, comparison=comparison, judgement=judgement, champion=champion)
    record = None if origin is None else dict(origin)
    return replace(run, required=required, signed=signed, config=config, origin=record, decided=decided)


def champion_of(digest: str, evidence: Layout | None) -> Part:
    """The present champion as the page compares with it; its settings and commit where its evidence is kept.

    Raises:
        InputError: its settings or its lineage cannot be read.
    """
    found: dict[str, Any] = {"digest": digest}
    if evidence is not None and evidence.params.is_file():
        found["params"] = load(evidence.params).model_dump(mode="json")
    if evidence is not None and evidence.lineage.is_file():
        found["lineage"] = read_json(evidence.lineage)
    return found
