"""Checkpoints that may be used, and who said so. No torch. What one may hold: `components.checkpoints`.

- `base` — the seam `Store`: put-if-absent, compare-and-swap, folders under their digest
- `directory` — a store in a folder
- `copying` — trees copied, and digested while they are
- `s3` — a store in a bucket
- `stores` — the store that the settings name; boto3 is loaded only for one in a bucket
- `candidates` — propose a checkpoint with its evidence, which a run that is repeated keeps
- `signing` — signatures over the files of a checkpoint, made with `model-signing`
- `attestations` — signatures over the evidence for a checkpoint, and over its comparison with a champion
- `identity` — which registry this is; a statement names it
- `keys`, `statements`, `approvals` — what a person states about a candidate, and signs
- `standing` — which approvals count, and why the others do not
- `records`, `history` — the append-only records, chained by their hashes, and who is champion by them
- `aliases` — `champion` and `challenger`, pointers that follow
- `starters` — who started a candidate's run, by its record and by its evidence
- `promotion`, `rollback` — from approvals to a record (`appending`), after a last look at what is `stored`
- `policies`, `adoption` — the policies that were decided by, and how another takes the place of the one in force
- `authorization` — does a record rest on the approvals and the signature that its policy requires
- `witness` — a second store that has seen which records there are, where the policy names one
- `clock` — times, and clocks that were set back

In a store: `registry.json`, `candidates/<digest>.json`, `signatures/<digest>/<key>.json`, `attestations/`,
`approvals/<digest>/<sha256>.json`, `promotions/<number>.json`, `policies/<sha256>.json`, `aliases/<name>.json`, and the
trees of checkpoints and of evidence; in a witness `heads/<number>.json`. A new kind of store is one file and one entry
in `stores`.
"""

from components.registry.aliases import Alias, challenge, challenger, champion, sound_history
from components.registry.appending import settle
from components.registry.approvals import Approval, approvals_of, read_approval, sign, store_approval
from components.registry.base import Conflict, Store, Unavailable
from components.registry.candidates import Candidate, candidates, find, propose, read_candidate
from components.registry.directory import DirectoryStore
from components.registry.history import History, read_history, records
from components.registry.identity import identify
from components.registry.promotion import (
    NotApproved,
    decided,
    promote,
    question,
    reject,
    rejection_question,
    standing_on,
    standing_unjudged,
)
from components.registry.records import PromotionRecord
from components.registry.rollback import rollback, rollback_question, standing_on_rollback
from components.registry.standing import Standing, Terms, standing
from components.registry.statements import Question, Statement, state
from components.registry.stores import open_store

__all__ = [
    "Alias", "Approval", "Candidate", "Conflict", "DirectoryStore", "History", "NotApproved", "PromotionRecord",
    "Question", "Standing", "Statement", "Store", "Terms", "Unavailable", "approvals_of", "candidates", "challenge",
    "challenger", "champion", "decided", "find", "identify", "open_store", "promote", "propose", "question",
    "read_approval", "read_candidate", "read_history", "records", "reject", "rejection_question", "rollback",
    "rollback_question", "settle", "sign", "sound_history", "standing", "standing_on", "standing_on_rollback",
    "standing_unjudged", "state", "store_approval",
]  # fmt: skip
