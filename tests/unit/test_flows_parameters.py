"""What the form of a run asks for, and the settings that its fields stand for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from prefect.utilities.callables import parameter_schema

from components.config import load
from components.errors import InputError
from flows.audit_verifier import audit_verifier
from flows.post_training import post_training
from flows.prefect_runtime.states import value
from flows.run.parameters import AS_CONFIGURED, configurations, recipe_file, recipes, settings_of
from tests.code_graph import ROOT


def test_the_form_offers_every_configuration_recipe_and_launcher() -> None:
    fields = parameter_schema(post_training).model_dump()["properties"]
    assert "configs/demo.yaml" in fields["config"]["enum"]
    assert set(fields["config"]["enum"]) == set(configurations())
    assert fields["recipe"]["enum"] == [AS_CONFIGURED, *recipes()]
    assert fields["launcher"]["enum"] == [AS_CONFIGURED, "inline", "processes", "kubernetes"]
    assert fields["max_hours"]["minimum"] == 0
    assert fields["max_hours"]["description"].endswith("0: as configured.")


@pytest.mark.parametrize("flow", [post_training, audit_verifier])
def test_every_field_of_the_form_is_explained_has_a_default_and_one_type(flow) -> None:
    schema = parameter_schema(flow).model_dump()
    assert schema["required"] == []
    for name, field in schema["properties"].items():
        assert field["description"], name
        assert "default" in field, name
        assert "anyOf" not in field, f"{name}: the form has no good way to show a choice of types"


@pytest.mark.parametrize("config", configurations())
def test_every_configuration_on_offer_says_at_once_whether_it_is_complete(config: str) -> None:
    """Those that need a file of the user's name it; all others are valid as they are."""
    assert load(ROOT / config).name


def test_the_fields_come_to_settings(tmp_path: Path) -> None:
    rows = tmp_path / "mine.jsonl"
    rows.touch()
    found = settings_of(dataset=str(rows), launcher="processes", max_hours=1.5, max_gpu_hours=0)
    assert found == [
        f"data.source={json.dumps({'kind': 'jsonl', 'path': str(rows), 'sha256': None})}",
        "launch.kind=processes",
        "budget.hours=1.5",
    ]
    assert settings_of() == settings_of(launcher=AS_CONFIGURED) == []


def test_a_dataset_takes_the_place_of_the_configured_one_and_keeps_its_columns(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    source = {"kind": "jsonl", "path": "old.jsonl", "sha256": "0" * 64, "question": "q"}
    config.write_text(yaml.safe_dump({"data": {"source": source}}), encoding="utf-8")
    kept = load(config, settings_of(dataset="new.jsonl")).data.source
    assert (kept.path, kept.question, kept.sha256) == (Path("new.jsonl"), "q", None)
    other = load(config, settings_of(dataset="new.parquet")).data.source
    assert (other.kind, other.question) == ("parquet", "question")


@pytest.mark.parametrize("name", ["prompts.csv", "prompts"])
def test_a_dataset_of_no_known_kind_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="no dataset that can be read"):
        settings_of(dataset=name)


def test_a_recipe_takes_the_place_of_the_one_that_the_configuration_extends() -> None:
    demo = ROOT / "configs/demo.yaml"
    assert load(demo).objective.ratio.kind == "clip"
    other = load(demo, recipe=recipe_file("gspo"))
    assert other.objective.ratio.kind == "gspo"
    assert other.data == load(demo).data
    assert load(demo, recipe=recipe_file("dapo")) == load(demo, recipe=recipe_file(AS_CONFIGURED)) == load(demo)
    by_way_of_another = ROOT / "configs/local-processes.yaml"
    assert load(by_way_of_another, recipe=recipe_file("gspo")).objective.ratio.kind == "gspo"


def test_where_none_is_extended_the_recipe_lies_beneath_the_file(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("rollout: {group_size: 3}\n", encoding="utf-8")
    found = load(config, recipe=recipe_file("gspo"))
    assert (found.objective.ratio.kind, found.rollout.group_size) == ("gspo", 3)


def test_an_unknown_recipe_is_refused_with_those_there_are() -> None:
    with pytest.raises(InputError, match="no recipe named 'grop'") as caught:
        recipe_file("grop")
    assert "dapo" in str(caught.value)


@pytest.mark.parametrize(
    ("others", "named"),
    [
        ({"fresh": True}, "fresh"),
        ({"recipe": "dapo"}, "recipe"),
        ({"config": "configs/nightly.yaml", "commit": "c0ffee"}, "config, commit"),
    ],
)
def test_the_form_too_refuses_other_fields_with_resume(others: dict[str, Any], named: str) -> None:
    with pytest.raises(InputError, match=f"resume goes on with a run as it was begun, without {named}"):
        value(post_training.fn(resume="demo", **others))
