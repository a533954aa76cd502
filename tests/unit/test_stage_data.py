"""The data stage as a whole: it writes everything or nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from components.config import Settings
from components.data.prompts import read_prompts
from components.data.splits import SPLITS
from components.errors import InputError
from components.files import manifest, read_json, read_jsonl
from components.layout import Layout
from components.stages.data import run
from components.tasks.identity import normalise

GSM8K = Path(__file__).parents[3] / "shared" / "data" / "gsm8k_train.jsonl"
SHARES = {"sft": 0.25, "train": 0.25, "dev": 0.25, "test": 0.25}


def settings(source: dict[str, Any], **validation: Any) -> Settings:
    return Settings.model_validate({
        "seed": 5,
        "data": {"source": source, "splits": SHARES, "validation": validation},
        "reward": {"verifier": {"kind": "exact", "marker": "#"}},
    })  # fmt: skip


def lines(path: Path, rows: list[dict[str, Any]]) -> dict[str, Any]:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return {"kind": "jsonl", "path": str(path), "answer_pattern": "#(.+)$"}


def row(number: int, **changes: Any) -> dict[str, Any]:
    return {"question": f"{number}+1=", "answer": f"count on #{number + 1}", **changes}


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Layout:
    layout = Layout(tmp_path_factory.mktemp("generated"))
    run(settings({"kind": "generated", "task": "arithmetic", "rows": 400}), layout)
    return layout


def test_splits_hold_every_row_once_and_share_no_question(generated):
    splits = {split: read_prompts(generated.split(split)) for split in SPLITS}
    texts = [normalise(prompt.text) for prompts in splits.values() for prompt in prompts]
    assert len(texts) == len(set(texts)) == 400
    assert read_json(generated.validation)["splits"] == {split: len(prompts) for split, prompts in splits.items()}


def test_the_metrics_name_every_expectation_and_all_hold(generated):
    metrics = read_json(generated.validation)
    assert (metrics["rows"], metrics["quarantined"], metrics["success"]) == (400, 0, True)
    assert len(metrics["families"]) == 6
    assert all(expectation["success"] and expectation["checked"] == 400 for expectation in metrics["expectations"])
    assert list(read_jsonl(generated.data / "quarantine.jsonl")) == []


def test_the_same_settings_give_the_same_bytes_and_replace_the_old(generated, tmp_path):
    layout = Layout(tmp_path)
    layout.data.mkdir(parents=True)
    (layout.data / "old.jsonl").write_text("old")
    run(settings({"kind": "generated", "task": "arithmetic", "rows": 400}), layout)
    assert manifest(layout.out) == manifest(generated.out)


def test_bad_rows_within_the_limit_go_to_quarantine_with_their_lines(tmp_path):
    rows = [row(i) for i in range(60)]
    rows[10] = row(10, answer="no marker")
    rows[20] = row(19)
    source = lines(tmp_path / "rows.jsonl", rows)
    run(settings(source, max_quarantined=0.05), Layout(tmp_path))
    kept = list(read_jsonl(Layout(tmp_path).data / "quarantine.jsonl"))
    assert [(entry["line"], entry["row"]["question"], len(entry["reasons"])) for entry in kept] == [
        (11, "10+1=", 1),
        (21, "19+1=", 2),
    ]
    assert "58 of 60 rows admitted" in (Layout(tmp_path).data / "validation.html").read_text()


def test_too_many_bad_rows_write_nothing_but_the_quarantine(tmp_path):
    layout = Layout(tmp_path)
    source = lines(tmp_path / "rows.jsonl", [row(i, answer="") for i in range(3)] + [row(i) for i in range(3, 60)])
    with pytest.raises(InputError, match="3 of 60 rows") as caught:
        run(settings(source), layout)
    assert not layout.out.exists()
    assert caught.value.where is not None
    assert len(list(read_jsonl(Path(caught.value.where)))) == 3
    run(settings(source, max_quarantined=0.05), layout)
    assert not Path(caught.value.where).exists()  # the new one is beside the splits


def test_a_reference_that_the_verifier_refuses_counts_as_bad(tmp_path):
    rows = [row(i, answer=f"{i + 1}") for i in range(40)]
    source = {**lines(tmp_path / "rows.jsonl", rows), "answer_pattern": None}
    with pytest.raises(InputError, match=r"40 of 40 rows .*\n.*line 1: the verifier does not accept"):
        run(settings(source), Layout(tmp_path))


def test_an_empty_file_is_an_error(tmp_path):
    with pytest.raises(InputError, match="the source has no rows"):
        run(settings(lines(tmp_path / "rows.jsonl", [])), Layout(tmp_path))


def test_a_file_that_lacks_a_line_writes_nothing(tmp_path):
    source = lines(tmp_path / "rows.jsonl", [row(0), {"question": "x"}])
    with pytest.raises(InputError, match="missing column 'answer'"):
        run(settings(source), Layout(tmp_path))
    assert not Layout(tmp_path).out.exists()


def with_consistency(marker: str = "#") -> dict[str, Any]:
    return {"reward": {"verifier": {"kind": "exact", "marker": marker}, "consistency": {"kind": "embedded"}}}


def test_the_consistency_classifier_is_written_beside_the_splits_and_measured_in_the_metrics(generated, tmp_path):
    assert read_json(generated.consistency) == {"model": None}
    assert "consistency" not in read_json(generated.validation)
    chosen = settings({"kind": "generated", "task": "arithmetic", "rows": 400})
    layout = Layout(tmp_path)
    run(Settings.model_validate(chosen.model_dump() | with_consistency()), layout)
    figures = read_json(layout.validation)["consistency"]
    assert figures["auc"] > 0.9
    assert figures["solutions"] == len(read_prompts(layout.split("sft")))
    assert set(read_json(layout.consistency)["model"]) == {"intercept", "coefficients"}
    assert read_json(layout.validation)["splits"] == read_json(generated.validation)["splits"]


def test_solutions_that_teach_no_consistency_write_nothing(tmp_path):
    source = lines(tmp_path / "rows.jsonl", [row(i, answer=f"#{i + 1}") for i in range(100)])
    chosen = Settings.model_validate(settings(source).model_dump() | with_consistency())
    with pytest.raises(InputError, match="0 solutions of the SFT split have thinking"):
        run(chosen, Layout(tmp_path))
    assert not Layout(tmp_path).out.exists()


@pytest.mark.skipif(not GSM8K.exists(), reason="../shared/data/gsm8k_train.jsonl is absent")
def test_all_of_gsm8k_passes_with_its_own_verifier(tmp_path):
    source = {"kind": "jsonl", "path": str(GSM8K), "name": "gsm8k", "answer_pattern": r"####\s*(.+)$"}
    verifier = {"kind": "numeric", "marker": "####"}
    run(Settings.model_validate({"data": {"source": source}, "reward": {"verifier": verifier}}), Layout(tmp_path))
    metrics = read_json(Layout(tmp_path).validation)
    assert (metrics["rows"], metrics["quarantined"]) == (7473, 0)
    assert sum(metrics["splits"].values()) == 7473
