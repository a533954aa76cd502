"""Completions from inference servers over HTTP, with weights that are handed over while the servers run.

- `client` — the interface of all dialects: requests to a server, and what its answers must be
- `vllm`, `sglang` — the dialects
- `local` — where servers come from: given by URL, or processes of the run; what they begin with
- `server`, `fleet` — one of them, and all: load, repeats, canaries, and replacing what is bad
- `answers` — requests for prompts, and answers as completions; labels of weights
- `transfer` — how weights travel: files, a broadcast, or an adapter alone
- `check` — model, tokenizer and version at the start; log-probabilities after every hand-over
- `background` — an event loop for callers that wait, and threads for calls that it must not wait in
- `engine` — all of it behind `Engine`
- `plugin` — what a vLLM server imports, in its own environment

A vLLM server given by URL must have been started with ``VLLM_SERVER_DEV_MODE=1``, ``plugin`` on its PYTHONPATH, and the
options that `components.processes.vllm_server` names. Its interface for weights knows no passwords: it belongs on a
network that only the run can reach.
"""

from components.rollout.servers.engine import ServerEngine

__all__ = ["ServerEngine"]
