"""A candidate: a stored checkpoint with the evidence for it, waiting for a person."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from components.checkpoints.checks import check_proposed
from components.errors import InputError, NoCandidate
from components.files import dump_json, load_json, manifest, read_json, sha256_json
from components.layout import Layout
from components.registry.aliases import challenge, challenger
from components.registry.attestations import attest, of_evidence
from components.registry.base import Store, check_digest, reading
from components.registry.identity import identify
from components.registry.signing import sign

SCHEMA = 2
READABLE = (1, 2)
"""Schema 1 had no evidence, and nothing was signed."""
PROPOSABLE = ("pass", "inconclusive")
PREFIX = "candidates/"
SHORTEST = 6
"""Digits of a digest that a person must type at least."""
STARTERS = "started_by"
"""In `lineage.json` and in the record of a candidate: the names of who started the run."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """``gate`` is the content of `out/gate.json`, ``evidence`` the digest of the stored folder with what the run left.

    ``run`` states where the checkpoint comes from: ``run`` (its id), ``commit``, ``tree``, and ``started_by``, a list
    of the names that whoever started it goes by (name, e-mail address, login, or `schedule:<deployment>`): a claim
    without proof.
    """

    digest: str
    gate: Mapping[str, Any]
    run: Mapping[str, Any]
    schema: int = SCHEMA
    evidence: str | None = None

    def __post_init__(self) -> None:
        check_digest(self.digest)
        for name, value in (("gate", self.gate), ("run", self.run)):
            if not isinstance(value, Mapping):
                raise TypeError(f"its {name} is no object")
        check_digest(self.policy_sha256)
        if self.evidence is not None:
            check_digest(self.evidence)
        if self.schema not in READABLE:
            raise ValueError(f"schema {self.schema!r} is not known here")

    @property
    def key(self) -> str:
        return f"{PREFIX}{self.digest}.json"

    @property
    def policy_sha256(self) -> str:
        """Digest of the policy that the run's own gate applied."""
        return str(self.gate.get("policy_sha256"))

    def to_bytes(self) -> bytes:
        fields = asdict(self)
        if self.schema == 1:
            del fields["evidence"]
        return dump_json(fields).encode()


def propose(
    store: Store,
    checkpoint: Path,
    evidence: Path,
    gate: Mapping[str, Any],
    run: Mapping[str, Any],
    *,
    key: Path | None = None,
) -> Candidate:
    """Store a checkpoint and its evidence under their digests, sign both, and record the checkpoint as a candidate.

    Idempotent: proposing the same checkpoint with the same gate result and evidence changes nothing, and where only who
    started the run differs, these are added to the record; with others the record of the candidate follows (a decision
    that was already made keeps the evidence it was made on). Where a gate passed that is not recorded yet, it is the
    challenger from now on: a candidate that is proposed once more does not take the place of a newer one.

    Args:
        evidence: the folder that `components.gate.bundle.gather` made.
        gate: content of the run's `out/gate.json`.
        run: where it comes from, see `Candidate`.
        key: private key (PEM) to sign with; without one the checkpoint is stored unsigned, and nothing takes it out.

    Raises:
        NoCandidate: the gate failed.
        InputError: the checkpoint is refused, is not the one the gate judged, or cannot be signed.
    """
    if gate.get("result") not in PROPOSABLE:
        how = "read the checks in out/gate.json and the report"
        raise NoCandidate(f"the gate says {gate.get('result')!r}: nothing is proposed", where=checkpoint, how=how)
    files = check_proposed(checkpoint)
    digest = sha256_json(files)
    if gate.get("checkpoint_sha256") != digest:
        what = "the checkpoint is not the one the gate judged"
        raise InputError(what, where=checkpoint, how="run the gate stage again")
    check_digest(str(gate.get("policy_sha256")))
    identify(store)
    if store.put_tree(checkpoint, files) != digest:
        raise InputError("the checkpoint changed while it was stored", where=checkpoint, how="propose it again")
    if key is not None:
        sign(store, checkpoint, digest, key)
    candidate, known = _record(store, Candidate(digest, dict(gate), dict(run)), evidence)
    if key is not None and candidate.evidence is not None:
        attest(store, of_evidence(digest, candidate.evidence), key)
    if gate["result"] == "pass" and not (known and challenger(store)):
        challenge(store, digest)
    return candidate


