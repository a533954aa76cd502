"""`evenkeel export`: what other programs load, with a model card made of the evidence and of nothing else."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import report_fixture as fixture
import torch
import yaml
from peft import PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer
from typer.testing import CliRunner

from components.config import dump
from components.config.keys import own_key_file
from components.config.policy import LoraSettings, TinyModel
from components.config.promotion import load_policy
from components.errors import InputError
from components.files import read_json, sha256_tree, write_json, write_text
from components.models.convert import dequantised, logits
from components.models.header import read_header
from components.policy import Policy
from components.policy.lora import adapted
from components.policy.tiny import build_model, build_tokenizer
from components.registry import DirectoryStore
from flows.cli import app
from flows.governance.registry import signing_key
from flows.host.git import git
from tests.code_graph import ROOT
from tests.proposals import commit, propose_run, write_lock, write_run

RUNNER = CliRunner()
TEXTS = [f"What is {number} + {7 * number}? About {8 * number}." for number in range(200)]
SMALL = TinyModel(hidden_size=64, layers=2, heads=2, kv_heads=1, intermediate_size=96, vocab_size=320)


def base() -> Policy:
    tokenizer = build_tokenizer(TEXTS, SMALL.vocab_size, SMALL.max_positions)
    return Policy(build_model(SMALL, tokenizer, seed=1).eval(), tokenizer)


def trained() -> Policy:
    """The base with an adapter that has learned something."""
    found = adapted(base(), LoraSettings(rank=2), seed=0)
    with torch.no_grad():
        for number, parameter in enumerate(found.trainable().values()):
            parameter.add_(0.01 * (number + 1))
    return found


def propose(project: Path, policy: Policy, run: str, *overrides: str) -> str:
    """A candidate with a real checkpoint, and otherwise the figures of the report's fixture; returns its digest."""

    def save(folder: Path, _: float) -> None:
        folder.mkdir(parents=True)
        policy.save(folder)

    layout = write_run(project.parent / run, make=save)
    digest = sha256_tree(layout.train_checkpoint)
    fixture.healthy(layout.root)
    for path in (layout.train_metrics, layout.evaluation, layout.gate):
        write_json(path, read_json(path) | {"checkpoint_sha256": digest})
    write_text(layout.params, dump(fixture.settings("train.steps=60", *overrides)))
    write_lock(layout)
    key = signing_key(project, load_policy(project))
    return propose_run(DirectoryStore(project / "registry"), layout, key).digest


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    """A project with two candidates: one with an adapter, and one without."""
    project = tmp_path_factory.mktemp("whole") / "project"
    shutil.copytree(ROOT / "configs", project / "configs")
    write_text(project / "dvc.yaml", "stages: {}\n")
    git(project, "init", "--quiet")
    commit(project)
    with_adapter = propose(project, trained(), "adapted-run", "policy.lora={rank: 2}")
    return project, with_adapter, propose(project, base(), "whole-run")


