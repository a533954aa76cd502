"""A sequence-pair classifier from a Hugging Face folder, which loads torch when it is built; and the verifier whose
verdict is such a classifier's, for answers that no rule compares, such as sentences."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from components.rewards.answers import deceptive
from components.rewards.base import Judgement, JudgingVerifier, final_answer
from components.types import Prompt

CONSISTENT = ("consistent", "entailment")
UNLIMITED = 10**9
"""Tokenizers that know no limit say something larger."""
READ = 2000
"""Characters of an answer; a longer one is wrong, since the classifier would not see its end."""


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

    def probability(self, first: str, second: str, answer: str) -> float:
        """Of the premise "first, second" and the hypothesis that the final answer is ``answer``."""
        encoded = self._encode(first, second, f"The final answer is {answer}")
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


class ClassifierVerifier(JudgingVerifier):
    """P(``label`` | question and reference answer, "The final answer is ...") is at least ``threshold``.

    The classifier sees the reference and what follows the last ``marker``, and nothing of the thinking, which would be
    room to talk it round. A learned judge can be fooled all the same: watch it with the audit. Metric:
    ``probability``.
    """

    def __init__(self, marker: str, path: str | Path, label: str, threshold: float) -> None:
        self.marker, self._path, self._label, self._threshold = marker, path, label, threshold
        self._classifier: PairClassifier | None = None

    def prepare(self) -> None:
        self._classifier = PairClassifier(self._path, self._label)

    def judge(self, prompt: Prompt, text: str) -> Judgement:
        if self._classifier is None:
            self.prepare()
        assert self._classifier is not None
        answer = (final_answer(text, self.marker) or "").strip()
        if not answer or len(answer) > READ or deceptive(answer):
            return Judgement(0.0, metrics={"probability": 0.0})
        premise = f"The reference answer is {prompt.answer}"
        probability = self._classifier.probability(prompt.text, premise, answer)
        return Judgement(float(probability >= self._threshold), metrics={"probability": probability})
