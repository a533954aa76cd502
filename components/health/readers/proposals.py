"""A mapping of names that a log was not read by, guessed from their words: for a person to look over and paste."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable

import yaml

GUESSES: dict[str, str] = {
    "reward": r"reward(s?/mean|_mean|/total|_total)?$|(^|[/_])(score|return)s?(/mean|_mean)?$",
    "accuracy": r"(accura|correct|pass_rate|(^|[/_])acc([/_]|$))(?!.*(std|eval|val))",
    "length_mean": r"(len(gth)?|tokens)([/_].*)?(mean|avg)|(mean|avg).*(len(gth)?|tokens)|response_?len(gth)?s?$",
    "truncated_share": r"trunc|clipped_ratio|overlong",
    "entropy": r"entropy(?!.*coef)",
    "kl_ref": r"(^|[/_])kl(_loss|_penalty|_div|_mean|/mean|_ref)?$|ref_?kl",
    "grad_norm": r"grad(ient)?_?norm",
    "lr": r"(^|[/_])(lr|learning_rate)$",
    "loss": r"(policy|pg|actor)_?loss|(^|/)loss(/mean)?$",
    "value_loss": r"(value|vf|critic)_?loss",
    "zero_variance_share": r"zero_(std|variance|adv)",
    "dev_pass_at_1": r"^(eval|val|test)[/_].*(accura|correct|reward|score|pass@1)",
}
"""Our signal: what a name of theirs for it looks like."""
_SPREAD = re.compile(r"(std|min|max|var|median|p\d\d)(_|/|$)", re.IGNORECASE)
_HELD_OUT = re.compile(r"^(eval|val|test|validation)[/_-]")


def propose(format: str, unread: Iterable[str], known: Container[str]) -> str:
    """A mapping file for the signals that are not ``known``, each with the names that look like it; "" without any."""
    names = [name for name in unread if not _SPREAD.search(name) and len(name) < 200]
    found: dict[str, str | list[str]] = {}
    for ours, like in GUESSES.items():
        held_out = ours.startswith("dev_")
        if ours not in known:
            fits = [n for n in names if bool(_HELD_OUT.match(n)) == held_out and re.search(like, n, re.IGNORECASE)]
            if fits:
                found[ours] = fits[0] if len(fits) == 1 else sorted(fits, key=len)[:4]
    if not found:
        return ""
    shipped = f"extends: configs/health/names/{format}.yaml  # its path, seen from your file\n"
    text = yaml.safe_dump({"signals": found}, sort_keys=False, allow_unicode=True, width=200)
    return text if format == "jsonl" else shipped + text
