"""The policy: a causal language model and its tokenizer.

- `policy` — model and tokenizer, rendering prompts, saving; `loading` — loads a safetensors folder, and refuses broken
  ones
- `tiny` — the model that is trained from scratch in the demo and in tests
- `logprobs` — token log-probabilities and exact entropies
- `head` — hidden states first and logits later, whatever the architecture does to them
- `routing` — mixture of experts: which experts tokens take, and replaying it (R3)
- `quantised` — copies with layers of 8 or 4 bits, for the engine
- `mixing` — inputs that are mixtures of embeddings (N-GRPO)
"""

from components.policy.loading import load_policy
from components.policy.logprobs import TokenStats, response_logprobs
from components.policy.policy import Policy

__all__ = ["Policy", "TokenStats", "load_policy", "response_logprobs"]
