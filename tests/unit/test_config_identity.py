"""What a setting counts for is stated at its field, and everything that goes by it is derived from there."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
import yaml
from pydantic import Field

from components.config.base import Section
from components.config.identity import LOGISTICS, RUN, TRAINED, chosen
from components.config.judgement import JUDGED_BY
from components.config.root import DEPENDS_ON, OUTSIDE_IDENTITY
from components.config.servers import VllmEngine
from tests.code_graph import ROOT


class Inner(Section):
    kind: Literal["inner"] = "inner"
    wait: Annotated[int, LOGISTICS] = 1


class Silent(Section):
    stated: Annotated[int, RUN] = 1
    added: int = 1


class Whole(Section):
    inner: Annotated[Inner | None, TRAINED] = None
    rows: Annotated[dict[str, Inner], RUN] = Field(default_factory=dict)


class Other(Section):
    wait: int = 1


class Alternatives(Section):
    either: Annotated[Inner | Other, TRAINED] = Inner()


def test_a_new_setting_must_state_what_it_counts_for() -> None:
    with pytest.raises(TypeError, match=r"Silent\.added: state what it counts for"):
        chosen(Silent, lambda identity: identity.run)


def test_a_field_states_it_for_all_below_but_those_with_a_statement() -> None:
    assert chosen(Whole, lambda identity: identity.train) == {"inner": {"kind": True}}
    assert chosen(Whole, lambda identity: identity.run) == {"inner": {"kind": True}, "rows": True}
    assert chosen(Whole, lambda identity: not identity.run) == {"inner": {"wait": True}}


def test_alternatives_agree_about_fields_of_one_name() -> None:
    with pytest.raises(TypeError, match="alternatives differ about what wait counts for"):
        chosen(Alternatives, lambda identity: identity.train)


def test_a_run_stays_the_same_run_when_these_change() -> None:
    sampled_with = {"kind", "dtype", "kv_cache_dtype", "max_model_len"}
    assert {
        "learner": {"ranks": True, "zero": True},
        "rollout": {"engine": dict.fromkeys(VllmEngine.model_fields.keys() - sampled_with, True)},
        "health": {"prometheus": True},
        "evaluation": {"reuse": True},
        "launch": True,
        "sinks": True,
        "record": True,
        "budget": True,
    } == OUTSIDE_IDENTITY


def test_judgement_goes_by_these_health_settings() -> None:
    assert {"enabled", "rules", "responses", "canaries"} == JUDGED_BY


def leaves(choice: Any, path: str = "") -> set[str]:
    """Dotted names of what is chosen."""
    if choice is True:
        return {path}
    return {name for key, below in choice.items() for name in leaves(below, f"{path}.{key}".lstrip("."))}


def test_train_repeats_for_the_settings_that_its_bytes_depend_on() -> None:
    """By its checkpoints and by DVC. A device, a reason to go on, logistics, and the kind of a source, which is in its
    prompts, count for DVC alone."""
    declared = yaml.safe_load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"]["train"]["params"]
    depends = leaves(DEPENDS_ON)
    assert {name for name in depends if not any(f"{name}.".startswith(f"{param}.") for param in declared)} == set()
    unused = {param for param in declared if not any(f"{name}.".startswith(f"{param}.") for name in depends)}
    assert unused == {"device", "audit.override", "data.source.kind", "triage.override"}
    assert "train.checkpoints" not in depends
