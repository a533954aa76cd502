"""Whom a grave verdict calls. A call that fails is reported and never ends the watch."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from collections.abc import Callable
from typing import Any

import httpx
import psutil

from components.errors import InputError
from components.files import dump_json

SECONDS = 30.0
"""After which a webhook or a command has failed."""
Call = Callable[[dict[str, Any]], str]
"""Gets a verdict as JSON values; returns a sentence on what it did."""


def webhook(url: str) -> Call:
    """Post the verdict as JSON.

    Raises:
        InputError: it is no URL of HTTP.
    """
    if not url.startswith(("http://", "https://")):
        raise InputError("not a URL of a webhook", where="--webhook", how="begin it with https:// or http://")

    def call(verdict: dict[str, Any]) -> str:
        try:
            answer = httpx.post(url, json=verdict, timeout=SECONDS)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return f"the webhook failed: {type(error).__name__}: {error}"
        return f"the webhook answered {answer.status_code}"

    return call


def command(text: str) -> Call:
    """Run a command, without a shell, with the verdict as JSON on its standard input.

    Raises:
        InputError: its quotes do not match, or it is empty.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise InputError(f"not a command: {error}", where="--command", how="quote it as a shell needs it") from error
    if not words:
        raise InputError("an empty command", where="--command", how="name a program")

    def call(verdict: dict[str, Any]) -> str:
        try:
            ended = subprocess.run(words, input=dump_json(verdict).encode(), timeout=SECONDS, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"the command failed: {error}"
        return f"the command ended with {ended.returncode}"

    return call


def stop(pid: int) -> Call:
    """Send SIGTERM to a process, once, if it is still the one that it was at first: numbers are used again.

    Raises:
        InputError: there is no such process, or it is this one or the first one of the machine.
    """
    try:
        process = psutil.Process(pid)
    except (psutil.Error, ValueError, OverflowError) as error:
        raise InputError(f"no process {pid}: {error}", where="--stop", how="give the number of the trainer") from error
    if pid in (1, os.getpid()):
        raise InputError(f"process {pid} is not the trainer", where="--stop", how="give the number of the trainer")
    sent = False

    def call(verdict: dict[str, Any]) -> str:
        nonlocal sent
        if sent:
            return f"process {pid} was sent SIGTERM before"
        sent = True
        if not process.is_running():
            return f"process {pid} is gone"
        try:
            os.kill(pid, signal.SIGTERM)
        except OSError as error:
            return f"process {pid} cannot be stopped: {error}"
        return f"process {pid} was sent SIGTERM"

    return call
