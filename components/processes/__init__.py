"""Processes that a run starts: itself, inference servers, and the ranks of a learner.

- `child` — one of them: started, watched, its log read, ended with all that it started
- `torchrun` — starts the ranks of this machine; `ranked` — what it leaves in their environment
- `guardian` — stands between a run and its child, so that nothing outlives a run that is killed
- `stopping` — a request to stop, and where it takes effect
- `living` — whether one lives, and whose a folder on shared ground is
- `environments` — where the Python with vLLM is, what variables are called, and a loopback port that is free
- `memory` — what a stage needs at least, and what there is
- `vllm_server` — the command line and the environment of a server, here or in a pod
"""

from components.processes.child import Child
from components.processes.environments import free_port, vllm_python

__all__ = ["Child", "free_port", "vllm_python"]
