"""Prompts as a sentence-embedding model sees them, for clusters that do not depend on the policy."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from transformers import AutoModel, AutoTokenizer

from components.clusters.clustering import Array
from components.config.inputs import EMBEDDING_FOLDER
from components.config.pins import check_digest
from components.config.scheduling import ModelEmbedding
from components.device import autocast, own_device
from components.errors import InputError


class SentenceEmbedder:
    """Mean over the tokens of the last hidden states. Only safetensors are loaded, and no code of the folder's.

    Raises:
        InputError: the folder is missing, has changed, or is not that of such a model.
    """

    def __init__(self, settings: ModelEmbedding) -> None:
        check_digest(settings.path, settings.sha256, how=EMBEDDING_FOLDER)
        options: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
        try:
            self._tokenizer = AutoTokenizer.from_pretrained(settings.path, **options)
            model = AutoModel.from_pretrained(settings.path, use_safetensors=True, dtype=torch.float32, **options)
        except (OSError, ValueError, KeyError, SafetensorError) as error:
            raise InputError(
                f"not the folder of an embedding model: {str(error).splitlines()[0]}",
                where=settings.path,
                how=EMBEDDING_FOLDER,
            ) from error
        if self._tokenizer.pad_token is None:
            self._tokenizer.pad_token = self._tokenizer.eos_token
        self._model = model.eval().requires_grad_(False).to(own_device())
        positions = getattr(model.config, "max_position_embeddings", None) or sys.maxsize
        self._limit = min(settings.max_tokens, positions, self._tokenizer.model_max_length)

    @torch.no_grad()
    def embed(self, texts: Sequence[str]) -> Array:
        """``[N, H]`` of N texts, in double precision."""
        batch = self._tokenizer(
            list(texts),
            padding=True,
            truncation=True,
            max_length=self._limit,
            padding_side="right",
            return_tensors="pt",
        )
        inputs = {name: batch[name].to(self._model.device) for name in ("input_ids", "attention_mask")}
        mask = inputs["attention_mask"][..., None].float()
        with autocast(self._model):
            states = self._model(**inputs).last_hidden_state.float()
        return np.asarray(((states * mask).sum(1) / mask.sum(1).clamp_min(1)).double().cpu().numpy())
