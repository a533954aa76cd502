"""Calls that wait for servers: in an event loop beside the run, and in threads that nobody has to wait for."""

from __future__ import annotations

import asyncio
import threading

import pytest

from components.rollout.servers.background import Background, in_a_thread


def test_a_call_in_a_thread_gives_its_result_and_its_error():
    async def run() -> None:
        assert await in_a_thread(lambda: threading.current_thread().daemon) is True
        with pytest.raises(ZeroDivisionError):
            await in_a_thread(lambda: 1 / 0)

    asyncio.run(run())


def test_any_number_of_calls_that_were_given_up_hold_up_no_other_one():
    for_ever = threading.Event()

    async def run() -> str:
        for _ in range(50):
            in_a_thread(for_ever.wait).cancel()
        return await asyncio.wait_for(asyncio.to_thread(lambda: "done"), 5)

    try:
        assert asyncio.run(run()) == "done"
    finally:
        for_ever.set()


def test_a_result_that_comes_when_nobody_waits_any_more_is_dropped():
    late, begun = threading.Event(), threading.Event()
    loop = Background()

    async def run() -> None:
        in_a_thread(lambda: (begun.set(), late.wait()))

    loop.run(run())
    begun.wait(5)
    (thread,) = [one for one in threading.enumerate() if one.name == "in-a-thread"]
    loop.close()
    late.set()
    thread.join(5)
    assert not thread.is_alive()
