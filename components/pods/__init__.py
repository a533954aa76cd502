"""What runs inside the pods of a run on Kubernetes. Nothing here knows Kubernetes itself.

- `learner` — the container `learner`: one stage, or the ranks of one node of it, with the code and packages of whoever
  submitted the run
- `server` — the container `rollout`: a server that must not end
- `child` — the first process of a container: forwards signals, buries orphans
- `depot`, `parcels` — files of a run in a bucket, where its pods share no folder
- `workspace` — what a stage needs and what it writes, as whoever submits it puts it there and takes it back
- `fetch` — the container that brings a stage's files into its pod
- `keeper`, `state` — the stage's checkpoints and output on their way into the bucket
- `ending` — how a container ends: exit code, last words, and who waits for whom
"""