def _record(store: Store, proposed: Candidate, evidence: Path) -> tuple[Candidate, bool]:
    """Record a candidate; returns its record, and whether one with this answer of the gate was there before."""
    candidate, known = proposed, False

    def change(stored: bytes | None) -> bytes | None:
        nonlocal candidate, known
        earlier = None if stored is None else _parse(stored, proposed.key)
        before = None if earlier is None else earlier.evidence
        candidate = replace(proposed, evidence=_store_evidence(store, evidence, before))
        known = earlier is not None and earlier.gate == candidate.gate
        if earlier is not None and (candidate := _proposed_again(candidate, earlier)) == earlier:
            return None
        return candidate.to_bytes()

    store.update(proposed.key, change)
    return candidate, known


def _proposed_again(candidate: Candidate, earlier: Candidate) -> Candidate:
    """Who proposes a checkpoint once more does not make it forgotten who did before, nor that it was not known."""
    same = (earlier.gate, earlier.evidence) == (candidate.gate, candidate.evidence)
    kept = earlier if same else candidate
    before, now = earlier.run.get(STARTERS), candidate.run.get(STARTERS)
    if before == now:
        return kept
    names = {*before, *now} if isinstance(before, list) and isinstance(now, list) and before and now else ()
    return replace(kept, run={**kept.run, STARTERS: sorted(names)})


def _store_evidence(store: Store, folder: Path, earlier: str | None) -> str:
    """Digest under which the evidence in ``folder`` is stored: ``earlier`` where at most who started the run differs.

    So a finished run that is repeated keeps its earlier evidence: with new evidence it would be undecided again, and
    approvals that were given would no longer count.
    """
    if earlier is not None and store.has_tree(earlier) and _of_a_run(folder) == _of_a_run(store.tree(earlier)):
        return earlier
    return store.put_tree(folder)


def _of_a_run(evidence: Path) -> dict[str, Any]:
    """The manifest; in place of the digest of `lineage.json` what that says, but for who started the run."""
    found: dict[str, Any] = dict(manifest(evidence))
    path = Layout(evidence).lineage
    try:
        lineage = read_json(path)
    except InputError:  # as good as any other file; the gate refuses it
        return found
    return {**found, path.name: {**lineage, STARTERS: None}} if isinstance(lineage, dict) else found


def find(store: Store, digest_prefix: str) -> Candidate:
    """The candidate whose digest starts with ``digest_prefix``, as a person writes it (see `digits`).

    Raises:
        InputError: too short, unknown, or more than one fits.
    """
    wanted = digits(digest_prefix)
    if len(wanted) < SHORTEST:
        raise InputError("too short to name a candidate", where=digest_prefix, how=f"give {SHORTEST} digits or more")
    found = [candidate for candidate in candidates(store) if candidate.digest.startswith(wanted)]
    if not found:
        raise InputError("no such candidate", where=digest_prefix, how="check the digest, and the registry's path")
    if len(found) > 1:
        raise InputError(f"{len(found)} candidates start with this", where=digest_prefix, how="give more digits")
    return found[0]


def digits(typed: str) -> str:
    """The digits of a digest that a person typed, or copied as it is printed: `sha256:` and the digits."""
    return typed.lower().removeprefix("sha256:")


def read_candidate(store: Store, digest: str) -> Candidate | None:
    """The candidate with this digest, None where there is none."""
    key = f"{PREFIX}{check_digest(digest)}.json"
    stored = store.get(key)
    return None if stored is None else _parse(stored[0], key)


def candidates(store: Store) -> list[Candidate]:
    """Every candidate, by digest."""
    found = [(key, store.get(key)) for key in store.keys(PREFIX)]
    return [_parse(stored[0], key) for key, stored in found if stored is not None]


def _parse(data: bytes, key: str) -> Candidate:
    how = "restore it; or move it out of the registry, and propose the checkpoint again: evenkeel run --resume RUN-ID"
    with reading("a candidate record", key, how):
        candidate = Candidate(**load_json(data))
    if candidate.key != key:
        raise InputError("a candidate record of another checkpoint", where=key, how="restore the registry")
    return candidate
