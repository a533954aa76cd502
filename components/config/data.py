"""How prompts are split, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from components.config.base import Fraction, Section
from components.config.sources import Source
from components.config.tasks import ArithmeticSource

FindingLevel = Literal["warn", "fail"]
"""What a finding about the whole table does: it is shown, or it stops the stage."""


class SplitSettings(Section):
    """Shares of the rows, assigned by content hash: adding rows never moves an old one to another split."""

    sft: Fraction = Field(0.75, description="Share that stage `sft` learns from.")
    train: Fraction = Field(0.125, description="Share that stage `train` samples from.")
    dev: Fraction = Field(0.025, description="Share that is held out and measured while training.")
    test: Fraction = Field(0.1, description="Share that is held out for stage `evaluate`.")

    def conflicts(self) -> Iterator[str]:
        total = self.sft + self.train + self.dev + self.test
        if abs(total - 1) > 1e-9:
            yield f"the four shares must add up to 1, they add up to {total:g}"
        if min(self.train, self.dev, self.test) == 0:
            yield "train, dev and test must each have a share above 0"


class NearDuplicateSettings(Section):
    """When two questions count as one although they are not equal: same words but for a few, and the same numbers.

    Numbers and quoted texts are left out of the comparison of words and must be equal by themselves, so that 47+38 and
    48+38 are two questions.
    """

    check: Literal["files", "all", "off"] = Field(
        "files", description="Generated problems are distinct, and alike on purpose: only rows of files are compared."
    )
    threshold: float = Field(0.9, gt=0.5, le=1, description="Jaccard similarity of their shingles from which on.")
    shingles: Literal["characters", "words"] = Field(
        "characters", description="What shingles, the overlapping pieces of a question that are compared, are made of."
    )
    size: int = Field(5, ge=1, le=20, description="Characters or words of a shingle.")


class ValidationSettings(Section):
    """Limits of the Great Expectations suite. A row that breaks one goes to quarantine."""

    max_question_chars: int = Field(4000, ge=1, description="Characters of the question.")
    max_solution_chars: int = Field(8000, ge=1, description="Characters of the reference solution.")
    max_question_tokens: int = Field(
        2048, ge=1, description="Checked where policy.model is a folder, with its own tokenizer."
    )
    max_solution_tokens: int = Field(4096, ge=1, description="The same for the reference solution.")
    max_quarantined: Fraction = Field(0.01, description="Share of quarantined rows above which the stage stops.")
    near_duplicates: NearDuplicateSettings = NearDuplicateSettings()
    max_guessable: Fraction = Field(
        0.5, description="Share of answers with few possible values (yes or no, a letter, a digit) before a finding."
    )
    guessable: FindingLevel = Field("warn", description="What too many guessable answers are: fail stops the stage.")
    difficulty: FindingLevel = Field("warn", description="What a difficulty column with a single level is.")


class ConcentrationSettings(Section):
    """How much of all rows read, and of those of the train split, may be one thing.

    One item repeated is how GRPO is poisoned (2606.10931).
    """

    min_rows: int = Field(10, ge=2, description="Fewer rows than this are never too many.")
    max_item: Fraction = Field(
        0.01, description="Share of one question: equal, equal but for case and space, or a near-duplicate."
    )
    max_labelled_template: Fraction = Field(
        0.02,
        description="Share of one template (numbers and names masked) whose answers are nearly all one.",
    )
    max_template: Fraction = Field(0.5, description="Share of one template, whatever its answers.")
    max_source: Fraction = Field(
        1.0, description="Share of one origin, where data.source.origin names a column for it; 1 allows a single one."
    )
    template_words: int = Field(
        5,
        ge=1,
        description="Templates of fewer words do not count for max_template; those without a word, formulas, for none.",
    )


class DataSettings(Section):
    """Stage `data`."""

    source: Source = Field(ArithmeticSource(), description="Where questions and their answers come from.")
    trusted: tuple[str, ...] = Field(
        (), description="Allow-list: sha256 digests of files whose labels need no audit; generated ones never do."
    )
    splits: SplitSettings = SplitSettings()
    validation: ValidationSettings = ValidationSettings()
    concentration: ConcentrationSettings = ConcentrationSettings()
