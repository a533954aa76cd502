"""A request to stop is heard where nothing would be lost, and nowhere else."""

from __future__ import annotations

import os
import signal
import threading
from concurrent.futures import Future
from contextlib import suppress

import pytest

from components.processes.stopping import Stopping, StopRequested


@pytest.fixture
def stopping() -> Stopping:
    return Stopping()


def terminate() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def test_a_signal_is_heard_at_once_and_handled_as_before_afterwards(stopping):
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(StopRequested), stopping.on_signal():
        terminate()
        pytest.fail("it was not heard")
    assert signal.getsignal(signal.SIGTERM) == before


def test_it_ends_what_the_process_waits_for(stopping):
    threading.Timer(0.1, terminate).start()
    with pytest.raises(StopRequested), stopping.on_signal():
        Future().result(timeout=20)


def test_where_it_would_do_harm_it_waits_for_the_next_place(stopping):
    done = []
    with pytest.raises(StopRequested), stopping.on_signal(), stopping.defer_signal():
        with stopping.stop_point():
            done.append("sampled")
        terminate()
        done.append("learned")
        with stopping.stop_point():
            done.append("sampled again")
    assert done == ["sampled", "learned"]


@pytest.mark.parametrize(("throughout", "done"), [(True, []), (False, ["sampled"])])
def test_inside_of_a_place_it_is_heard_if_the_place_says_so(stopping, throughout, done):
    found = []
    with pytest.raises(StopRequested), stopping.on_signal(), stopping.defer_signal():
        with stopping.stop_point(throughout=throughout):
            terminate()
            found.append("sampled")
        with stopping.stop_point(throughout=throughout):
            found.append("sampled again")
    assert found == done


def test_one_that_somebody_swallows_is_heard_at_the_end_of_the_place(stopping):
    with (
        pytest.raises(StopRequested),
        stopping.on_signal(),
        stopping.defer_signal(),
        stopping.stop_point(),
        suppress(BaseException),
    ):
        terminate()


def test_asked_again_it_is_left_to_finish(stopping):
    with stopping.on_signal(), stopping.defer_signal():
        with pytest.raises(StopRequested), stopping.stop_point():
            terminate()
        terminate()
        assert stopping.requested


def test_a_stop_can_be_requested_a_second_time(stopping):
    for _ in range(2):
        with pytest.raises(StopRequested), stopping.on_signal():
            terminate()
    with stopping.on_signal(), stopping.stop_point():
        assert not stopping.requested


def test_another_thread_may_ask_and_the_main_thread_hears_it(stopping):
    threading.Timer(0.1, stopping.request).start()
    with pytest.raises(StopRequested), stopping.on_signal():
        Future().result(timeout=20)


def test_outside_the_main_thread_signals_keep_their_handlers(stopping):
    before, found = signal.getsignal(signal.SIGTERM), []

    def work() -> None:
        with stopping.on_signal():
            found.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [before]
