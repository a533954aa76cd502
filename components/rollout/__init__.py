"""Groups of completions.

- `base` — the `Engine` seam
- `torch_engine` — the embedded engine, its own copy of the policy (`PRECISIONS`), and the experts that tokens went to
- `context` — one batch of it: what the model has read, by its own forward pass or by the lean one
- `dense` — a lean forward pass, for models that it is known to compute exactly
- `static_cache` — its keys and values, with prompts repeated for every row or shared by a group
- `draws`, `decoding` — the tokens that are drawn, and what the rows have written
- `servers` — engines whose completions come from inference servers
- `mixing` — N-GRPO: a gate, and mixtures of the likeliest token with its neighbours
- `tools` — completions in turns, above any engine
- `collect` — sample, score, and refill (dynamic sampling)
- `build_engine` — what ``rollout.engine.kind`` names
"""

from pathlib import Path

from components.config.rollout import RolloutSettings
from components.config.rollout import TorchEngine as TorchEngineSettings
from components.policy import Policy
from components.policy.outline import filled, is_hollow
from components.policy.weights import Weights, weights_of
from components.rollout.base import Engine, Sampling
from components.rollout.collect import Collector, Rollout
from components.rollout.servers import ServerEngine
from components.rollout.tools import ToolLoop
from components.rollout.torch_engine import TorchEngine
from components.tools import build_tool

LOGS = Path("logs")


def build_engine(
    policy: Policy, settings: RolloutSettings, logs: Path = LOGS, present: Weights | None = None
) -> Engine:
    """The engine that the settings name, sampling from ``policy``, with the tool between its turns if there is one.

    Processes that it starts write their logs into the folder ``logs``; ``close`` ends them.

    Args:
        present: the weights to begin with where ``policy`` is an `outline`; None: those of the policy.
    """
    present = present or weights_of(policy)
    engine: Engine
    if not isinstance(settings.engine, TorchEngineSettings):
        engine = ServerEngine(policy, settings, settings.engine, logs, present)
    elif is_hollow(policy.model):
        engine = TorchEngine(filled(policy, present), settings.engine, own=True)
    else:
        engine = TorchEngine(policy, settings.engine)
    return (
        engine
        if settings.tool is None
        else ToolLoop(engine, build_tool(settings.tool), policy, settings.tool.max_turns)
    )


__all__ = ["Collector", "Engine", "Rollout", "Sampling", "build_engine"]
