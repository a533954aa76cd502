"""`python -m tests.corpus.add NAME`: a registry as the present code leaves it, as the next entry of the corpus."""

from __future__ import annotations

import importlib.metadata
import sys
import tempfile
from datetime import timedelta
from pathlib import Path

import torch

from components.config.judgement import RuleSettings
from components.config.policy import TinyModel
from components.config.promotion import Policy, read_policy
from components.files import write_json, write_text
from components.gate.candidate import judge_candidate
from components.policy import Policy as Model
from components.policy.tiny import build_model, build_tokenizer
from components.registry import (
    Candidate,
    DirectoryStore,
    identify,
    promote,
    question,
    read_history,
    reject,
    rejection_question,
    sign,
    state,
    store_approval,
)
from components.registry.clock import utc_now
from components.registry.keys import new_key, public_pem, public_text, read_key, write_key
from tests.corpus import ROOT
from tests.proposals import propose_run, write_run

RULES = {"entropy_low": RuleSettings(when="entropy < 0.5", level="warn", why="it is nearly certain of every token")}
MADE_BY = ("model-signing", "cryptography", "safetensors", "transformers")
TINY = TinyModel(hidden_size=32, layers=1, heads=1, kv_heads=1, head_dim=8, intermediate_size=32, vocab_size=272)


def save(folder: Path, value: float) -> None:
    """The smallest model that the demo could have; ``value`` is its seed."""
    tokenizer = build_tokenizer(["1 + 1 = 2"], TINY.vocab_size, TINY.max_positions)
    Model(build_model(TINY, tokenizer, int(value)).to(torch.bfloat16), tokenizer).save(folder)


def add(target: Path) -> None:
    """Write an entry into the new folder ``target``: a candidate that was promoted, and one that was rejected."""
    if target.exists():
        sys.exit(f"{target} is there already, and an entry is never changed")
    store = DirectoryStore(target / "registry")
    with tempfile.TemporaryDirectory() as folder:
        key, approver = write_key(new_key("checkpoints"), Path(folder) / "key.pem"), new_key()
        signers = {"corpus": public_pem(read_key(key))}
        listed = {"approvers": {"ada": {"key": public_text(approver)}}, "promote": {"approvals": 1, "signed": True}}
        policy = Policy(read_policy(listed, "corpus"), RULES, signers)
        promoted = propose_run(store, write_run(Path(folder) / "one", 1, rules=RULES, make=save), key)
        decide(store, promoted, policy, approver, "promote")
        other = write_run(Path(folder) / "two", 2, rules=RULES, champion=promoted.digest)
        rejected = propose_run(store, other, key)
        decide(store, rejected, policy, approver, "reject")
    (target / "registry" / ".lock").unlink()
    write_text(target / "signer.pem", signers["corpus"])
    entry = {
        "champion": promoted.digest,
        "candidates": sorted([promoted.digest, rejected.digest]),
        "evidence": promoted.evidence,
        "outcomes": [record.outcome for record in read_history(store).records],
        "head": read_history(store).head,
        "signed": True,
        "made_by": {name: importlib.metadata.version(name) for name in MADE_BY},
    }
    write_json(target / "entry.json", entry)


def decide(store: DirectoryStore, candidate: Candidate, policy: Policy, key: object, action: str) -> None:
    """A signed statement, and the record that follows."""
    judgement = judge_candidate(store, candidate, policy, None)
    asked = question(candidate, judgement, policy, identify(store))
    if action == "reject":
        asked = rejection_question(candidate, policy, judgement.base, identify(store))
    said = state(asked, by="ada", reason="for the corpus", at=utc_now(), valid=timedelta(days=1))
    store_approval(store, sign(said, key))  # type: ignore[arg-type]
    (promote if action == "promote" else reject)(store, candidate, judgement, policy)


if __name__ == "__main__":
    add(ROOT / sys.argv[1])
