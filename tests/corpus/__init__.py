"""Small registries as each version of the format left them. Whatever the code becomes, it reads and verifies them.

- a folder an entry: `registry/` (a directory store), `signer.pem` (the public key that its checkpoint is signed with),
  and `entry.json` (digests, and what made it)
- `schema-1` — from before there were signatures and evidence: its records are read, its checkpoint is not used
- `schema-2` — evidence, a signature made with model-signing 1.1.1, a signed approval, a promotion and a rejection
- `schema-2-registry` — the same, with statements that name the registry, and evidence that names who started the run

An entry is never changed. `python -m tests.corpus.add NAME` makes the next one, when the format of checkpoints,
candidates, signatures or records has changed; the private keys are thrown away.
"""

from pathlib import Path

ROOT = Path(__file__).parent
ENTRIES = sorted(path.parent.name for path in ROOT.glob("*/entry.json"))
