"""What this process computes on, and in which precision: ``device`` of the settings, resolved here and nowhere else."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import nn

from components.config.base import ComputeDtype
from components.errors import InputError
from components.processes.environments import DEVICE


def own_device() -> torch.device:
    """This process's GPU, or the CPU; a rank has the GPU of its ``LOCAL_RANK``.

    On a GPU attention is not computed by cuDNN from here on: on Hopper its backward pass gives NaN for rows whose
    length is an odd multiple of 64 (PyTorch issue 196678; torch 2.11 and later take it by default).

    Raises:
        InputError: the settings require a GPU and there is none, or there are fewer than ranks on this machine.
    """
    kind, reachable = os.environ.get(DEVICE, "auto"), torch.cuda.is_available()
    if kind == "cuda" and not reachable:
        what = f"there is no GPU that torch {torch.__version__} reaches"
        how = "install a build of torch for the driver that `nvidia-smi` shows, or set device to auto or cpu"
        raise InputError(what, where="device", how=how)
    if kind == "cpu" or not reachable:
        return torch.device("cpu")
    number, count = int(os.environ.get("LOCAL_RANK", "0")), torch.cuda.device_count()
    if number >= count:
        what = f"rank {number} of this machine has no GPU of its own: torch sees {count}"
        raise InputError(what, where="device", how="lower learner.ranks.processes, or set device to cpu")
    device = torch.device("cuda", number)
    torch.cuda.set_device(device)
    torch.backends.cuda.enable_cudnn_sdp(False)
    return device


def computes_in(dtype: ComputeDtype, device: torch.device) -> torch.dtype:
    """The precision of products on a device."""
    if dtype == "auto":
        return torch.float32 if device.type == "cpu" else torch.bfloat16
    found: torch.dtype = getattr(torch, dtype)
    return found


def autocast(model: nn.Module, dtype: ComputeDtype = "auto") -> AbstractContextManager[object]:
    """Matrix products in ``dtype``, where the model is; weights stay as they are."""
    device = next(model.parameters()).device
    if computes_in(dtype, device) == torch.float32:
        return nullcontext()
    return torch.autocast(device.type, torch.bfloat16)
