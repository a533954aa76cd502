"""The policy: a causal language model and its tokenizer.

- `policy` — load and save safetensors folders, render prompts
- `tiny` — the model that is trained from scratch in the demo and in tests
- `logprobs` — token log-probabilities and exact entropies
- `head` — hidden states first and logits later, whatever the architecture does to them
- `routing` — mixture of experts: which experts tokens take, and replaying it (R3)
- `int8`, `int4` — quantised copies, for the engine
- `quantised` — the layers that they round
- `mixing` — inputs that are mixtures of embeddings (N-GRPO)
"""

from components.policy.logprobs import TokenStats, response_logprobs
from components.policy.policy import Policy, load_policy

__all__ = ["Policy", "TokenStats", "load_policy", "response_logprobs"]
