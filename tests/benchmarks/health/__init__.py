"""The trial of the health rules: healthy runs and runs with planted faults, stored once and judged again in seconds.

    python -m tests.benchmarks.health run --results DIR --work DIR [--arm plain|respond|both] [--rules FILE]
    python -m tests.benchmarks.health score --results DIR [--rules FILE] [--half tune|report|all] [--out FILE]
    python -m tests.benchmarks.health table --results DIR [--rules FILE] [--out FILE]

`--ground llm` runs and judges on a real language model (`make model`) instead of the demo's.

- `grounds` — model, task and length of the runs, and which faults make sense there
- `healthy` — `HEALTHY`, recipes and schedules that work
- `faults` — `FAULTS`, one file each, planted by wrapping what the loop is given
- `generated` — faults that are drawn: a mechanism x a form x a size; `run --generated seen`, `generated --half seen`
- `plan` — which run has which seed, and which half it belongs to
- `training` — one run, in this process
- `restarts` — faults that stop a run once, and change what it goes on from
- `store` — what is kept of a run, one small file each
- `truth` — from which step a fault hurts, by the accuracy under the true verifier
- `detectors` — a file of rules, and three ways to do without
- `scoring` — delays, detection, false alarms, rescue
- `judged` — stored runs of one half under every detector
- `table` — the same as markdown
"""
