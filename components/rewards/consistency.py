"""Does the answer follow from the thinking? The consistency reward of CORA (2606.14691).

Both kinds are verifiers whose accuracy is P(consistent); the scorer makes it the reward part ``consistency``.
The embedded one is made by `components.data.consistency`.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from components.checkpoints.checks import check_checkpoint
from components.config.base import Section
from components.config.consistency import Consistency, EmbeddedConsistency
from components.config.pins import check_digest
from components.errors import InputError
from components.files import read_json
from components.rewards.alignment import FEATURES, features
from components.rewards.base import Verifier
from components.rewards.pair_classifier import PairClassifier
from components.types import Prompt

_AGAIN = "run the data stage again"


class ConsistencyVerifier(Verifier):
    """Its accuracy is P(consistent | question, thinking, answer).

    Thinking is what stands before the last ``marker``, the answer what follows it. Without a marker, without thinking
    or without an answer there is nothing that could follow from anything: 0.
    """

    def __init__(self, marker: str) -> None:
        self.marker = self._marker = marker

    def accuracy(self, prompt: Prompt, text: str) -> float:
        thinking, _, answer = (part.strip() for part in text.rpartition(self._marker))
        return self.probability(prompt.text, thinking, answer) if thinking and answer else 0.0

    @abstractmethod
    def probability(self, question: str, thinking: str, answer: str) -> float:
        """P(consistent) in [0, 1] of texts that are not empty."""


class Weights(Section):
    """The learned numbers, as they stand in the file."""

    intercept: float
    coefficients: dict[str, float] = Field(description="By feature.")


class EmbeddedVerifier(ConsistencyVerifier):
    """P(consistent) = sigmoid(intercept + sum of coefficient x feature of `components.rewards.alignment`). Plain Python
    without libraries, so its process stays small."""

    def __init__(self, marker: str, model: Mapping[str, Any]) -> None:
        super().__init__(marker)
        weights = Weights.model_validate(model)
        self._intercept = weights.intercept
        self._coefficients = [weights.coefficients[name] for name in FEATURES]

    def probability(self, question: str, thinking: str, answer: str) -> float:
        found = features(question, thinking, answer)
        score = self._intercept + sum(c * x for c, x in zip(self._coefficients, found, strict=True))
        return 0.5 * (1 + math.tanh(score / 2))  # the sigmoid, without overflow


def read_weights(path: Path | None) -> Mapping[str, Any]:
    """The content of the file that `weights_file` describes.

    Raises:
        InputError: no file, or one without the weights of exactly these features.
    """
    if path is None:
        raise InputError("no file with its weights is named", where="reward.consistency", how=_AGAIN)
    content = read_json(path, how=_AGAIN)
    try:
        weights = Weights.model_validate(content["model"])
    except (TypeError, KeyError, ValidationError) as error:
        raise InputError("not the weights of a consistency classifier", where=path, how=_AGAIN) from error
    if weights.coefficients.keys() != FEATURES.keys():
        raise InputError("the weights are for other features than this version has", where=path, how=_AGAIN)
    return weights.model_dump()


def weights_file(weights: Weights | None) -> dict[str, Any]:
    """What is written to disk; None where the settings ask for no such classifier."""
    return {"model": None if weights is None else weights.model_dump()}


class NliVerifier(ConsistencyVerifier):
    """P(``label``) of premise "question, thinking" and hypothesis "The final answer is ...", by a sequence-pair
    classifier such as CORA's fine-tuned ModernBERT.

    Raises:
        ValueError: the folder's configuration names no class ``label``, or its tokenizer has no offsets.
    """

    def __init__(self, marker: str, path: str | Path, label: str | None) -> None:
        super().__init__(marker)
        self._classifier = PairClassifier(path, label)

    def probability(self, question: str, thinking: str, answer: str) -> float:
        return self._classifier.probability(question, thinking, answer)


def read_model(settings: Consistency, weights: Path | None) -> Mapping[str, Any] | None:
    """What the classifier has learned, for its worker; None for a folder that the worker reads by itself.

    Args:
        weights: the file that the data stage wrote, for the embedded kind.

    Raises:
        InputError: the file or the folder is missing, not what it should be, or holds anything that could run code.
    """
    if isinstance(settings, EmbeddedConsistency):
        return read_weights(weights)
    check_digest(settings.path, settings.sha256)
    check_checkpoint(settings.path)
    return None
