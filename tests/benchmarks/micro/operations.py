"""``python -m tests.benchmarks.micro.operations``: the lean pass compared with what it replaces, for the log.

Processor time of one thread, fp32, in the sizes of the demo's model: 2,500 tokens of width 128. Both ways take turns.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import torch
from torch import Tensor
from torch.nn import functional

from components.policy.lean.layers import normed
from components.policy.lean.products import onednn
from tests.benchmarks.spread import spread, table

TOKENS, WIDTH, ROUNDS = 2496, 128, 30
Work = Callable[[], object]
Line = list[str]


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    lines = [*products(), *attention(), *norm()] if onednn() else [*attention(), *norm()]
    print(table(["", "replaced", "here"], lines))


def products() -> Iterator[Line]:
    """A layer forwards, its weight's gradient, and what a size costs oneDNN that it has not met."""
    for rows, out, width in [(TOKENS, 768, WIDTH), (TOKENS, WIDTH, 384), (1024, 1024, 1024)]:
        values, weight = torch.randn(rows, width), torch.randn(out, width)
        times = turns(lambda v=values, w=weight: functional.linear(v, w), lambda v=values, w=weight: _onednn(v, w))  # type: ignore[misc]
        flops = 2 * rows * out * width / 1e9
        yield [f"product {rows} x {width} x {out}, GFLOP/s", *(spread([flops / s for s in way], 0) for way in times)]
    slope, values = torch.randn(TOKENS, 768), torch.randn(TOKENS, WIDTH)
    times = turns(lambda: _onednn(slope.T, values.T), lambda: _onednn(values.T, slope.T).T)
    yield ["weight's gradient by the more rows, by the fewer, ms", *map(_ms, times)]
    weight, new, met = torch.randn(768, WIDTH), list[float](), list[float]()
    for rows in range(101, 101 + ROUNDS):
        values = torch.randn(rows, WIDTH)
        new.append(seconds(lambda v=values: _onednn(v, weight)))  # type: ignore[misc]
        met.append(seconds(lambda v=values: _onednn(v, weight)))  # type: ignore[misc]
    yield ["product of a size that oneDNN has not met, and again, ms", _ms(new), _ms(met)]


def attention() -> Iterator[Line]:
    """80 rows of 36 tokens in 4 heads, forwards and backwards."""
    query, key, value, slope = (torch.randn(80, 4, 36, 32, requires_grad=True) for _ in range(4))
    hidden = torch.full((36, 36), -1e30).triu_(1)

    def plain() -> Tensor:
        scores = torch.matmul(query * 32**-0.5, key.transpose(-1, -2)) + hidden
        return torch.matmul(scores.softmax(-1), value)

    def fused() -> Tensor:
        return functional.scaled_dot_product_attention(query, key, value, hidden.expand(80, 1, 36, 36))

    times = turns(*(lambda f=f: torch.autograd.grad(f(), (query, key, value), slope) for f in (fused, plain)))  # type: ignore[misc]
    yield ["attention by the fused kernel, by plain products, ms", *map(_ms, times)]


def norm() -> Iterator[Line]:
    """RMSNorm forwards and backwards."""
    values, weight = torch.randn(TOKENS, WIDTH, requires_grad=True), torch.ones(WIDTH, requires_grad=True)
    slope = torch.randn(TOKENS, WIDTH)

    def chain() -> Tensor:
        return weight * (values * torch.rsqrt(values.pow(2).mean(-1, keepdim=True) + 1e-6))

    def own() -> Tensor:
        return normed(values, weight, 1e-6)

    times = turns(*(lambda f=f: torch.autograd.grad(f(), (values, weight), slope) for f in (chain, own)))  # type: ignore[misc]
    yield ["RMSNorm by a chain of operations, by one of its own, ms", *map(_ms, times)]


def turns(*ways: Work) -> list[list[float]]:
    """Seconds of every round of each way, after two that warm up."""
    for way in ways + ways:
        way()
    rounds = [[seconds(way) for way in ways] for _ in range(ROUNDS)]
    return [list(times) for times in zip(*rounds, strict=True)]


def seconds(work: Work) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def _onednn(values: Tensor, weight: Tensor) -> Tensor:
    found: Tensor = torch.ops.mkldnn._linear_pointwise(values, weight, None, "none", [], "")
    return found


def _ms(times: list[float]) -> str:
    return spread([1000 * value for value in times], 2)


if __name__ == "__main__":
    main()
