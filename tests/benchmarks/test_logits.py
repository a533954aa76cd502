"""What log-probabilities and entropies cost at a vocabulary of 151,936, all logits at once or in pieces: `make bench`.

Every row is a process of its own. The first table is forward and backward of a Qwen3 with one layer; peak memory is
what comes on top of the loaded model, its gradient, as large as the embedding, included. The second is a whole step of
the learner, with its batch in one pass or in several, above what a step of a single short row takes.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import time
from dataclasses import replace
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


LEARNER_WAYS = {
    "one pass, all at once": (2**20, 2**40),
    "one pass, 2^25 at once (default)": (2**20, 2**25),
    "passes of 512 tokens, all at once": (512, 2**40),
    "passes of 512 tokens, 2^25 at once": (512, 2**25),
    "passes of 256 tokens, all at once": (256, 2**40),
}


def measure_step(micro_batch_tokens: int, at_once: int) -> dict[str, float]:
    """Peak memory (MiB above that of a step of one short row) and CPU seconds of a learner's step on 2,048 tokens."""
    import torch

    from components.config.objective import ObjectiveSettings
    from components.config.training import LearnerSettings
    from components.learner.torch_learner import TorchLearner
    from tests.benchmarks.learner_gpu import Shape, batch_of, policy_of

    torch.set_num_threads(1)
    shape = Shape("wide", HIDDEN, 2 * HIDDEN, 1, 4, VOCABULARY, rows=8, prompt=32, response=224)
    settings = LearnerSettings(micro_batch_tokens=micro_batch_tokens, logits_at_once=at_once, lr=1e-6)
    learner = TorchLearner(policy_of(shape), settings, ObjectiveSettings(), 1.0)
    learner.step(batch_of(replace(shape, rows=1, prompt=4, response=4)), seed=0)
    began_at, times = _peak(), []
    for step in range(3):
        began = time.process_time()
        signals = learner.step(batch_of(shape), seed=step)
        times.append(time.process_time() - began)
    return {"peak": _peak() - began_at, "seconds": statistics.median(times), "sum": signals["grad_norm"]}


def _peak() -> float:
    """Highest resident memory of this process so far, in MiB."""
    status = Path("/proc/self/status")
    if status.exists():  # what getrusage says includes the process that this one was forked from
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) / 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def in_a_process(call: str) -> dict[str, float]:
    script = f"import json, {__name__} as b; print(json.dumps(b.{call}))"
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
        found = {way: in_a_process(f"measure({tokens}, {at_once}, {dtype!r})") for way, at_once in WAYS.items()}
        plain, *pieces = found.values()
        for way, row in found.items():
            memory = (f"{row['peak']:,.0f}", f"{row['peak'] / plain['peak']:.2f}")
            speed = (f"{tokens / row['seconds']:,.0f}", f"{plain['seconds'] / row['seconds']:.2f}")
            table.add_row(f"{tokens:,}", way, *memory, f"{row['seconds']:.1f}", *speed)
        assert all(row["sum"] == pytest.approx(plain["sum"], abs=1e-4) for row in pieces)
        assert pieces[-1]["peak"] < plain["peak"]
    Console().print(table)


@pytest.mark.timeout(3600)
def test_memory_and_time_of_a_learners_step_with_a_large_vocabulary() -> None:
    table = Table(
        *("batch", "peak MiB", "of the first", "CPU seconds", "tokens/s", "of the first"),
        title=f"learner, 8 rows of 256 tokens, V {VOCABULARY:,}, hidden {HIDDEN}, float32, one thread",
    )
    found = {way: in_a_process(f"measure_step({tokens}, {pieces})") for way, (tokens, pieces) in LEARNER_WAYS.items()}
    first = next(iter(found.values()))
    for way, row in found.items():
        memory = (f"{row['peak']:,.0f}", f"{row['peak'] / first['peak']:.2f}")
        speed = (f"{2048 / row['seconds']:,.0f}", f"{first['seconds'] / row['seconds']:.2f}")
        table.add_row(way, *memory, f"{row['seconds']:.1f}", *speed)
    assert all(row["sum"] == pytest.approx(first["sum"], rel=1e-4) for row in found.values())
    Console().print(table)
