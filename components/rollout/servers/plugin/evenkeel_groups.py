"""Process groups of the run and a server. Also imported by the server, so it needs torch alone."""

from __future__ import annotations

import socket
from datetime import timedelta
from typing import Any

import torch
import torch.distributed

dist: Any = torch.distributed  # process groups apart from the global one have no type information


def own_address(host: str, port: int) -> str:
    """The address of this machine that ``host`` is reached from, IPv4 where there is a choice; nothing is sent.

    Raises:
        OSError: there is no such host, or no way to it.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)
    problem = OSError(f"no address of {host}")
    for family, kind, _, _, address in sorted(found, key=lambda one: one[0] != socket.AF_INET):
        try:
            with socket.socket(family, kind) as probe:
                probe.connect(address)
                return str(probe.getsockname()[0])
        except OSError as error:
            problem = error
    raise problem


def process_group(store: Any, rank: int, size: int, backend: str, host: str, timeout: timedelta) -> Any:
    """A group of ``size`` processes as its ``rank`` sees it, apart from any other that the process has.

    Args:
        backend: nccl, or gloo at the address ``host`` of this machine.
    """
    if backend == "nccl":
        options = dist.ProcessGroupNCCL.Options()
        options._timeout = timeout
        return dist.ProcessGroupNCCL(store, rank, size, options)
    options = dist.ProcessGroupGloo._Options()
    options._timeout = timeout
    options._devices = [dist.ProcessGroupGloo.create_device(hostname=host)]
    return dist.ProcessGroupGloo(store, rank, size, options)


def broadcast(group: Any, tensor: torch.Tensor, timeout: timedelta) -> None:
    """Send a tensor from rank 0, or fill it on the others. Waiting with a limit blocks over NCCL too."""
    options = dist.BroadcastOptions()
    options.rootRank = 0
    group.broadcast([tensor], options).wait(timeout)
