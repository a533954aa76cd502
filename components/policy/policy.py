"""A policy is a causal language model with its tokenizer. `components.policy.loading` loads one from a folder."""

from __future__ import annotations

import contextlib
import copy
import logging
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from jinja2 import TemplateError
from torch import Tensor
from torch.nn import Parameter
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from components.device import own_device
from components.errors import InputError
from components.working import working


@dataclass(frozen=True)
class Apart:
    """Weights of a policy with an adapter that is not merged."""

    base: Mapping[str, Tensor]
    """The frozen weights, by the names that the policy has for them without an adapter."""
    learned: Mapping[str, Tensor]
    """A and B, by their names in the model, fp32."""
    rank: int
    """Rows of every A."""
    targets: tuple[str, ...]
    """The last parts of the names of the modules that have one, sorted."""
    write: Callable[[Mapping[str, Tensor], Path], None]
    """Writes values of ``learned`` into a new folder, as `peft` reads an adapter."""


@dataclass(frozen=True)
class Policy:
    """Model and tokenizer, and how a question is rendered for them."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    chat: bool = True
    instruction: str = ""

    @property
    def eos_id(self) -> int:
        return int(self.tokenizer.eos_token_id)

    @property
    def pad_id(self) -> int:
        """The padding token, or the end token for tokenizers that have none (padding is masked, so any id serves)."""
        pad = self.tokenizer.pad_token_id
        return self.eos_id if pad is None else int(pad)

    @property
    def special_tokens(self) -> list[str]:
        """The texts of roles, turns and ends, sorted."""
        return sorted(str(token) for token in self.tokenizer.added_tokens_decoder.values() if token.special)

    @property
    def parameters(self) -> int:
        return sum(p.numel() for p in self.model.parameters())

    @property
    def max_positions(self) -> int | None:
        """Longest sequence the model was made for, where its configuration says so."""
        limit = getattr(self.model.config, "max_position_embeddings", None)
        return None if limit is None else int(limit)

    def encode_prompt(self, question: str) -> tuple[int, ...]:
        """Token ids of a question, ready for the answer to follow."""
        text = f"{self.instruction}{question}"
        if self.chat:
            text = self._rendered(text)
        return self._known(self.tokenizer.encode(text, add_special_tokens=not self.chat))

    def encode_answer(self, answer: str) -> tuple[int, ...]:
        """Token ids of an answer, end token included."""
        return (*self.encode_text(answer), self.eos_id)

    def encode_text(self, text: str) -> tuple[int, ...]:
        """Token ids of a text as it stands.

        Raises:
            InputError: it holds a token that the model has no embedding of.
        """
        return self._known(self.tokenizer.encode(text, add_special_tokens=False))

    @property
    def embedded(self) -> int:
        """Tokens that the model knows: rows of its embedding."""
        weight: Any = self.model.get_input_embeddings().weight
        return int(weight.shape[0])

    def _rendered(self, text: str) -> str:
        try:
            rendered = self.tokenizer.apply_chat_template(
                [{"role": "user", "content": text}], add_generation_prompt=True, tokenize=False
            )
        except (TemplateError, ArithmeticError, TypeError, ValueError, LookupError, RuntimeError) as error:
            what = f"the chat template cannot render a question: {type(error).__name__}: {error}"
            how = "correct the template, or set policy.chat to false for plain text"
            raise InputError(what, where=f"the question {text[:80]!r}", how=how) from error
        return str(rendered)

    def _known(self, ids: Sequence[int]) -> tuple[int, ...]:
        if ids and max(ids) >= self.embedded:
            token = self.tokenizer.convert_ids_to_tokens(max(ids))
            raise InputError(
                f"the token {token!r} has the id {max(ids):,}, and the embedding has {self.embedded:,} rows",
                where="the tokenizer of the policy",
                how="take the text of that token out of the data, or resize the embedding to the tokenizer",
            )
        return tuple(ids)

    def decode(self, token_ids: tuple[int, ...]) -> str:
        return str(self.tokenizer.decode(token_ids, skip_special_tokens=True))

    def frozen_copy(self) -> Policy:
        """An independent copy without gradients, for sampling or as the KL reference."""
        model = copy.deepcopy(self.model).eval()
        model.requires_grad_(False)
        return Policy(model, self.tokenizer, self.chat, self.instruction)

    def trainable(self) -> dict[str, Parameter]:
        """What an optimizer changes, by name."""
        return dict(self.model.named_parameters())

    def load_trainable(self, learned: Mapping[str, Tensor]) -> None:
        """Copy values of `trainable` in; a missing or unknown name is an error."""
        own = self.trainable()
        check_names(own, learned)
        with torch.no_grad():
            for name, parameter in own.items():
                parameter.copy_(learned[name])

    def weights_with(self, learned: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """What `weights` would be with these values of `trainable`."""
        return dict(learned)

    def reference(self) -> Policy:
        """The policy as it is now, which no update will change."""
        return self.frozen_copy()

    def weights(self) -> dict[str, Tensor]:
        """Parameters by name, detached; tied tensors appear once."""
        return {name: p.detach() for name, p in self.model.named_parameters()}

    def apart(self, learned: Mapping[str, Tensor] | None = None) -> Apart | None:
        """The weights with the adapter not merged, with the policy's own values of `trainable` or with these; None
        where there is no adapter."""
        return None

    def load_weights(self, weights: Mapping[str, Tensor]) -> None:
        """Copy ``weights`` in; a missing or unknown name is an error, so that a partial sync cannot pass unnoticed."""
        self.load_trainable(weights)

    def save(self, directory: Path) -> None:
        """Write a Hugging Face folder (safetensors, config, tokenizer) into ``directory``."""
        with quiet(), working("saving the policy"):
            self.model.save_pretrained(directory)
            self.save_tokenizer(directory)

    def save_tokenizer(self, directory: Path) -> None:
        """Write the tokenizer alone."""
        with _numbered_os_errors():
            self.tokenizer.save_pretrained(directory)


def check_names(own: Mapping[str, Any], weights: Mapping[str, Tensor]) -> None:
    """Refuse a set of weights that lacks a name of the model's ``own`` or has another one."""
    if own.keys() != weights.keys():
        odd = sorted(own.keys() ^ weights.keys())
        raise ValueError(f"weights do not fit the model, differing names: {odd[:5]}")


@contextlib.contextmanager
def _numbered_os_errors() -> Iterator[None]:
    """tokenizers reports a failed write as a plain Exception, with the number in the text."""
    try:
        yield
    except Exception as error:
        number = re.search(r"os error (\d+)", str(error))
        if type(error) is not Exception or number is None:
            raise
        raise OSError(int(number[1]), os.strerror(int(number[1]))) from error


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Silence transformers' load and save bars; warnings that matter raise."""
    # To save, accelerate looks for DeepSpeed's engine around the model, and DeepSpeed then prints where it runs.
    os.environ.setdefault("DS_ACCELERATOR", own_device().type)
    logger = logging.getLogger("transformers")
    level, bars = logger.level, transformers.utils.logging.is_progress_bar_enabled()
    transformers.utils.logging.disable_progress_bar()
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
        if bars:
            transformers.utils.logging.enable_progress_bar()
