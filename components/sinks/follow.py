"""Follows a run in threads, one a sink, so that none waits for another."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from secrets import token_hex

from components.config import Settings
from components.errors import InputError
from components.files import read_text, write_text
from components.layout import Layout
from components.sinks import SINKS, chosen_sinks
from components.sinks.base import Run
from components.sinks.delivery import Delivery, Say
from components.sinks.feed import TABLES, Feed, translator
from components.sinks.prometheus import Prometheus

POLL = 0.5
"""Seconds between two looks at the log."""
LATE = 60.0
"""Seconds without an answer after which a sink is reported."""


class Follower:
    """The threads. They are daemons: one that hangs keeps no process alive."""

    def __init__(self, deliveries: Sequence[Delivery], poll: float = POLL) -> None:
        self._deliveries, self._poll, self._over = deliveries, poll, threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(one,), name=f"sink-{one.name}", daemon=True) for one in deliveries
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def end(self, seconds: float) -> list[str]:
        """Send what is left, for at most so long; returns the names of sinks that did not get ready."""
        self._over.set()
        deadline = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        pairs = zip(self._deliveries, self._threads, strict=True)
        return [one.name for one, thread in pairs if thread.is_alive() or one.failing]

    def late(self) -> list[str]:
        """Names of sinks that have not answered for `LATE` seconds."""
        now = time.monotonic()
        return [one.name for one in self._deliveries if now - (one.busy_since or now) > LATE]

    def _run(self, delivery: Delivery) -> None:
        while not self._over.is_set():
            if not delivery.attempt():
                self._over.wait(self._poll)
        while delivery.attempt(last=True):
            pass
        delivery.close()


def deliveries(settings: Settings, layout: Layout, say: Say) -> Iterator[Delivery]:
    """One for each sink that is on, from where it was."""
    folder = layout.state / "sinks"
    key = folder / "key"
    if not key.exists():
        write_text(key, token_hex(4))
    run = Run(layout.root.resolve().name, read_text(key), layout.root, dict(parameters(settings)))
    for name, section in chosen_sinks(settings):
        try:
            chosen = SINKS.choose(section)
        except InputError as error:
            say(f"{name} is off: {error}")
            continue
        own = chosen.settings
        completions, names = getattr(own, "completions", True), getattr(own, "names", "trl")
        tables = max(1, settings.train.steps // TABLES) if completions else 0
        feed = partial(Feed, layout, translator(names), tables)
        yield Delivery(name, partial(chosen, run), feed, folder / f"{name}.json", say)


def parameters(tree: Settings) -> Iterator[tuple[str, str | float]]:
    """The settings of a run by dotted name, without the health rules, which are a file of their own, and sinks."""
    yield from _leaves(tree.model_dump(mode="json", exclude={"health": {"rules"}, "sinks": True}), "")


def _leaves(tree: dict[str, object], path: str) -> Iterator[tuple[str, str | float]]:
    for name, value in tree.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{path}{name}.")
        elif isinstance(value, str | int | float):
            yield f"{path}{name}", value
        else:
            yield f"{path}{name}", json.dumps(value)


@contextmanager
def exported(settings: Settings, layout: Layout, say: Say) -> Iterator[None]:
    """Serve Prometheus while the training inside the block works, if `health.prometheus` is on.

    Raises:
        InputError: the port is taken, or the file cannot be written.
    """
    own = settings.health.prometheus
    if own.port is None and own.textfile is None:
        yield
        return
    run = Run(layout.root.resolve().name, "", layout.root)
    start = partial(Prometheus, run, own, settings.health.rules)
    feed = partial(Feed, layout, lambda signals: {}, 0, repeats=0)
    delivery = Delivery("health.prometheus", start, feed, None, say)
    delivery.open()
    follower = Follower([delivery])
    follower.start()
    try:
        yield
    finally:
        follower.end(5.0)
