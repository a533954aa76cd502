"""From a row of a published format to a probe.

- `rows` — JSON lines and CSV, with line numbers
- `formats` — formats of a few fields; `bbq` — one of many

`components.canaries.sets` maps ``health.canaries.<name>.format`` to the reader of one row.
"""
