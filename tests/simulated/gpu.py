"""A GPU that is none, for tests of device handling on machines without one.

`OnGpu` is a tensor that says it is on the device kind `NAME` and holds its values on the CPU. What torch refuses on a
real GPU is refused here: operations on tensors of two devices, ``.numpy()``, indices on the GPU into a tensor on the
CPU. So forward and backward passes, autocast and optimizers run, with the values of a CPU. It says nothing of kernels,
of operations that a GPU lacks, of speed or of memory: that is what `tests/gpu` is for.

The device kind is torch's PrivateUse1, set up in Python. A build of torch without that (before 2.9) skips the tests.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, partial
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils import backend_registration
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils._pytree import tree_leaves, tree_map

NAME = "simulated"
LOWERED = ("linear", "matmul", "mm", "bmm", "addmm", "scaled_dot_product_attention")
"""Operations that autocast computes in lower precision; the products of the models here."""
aten = torch.ops.aten
BETWEEN_DEVICES = {aten.copy_.default, aten._to_copy.default}
INDEXED = {aten.index.Tensor, aten.index_put.default, aten.index_put_.default, aten._unsafe_index.Tensor}
"""Operations that take indices on the CPU into a tensor on a GPU."""


@contextmanager
def simulated_gpu() -> Iterator[torch.device]:
    """The device; tensors and modules can be moved to it inside of the context."""
    device = registered()
    with OnDispatch(), OnCall():
        yield device


@cache
def registered() -> torch.device:
    """The device kind, made known to torch once a process."""
    set_up = getattr(backend_registration, "_setup_privateuseone_for_python_backend", None)
    if set_up is None:
        pytest.skip(f"torch {torch.__version__} has no device kinds in Python")
    set_up(NAME, DeviceModule())
    others, products = (torch.library.Library(name, "IMPL", "AutocastPrivateUse1") for name in ("_", "aten"))
    others.fallback(torch.library.fallthrough_kernel)
    for name in LOWERED:
        products.impl(name, partial(lowered, getattr(aten, name).default))
    LIBRARIES.extend([others, products])
    return torch.device(NAME, 0)


LIBRARIES: list[Any] = []
"""What they register ends with them."""


class DeviceModule:
    """What torch looks for in the module of a device kind."""

    def is_available(self) -> bool:
        return True

    def is_initialized(self) -> bool:
        return True

    def device_count(self) -> int:
        return 1

    def current_device(self) -> int:
        return 0

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.bfloat16]

    def _is_in_bad_fork(self) -> bool:
        return False

    def manual_seed_all(self, seed: int) -> None:
        """There is no generator of its own."""


def lowered(operation: Any, *args: Any, **kwargs: Any) -> Any:
    """An operation under autocast."""

    def cast(value: Any) -> Any:
        full = isinstance(value, Tensor) and value.dtype == torch.float32
        return value.to(torch.get_autocast_dtype(NAME)) if full else value

    key = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastPrivateUse1)
    with torch._C._ExcludeDispatchKeyGuard(key):
        return operation(*tree_map(cast, args), **tree_map(cast, kwargs))


class OnGpu(Tensor):
    """``held`` are its values."""

    held: Tensor

    @staticmethod
    def __new__(cls, held: Tensor) -> OnGpu:
        layout = {"strides": held.stride(), "storage_offset": held.storage_offset(), "dtype": held.dtype}
        return Tensor._make_wrapper_subclass(cls, held.shape, device=registered(), requires_grad=False, **layout)

    def __init__(self, held: Tensor) -> None:
        self.held = held

    def __repr__(self) -> str:
        return f"OnGpu({self.held!r})"

    def __tensor_flatten__(self) -> tuple[list[str], None]:
        return ["held"], None

    @staticmethod
    def __tensor_unflatten__(tensors: dict[str, Tensor], *_: Any) -> OnGpu:
        return OnGpu(tensors["held"])

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return carried_out(func, args, kwargs or {})


class OnDispatch(TorchDispatchMode):
    """Also what is called without a tensor on the GPU, as factories are."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return carried_out(func, args, kwargs or {})


