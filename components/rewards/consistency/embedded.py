"""The small classifier: logistic regression over alignment features. Plain Python, so its process stays small."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from components.config.base import Section
from components.errors import InputError
from components.files import read_json
from components.rewards.consistency.base import ConsistencyVerifier
from components.rewards.consistency.features import FEATURES, features

_AGAIN = "run the data stage again"


class Weights(Section):
    """The learned numbers, as they stand in the file."""

    intercept: float
    coefficients: dict[str, float] = Field(description="By feature.")


class EmbeddedVerifier(ConsistencyVerifier):
    """P(consistent) = sigmoid(intercept + sum of coefficient x feature)."""

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
