"""From a source to validated splits.

- `candidates` — a row that asks to be admitted: the prompt it would be, and where it stands in its source
- `sources` — readers: generated, JSON lines, Parquet
- `splits` — sft, train, dev or test, by content hash
- `validation` — the Great Expectations suite (imported by the stage only: it takes seconds)
- `admission` — rows that break an expectation go to quarantine with the reasons
- `page` — the validation as a page to read
- `prompts` — reading the splits back

`SOURCES` maps ``data.source.kind`` to its reader.
"""

from components.data.sources import SOURCES

__all__ = ["SOURCES"]
