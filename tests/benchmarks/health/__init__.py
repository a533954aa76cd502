"""The trial of the health rules: healthy runs and runs with planted faults, stored once and judged again in seconds.

    python -m tests.benchmarks.health run --results DIR --work DIR [--arm plain|respond|both] [--rules FILE]
    python -m tests.benchmarks.health generated --results DIR [--rules FILE] [--half seen|unseen] [--named]
    python -m tests.benchmarks.health healthy --results DIR [--rules FILE]

`--ground llm` runs and judges on a real language model (`make model`) instead of the demo's.

- `grounds` — model, task and length of the runs, and which faults make sense there
- `healthy` — `HEALTHY`, recipes and schedules that work
- `faults` — `FAULTS`, one file each, planted by wrapping what the loop is given
- `generated` — faults that are drawn: a mechanism x a form x a size, and the tables of these and of healthy runs
- `plan` — which run has which seed, and which checkpoint
- `training` — one run, in this process
- `restarts` — faults that stop a run once, and change what it goes on from
- `store` — what is kept of a run, one small file each
- `truth` — from which step a fault hurts, by the accuracy under the true verifier
- `scoring` — what the rules say, delays, detection, false alarms, rescue
- `judged` — stored runs with planted faults, under the rules
- `overhead` — what watching costs
"""
