"""YAML as configurations are written: nothing is read otherwise than it looks."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from components.config import Settings
from components.config.documents import Dumper, foreign, read
from components.config.reading import apply_override, validate
from components.errors import InputError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", "yes"),
        ("off", "off"),
        ("true", True),
        ("False", False),
        ("1:30", "1:30"),
        ("2026-01-01", "2026-01-01"),
        ("1e-4", 1e-4),
        ("1_000", 1000),
        ("1_000.5", 1000.5),
        ("0x1f", 31),
        ("0", 0),
        ("-3", -3),
        (".5", 0.5),
        ("5.", 5.0),
        ("1.e3", 1000.0),
        ("-.inf", float("-inf")),
        ("", None),
        ("~", None),
        ("null", None),
        ("NULL", None),
        ("nullify", "nullify"),
        ("'010'", "010"),
        ("0o17", "0o17"),
        ("1e", "1e"),
        ("{a: [1, yes]}", {"a": [1, "yes"]}),
    ],
)
def test_scalars_are_those_of_yaml_1_2(text: str, value: object) -> None:
    found = read(text, "here")
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("steps: 010", "010 begins with 0"),
        ("steps: -007", "-007 begins with 0"),
        ("steps: 99999999999999999999", "a number of 20 digits is too large"),
        ("a: &a {b: 1}\nc:\n  <<: *a", "merge keys (<<) are not read"),
        ("{a: 1, a: 2}", "the key 'a' stands twice"),
        ("{~: 1, null: 2}", "the key None stands twice"),
        ("a: !!bool yes", "'yes' is neither true nor false"),
        ("!!python/object:os.system {}", "the tag 'python/object:os.system' is not read"),
        ("!!timestamp 2026-01-01", "the tag 'timestamp' is not read"),
        ("!!set {a}", "the tag 'set' is not read"),
        ("a: <<", "<< is no value"),
        ("[" * 5000, "it has more than 100 levels"),
    ],
)
def test_what_could_be_read_in_two_ways_is_refused(text: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        read(text, "here")
    assert said in caught.value.what


def test_the_line_of_a_file_is_named() -> None:
    with pytest.raises(InputError) as caught:
        read("a: 1\nb:\n  - 010", Path("some.yaml"))
    assert caught.value.where == "some.yaml:3"


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63) + 1, 2**63 - 1) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(VALUES | st.from_regex(r"[-+.0-9eExX_:~<>=nulltrefasyo]{1,8}", fullmatch=True))
def test_what_is_written_is_read_again(value: object) -> None:
    text = yaml.dump({"value": value}, Dumper=Dumper, allow_unicode=True)
    assert read(text, "here") == {"value": value}
    if isinstance(value, str):
        assert yaml.safe_load(text) == {"value": value}, "tools that read YAML 1.1 take it for the same text"


@pytest.mark.parametrize("text", ["a\x85b", "a\u202eb", "a\x1b[2Jb", "a\u200bb\nc", "\U000e0041"])
def test_what_does_not_show_is_written_as_an_escape(text: str) -> None:
    written = yaml.dump({"value": text}, Dumper=Dumper, allow_unicode=True)
    assert written.replace("\n", "").isprintable()
    assert read(written, "here") == {"value": text}


@pytest.mark.parametrize("override", ["train.steps=true", "learner.lr=false", "rollout.max_repeats=true"])
def test_a_truth_value_is_no_number(override: str) -> None:
    tree, name = Settings().model_dump(mode="json"), override.split("=")[0].rpartition(".")[2]
    apply_override(tree, override)
    with pytest.raises(InputError, match=f"{name}: write a number, not (true|false)"):
        validate(tree, where="here")


@pytest.mark.parametrize("override", ["learner.kind=fsdp2", "learner={kind: fsdp2}"])
def test_an_override_keeps_the_settings_of_a_section_whose_kinds_have_the_same(override: str) -> None:
    tree = {"learner": {"lr": 0.5, "kind": "torch"}}
    apply_override(tree, override)
    assert tree == {"learner": {"lr": 0.5, "kind": "fsdp2"}}


def test_what_is_read_again_is_as_it_was_read_first_whatever_was_done_to_that_and_each_reader_has_its_own() -> None:
    text = "a: [yes]\n"
    for reader, value in ((read, "yes"), (foreign, True)):
        reader(text, "here")["a"].append(2)
        assert reader(text, "here") == {"a": [value]}
