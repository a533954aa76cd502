"""Which training prompts go on to RL: what a repeated, mislabelled or sensitive item could do (2606.10931)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from components.config.base import Fraction, Section

Audit = Literal["auto", "off", "report", "withhold"]


class AdmissionSettings(Section):
    """Stage `admission`. Withheld prompts wait for a person; neither triage nor training sees them."""

    label_audit: Audit = Field(
        "auto",
        description="Compare labels with what the base policy answers. auto: off for generated and for trusted "
        "sources (data.trusted), whose labels are right, withhold for others.",
    )
    prompts: Annotated[int, Field(ge=1)] | Literal["auto"] = Field(
        "auto",
        description="Training prompts sampled for the label audit: half of them, at most, with sensitive words or of "
        "repeated templates. auto: as many as take a twentieth of the completions that training samples, at least 32.",
    )
    samples: int = Field(
        16,
        ge=2,
        description="Completions per prompt at most; sampling stops early once a label cannot become suspicious.",
    )
    max_label_rate: Fraction = Field(0.02, description="Suspicious: the label has less than this of the samples,")
    min_alternative_rate: Fraction = Field(0.8, description="and one other answer has more than this.")
    sensitive: Literal["auto", "off", "report", "withhold"] = Field(
        "auto", description="Prompts with words for groups of people. auto: report, off for generated and trusted."
    )
    sensitive_words: tuple[str, ...] = Field((), description="Further words to look for, besides the package's list.")
    min_distinct: int = Field(8, ge=1, description="Distinct prompts of a step, below which training is refused.")
    max_prompt_share: Fraction = Field(0.05, description="Share of all planned draws that one prompt may have.")
