"""How good is a policy, and is it better than another?

From prompts to results; these run the policy or read files:

- `suites` — the prompts: the test split, and the configured suites
- `formats` — readers of published sets of problems
- `answering` — checkpoints answer suites (loads torch)
- `answers` — the final answer of a completion, by which a majority is counted
- `cache` — answers that are kept, by the digest of all that they depend on
- `contamination` — prompts that occur in the training data
- `against` — a candidate and the present champion, for promotion

From results to figures; no torch, no I/O:

- `results` — what one prompt came to under one policy
- `passing` — greedy pass@1, pass@k, maj@k
- `calibration` — the same by family, difficulty, length of the prompt and source; length, truncation, and what
  agreement among samples is worth
- `pairing` — the paired bootstrap interval, McNemar's exact test, the smallest difference that could have been seen
- `statistics` — intervals and shares
- `summary` — all of it together: the format of `out/evaluation.json`
- `sentences` — the result in plain sentences

Nothing is exported here on purpose: what takes a single estimator must not depend on the code that runs a policy, for
DVC would train again when that changes.
"""
