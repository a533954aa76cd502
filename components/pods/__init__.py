"""What runs inside the pods of a run on Kubernetes. Nothing here knows Kubernetes itself.

- `driver` — the container `driver`: one stage
- `learner` — the container `learner`: the ranks of one node; `ranks` is the torchrun below it
- `child` — the first process of a container: forwards signals, buries orphans
- `place` — what the environment says, and whether code and packages are those of whoever submitted the run
- `ending` — how a container ends: exit code, last words, and who waits for whom
"""
