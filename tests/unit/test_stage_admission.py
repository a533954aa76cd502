"""The admission stage: what it withholds reaches neither triage nor training."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from components.config import Settings
from components.data.prompts import read_admitted, read_prompts
from components.errors import InputError
from components.files import read_json, read_jsonl, write_json, write_jsonl
from components.layout import Layout
from components.poisoning.audited import to_audit
from components.stages import admission, clusters, triage
from components.types import Prompt
from tests.code_graph import ROOT
from tests.unit.factories import settings as micro
from tests.unit.factories import workspace
from tests.unit.kept_workers import kept_workers

TRUST = {"name": "rows", "kind": "jsonl", "file": "rows.jsonl", "sha256": "0" * 64, "trust": "none", "trusted": False}


@pytest.fixture(scope="module", autouse=True)
def _workers() -> Iterator[None]:
    with kept_workers():
        yield


def prepared(root: Path, trusted: bool = False, prompts: int = 12) -> Layout:
    layout = workspace(root, train=prompts)
    write_json(layout.validation, {"provenance": {**TRUST, "trusted": trusted}})
    layout.admission_flags.unlink()
    layout.base_answers.unlink()
    return layout


def settings(**options: Any) -> Settings:
    return micro(admission={"min_distinct": 4, "max_prompt_share": 1, "prompts": 6, "samples": 4, **options})


def test_a_trusted_source_is_not_audited_and_nothing_is_withheld(tmp_path):
    layout = prepared(tmp_path, trusted=True)
    admission.run(settings(), layout)
    found = read_json(layout.admission)
    assert (found["verdict"], found["withheld"], found["prompts"]) == ("clear", [], 12)
    assert (found["label_audit"]["mode"], found["sensitive"]["mode"]) == ("off", "off")
    shares = {"largest_share": 0.1, "boundary_share": 0.2}
    assert found["planned"] == {"prompts": 12, "draws": 20, "distinct": 4, **shares}
    assert found["source"]["trusted"] is True
    assert list(read_jsonl(layout.admission_flags)) == []


@pytest.mark.parametrize(("mode", "left"), [("withhold", 6), ("report", 12), ("auto", 6)])
def test_suspicious_labels_are_withheld_with_evidence_and_later_stages_leave_them_out(tmp_path, mode, left):
    """With these limits a label is suspicious if it is never sampled and any other answer is."""
    layout = prepared(tmp_path)
    lenient = {"max_label_rate": 1, "min_alternative_rate": 0}
    chosen = settings(label_audit=mode, **lenient).model_copy(update={"reward": exact_whole_text()})
    admission.run(chosen, layout)
    found, flags = read_json(layout.admission), list(read_jsonl(layout.admission_flags))
    assert found["label_audit"]["audited"] == 6
    assert len(flags) == found["label_audit"]["suspicious"] == 6
    assert found["verdict"] == ("reported" if mode == "report" else "withheld")
    assert all(flag["label"]["samples"] == 4 and "samples of the base policy" in flag["reasons"][0] for flag in flags)
    kept = read_admitted(layout.split("train"), layout.admission_flags)
    assert len(kept) == left == 12 - len(found["withheld"])
    clusters.run(chosen, layout)
    assert [row["id"] for row in read_jsonl(layout.clusters)] == [prompt.id for prompt in kept]
    triage.run(chosen, layout)
    assert read_json(layout.triage)["prompts"] == 4


def test_prompts_with_the_template_and_answer_of_a_suspicious_one_are_withheld_with_it(tmp_path):
    layout = prepared(tmp_path)
    rows = [prompt.to_dict() for prompt in read_prompts(layout.split("train"))]
    for i in range(7, 12):
        rows[i] |= {"text": f"Case {i}: who was it that stayed at home all day?", "answer": ("B", "(B)")[i % 2]}
    write_jsonl(layout.split("train"), rows)
    chosen = settings(label_audit="withhold", prompts=1, max_label_rate=1, min_alternative_rate=0)
    admission.run(chosen.model_copy(update={"reward": exact_whole_text()}), layout)
    flags = list(read_jsonl(layout.admission_flags))
    assert [flag["id"] for flag in flags if flag["withheld"]] == [f"p{i:03d}" for i in range(7, 12)]
    assert flags[0]["label"] and "samples of the base policy" in flags[0]["reasons"][0]
    assert flags[1]["reasons"] == ["has the template and the answer of p007, whose label is suspicious"]
    assert read_json(layout.admission)["label_audit"] == {
        "mode": "withhold", "audited": 1, "coverage": 0.083333, "completions": 4, "suspicious": 1, "alike": 4,
    }  # fmt: skip


def test_the_audit_samples_sensitive_prompts_and_repeated_templates_before_others():
    prompts = [Prompt(f"p{i}", f"{i}+1=", str(i + 1), "") for i in range(50)]
    prompts += [Prompt(f"twice-{i}", f"Case {i}: who stayed at home?", "Bo", "") for i in range(2)]
    prompts += [Prompt(f"often-{i}", f"Case {i}: who went to the shop?", "Al", "") for i in range(3)]
    prompts += [Prompt("said", "Was it the refugee?", "no", "")]
    names = [[prompt.id for prompt in to_audit(prompts, {"said"}, count, seed=1)] for count in (1, 3, 5, 10, 99)]
    assert names[0] == ["said"]
    assert len(names[1]) == 3 and {"often-0", "said"} < {*names[1]}
    assert len(names[2]) == 5 and {"twice-0", "often-0", "said"} < {*names[2]}
    assert len(names[3]) == 10 and {"twice-0", "often-0", "said"} < {*names[3]}
    assert names[4] == [prompt.id for prompt in prompts]


def exact_whole_text() -> Any:
    return micro(reward={"verifier": {"kind": "exact", "marker": ""}}).reward


def test_triage_samples_only_what_the_audit_has_not(tmp_path, monkeypatch):
    layout = prepared(tmp_path)
    chosen = settings(label_audit="report", prompts=3)
    admission.run(chosen, layout)
    audited = {row["id"] for row in read_jsonl(layout.base_answers)}
    asked: list[str] = []
    sample = triage.sample

    def watched(policy: Any, prompts: Any, *rest: Any) -> Any:
        asked.extend(prompt.id for prompt in prompts)
        return sample(policy, prompts, *rest)

    monkeypatch.setattr(triage, "sample", watched)
    triage.run(chosen, layout)
    assert len(audited) == 3 and not audited & {*asked}
    assert len(asked) == chosen.triage.prompts - 3
    assert read_json(layout.triage)["prompts"] == chosen.triage.prompts


def test_prompts_that_can_no_longer_be_suspicious_are_not_sampled_further(tmp_path):
    """Untrained, the policy gives no answer twice: after two of four completions no other one can reach its rate."""
    layout = prepared(tmp_path)
    chosen = settings(label_audit="report", prompts=5, min_alternative_rate=0.9)
    chosen = chosen.model_copy(update={"triage": micro(triage={"samples": 2}, rollout={"group_size": 2}).triage})
    admission.run(chosen.model_copy(update={"reward": exact_whole_text()}), layout)
    found = read_json(layout.admission)["label_audit"]
    assert (found["audited"], found["completions"], found["suspicious"]) == (5, 10, 0)


def test_the_audit_is_the_same_every_time(tmp_path):
    for name in ("a", "b"):
        layout = prepared(tmp_path / name)
        admission.run(settings(label_audit="report", max_label_rate=1, min_alternative_rate=0), layout)
    assert (tmp_path / "a/out/admission.json").read_bytes() == (tmp_path / "b/out/admission.json").read_bytes()


@pytest.mark.parametrize(("mode", "withheld"), [("auto", []), ("report", []), ("withhold", ["p000"]), ("off", [])])
def test_sensitive_prompts_are_reported_or_withheld(tmp_path, mode, withheld):
    layout = prepared(tmp_path)
    rows = [prompt.to_dict() for prompt in read_prompts(layout.split("train"))]
    rows[0]["text"] = "Is the immigrant right?"
    write_jsonl(layout.split("train"), rows)
    admission.run(settings(label_audit="off", sensitive=mode), layout)
    assert read_json(layout.admission)["withheld"] == withheld
    flags = list(read_jsonl(layout.admission_flags))
    assert [flag["words"] for flag in flags] == ([] if mode == "off" else [["immigrant"]])


def test_too_few_prompts_are_refused_and_nothing_is_written(tmp_path):
    layout = prepared(tmp_path, prompts=3)
    with pytest.raises(InputError, match=r"a step has 3 distinct prompts, admission\.min_distinct is 4"):
        admission.run(settings(label_audit="off"), layout)
    assert not layout.admission.exists() and not layout.admission_flags.exists()


def test_later_stages_ask_for_the_admission_stage(tmp_path):
    layout = prepared(tmp_path)
    with pytest.raises(InputError) as caught:
        clusters.run(settings(), layout)
    assert caught.value.where == str(layout.admission_flags)


def test_without_an_audit_torch_is_not_loaded(tmp_path):
    layout = prepared(tmp_path, trusted=True)
    code = (
        "import sys; from pathlib import Path; from components.config import Settings;"
        "from components.layout import Layout;"
        f"from components.stages.admission import run; run(Settings(), Layout(Path({str(layout.root)!r})));"
        "print('torch' in sys.modules, 'great_expectations' in sys.modules)"
    )
    code = code.replace("Settings()", "Settings.model_validate({'train': {'prompts_per_step': 8, 'steps': 1}})")
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