@pytest.fixture
def project(whole: tuple[Path, str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    monkeypatch.chdir(shutil.copytree(whole[0], tmp_path / "project"))
    return whole[1:]


def export(*arguments: str) -> Any:
    return RUNNER.invoke(app, ["export", *arguments])


def done(*arguments: str) -> Path:
    result = export(*arguments, "--to", "out")
    assert result.exit_code == 0, (result.output, result.exception)
    return Path("out")


def refused(*arguments: str) -> InputError:
    """The refusal, which leaves nothing behind."""
    before = sorted(Path().iterdir())
    result = export(*arguments, "--to", "out")
    assert isinstance(result.exception, InputError), result.output
    assert sorted(Path().iterdir()) == before
    return result.exception


def logits_of(folder: Path) -> torch.Tensor:
    with torch.no_grad():
        return logits(AutoModelForCausalLM.from_pretrained(folder))


# What other programs load


def test_safetensors_load_in_transformers_as_they_are(project: tuple[str, str]) -> None:
    folder = done(project[0][:12])
    with torch.no_grad():
        expected = logits(trained().frozen_copy().model)
    assert torch.equal(logits_of(folder), expected)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    asked = tokenizer.apply_chat_template([{"role": "user", "content": TEXTS[0]}], add_generation_prompt=True)
    assert tuple(asked["input_ids"]) == base().encode_prompt(TEXTS[0])


def test_all_but_the_card_is_the_checkpoint_and_the_registry_holds_as_before(project: tuple[str, str]) -> None:
    folder = done(project[0])
    (folder / "README.md").unlink()
    assert sha256_tree(folder) == project[0]
    assert RUNNER.invoke(app, ["verify", project[0]]).exit_code == 0
    assert "names no checkpoint" in str(RUNNER.invoke(app, ["verify", ""]).exception)


def test_an_adapter_gives_the_checkpoint_on_what_the_training_began_with(project: tuple[str, str]) -> None:
    folder = done(project[0], "--format", "adapter")
    assert {path.name for path in folder.iterdir()} == {"README.md", "adapter_config.json", "adapter_model.safetensors"}
    with torch.no_grad():
        expected = logits(trained().frozen_copy().model)
        found = logits(PeftModel.from_pretrained(base().model, folder).eval())
    torch.testing.assert_close(found, expected)
    assert not torch.allclose(found, logits(base().model), atol=1e-3)


def test_without_an_adapter_none_is_written(project: tuple[str, str]) -> None:
    assert "has no adapter" in refused(project[1], "--format", "adapter").what


def test_a_gguf_file_gives_the_weights_and_logits_of_the_checkpoint(project: tuple[str, str]) -> None:
    file = done(project[1], "--format", "gguf") / "model.gguf"
    found, own = dequantised(file, read_header(file)), base()
    assert found.weights().keys() == own.weights().keys()
    assert all(torch.equal(found.weights()[name], weight) for name, weight in own.weights().items())
    with torch.no_grad():
        assert torch.equal(logits(found.model), logits(own.model))


def test_what_is_there_is_not_touched(project: tuple[str, str]) -> None:
    Path("out").mkdir()
    Path("out/mine.txt").write_text("mine")
    assert "there is something" in refused(project[1]).what
    assert [path.name for path in Path("out").iterdir()] == ["mine.txt"]


@pytest.mark.parametrize("damage", ["weights", "signature"])
def test_what_does_not_hold_is_not_exported(project: tuple[str, str], damage: str) -> None:
    if damage == "weights":
        write_text(Path("registry/trees") / project[1] / "config.json", "{}")
    else:
        own_key_file(Path()).unlink()
    refused(project[1])
    shown = RUNNER.invoke(app, ["show", project[1], "--card", "card.md"])
    assert isinstance(shown.exception, InputError) and not Path("card.md").exists()


def test_a_checkpoint_that_is_no_champion_is_not_exported_as_one(project: tuple[str, str]) -> None:
    assert "there is no champion" in refused("champion").what


# The card


def card(*arguments: str) -> tuple[dict[str, Any], str]:
    """Front matter and text."""
    text = (done(*arguments) / "README.md").read_text(encoding="utf-8")
    _, front, body = text.split("---\n", 2)
    return yaml.safe_load(front), body


def test_the_card_states_what_the_evidence_states(project: tuple[str, str]) -> None:
    front, body = card(project[0])
    tags = ["evenkeel", "grpo", "reinforcement-learning"]
    assert front == {"library_name": "transformers", "pipeline_tag": "text-generation", "tags": tags}
    for expected in (
        f"sha256 `{project[0]}`",
        "none: it began with random weights",
        "Split train: 2,000 prompts",
        "60 of 60 steps",
        "a low-rank adapter (rank 2, alpha 32), merged",
        "95 % interval +52.1 to +58.2; pass@1 33.1 % → 88.4 % on 512 held-out prompts",
        "pass@1 fell in family comparison: 68.7 % to 63.2 %",
        "Warned: 60 steps; entropy halved fired",
        "| Code, commit | 1111111111111111111111111111111111111111 |",
        "There is no approval.",
        "vllm serve THIS_FOLDER --dtype float32 --generation-config vllm",
        "answers of at most 40 tokens: greedy ones, and samples at temperature 1.0 of the whole distribution",
        "it was compared with its own start only",
    ):
        assert expected in body


def test_what_was_not_measured_is_said_to_be_missing(project: tuple[str, str]) -> None:
    assert "| carries | – | – | – | missing: it was not scored |" in card(project[0])[1]


def test_who_approved_is_on_the_card_and_what_they_typed_is_text(project: tuple[str, str]) -> None:
    said = ["--by", "ada <b>", "--reason", "reads | well\n# Really"]
    assert RUNNER.invoke(app, ["reject", project[0][:12], *said]).exit_code == 0
    body = card(project[0])[1]
    assert r"| ada \<b\> |" in body and r"reads \| well # Really |" in body and "rejected by" in body


def test_the_base_model_has_the_name_that_it_is_given(project: tuple[str, str]) -> None:
    front, _ = card(project[0], "--base-model", "org/base", "--format", "adapter")
    assert list(front.values())[:3] == ["org/base", "peft", "text-generation"]
    assert list(front) == ["base_model", "library_name", "pipeline_tag", "tags"]


def test_the_same_evidence_gives_the_same_card_before_anything_is_exported(project: tuple[str, str]) -> None:
    assert RUNNER.invoke(app, ["show", project[0], "--card", "card.md"]).exit_code == 0
    assert Path("card.md").read_bytes() == (done(project[0]) / "README.md").read_bytes()
