"""Groups of completions.

- `base` — the `Engine` seam
- `torch_engine` — the embedded engine
- `context` — one batch of it: what the model has read, by its own forward pass
- `dense`, `dense_context` — the same by a lean forward pass, for models that `known_dense` says it computes exactly
- `projection` — its linear layers, with weights that are packed once, when they are loaded
- `static_cache`, `shared_prompts` — its keys and values, with prompts repeated for every row or shared by a group
- `draws`, `decoding` — the tokens that are drawn, and what the rows have written
- `precision` — the engine's own copy of the policy (`PRECISIONS`)
- `servers` — engines whose completions come from inference servers
- `mixing`, `neighbours` — N-GRPO: a gate, and mixtures of the likeliest token with its neighbours
- `routes` — the experts that sampled tokens went to
- `tools` — completions in turns, above any engine
- `collect` — sample, score, and refill (dynamic sampling)

`ENGINES` maps ``rollout.engine.kind`` to what builds it.
"""

from collections.abc import Callable
from pathlib import Path

from components.config.rollout import RolloutSettings
from components.config.rollout import TorchEngine as TorchEngineSettings
from components.config.servers import SglangEngine, VllmEngine
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

Build = Callable[[Policy, RolloutSettings, Path, Weights], Engine]


def _embedded(policy: Policy, settings: RolloutSettings, logs: Path, present: Weights) -> Engine:
    if not isinstance(settings.engine, TorchEngineSettings):
        raise TypeError(settings.engine)
    if is_hollow(policy.model):
        return TorchEngine(filled(policy, present), settings.engine, own=True)
    return TorchEngine(policy, settings.engine)


def _served(policy: Policy, settings: RolloutSettings, logs: Path, present: Weights) -> Engine:
    if not isinstance(settings.engine, VllmEngine | SglangEngine):
        raise TypeError(settings.engine)
    return ServerEngine(policy, settings, settings.engine, logs, present)


ENGINES: dict[str, Build] = {"torch": _embedded, "vllm": _served, "sglang": _served}


def build_engine(
    policy: Policy, settings: RolloutSettings, logs: Path = LOGS, present: Weights | None = None
) -> Engine:
    """The engine that the settings name, sampling from ``policy``, with the tool between its turns if there is one.

    Processes that it starts write their logs into the folder ``logs``; ``close`` ends them.

    Args:
        present: the weights to begin with where ``policy`` is an `outline`; None: those of the policy.
    """
    present = present or weights_of(policy)
    engine = ENGINES[settings.engine.kind](policy, settings, logs, present)
    if settings.tool is None:
        return engine
    return ToolLoop(engine, build_tool(settings.tool), policy, settings.tool.max_turns)


__all__ = ["ENGINES", "Collector", "Engine", "Rollout", "Sampling", "build_engine"]
