"""The configuration: typed, merged, overridden, pinned, and refused with a message."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from components.config import Settings, dump, load, pin_inputs
from components.config.reading import apply_override, merge, read_tree
from components.errors import InputError
from components.files import sha256_file, sha256_tree

ROOT = Path(__file__).parents[2]
CONFIGS = [path for folder in ("", "faults") for path in sorted((ROOT / "configs" / folder).glob("*.yaml"))]
RECIPES = sorted((ROOT / "configs" / "recipes").glob("*.yaml"))
RULES = {"rules": {"calm": {"when": "entropy < 1", "why": "a rule"}}}


@pytest.fixture
def configs(tmp_path: Path) -> Path:
    """A folder with one health file, as configs/ has."""
    write(tmp_path / "health" / "default.yaml", RULES)
    return tmp_path


def write(path: Path, tree: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(tree if isinstance(tree, str) else yaml.safe_dump(tree))
    return path


def refusal(path: Path, *overrides: str) -> InputError:
    with pytest.raises(InputError) as caught:
        load(path, overrides)
    return caught.value


# What ships


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_every_shipped_configuration_loads_with_its_health_rules(path):
    assert load(path).health.rules


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_every_recipe_fits_the_demo_and_says_where_it_is_from(path, configs):
    extends = {"extends": [str(ROOT / "configs" / "demo.yaml"), str(path)]}
    settings = load(write(configs / "a.yaml", extends), ["train.steps=100"])
    assert merge(settings.model_dump(mode="json"), read_tree(path)) == settings.model_dump(mode="json")
    assert re.match(r"(#.*\n)*#.*(\d{4}\.\d{5}|https://)", path.read_text())


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_a_dumped_configuration_loads_to_equal_settings(path, tmp_path):
    settings = load(path)
    assert load(write(tmp_path / "params.yaml", dump(settings))) == settings


# Files


def test_an_empty_file_is_the_defaults_with_the_rules_of_its_folder(configs):
    settings = load(write(configs / "a.yaml", ""))
    assert settings.model_copy(update={"health": Settings().health}) == Settings()
    assert list(settings.health.rules) == ["calm"]


def test_rules_in_the_file_itself_are_used_as_they_are(configs):
    assert load(write(configs / "a.yaml", {"health": {"rules": {}}})).health.rules == {}


def test_another_kind_of_section_begins_again_unless_every_kind_has_the_same_settings(configs):
    below = {"schedule": {"kind": "ads", "window": 2}, "learner": {"lr": 0.5}}
    write(configs / "base.yaml", below)
    above = {"extends": "base.yaml", "schedule": {"kind": "uniform"}, "learner": {"kind": "deepspeed"}}
    assert read_tree(write(configs / "a.yaml", above)) == {
        "schedule": {"kind": "uniform"},
        "learner": {"lr": 0.5, "kind": "deepspeed"},
    }


def test_a_later_file_wins_over_the_ones_it_extends(configs):
    write(configs / "sub" / "a.yaml", {"seed": 1, "train": {"steps": 5, "eval_every": 2}})
    write(configs / "b.yaml", {"seed": 2, "learner": {"lr": 0.1}})
    path = write(configs / "c.yaml", {"extends": ["sub/a.yaml", "b.yaml"], "train": {"steps": 7}})
    settings = load(path)
    assert (settings.seed, settings.train.steps, settings.train.eval_every, settings.learner.lr) == (2, 7, 2, 0.1)


def test_a_file_is_extended_relative_to_the_file_that_names_it(configs):
    write(configs / "sub" / "base.yaml", {"seed": 9})
    write(configs / "sub" / "a.yaml", {"extends": "base.yaml"})
    assert load(write(configs / "c.yaml", {"extends": "sub/a.yaml"})).seed == 9


def test_two_files_may_extend_the_same_one(configs):
    write(configs / "base.yaml", {"seed": 9})
    for name in "ab":
        write(configs / f"{name}.yaml", {"extends": "base.yaml"})
    assert read_tree(write(configs / "c.yaml", {"extends": ["a.yaml", "b.yaml"]})) == {"seed": 9}


def test_a_circle_is_refused(configs):
    write(configs / "a.yaml", {"extends": "b.yaml"})
    assert "extends itself" in refusal(write(configs / "b.yaml", {"extends": ["a.yaml"]})).what


@pytest.mark.parametrize(
    ("text", "problem", "where"),
    [
        ("a: [1\nb: 2\n", "not valid YAML", "bad.yaml:2"),
        ("- 1\n", "a configuration is a mapping", "bad.yaml"),
        ("a: " + "1" * 5000, "a number of 5000 digits is too large", "bad.yaml:1"),
        ("a: " + "[" * 2000, "it has more than 100 levels", "bad.yaml"),
        ("!!python/object/apply:os.system ['true']", "not valid YAML", "bad.yaml:1"),
    ],
)
def test_a_file_that_is_no_configuration_is_named_with_its_line(configs, text, problem, where):
    error = refusal(write(configs / "bad.yaml", text))
    assert problem in error.what
    assert error.where == str(configs / where)


def test_a_missing_file_is_an_error_also_when_it_is_extended(configs):
    assert refusal(configs / "none.yaml").where == str(configs / "none.yaml")
    extending = refusal(write(configs / "a.yaml", {"extends": "none.yaml"}))
    assert (extending.what, extending.where) == (
        "`extends` names 'none.yaml', which is not there",
        str(configs / "a.yaml"),
    )


def test_a_value_of_thousands_of_characters_is_not_repeated_whole(configs):
    error = refusal(write(configs / "a.yaml", {"name": "x" * 5000, "seed": "y" * 5000}))
    assert "more characters" in error.what and len(error.what) < 1500


@pytest.mark.parametrize(
    ("sections", "problem"),
    [
        ({"data": {"source": {"kind": "jsonl", "path": "FOLDER"}}}, "is a folder, not a file"),
        ({"dpo": {"steps": 1, "pairs": {"path": "FOLDER"}}}, "is a folder, not a file"),
        ({"data": {"source": {"kind": "arrow", "path": "FILE"}}}, "is a file, not a folder"),
        ({"policy": {"model": {"kind": "checkpoint", "path": "FILE"}}}, "is a file, not a folder"),
    ],
)
def test_a_folder_where_a_file_must_be_is_refused_with_the_settings(configs, sections, problem):
    path = write(configs / "a.yaml", sections)
    path.write_text(path.read_text().replace("FOLDER", str(configs)).replace("FILE", str(path)))
    with pytest.raises(InputError, match=problem):
        pin_inputs(load(path))


def test_missing_or_malformed_health_rules_are_an_error(configs):
    path = write(configs / "a.yaml", {"health": {"rules_file": "other"}})
    refused = refusal(path)
    assert refused.where == "health.rules_file"
    assert "other.yaml" in str(refused.how)
    write(configs / "health" / "other.yaml", {"rules": {}, "more": 1})
    assert "one mapping named `rules`" in refusal(path).what


def test_a_configuration_anywhere_finds_the_projects_rules(tmp_path):
    assert load(write(tmp_path / "mine.yaml", {"name": "mine"})).health.rules


@pytest.mark.parametrize("bases", [5, None, [5]])
def test_extends_must_name_files(configs, bases):
    assert "`extends` is a file name" in refusal(write(configs / "a.yaml", {"extends": bases})).what


def test_a_key_that_stands_twice_is_refused_with_its_line(configs):
    path = configs / "a.yaml"
    path.write_text("name: a\ntrain:\n  steps: 1\n  steps: 2\n", encoding="utf-8")
    refused = refusal(path)
    assert "'steps' stands twice" in refused.what
    assert refused.where == f"{path}:3"


# Values


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ({"trian": {}}, "trian: unknown setting"),
        ({"train": {"stepz": 1}}, "train.stepz: unknown setting"),
        ({"train": {"steps": 0}}, "train.steps: .* greater than or equal to 1 .got 0."),
        ({"train": {"steps": "many"}}, "train.steps: .* valid integer.* .got 'many'."),
        ({"learner": {"lr": 2}}, "learner.lr"),
        ({"sft": {"betas": [0.9, 1.5]}}, "sft.betas.1: .* less than 1"),
        ({"learner": {"lr": float("nan")}}, "learner.lr: .* finite number"),
        ({"seed": -1}, "seed"),
        ({"name": "No Spaces"}, "name: .* pattern"),
        (
            {"schedule": {"kind": "random"}},
            "schedule.kind: 'random' is not one of 'uniform', 'ads', ",
        ),
        (
            {"rollout": {"engine": {"kind": "vlm"}}},
            "engine.kind: 'vlm' is not one of 'torch', 'vllm', 'sglang'$",
        ),
        ({"data": {"source": {"task": "sums"}}}, "data.source.generated.task: 'sums' is not one of 'arithmetic', "),
        ({"rollout": {"engine": "vllm"}}, "rollout.engine: .*write rollout.engine.kind=vllm, or {kind: vllm}$"),
        ({"schedule": "ads"}, "schedule: .*write schedule.kind=ads, or {kind: ads}$"),
        ({"rollout": {"engine": [1]}}, "rollout.engine: a section of settings, .* {NAME: VALUE}$"),
        ({"rollout": {"mixing": 3}}, "rollout.mixing: .*write rollout.mixing.NAME=VALUE, or {NAME: VALUE} .got 3.$"),
        ({"train": None}, "train: a section of settings, .* .got None.$"),
        ({"reward": {"weights": 3}}, "reward.weights: a section of settings"),
        (
            {"rollout": {"engine": {"kind": "vllm", "processes": 1, "devices": 0}}},
            "devices: write a list, .* .0.$",
        ),
        (
            {"rollout": {"engine": {"kind": "vllm", "urls": "http://a:1"}}},
            r"urls: write a list, such as .http://a:1.$",
        ),
        ({"data": {"source": {"families": {"a": 1}}}}, "families: write a list$"),
        ({"schedule": None}, "schedule"),
        ({"objective": {"kl": {"beta": 0.1}}}, "objective.kl: name its `kind`"),
        ({"train": 5}, "train"),
        ({"data": {"splits": {"sft": 0.9}}}, "the four shares must add up to 1"),
        ({"data": {"splits": {"sft": 0.875, "dev": 0, "train": 0.025}}}, "must each have a share above 0"),
        ({"data": {"source": {"families": ["addition", "addition"]}}}, "each once"),
        ({"data": {"source": {"families": []}}}, "at least one family"),
        ({"data": {"source": {"kind": "jsonl"}}}, "path: Field required"),
        ({"policy": {"model": {"heads": 3}}}, r"heads \(3\) must be a multiple of kv_heads \(2\)"),
        ({"reward": {"soft_overlong": {"limit": 4, "cache": 5}}}, r"cache \(5\) cannot exceed limit \(4\)"),
    ],
)
def test_an_impossible_value_is_refused_with_its_key(configs, tree, message):
    assert re.search(message, refusal(write(configs / "a.yaml", tree)).what)


def test_every_wrong_key_is_listed_at_once(configs):
    error = refusal(write(configs / "a.yaml", {"sedd": 1, "train": {"steps": 0, "eval_every": "x"}}))
    assert all(key in error.what for key in ("sedd", "train.steps", "train.eval_every"))
    assert "evenkeel params" in str(error)


def test_settings_cannot_be_changed_afterwards():
    with pytest.raises(ValidationError, match="frozen"):
        Settings().train.steps = 3


# Overrides


def overridden(configs: Path, *overrides: str, **tree: Any) -> Settings:
    return load(write(configs / "a.yaml", tree), overrides)


def test_an_override_wins_over_the_file_and_the_last_one_over_the_others(configs):
    assert overridden(configs, "train.steps=8", "train.steps=9", train={"steps": 7}).train.steps == 9


@pytest.mark.parametrize(
    ("override", "read"),
    [
        ("learner.lr=1e-3", lambda s: s.learner.lr == 1e-3),
        ("triage.override='because: I say so = fine'", lambda s: s.triage.override == "because: I say so = fine"),
        ("reward.verifier.marker='#'", lambda s: s.reward.verifier.marker == "#"),
        ("data.source.families=[addition]", lambda s: s.data.source.families == ("addition",)),
        ("data.source.levels=2", lambda s: s.data.source.levels == 2),
        ("policy.model.layers=1", lambda s: s.policy.model.layers == 1),
        ("rollout.engine.batch_rows=7", lambda s: s.rollout.engine.batch_rows == 7),
        ("health.rules={}", lambda s: s.health.rules == {}),
        ("objective.kl={kind: k2, beta: 0.1}", lambda s: s.objective.kl.beta == 0.1),
        ("objective.entropy.coef=0.1", lambda s: s.objective.entropy.coef == 0.1),
        ("objective.aggregation.kind=sequence_mean", lambda s: s.objective.aggregation.kind == "sequence_mean"),
        ("rollout.dynamic_sampling.max_attempts=2", lambda s: s.rollout.dynamic_sampling.max_attempts == 2),
        ("objective.correction=null", lambda s: s.objective.correction is None),
        ("objective.correction.cap=3", lambda s: s.objective.correction.cap == 3),
    ],
)
def test_one_value_of_any_section_can_be_set_without_naming_its_kind(configs, override, read):
    assert read(overridden(configs, override))


@pytest.mark.parametrize(
    "override", ["policy.instruction=End with #### and the number.", "train.steps=8 # few", "name={a: 1} #"]
)
def test_a_comment_in_an_override_is_refused_because_it_would_be_lost(override):
    with pytest.raises(InputError, match=r"YAML takes '#.*for a comment"):
        apply_override({}, override)


@pytest.mark.parametrize("override", ["name='a # b'", "name=a#b", 'name="#"', "name={a: '# b'}", "name=a: '#'"])
def test_a_number_sign_inside_of_a_value_is_kept(override):
    tree = {}
    apply_override(tree, override)
    assert "#" in str(tree["name"])


@pytest.mark.parametrize("override", ["schedule.kind=uniform", "schedule={kind: uniform}"])
def test_another_kind_starts_from_its_defaults_instead_of_inheriting_foreign_keys(configs, override):
    ads = {"kind": "ads", "window": 2, "active": 2}
    settings = overridden(configs, override, schedule=ads, train={"prompts_per_step": 4}, admission={"min_distinct": 4})
    assert settings.schedule.model_dump() == {"kind": "uniform"}


def test_the_same_kind_keeps_the_other_keys(configs):
    ads = {"kind": "ads", "window": 2, "active": 2}
    for override in ("schedule.kind=ads", "schedule={kind: ads, band: 0.1}"):
        settings = overridden(
            configs, override, schedule=ads, train={"prompts_per_step": 4}, admission={"min_distinct": 4}
        )
        assert settings.schedule.window == 2


@pytest.mark.parametrize(
    ("override", "problem"),
    [
        ("train.steps", "cannot read the override"),
        ("=5", "cannot read the override"),
        ("train..steps=5", "cannot read the override"),
        ("train.steps=[1", "not valid YAML"),
        ("triage.override=a: b: c", "not valid YAML"),
        ("seed.deep=1", "a value, not a section"),
        ("train.stepz=1", "train.stepz: unknown setting"),
        ("nothing.here=1", "nothing: unknown setting"),
    ],
)
def test_an_override_that_makes_no_sense_is_refused(configs, override, problem):
    assert problem in str(refusal(write(configs / "a.yaml", ""), override))


TREES = st.recursive(
    st.integers() | st.none(),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=10,
).filter(lambda tree: isinstance(tree, dict))


@given(TREES, TREES)
def test_merging_keeps_every_value_of_the_upper_tree_and_changes_neither(below, above):
    before = repr((below, above))
    merged = merge(below, above)
    assert merge(merged, above) == merged
    assert merged.keys() == below.keys() | above.keys()
    assert all(merged[key] == value for key, value in above.items() if not isinstance(value, dict))
    assert repr((below, above)) == before


@given(st.lists(st.sampled_from(["a", "bc", "d_e"]), min_size=1, max_size=4), st.integers(1 - 2**63, 2**63 - 1))
def test_an_override_sets_exactly_its_key(path, value):
    tree: dict[str, Any] = {}
    apply_override(tree, f"{'.'.join(path)}={value}")
    for key in path:
        assert list(tree) == [key]
        tree = tree[key]
    assert tree == value


# Inputs


def with_inputs(folder: Path) -> Settings:
    write(folder / "rows.jsonl", "{}\n")
    write(folder / "model" / "config.json", "{}")
    source = {"kind": "jsonl", "path": str(folder / "rows.jsonl")}
    model = {"kind": "checkpoint", "path": str(folder / "model")}
    return Settings.model_validate({"data": {"source": source}, "policy": {"model": model}})


def test_pinning_writes_the_digests_of_data_and_checkpoint(tmp_path):
    pinned = pin_inputs(with_inputs(tmp_path))
    assert pinned.data.source.sha256 == sha256_file(tmp_path / "rows.jsonl")
    assert pinned.policy.model.sha256 == sha256_tree(tmp_path / "model")
    assert pin_inputs(pinned) == pinned


@pytest.mark.parametrize("name", ["rows.jsonl", "model/config.json"])
def test_an_input_that_changed_after_it_was_pinned_is_refused(tmp_path, name):
    pinned = pin_inputs(with_inputs(tmp_path))
    write(tmp_path / name, "changed")
    with pytest.raises(InputError, match="content has changed"):
        pin_inputs(pinned)


def test_a_missing_input_is_refused(tmp_path):
    settings = with_inputs(tmp_path)
    (tmp_path / "rows.jsonl").unlink()
    with pytest.raises(InputError, match="input not found"):
        pin_inputs(settings)


def test_the_name_of_a_model_on_a_hub_is_no_folder_and_the_fix_fetches_it():
    model = {"kind": "checkpoint", "path": "org/no-such-model"}
    with pytest.raises(InputError, match="input not found") as caught:
        pin_inputs(Settings.model_validate({"policy": {"model": model}}))
    assert "hf download" in str(caught.value.how)


def test_generated_data_and_the_tiny_model_have_nothing_to_pin():
    assert pin_inputs(Settings()) == Settings()


def test_setting_one_of_two_sections_that_yaml_shares_leaves_the_other_alone(tmp_path: Path) -> None:
    config = tmp_path / "shared.yaml"
    config.write_text("sft: {optimizer: &same {lr: 0.01, warmup: 5}}\nlearner: {optimizer: *same}\n", encoding="utf-8")
    tree = read_tree(config)
    apply_override(tree, "sft.optimizer.lr=0.5")
    assert (tree["sft"]["optimizer"]["lr"], tree["learner"]["optimizer"]["lr"]) == (0.5, 0.01)


@pytest.mark.parametrize("tree", [{"learner": {"warmup": 10**18}}, {"train": {"steps": 10**16}}])
def test_a_whole_number_beyond_any_machine_is_refused_by_its_name(tree):
    with pytest.raises(ValidationError, match=r"(warmup|steps): write a number of at most 1,000,000,000,000,000"):
        Settings.model_validate(tree)
