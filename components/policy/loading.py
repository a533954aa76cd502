"""Loads a policy from a safetensors folder, if that is whole, finite, and has a tokenizer that fits its model."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
import transformers
from huggingface_hub.errors import StrictDataclassError
from jinja2 import TemplateError
from torch import Tensor
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

from components.checkpoints.checks import check_checkpoint
from components.config.policy import PolicySettings
from components.device import own_device
from components.errors import InputError
from components.files import read_json
from components.policy.policy import Policy, quiet
from components.policy.tiny import CHAT_TEMPLATE
from components.processes.memory import check_weights
from components.processes.rendering import check_template
from components.working import working

LOAD_ERRORS = (
    *(OSError, ValueError, RuntimeError, KeyError, TypeError, AttributeError, StrictDataclassError),
    *(ArithmeticError, AssertionError, IndexError, ImportError),
)
"""What transformers raises for a folder that it cannot make a model of."""
HOW = "save the checkpoint again, whole and with its own config"
HOW_TOKENIZER = "save the model and its tokenizer together, the embedding resized to the tokenizer"
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


@contextlib.contextmanager
def tokenizers_errors() -> Iterator[None]:
    """tokenizers raises a plain Exception for a tokenizer.json that it cannot read."""
    try:
        yield
    except Exception as error:
        if type(error) is not Exception:
            raise
        raise ValueError(str(error)) from error


def check_report(report: Mapping[str, Any], path: Path) -> None:
    """Refuse a checkpoint whose gaps transformers has filled with random numbers."""
    shapes = {name for name, *_ in report["mismatched_keys"]}
    if odd := sorted(shapes | set(report["missing_keys"])):
        raise InputError(
            f"{len(odd)} weights are missing or have another shape than the config says: {', '.join(odd[:3])}",
            where=path,
            how=HOW,
        )


def check_finite(weights: Mapping[str, Tensor], path: Path) -> None:
    """Refuse weights that are not finite. One tensor is read at a time, and no other one of its size is made."""
    for name in weights:
        tensor = weights[name].detach()
        if tensor.is_floating_point() and tensor.numel():
            low, high = torch.aminmax(tensor)
            if not (torch.isfinite(low) and torch.isfinite(high)):
                how = "take a checkpoint from before its training broke; policy.dtype float32 holds larger numbers"
                raise InputError(f"the weight {name} holds NaN or an infinite number", where=path, how=how)


def check_policy(policy: Policy, path: Path) -> Policy:
    """Refuse tokenizers that could not end an answer or render a prompt, or that have tokens the model has not."""
    tokenizer = policy.tokenizer
    if tokenizer.eos_token_id is None:
        raise InputError("the tokenizer has no end-of-sequence token", where=path, how="set eos_token in its config")
    if policy.chat and not tokenizer.chat_template:
        raise InputError(
            "the tokenizer has no chat template", where=path, how="add one, or set policy.chat to false for plain text"
        )
    _check_end(str(tokenizer.eos_token), path)
    _check_ids(policy, path)
    if policy.chat:
        _check_template(policy, path)
    try:
        ids = policy.encode_prompt("?")
    except TemplateError as error:
        how = "correct the template, or set policy.chat to false for plain text"
        raise InputError(f"the chat template cannot be rendered: {error}", where=path, how=how) from error
    except LOAD_ERRORS as error:
        what = f"the tokenizer cannot encode a question: {type(error).__name__}: {error}"
        raise InputError(what, where=path, how="save the tokenizer again") from error
    if not policy.chat and ids[-1:] == (policy.eos_id,):
        what = "the tokenizer puts its end token behind every text, and no answer follows an end"
        how = "take that token out of post_processor in tokenizer.json, or save the tokenizer with add_eos_token false"
        raise InputError(what, where=path, how=how)
    return policy


def _check_template(policy: Policy, path: Path) -> None:
    """Render the template that questions take; this project's own is known to render."""
    tokenizer = policy.tokenizer
    try:
        template = tokenizer.get_chat_template()
    except ValueError as error:
        how = "name one of its templates `default`, or set policy.chat to false for plain text"
        raise InputError("the tokenizer has no chat template named default", where=path, how=how) from error
    if template != CHAT_TEMPLATE:
        texts = {name: str(text) for name, text in tokenizer.special_tokens_map.items() if not isinstance(text, list)}
        check_template(template, texts, policy.special_tokens, path)


