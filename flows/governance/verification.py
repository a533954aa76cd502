"""`evenkeel verify`: checks stored checkpoints and the records about them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from rich.console import Console
from rich.text import Text

from components.checkpoints.checks import check_stored
from components.errors import InputError
from components.registry import Store, candidates, champion, read_candidate, read_history
from components.registry.signing import verify
from components.registry.starters import started_by
from components.words import plural
from flows.display.output import field, plain_table
from flows.governance.checkpoint import find_candidate
from flows.governance.policies import HOW, check_witness, problems
from flows.governance.registry import RegistryContext

RECORDS = "records"
STYLES = {True: "green", False: "bold red"}


@dataclass(frozen=True, slots=True)
class VerifiedItem:
    """One check: of which checkpoint, what was checked, whether it holds, and a description."""

    of: str
    what: str
    holds: bool
    words: str


def verify_checkpoint(context: RegistryContext, which: str) -> list[VerifiedItem]:
    """A checkpoint by an alias or its digest, and the records.

    Raises:
        InputError: there is no such checkpoint, or the registry cannot be read.
    """
    chain = _records(context)  # first: an alias is found by the records
    if which in ("champion", "challenger") and not chain.holds:
        return [chain]
    digest = find_candidate(context, which).digest
    return [*_of(context, digest, _named(context, chain)[digest]), chain, *_decisions(context)]


def verify_all(context: RegistryContext) -> list[VerifiedItem]:
    """Every checkpoint that a candidate or a record names, and the records."""
    chain = _records(context)
    found = [
        one for digest, evidence in sorted(_named(context, chain).items()) for one in _of(context, digest, evidence)
    ]
    return [*found, chain, *_decisions(context)]


def _named(context: RegistryContext, chain: VerifiedItem) -> dict[str, list[str | None]]:
    """Digest -> evidence of it, as its candidate has it and then as it was decided by: a roll-back needs both."""
    named = [(one.digest, one.evidence) for one in candidates(context.store)]
    if chain.holds:
        decided = read_history(context.store).records
        named += [
            (record.digest, record.evidence) for record in decided if record.schema > 1 and record.action != "adopt"
        ]
    found: dict[str, list[str | None]] = {}
    for digest, evidence in dict.fromkeys(named):
        found.setdefault(digest, []).append(evidence)
    return found


def _of(context: RegistryContext, digest: str, evidence: Sequence[str | None]) -> list[VerifiedItem]:
    store = context.store

    def candidate() -> str:
        found = read_candidate(store, digest)
        if found is None:
            raise InputError("a record is about it, and its candidate record is gone", how="restore the registry")
        started_by(store, found)  # raises where it names others than the evidence does
        return "as it was proposed"

    def files() -> str:
        store.tree(digest)
        return "match the digest"

    def form() -> str:
        try:
            tree = store.tree(digest)
        except InputError as error:
            raise InputError("not looked at: these are not the files of the checkpoint") from error
        check_stored(tree)
        return "safetensors, and nothing that can run code"

    def signature() -> str:
        return f"by {verify(store, digest, context.policy.signers)}"

    looks = {"candidate": candidate, "files": files, "format": form, "signature": signature}
    found = [_verify(digest[:12], what, look) for what, look in looks.items()]
    return found + [_verify(digest[:12], "evidence", partial(_evidence, store, one)) for one in evidence]


def _evidence(store: Store, digest: str | None) -> str:
    if digest is None:
        raise InputError("none was stored: it was proposed by an earlier version")
    store.tree(digest)
    return f"whole, {digest[:12]}"


def _records(context: RegistryContext) -> VerifiedItem:
    def chain() -> str:
        first = champion(context.store)
        made = plural(len(read_history(context.store).records), "record")
        return f"{made} in one chain, the champion is {first.digest[:12] if first else 'none yet'}"

    return _verify(RECORDS, "chain", chain)


def _decisions(context: RegistryContext) -> list[VerifiedItem]:
    """The approvals behind the records, and what a witness has seen of them where the policy names one."""
    found = [_approvals(context)]
    if context.policy.settings.witness is not None:
        found.append(_verify(RECORDS, "witness", lambda: check_witness(context, read_history(context.store))))
    return found


def _approvals(context: RegistryContext) -> VerifiedItem:
    """Problems of records before the one that made the champion are reported and do not fail the check."""

    def rest() -> str:
        history = read_history(context.store)
        found = problems(context, history)
        wrong = "; ".join(f"record {number}: {problem}" for number, problem in found.items())
        if any(number >= history.base for number in found):
            raise InputError(wrong, how=HOW)
        made = plural(sum(record.schema > 1 for record in history.records), "record")
        rest = f"; but for what came before the champion: {wrong}" if found else ""
        return f"{made}, each with the approvals that its policy required{rest}"

    return _verify(RECORDS, "approvals", rest)


def _verify(of: str, what: str, look: Callable[[], str]) -> VerifiedItem:
    try:
        return VerifiedItem(of, what, True, look())
    except InputError as error:
        return VerifiedItem(of, what, False, f"{error.what}; {error.how}" if error.how else error.what)


def show(console: Console, found: Sequence[VerifiedItem]) -> None:
    """A row per check."""
    table = plain_table("checkpoint", "what", "holds", "")
    before = ""
    for one in found:
        holds = Text("yes" if one.holds else "no", STYLES[one.holds])
        table.add_row("" if one.of == before else one.of, one.what, holds, field(one.words))
        before = one.of
    console.print(table)
