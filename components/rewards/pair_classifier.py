"""A sequence-pair classifier from a Hugging Face folder. It loads torch when it is built."""

from __future__ import annotations

from pathlib import Path
from typing import Any

CONSISTENT = ("consistent", "entailment")
UNLIMITED = 10**9
"""Tokenizers that know no limit say something larger."""


class PairClassifier:
    """P(``label``) of a premise and a hypothesis.

    What is longer than the model reads loses the front of the premise's second half: its first half, the end of the
    second and the hypothesis stay. Runs on one CPU thread, so that the same texts give the same numbers.

    Raises:
        ValueError: the folder's configuration names no class ``label``, or its tokenizer has no offsets.
    """

    def __init__(self, path: str | Path, label: str | None) -> None:
        # Here and not above: everybody else who imports the rewards needs neither.
        import torch
        from transformers import AutoModelForSequenceClassification, AutoTokenizer

        torch.set_num_threads(1)
        options: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
        self._tokenizer = AutoTokenizer.from_pretrained(path, truncation_side="left", **options)
        if not self._tokenizer.is_fast:
            raise ValueError("the classifier's tokenizer cannot say where its tokens are; save a fast one")
        model = AutoModelForSequenceClassification.from_pretrained(
            path, use_safetensors=True, dtype=torch.float32, **options
        )
        self._model = model.eval().requires_grad_(False)
        self._label = find_label(model.config.id2label, label)
        positions = getattr(model.config, "max_position_embeddings", None) or UNLIMITED
        self._limit = min(self._tokenizer.model_max_length, positions, UNLIMITED)

    def probability(self, first: str, second: str, hypothesis: str) -> float:
        """Of the premise "first, second" and the hypothesis."""
        encoded = self._encode(first, second, hypothesis)
        logits = self._model(**encoded).logits[0]
        return float(logits.double().softmax(-1)[self._label])

    def _encode(self, first: str, second: str, claim: str) -> Any:
        taken = len(self._tokenizer(f"{first}\n", claim)["input_ids"])
        starts = self._tokenizer(second, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
        if (excess := taken + len(starts) - self._limit) > 0:
            second = second[starts[excess][0] :] if excess < len(starts) else ""
        # Tokens at the seam can differ from those counted, and a question can be too long by itself.
        return self._tokenizer(
            f"{first}\n{second}", claim, truncation="only_first", max_length=self._limit, return_tensors="pt"
        )


def find_label(names: dict[int, str], wanted: str | None) -> int:
    """Number of the class ``wanted``, or of the one class called consistent or entailment."""
    found = [
        number
        for number, name in names.items()
        if (name == wanted if wanted is not None else name.casefold() in CONSISTENT)
    ]
    if len(names) < 2 or len(found) != 1:
        raise ValueError(
            f"which of the classes {', '.join(names.values())} means {wanted or 'consistent'}? Name it in "
            "reward.consistency.label or reward.verifier.label"
        )
    return int(found[0])
