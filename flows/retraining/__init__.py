"""What `evenkeel nightly` needs to know: what is new, what to train on, and from where.

- `incoming` — the files of the folder that new data arrive in, and which of them are still being written
- `ledger` — the files that have joined, in the order in which they were first seen, and the nights that ended
- `versions` — which of them are earlier versions of others
- `joining` — the configured source and all of them as one file
- `plan` — the run of tonight, or that there is nothing to do
- `telling` — what the night came to, as Markdown

Everything is kept in the project's `.state/nightly/<name>/`, where <name> is the configuration's. A file that was
in a night that ended has joined for good: it may leave the folder. Until then it can be mended or taken away.
"""
