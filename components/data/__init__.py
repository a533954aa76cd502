"""From a source to validated splits, in two passes with a part of the rows in memory at a time.

- `candidates` — a row that may be admitted: its prompt, and its place in the source
- `sources` — readers: generated, JSON lines, Parquet, folders of `datasets`
- `outside` — rows that code from outside the project makes
- `provenance` — digest and trust of a source, and that it stays the same between the passes
- `likeness`, `near` — when two questions are alike: keys, templates, MinHash
- `survey` — the first pass: compact keys, and what rows have in common
- `concentration` — too many rows are one question or one template; what else guards against poisoned data:
  `components.poisoning`
- `tokenizing` — lengths in tokens and the chat template, from the base model's folder
- `judging` — the second pass: the verifier's word on every reference solution
- `splits` — sft, train, dev or test, by content hash
- `consistency` — the embedded consistency classifier, made from the solutions of the SFT split
- `rules` — what every row must meet
- `validation` — those rules as a Great Expectations suite (imported by the stage only: it takes seconds)
- `admission` — rows that break an expectation go to quarantine with the reasons
- `codes` — those reasons as codes, each with its fix
- `summary`, `limits` — counts, findings about the whole, and when all of it is refused
- `page` — the validation as a page to read
- `prompts` — reading the splits back

`sources.SOURCES` maps ``data.source.kind`` to its reader.
"""
