"""`dvc.yaml` declares the settings a stage reads: one too few is a stale result, one too many a wasted run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from components.config import Settings, load, root
from components.config.base import Section
from components.files import write_jsonl
from components.layout import Layout
from components.stages import STAGES, run_stage
from tests.code_graph import ROOT
from tests.integration.small import NO_LIMITS, SMALL
from tests.unit.kept_workers import kept_workers

pytestmark = pytest.mark.integration

DECLARED: dict[str, set[str]] = {
    stage: set(entry["params"])
    for stage, entry in yaml.safe_load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"].items()
}
NOT_SEEN = {"device", "threads", "audit.override", "triage.override", "reward.weights"}
"""Read by the command line before the stage starts; only after a failed audit or a refusal; and only where the reward
has parts."""
NO_DEPENDENCY = {"health.prometheus.textfile", "health.prometheus.port", "evaluation.reuse", "sinks"}
"""Read, and not declared: where figures are shown while `train` runs changes no byte of its output, `report` does not
show sinks, and answers that are kept are the same to the byte as those that `evaluate` and `dpo` would make."""

AUDITED = ("admission.label_audit=report", "admission.sensitive=report", "admission.prompts=8")
"""Half of what triage asks for, so that it has something left to sample."""
SHORT = (
    *(
        "data.source.rows=400",
        "audit.prompts=8",
        "audit.max_false_positive=1",
        "sft.steps=6",
        "train.steps=4",
        "train.eval_every=2",
    ),
    *("evaluation.prompts=8", "evaluation.suites.more_digits.prompts=4"),
)
"""What is read does not depend on how much there is to do."""


def sections(section: Section, path: str = "") -> Iterator[tuple[int, str]]:
    """Identity and dotted path of every section below one."""
    yield id(section), path
    for name in type(section).model_fields:
        value = section.__dict__[name]
        if isinstance(value, Section):
            yield from sections(value, f"{path}{name}.")


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> tuple[Settings, set[str]]:
    """Settings under which every stage has something to do, and the dotted names of all that has been read of them."""
    write_jsonl(tmp_path / "pairs.jsonl", [{"prompt": "1+1=", "chosen": "#2", "rejected": "#3"}])
    dpo = ("dpo.steps=2", "dpo.held_out=0", f"dpo.pairs={{path: {tmp_path}/pairs.jsonl}}")
    settings = load(ROOT / "configs/demo.yaml", [*SMALL, *NO_LIMITS, *dpo, *AUDITED, *SHORT])
    paths, seen = dict(sections(settings)), set[str]()
    dump = Section.model_dump

    def get(section: Section, name: str) -> Any:
        value = object.__getattribute__(section, name)
        known = name in type(section).model_fields and id(section) in paths
        if known and not isinstance(value, Section):
            seen.add(paths[id(section)] + name)
        return value

    def dumped(section: Section, **options: Any) -> dict[str, Any]:
        path = paths.get(id(section))
        if path is not None:
            seen.update(included(path, options.get("include") or set(type(section).model_fields)))
        return dump(section, **options)

    # A response that changes a setting checks the combination again. That reads every setting and changes none.
    monkeypatch.setattr(root, "problems", lambda settings: [])
    monkeypatch.setattr(Section, "__getattribute__", get, raising=False)
    monkeypatch.setattr(Section, "model_dump", dumped)
    return settings, seen


def included(path: str, include: set[str] | dict[str, Any]) -> Iterator[str]:
    """The names of what is dumped; a section of which only a part is stands for that part."""
    for name in include:
        below = include[name] if isinstance(include, dict) else True
        if below is True:
            yield f"{path}{name}"
        else:
            yield from included(f"{path}{name}.", below)


def beneath(name: str, declared: str) -> bool:
    return f"{name}.".startswith(f"{declared}.")


def test_every_stage_declares_what_it_reads(read: tuple[Settings, set[str]], tmp_path: Path) -> None:
    settings, seen = read
    for stage in STAGES:
        seen.clear()
        with kept_workers():
            run_stage(stage, settings, Layout(tmp_path))
        seen -= NO_DEPENDENCY
        undeclared = {name for name in seen if not any(beneath(name, declared) for declared in DECLARED[stage])}
        unread = {declared for declared in DECLARED[stage] if not any(beneath(name, declared) for name in seen)}
        assert (stage, undeclared, unread - NOT_SEEN) == (stage, set(), set())
