"""Retraining on new data, for `evenkeel nightly`: what is new, what to train on, and from which checkpoint.

- `ledger` — the files that have joined, in the order in which they were first seen, and the runs that ended
- `joining` — the files of the folder that new data arrive in, without those that are still being written; the
  configured source and all of them as one file, newer versions in the place of earlier ones
- `plan` — the run that follows, or that there is nothing to do; the result as text and as Markdown

Everything is kept in the project's `.state/nightly/<name>/`, where <name> is the configuration's. A file that was
part of a run that ended has joined for good: it may leave the folder. Until then it can be corrected or removed.
"""
