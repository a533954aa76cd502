"""Calls that wait for servers: in an event loop in the background, and in threads that need not be joined."""

from __future__ import annotations

import asyncio
import threading

import pytest

from components.rollout.servers.background import Background, gathered, in_a_thread


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


def test_a_result_that_arrives_after_the_loop_was_closed_is_dropped():
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


@pytest.mark.parametrize("turns", range(6))
def test_a_cancellation_is_not_lost_where_a_call_fails_in_the_same_turn_of_the_loop(turns):
    """`asyncio.gather` loses it at one of these moments."""

    async def attempt(fault: asyncio.Future[None]) -> None:
        await gathered([asyncio.ensure_future(one) for one in (fault, asyncio.sleep(60))])

    async def run() -> None:
        fault = asyncio.get_running_loop().create_future()
        caller = asyncio.create_task(attempt(fault))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        fault.set_exception(ZeroDivisionError())
        for _ in range(turns):
            await asyncio.sleep(0)
        cancelled = caller.cancel()
        with pytest.raises(asyncio.CancelledError if cancelled else ZeroDivisionError):
            await caller

    asyncio.run(run())
