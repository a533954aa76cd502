"""How much the verifier is trusted, and what it must show before anything is trained on its word."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from components.config.base import Fraction, Section
from components.config.identity import RUN, TRAINED
from components.config.verifiers import Verifier


class AuditSettings(Section):
    """Stage `audit`: known right and wrong answers, before training; a second verifier, while training."""

    prompts: Annotated[int, RUN] = Field(
        200, ge=1, description="Prompts of the train, dev and test splits whose answers are probed."
    )
    repeats: Annotated[int, RUN] = Field(
        3, ge=2, description="Times that the same answers are judged: the verdicts must be the same."
    )
    max_false_positive: Annotated[Fraction, RUN] = Field(
        0.02,
        description="The 95 % upper bound of the share of prompts of which a wrong answer is accepted must not exceed "
        "this; with none of 189 prompts the bound is 2 %.",
    )
    max_false_negative: Annotated[Fraction, RUN] = Field(
        0.01, description="Share of prompts of which a right answer may be refused."
    )
    quick_seconds: Annotated[float, RUN] = Field(
        2.0,
        gt=0,
        description="Wall time within which an answer that is made to be slow must be judged; for code, which has a "
        "limit of its own, the sandbox's.",
    )
    second: Annotated[Verifier | None, TRAINED] = Field(
        None, description="Another verifier of the same answers, made differently; it never rewards."
    )
    live_share: Annotated[Fraction, TRAINED] = Field(
        0.05, description="Share of the sampled completions that it judges while training; 0: none."
    )
    agreement: Annotated[bool, TRAINED] = Field(
        False,
        description="While training, `second` judges everything: right is what both accept, and what only the second "
        "accepts is unscorable.",
    )
    second_judges: Annotated[bool, TRAINED] = Field(
        False, description="While training, `second` judges everything instead of the verifier, which has broken."
    )
    override: Annotated[str, RUN] = Field(
        "", description="A reason to train although the audit failed. It is shown to the approver."
    )

    def conflicts(self) -> Iterator[str]:
        if self.reviewed and self.second is None:
            name = "agreement" if self.agreement else "second_judges"
            yield f"{name} needs audit.second: there is no second verifier"

    @property
    def reviewed(self) -> bool:
        """Whether a score is not the verifier's alone."""
        return self.agreement or self.second_judges
