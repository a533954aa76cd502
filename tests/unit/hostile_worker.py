"""A worker process whose verifier does what the text says; run by `test_rewards_sandbox.py`."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import socket
import subprocess
import sys
import threading
import time
from typing import Any

from components.rewards.base import Judgement, Verifier
from components.rewards.worker import serve
from components.types import Prompt


class HostileVerifier(Verifier):
    def __init__(self) -> None:
        self.kept: list[bytearray] = []

    def accuracy(self, prompt: Prompt, text: str) -> float:
        action, _, argument = text.partition(" ")
        if action == "hang":
            while True:
                time.sleep(0.01)
        if action == "burn":
            while True:
                pass
        if action == "burn-in-c":
            return float(9**9**9 > 0)
        if action == "burn-in-thread":
            threading.Thread(target=lambda: 9**9**9, daemon=True).start()
            time.sleep(1000)
        if action == "socket":
            socket.socket(getattr(socket, argument))
        if action == "connect-by-number":  # with the system call itself, past whatever Python forbids
            ctypes.set_errno(0)
            ctypes.CDLL(None, use_errno=True).syscall({"x86_64": 41, "aarch64": 198}[platform.machine()], 2, 1, 0)
            return float(ctypes.get_errno() == errno.EPERM)
        if action == "write":
            path, size = argument.split()
            with open(path, "wb") as file:
                file.write(bytes(int(size)))
        if action == "keep":  # what a library with a cache does
            self.kept.append(bytearray(int(argument) * 2**20))
        if action == "pid":
            with open(argument, "a") as file:
                file.write(f"{os.getpid()}\n")
        if action == "spawn-and-hang":
            child = subprocess.Popen(["/bin/sleep", "1000"])
            with open(argument, "w") as file:
                file.write(str(child.pid))
            child.wait()
        if action == "raise":
            raise ValueError(argument)
        if action == "leave":
            sys.exit(0)
        if action == "die":
            os.kill(os.getpid(), 9)
        if action == "eat":
            return float(len(bytearray(4 * 2**30)) > 0)
        if action == "print":
            print('{"accuracy": 0.5}', flush=True)
            print("noise", file=sys.stderr, flush=True)
        if action == "environment":
            return float(argument in os.environ)
        return float(argument) if action == "return" else float(text == prompt.answer)

    def judge(self, prompt: Prompt, text: str) -> Judgement:
        action, _, argument = text.partition(" ")
        if action in ("part", "metric"):
            figures = {"named": float(argument)}
            return Judgement(0.5, figures) if action == "part" else Judgement(0.5, metrics=figures)
        return super().judge(prompt, text)


def build(settings: dict[str, Any]) -> Verifier:
    if settings["marker"] == "broken":
        raise RuntimeError("no such model")
    return HostileVerifier()


if __name__ == "__main__":
    serve(build)