class OnCall(TorchFunctionMode):
    """Calls that never come to dispatch, or that look for a driver before."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        own = bool(args) and isinstance(args[0], OnGpu)
        if own and func is Tensor.tolist:
            return args[0].held.tolist()
        if own and func is Tensor.untyped_storage:
            return args[0].held.untyped_storage()
        if own and func is Tensor.data.__set__:
            with torch._C.DisableTorchFunctionSubclass():
                func(*args)
            args[0].held = args[1].held
            return None
        if own and func is Tensor.__setitem__:
            refuse_mixed(aten.index_put_.default, (args[0], None, args[2]), {})
            args[0].held[tree_map(held, args[1])] = held(args[2])
            return None
        if func is Tensor.to:
            return moved(args, kwargs)
        if func is torch.tensor and (device := kwargs.pop("device", None)) is not None:
            return torch.tensor(*args, **kwargs).to(device)
        return func(*args, **kwargs)


def moved(args: Any, kwargs: dict[str, Any]) -> Tensor:
    """``Tensor.to``."""
    tensor, (device, dtype) = args[0], parsed(args[1:], kwargs)
    if device is None or device.type != NAME:
        found: Tensor = tensor.to(*args[1:], **kwargs)
        return found
    if isinstance(tensor, OnGpu):
        return tensor.to(dtype=dtype)
    return OnGpu(tensor.detach().to(dtype or tensor.dtype, copy=True))


def parsed(args: Any, kwargs: dict[str, Any]) -> tuple[torch.device | None, torch.dtype | None]:
    """Device and dtype of the arguments of ``Tensor.to``."""
    device, dtype = kwargs.get("device"), kwargs.get("dtype")
    for value in args:
        if isinstance(value, Tensor):
            device, dtype = value.device, value.dtype
        elif isinstance(value, torch.dtype):
            dtype = value
        elif isinstance(value, (str, torch.device)):
            device = value
    return (None if device is None else torch.device(device)), dtype


def carried_out(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """An operation on what the tensors hold."""
    refuse_mixed(func, args, kwargs)
    device = kwargs.get("device")
    here = kwargs if device is None else {**kwargs, "device": torch.device("cpu")}
    found = func(*tree_map(held, args), **tree_map(held, here))
    if func is aten.copy_.default:
        return args[0]
    on_gpu = any(isinstance(one, OnGpu) for one in tree_leaves((args, kwargs)))
    if torch.device(device).type != NAME if device is not None else not on_gpu:
        return found
    return return_and_correct_aliasing(func, args, kwargs, tree_map(put, found))


def held(value: Any) -> Any:
    return value.held if isinstance(value, OnGpu) else value


def put(value: Any) -> Any:
    return OnGpu(value) if isinstance(value, Tensor) and not isinstance(value, OnGpu) else value


def refuse_mixed(func: Any, args: Any, kwargs: dict[str, Any]) -> None:
    """Raise as torch does where tensors are on two devices."""
    if func in BETWEEN_DEVICES:
        return
    looked = (args[0], *args[2:]) if func in INDEXED and isinstance(args[0], OnGpu) else args
    tensors = [one for one in tree_leaves((looked, kwargs)) if isinstance(one, Tensor)]
    scalars = torch.Tag.pointwise in func.tags
    there = [one for one in tensors if isinstance(one, OnGpu)]
    here = [one for one in tensors if not isinstance(one, OnGpu) and not (scalars and one.dim() == 0)]
    if there and here:
        shapes = [[tuple(one.shape) for one in some] for some in (there, here)]
        raise RuntimeError(
            f"expected all tensors on one device: {func} has {shapes[0]} on the GPU and {shapes[1]} on the CPU"
        )
