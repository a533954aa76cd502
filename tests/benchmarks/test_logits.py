"""What log-probabilities and entropies cost at a vocabulary of 151,936, all logits at once or in pieces: `make bench`.

Every row is a process of its own: forward and backward of a Qwen3 with one layer. Peak memory is what comes on top of
the loaded model; its gradient, as large as the embedding, is part of it.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console
from rich.table import Table

PROJECT = Path(__file__).parents[2]
VOCABULARY, HIDDEN = 151_936, 256
TOKENS = (512, 2048)
WAYS = {
    "plain log-softmax": 0,
    "all at once": 2**40,
    "2^26 at once": 2**26,
    "2^25 at once (default)": 2**25,
    "2^24 at once": 2**24,
}


def measure(tokens: int, at_once: int, dtype: str) -> dict[str, float]:
    """Peak memory (MiB above the loaded model) and CPU seconds of one forward and backward pass, and its values."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    from components.policy.logprobs import model_inputs, response_logprobs

    torch.set_num_threads(1)
    torch.manual_seed(0)
    shape = {"num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64}
    config = Qwen3Config(
        vocab_size=VOCABULARY, hidden_size=HIDDEN, intermediate_size=2 * HIDDEN, tie_word_embeddings=True, **shape
    )
    model = Qwen3ForCausalLM(config).to(getattr(torch, dtype))
    width = tokens // 4
    ids = torch.randint(0, VOCABULARY, (4, width + 1))
    attention = torch.ones_like(ids)
    loaded, began = _peak(), time.process_time()
    if at_once:
        logp, entropy, _ = response_logprobs(model, ids, attention, width, 1.0, logits_at_once=at_once)
    else:
        logits = model(**model_inputs(model, ids, attention)).logits[:, :-1]
        distribution = torch.log_softmax(logits.float(), -1)
        logp = distribution.gather(-1, ids[:, 1:, None]).squeeze(-1)
        with torch.no_grad():
            entropy = -(distribution.exp() * distribution).sum(-1)
    loss = logp.mean()
    loss.backward()
    return {
        "peak": _peak() - loaded,
        "seconds": time.process_time() - began,
        "sum": loss.item() + entropy.mean().item(),
    }


def _peak() -> float:
    """Highest resident memory of this process so far, in MiB."""
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used / (2**20 if sys.platform == "darwin" else 2**10)


def in_a_process(tokens: int, at_once: int, dtype: str) -> dict[str, float]:
    script = f"import json, {__name__} as b; print(json.dumps(b.measure({tokens}, {at_once}, {dtype!r})))"
    path = os.pathsep.join([str(PROJECT), str(Path(__file__).parent)])
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run([sys.executable, "-c", script], env=environment, check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_memory_and_time_of_a_large_vocabulary(dtype: str) -> None:
    table = Table(
        *("tokens", "logits", "peak MiB", "of plain", "CPU seconds", "tokens/s", "of plain"),
        title=f"V {VOCABULARY:,}, hidden {HIDDEN}, {dtype}, one thread",
    )
    for tokens in TOKENS:
        found = {way: in_a_process(tokens, at_once, dtype) for way, at_once in WAYS.items()}
        plain, *pieces = found.values()
        for way, row in found.items():
            memory = (f"{row['peak']:,.0f}", f"{row['peak'] / plain['peak']:.2f}")
            speed = (f"{tokens / row['seconds']:,.0f}", f"{plain['seconds'] / row['seconds']:.2f}")
            table.add_row(f"{tokens:,}", way, *memory, f"{row['seconds']:.1f}", *speed)
        assert all(row["sum"] == pytest.approx(plain["sum"], abs=1e-4) for row in pieces)
        assert pieces[-1]["peak"] < plain["peak"]
    Console().print(table)
