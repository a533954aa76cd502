"""Where the checkpoint comes from, as rows: what was recorded, and what was not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from components.config.extensions import python_entries
from components.config.sources import computed
from components.report.run import Part, Run, dig
from components.words import number, plural

NAMES = (
    ("tree", "Code, Git tree", ""),
    ("run", "Run", ""),
    ("branch", "Branch of the run", "code, settings, dvc.lock and metrics"),
    ("code_sha256", "Code of the stages, sha256", ""),
    ("packages_sha256", "Packages, sha256", "names, versions and Python's"),
)
"""Key of `lineage.json`, what a reader calls it, a note."""


@dataclass(frozen=True)
class Origin:
    """One line. ``note`` states how far it can be relied upon; ``known`` False where it was not recorded."""

    name: str
    value: str
    note: str = ""
    known: bool = True


def origins(run: Run) -> list[Origin]:
    """Code, inputs and person, as they are recorded with the candidate; then what the stages themselves recorded."""
    return [*_recorded(run.lineage), *_started(run.origin), *_stages(run)]


def _recorded(lineage: Part | None) -> Iterator[Origin]:
    if lineage is None:
        return
    yield Origin("Code, commit", _show(dig(lineage, "commit")), _tree(lineage), known=bool(dig(lineage, "commit")))
    for key, name, note in NAMES:
        if value := dig(lineage, key):
            yield Origin(name, _show(value), note)
    for one in dig(lineage, "inputs") or ():
        kept = f"kept by {by}" if (by := dig(one, "kept_by")) else ""
        yield Origin(f"Input {_show(dig(one, 'path'))}, sha256", _show(dig(one, "sha256")), kept)
    if outputs := dig(lineage, "outputs"):
        said = f"{plural(len(outputs), 'output')} held against dvc.lock"
        yield Origin("Outputs of the stages", said, "by the check `lineage` of the gate")


def _started(origin: Part | None) -> Iterator[Origin]:
    """Who started the run; nothing where no candidate was recorded."""
    if origin is not None:
        names = dig(origin, "started_by")
        claim = "a claim without proof" if names else "no claim was made"
        yield Origin("Started by", _show(names) if names else "not known", claim, known=bool(names))


def _tree(lineage: Part) -> str:
    if (committed := dig(lineage, "committed")) is None:
        return ""
    snapshot = "a snapshot of a working tree: no branch of the project holds it"
    return "a commit of the project's history" if committed else snapshot


def _stages(run: Run) -> Iterator[Origin]:
    """What is on record inside the run, whoever started it."""
    yield _data(run)
    for path, entry in python_entries(run.settings):
        if not entry.counts:
            continue
        digest = entry.sha256
        yield Origin(f"Code from outside, {'.'.join(path)}", digest or "no digest", entry.target, known=bool(digest))
    start = dig(run.sft, "checkpoint_sha256")
    yield Origin("Checkpoint that RL started from, sha256", str(start or "not recorded"), known=bool(start))
    seen = run.digests
    if seen and len(set(seen.values())) == 1:
        yield Origin("Trained checkpoint, sha256", next(iter(seen.values())), f"the same in {', '.join(seen)}")
    else:
        for stage, found in seen.items():
            yield Origin(f"Trained checkpoint in {stage}, sha256", found, "not the same in all stages")
    if policy := dig(run.judged, "policy_sha256"):
        yield Origin("Gate policy, sha256", str(policy))


def _data(run: Run) -> Origin:
    source, rows = run.settings.data.source, dig(run.validation, "rows")
    named = str(getattr(source, "path", "") or dig(run.admission, "source", "name") or source.kind)
    digest = getattr(source, "sha256", None)
    made = computed(source)
    generated = "generated from the seed" if made else "no digest"
    counted = f"{number(rows)} rows" if isinstance(rows, int) else ""
    return Origin(f"Data, {named}", str(digest or generated), counted, known=bool(digest) or made)


def _show(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(_show(one) for one in value)
    return "" if value is None else str(value)
