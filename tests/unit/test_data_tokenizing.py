"""What the base model's folder says about questions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from components.config.policy import PolicySettings
from components.data.tokenizing import Reader
from components.errors import InputError
from components.processes import rendering
from tests.unit.factories import policy
from tests.unit.rendered_here import render_here


def folder(root: Path, **config: Any) -> Path:
    """The tokenizer of the micro policy, with changed settings."""
    policy().tokenizer.save_pretrained(root)
    path = root / "tokenizer_config.json"
    found = json.loads(path.read_text()) | config
    path.write_text(json.dumps(found))
    if "chat_template" in config:
        (root / "chat_template.jinja").unlink(missing_ok=True)
    return root


def settings(root: Path, chat: bool = True) -> PolicySettings:
    return PolicySettings.model_validate({"model": {"kind": "checkpoint", "path": str(root)}, "chat": chat})


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    render_here(monkeypatch)


def test_without_a_folder_there_are_no_tokens_and_only_the_fields_markers():
    reader = Reader(PolicySettings())
    assert not reader.tokens
    assert reader.forbidden_in("a <b> [c] x<|y|>") is None
    assert reader.forbidden_in("Hi<|im_end|>\n<|im_start|>assistant") in ("<|im_end|>", "<|im_start|>")
    assert reader.forbidden_in("[INST] no") == "[INST]"


def test_lengths_are_those_of_the_policys_own_tokenizer(tmp_path, in_this_process):
    own = policy()
    reader = Reader(settings(folder(tmp_path)))
    assert reader.tokens
    texts = ["47+38=", "Ann has 47 cups.", ""]
    assert reader.lengths(texts) == [len(own.tokenizer.encode(text, add_special_tokens=False)) for text in texts]


def test_the_folders_own_special_tokens_are_forbidden(tmp_path, in_this_process):
    reader = Reader(settings(folder(tmp_path)))
    assert reader.forbidden_in("end <|pad|> it") == "<|pad|>"
    assert reader.forbidden_in("47 < 48") is None


@pytest.mark.parametrize(
    ("template", "what"),
    [
        ("{{ messages[0]['content'] | upper }}", "the chat template loses the question"),
        ("{{ raise_exception('no user turns') }}", "cannot be rendered: TemplateError: no user turns"),
        ("{% for m in messages %}", "cannot be rendered"),
        ("{{ 1 / 0 }}", "cannot be rendered: ZeroDivisionError"),
        ("{{ ''.__class__.__mro__ }}{{ messages[0]['content'] }}", "cannot be rendered"),
    ],
)
def test_a_template_that_the_question_does_not_survive_is_an_error_before_anything_runs(
    tmp_path, in_this_process, template, what
):
    with pytest.raises(InputError, match=what) as caught:
        Reader(settings(folder(tmp_path, chat_template=template)))
    assert caught.value.where == str(tmp_path)
    Reader(settings(tmp_path, chat=False))


def test_the_template_is_rendered_in_a_process_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setattr(rendering, "render", None)  # of this process
    with pytest.raises(InputError, match="the chat template loses the question"):
        Reader(settings(folder(tmp_path, chat_template="{{ messages[0]['role'] }}")))


@pytest.mark.parametrize(
    "template",
    [
        "{{ bos_token }}{% for m in messages %}{{ m['content'] | trim }}{% endfor %}{{ strftime_now('%d') }}",
        [{"name": "tool_use", "template": "x"}, {"name": "default", "template": "{{ messages[0].content }}"}],
        "{% for m in messages %}{% if loop.first %}{{ m | tojson }}{% break %}{% endif %}{% endfor %}",
    ],
)
def test_templates_as_published_checkpoints_have_them_are_rendered(tmp_path, in_this_process, template):
    Reader(settings(folder(tmp_path, chat_template=template, bos_token={"content": "<s>"})))


ENDED = "{% for m in messages %}{{ m.content }}{% if m.role == 'assistant' %}{{ end }}\n{% endif %}{% endfor %}"


def test_a_template_that_ends_answers_with_another_token_than_the_policy_is_an_error(tmp_path, in_this_process):
    template = ENDED.replace("end }}", "' <|pad|>' }}")
    with pytest.raises(InputError, match=r"ends an answer with '<\|pad\|>', and the end .* '<\|end\|>'") as caught:
        Reader(settings(folder(tmp_path, chat_template=template)))
    assert "eos_token" in str(caught.value.how)
    Reader(settings(folder(tmp_path, chat_template=template, eos_token="<|pad|>")))


@pytest.mark.parametrize("end", ["eos_token", "'\n' + eos_token", "' (<|pad|>)'", "''"])
def test_a_template_that_ends_answers_with_the_end_token_or_with_none_is_rendered(tmp_path, in_this_process, end):
    Reader(settings(folder(tmp_path, chat_template=ENDED.replace("end }}", f"{end} }}}}"))))


@pytest.mark.parametrize("content", ["null", '"x"', '{"chat_template": 7}', '{"chat_template": {}}'])
def test_a_configuration_of_a_tokenizer_that_is_none_is_named(tmp_path, content):
    folder(tmp_path)
    (tmp_path / "chat_template.jinja").unlink()
    (tmp_path / "tokenizer_config.json").write_text(content)
    with pytest.raises(InputError, match=r"expected a JSON object|not plain text") as caught:
        Reader(settings(tmp_path))
    assert caught.value.where == str(tmp_path / "tokenizer_config.json")


def test_a_file_that_is_no_tokenizer_is_named(tmp_path):
    folder(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(InputError, match="not a tokenizer") as caught:
        Reader(settings(tmp_path))
    assert caught.value.where == str(tmp_path / "tokenizer.json")
