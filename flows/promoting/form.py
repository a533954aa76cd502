"""What a person fills in. The server holds it to its schema before it lets the run go on; what a schema cannot say is
checked when the run has gone on (`answering`).

No field that decides has a default: an empty form, and a resumption without a form, decide nothing. Nothing is filled
in beforehand either, because Prefect takes a field that is for one that need not be filled in.
"""

from __future__ import annotations

from typing import Any, Literal

from prefect.input import RunInput
from pydantic import ConfigDict, Field, ValidationError

from components.errors import InputError

NOT_BLANK = r"\S"


class Decision(RunInput):
    """Approve or reject, by whom, and why."""

    model_config = ConfigDict(extra="forbid")

    decision: Literal["approve", "reject"] = Field(description="approve makes it the champion; reject turns it down.")
    by: str = Field(
        title="Your name",
        min_length=1,
        max_length=200,
        pattern=NOT_BLANK,
        description="Recorded as you type it.",
    )
    reason: str = Field("", max_length=4000, description="Why. It is recorded.")


class SignedDecision(Decision):
    """The same where the policy requires signatures: a typed name proves nothing."""

    signed_approval: str = Field(
        "",
        max_length=20_000,
        description="What the command above prints. Its reason counts, not the one typed here.",
    )


class ReasonedDecision(Decision):
    """The same where the gate leaves something to the person."""

    reason: str = Field(min_length=1, max_length=4000, pattern=NOT_BLANK, description="Why. It is recorded.")


def form(signed: bool, doubtful: bool, shown: str) -> type[Decision]:
    """The form with ``shown`` (Markdown) above it.

    Args:
        signed: the policy asks for signatures; a signed statement has its reason in itself.
        doubtful: the gate leaves something to the person, who then has to say why.
    """
    kind = SignedDecision if signed else ReasonedDecision if doubtful else Decision
    return kind.with_initial_data(description=shown)


def filled(values: Any) -> SignedDecision:
    """What a person filled in, with or without a signature.

    Raises:
        InputError: it is no decision.
    """
    try:
        return SignedDecision.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the form"
        raise InputError(f"not a decision: {first['msg']}", where=where, how="fill in the form again") from error