def _check_end(end: str, path: Path) -> None:
    """transformers adds an end token that the vocabulary lacks, and no model has learned what it means."""
    file, known = path / "tokenizer.json", set[str]()
    if not file.is_file():
        return
    for name, key in (("tokenizer.json", "added_tokens"), ("tokenizer_config.json", "added_tokens_decoder")):
        value = read_json(path / name) if (path / name).is_file() else {}
        tokens = value.get(key) if isinstance(value, dict) else None
        tokens = list(tokens.values()) if isinstance(tokens, dict) else tokens or []
        known |= {str(token.get("content")) for token in tokens if isinstance(token, dict)}
    model = read_json(file).get("model")
    words = model.get("vocab") if isinstance(model, dict) else None
    if isinstance(words, dict):
        known |= words.keys()
    elif isinstance(words, list):  # pieces with their scores
        known |= {str(piece[0]) for piece in words if isinstance(piece, list) and piece}
    if end not in known:
        how = "set eos_token in tokenizer_config.json to the token that the model ends its answers with"
        raise InputError(f"the end token {end!r} is not in the vocabulary", where=path, how=how)


def _check_ids(policy: Policy, path: Path) -> None:
    """The ids of ordinary tokens and of those that every prompt may need. Further ones, which some tokenizers share
    with larger models, are refused where a text has them."""
    tokenizer, rows = policy.tokenizer, policy.embedded
    added = set(tokenizer.added_tokens_decoder)
    ordinary = max((number for number in tokenizer.get_vocab().values() if number not in added), default=-1)
    generation = getattr(policy.model, "generation_config", None)
    named = {
        "the largest id of the vocabulary": ordinary,
        "the end token": tokenizer.eos_token_id,
        "the padding token": tokenizer.pad_token_id,
        "eos_token_id of config.json": getattr(policy.model.config, "eos_token_id", None),
        "eos_token_id of generation_config.json": getattr(generation, "eos_token_id", None),
    }
    for what, ids in named.items():
        for number in ids if isinstance(ids, list) else [ids]:
            if isinstance(number, int) and number >= rows:
                said = f"{what} is {number:,}, and the embedding of the model has {rows:,} rows"
                raise InputError(said, where=path, how=HOW_TOKENIZER)


def load_policy(path: Path, settings: PolicySettings) -> Policy:
    """Load a checkpoint folder from disk to `own_device`. Never runs code from it and never unpickles.

    Raises:
        InputError: larger than memory, not a safe, complete checkpoint, weights that are not finite, or the tokenizer
            lacks what the settings need or does not fit the model; or there is no such device.
    """
    device = own_device()
    check_weights(path, settings.dtype)
    check_checkpoint(path)
    try:
        with quiet(), working("loading the policy"):
            config = AutoConfig.from_pretrained(path, local_files_only=True, trust_remote_code=False)
            loaded: Any = AutoModelForCausalLM.from_pretrained(
                path,
                config=config,
                dtype=DTYPES[settings.dtype],
                local_files_only=True,
                trust_remote_code=False,
                use_safetensors=True,
                ignore_mismatched_sizes=True,
                output_loading_info=True,
            )
            with tokenizers_errors():
                tokenizer = AutoTokenizer.from_pretrained(path, local_files_only=True, trust_remote_code=False)
    except LOAD_ERRORS as error:
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(
            f"transformers {transformers.__version__} cannot load this checkpoint: {first}",
            where=path,
            how="use a causal language model saved by save_pretrained with its tokenizer",
        ) from error
    model, report = loaded
    check_report(report, path)
    check_finite(dict(model.named_parameters()), path)
    return check_policy(Policy(model.eval().to(device), tokenizer, settings.chat, settings.instruction), path)
