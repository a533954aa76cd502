"""Reading a run back; of a candidate from the evidence that is stored with it. What is missing is named with the
reason; what is there but malformed is an error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

from components.config import Settings, load
from components.config.canaries import RequiredCanary
from components.config.promotion import Action
from components.errors import InputError
from components.files import read_json, read_jsonl
from components.health.records import read_records, read_verdicts
from components.health.responses import read_ledger
from components.layout import Layout
from components.report.comparison import against_champion, as_evaluated
from components.report.run import Missing, Part, Run, dig

STAGES = ("data", "audit", "sft", "admission", "triage", "clusters", "train", "evaluate", "gate")
"""In the order in which they run; a stage that stops keeps the ones after it from running."""

LARGEST = sys.float_info.max
AGAIN = "run the stage that writes it again"
REMOVE_COMPARISON = "take it out of the registry (comparisons/): it is computed again when approval is requested"


@dataclass(frozen=True)
class Source:
    """One output: who writes it, what a reader calls it, where it is and how it is read."""

    stage: str
    title: str
    path: Callable[[Layout], Path]
    read: Callable[[Path], Any]


def json_with(*keys: str) -> Callable[[Path], Part]:
    """A reader of one JSON object that must have ``keys``."""

    def read(path: Path) -> Part:
        part = read_json(path, how=AGAIN)
        if not isinstance(part, dict):
            raise InputError("expected a JSON object", where=path, how=AGAIN)
        if lacking := [key for key in keys if key not in part]:
            raise InputError(f"lacks {', '.join(lacking)}", where=path, how=AGAIN)
        return part

    return read


VALIDATION = json_with("rows", "quarantined", "success", "splits", "families", "expectations")
AUDIT = json_with("verdict", "reasons", "prompts", "false_positive", "false_negative", "kinds", "limits")
TRIAGE = json_with(
    "verdict", "reasons", "prompts", "k", "entropy", "pass_at_1", "pass_at_k", "zero_variance_share",
    "all_right_share", "all_wrong_share", "truncated_share", "teaching", "step", "limits", "families",
)  # fmt: skip
TRAIN = json_with("outcome", "steps", "stopped_by", "reason", "checkpoint_step", "checkpoint_sha256")
EVALUATION = json_with("prompts", "samples", "k", "sft", "trained", "gain", "checkpoint_sha256")

SOURCES: dict[str, Source] = {
    "validation": Source("data", "data validation", lambda at: at.validation, VALIDATION),
    "audit": Source("audit", "verifier audit", lambda at: at.audit, AUDIT),
    "sft": Source("sft", "SFT summary", lambda at: at.sft_metrics, json_with("steps", "parameters")),
    "admission": Source(
        "admission", "admission", lambda at: at.admission, json_with("verdict", "withheld", "flagged", "planned")
    ),
    "triage": Source("triage", "triage", lambda at: at.triage, TRIAGE),
    "clusters": Source("clusters", "clusters", lambda at: at.clusters_metrics, json_with("k", "clusters")),
    "records": Source("train", "training record", lambda at: at.records, read_records),
    "verdicts": Source("train", "health verdicts", lambda at: at.train / "verdicts.jsonl", read_verdicts),
    "ledger": Source("train", "ledger of responses", lambda at: at.ledger, read_ledger),
    "train": Source("train", "training summary", lambda at: at.train_metrics, TRAIN),
    "evaluation": Source("evaluate", "evaluation", lambda at: at.evaluation, EVALUATION),
    "samples": Source(
        "evaluate", "sample completions", lambda at: at.samples, lambda path: list(read_jsonl(path, how=AGAIN))
    ),
    "gate": Source("gate", "gate", lambda at: at.gate, json_with("result", "checks", "checkpoint_sha256")),
}
"""Field of `Run` -> where it comes from."""


def load_run(
    settings: Settings,
    layout: Layout,
    *,
    comparison: Part | None = None,
    judgement: Part | None = None,
    champion: Part | None = None,
) -> Run:
    """Read every output that exists.

    Args:
        settings: the run's.
        layout: the run's workspace, or the evidence that is stored with a candidate.
        comparison: with the present champion, made after the run; see `components.report.comparison`.
        judgement: the gate's answer by the project's policy, as `out/gate.json` has it.
        champion: the one that the page compares with: ``digest`` and, where they are known, ``params`` of its run. What
            the run measured of another one is left out.

    Raises:
        InputError: a file exists and is not what its stage writes, or a figure is infinite or not a number.
    """
    paths = {name: source.path(layout) for name, source in SOURCES.items()}
    parts = {name: SOURCES[name].read(path) if path.exists() else None for name, path in paths.items()}
    for name, part in parts.items():
        check_finite(part, where=paths[name], how=AGAIN)
    check_finite(comparison, where="the stored comparison with the champion", how=REMOVE_COMPARISON)
    run = Run(
        settings=settings,
        validation_page=_link(layout.data / "validation.html", layout),
        audit_page=_link(layout.audit_page, layout),
        missing=(),
        canaries=_optional(layout.canaries),
        lineage=_optional(layout.lineage),
        comparison=None if comparison is None else as_evaluated(comparison),
        judgement=judgement,
        champion=champion,
        **parts,
    )
    absent = {source.stage for name, source in SOURCES.items() if parts[name] is None}
    partly = {source.stage for name, source in SOURCES.items() if parts[name] is not None}
    missing = (
        Missing(
            name,
            source.title,
            paths[name].relative_to(layout.root).as_posix(),
            _reason(source.stage, run, absent, rest=source.stage in partly),
        )
        for name, source in SOURCES.items()
        if parts[name] is None
    )
    return against_champion(replace(run, missing=tuple(missing)))


def _optional(path: Path) -> Part | None:
    """A part that a page does without: the gate states where it may not."""
    if not path.exists():
        return None
    part = json_with()(path)
    check_finite(part, where=path, how=AGAIN)
    return part


def _link(page: Path, layout: Layout) -> str | None:
    """A page as the report refers to it, where there is one."""
    return page.relative_to(layout.out).as_posix() if page.exists() else None


def _reason(stage: str, run: Run, absent: set[str], *, rest: bool) -> str:
    """Why ``stage`` did not leave a file: the decision that ended the run, or the first stage that did not finish.

    ``rest``: other files of the same stage are there.
    """
    if rest:
        return f"the stage {stage} left other files but not this one: an older version made them, or it was removed"
    position = STAGES.index(stage)
    if run.untrusted and position > STAGES.index("clusters"):
        return "the verifier failed its audit, and that was not overridden (audit.override)"
    if run.refused and position > STAGES.index("clusters"):
        return "triage refused the SFT checkpoint, and the refusal was not overridden (triage.override)"
    if run.stopped and position > STAGES.index("train"):
        return f"the rule {dig(run.train, 'stopped_by')} stopped training after {dig(run.train, 'steps')} steps"
    first = next(name for name in STAGES if name in absent)
    if first == stage:
        return f"the stage {stage} has not finished"
    return f"the stage {first}, which comes before {stage}, has not finished"


def check_finite(part: Any, *, where: Path | str, how: str) -> None:
    """Refuse a part with a figure that is none: JSON as Python reads it may hold NaN and infinity, of which no page can
    say anything.

    Raises:
        InputError: a number in it is NaN, or too large to be written down.
    """
    if found := next(_not_finite(part, ""), None):
        raise InputError(f"{found.lstrip('.')} is not a finite number", where=where, how=how)


def _not_finite(value: Any, at: str) -> Iterator[str]:
    """Where they are, keys and places with dots between them."""
    inside: Any = ()
    if isinstance(value, int | float):
        if not -LARGEST <= value <= LARGEST:
            yield at
    elif isinstance(value, Mapping):
        inside = value.items()
    elif isinstance(value, list | tuple):
        inside = enumerate(value)
    elif is_dataclass(value):
        inside = ((field.name, getattr(value, field.name)) for field in fields(value))
    for name, one in inside:
        yield from _not_finite(one, f"{at}.{name}")


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
