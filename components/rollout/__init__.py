"""Groups of completions.

- `base` — the `Engine` seam
- `torch_engine` — the embedded engine
- `context` — one batch of it: what the model has read, by its own forward pass
- `dense`, `static_cache` — the same by a lean forward pass, for architectures that it computes exactly
- `draws`, `decoding` — the tokens that are drawn, and what the rows have written
- `precision` — the engine's own copy of the policy (`PRECISIONS`)
- `mixing`, `neighbours` — N-GRPO: a gate, and mixtures of the likeliest token with its neighbours
- `routes` — the experts that sampled tokens went to
- `tools` — completions in turns, above any engine
- `collect` — sample, score, and refill (dynamic sampling)

`ENGINES` maps ``rollout.engine.kind`` to its class.
"""

from pathlib import Path

from components.config.rollout import RolloutSettings
from components.policy import Policy
from components.rollout.base import Engine, Sampling
from components.rollout.collect import Collector, Rollout
from components.rollout.tools import ToolLoop
from components.rollout.torch_engine import TorchEngine
from components.tools import build_tool

LOGS = Path("logs")

ENGINES: dict[str, type[TorchEngine]] = {"torch": TorchEngine}


def build_engine(policy: Policy, settings: RolloutSettings, logs: Path = LOGS) -> Engine:
    """The engine that the settings name, sampling from ``policy``, with the tool between its turns if there is one.

    Processes that it starts write their logs into the folder ``logs``; ``close`` ends them.
    """
    engine = ENGINES[settings.engine.kind](policy, settings.engine)
    if settings.tool is None:
        return engine
    return ToolLoop(engine, build_tool(settings.tool), policy, settings.tool.max_turns)


__all__ = ["ENGINES", "Collector", "Engine", "Rollout", "Sampling", "build_engine"]
