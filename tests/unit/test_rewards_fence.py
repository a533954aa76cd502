"""The fence: clocks, memory, files and network of a worker, and that one item's failure touches no other."""

from __future__ import annotations

import struct
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from components.config.sandbox import SandboxSettings
from components.config.verifiers import ExactVerifier
from components.errors import EvenkeelError
from components.rewards.sandbox import Sandbox
from components.rewards.seccomp import (
    ALLOW,
    ALLOWED_FOR_CODE,
    ANY_BIT,
    CHECKED,
    EQUAL,
    LOAD,
    MACHINES,
    REFUSE,
    REFUSED_WITH_THE_NETWORK,
    RETURN,
    WRITES,
    X32,
    code_filter,
    network_filter,
)
from components.rewards.worker import CODES
from components.types import Score
from tests.unit.sandboxes import HOSTILE, RIGHT, WRONG, judge

CPU = "cpu: no verdict within the processor time of one item"


def fenced(**limits: float | int | str) -> Sandbox:
    chosen = {"timeout": 20, "cpu_seconds": 0.3, "memory_mb": 512, "workers": 2, **limits}
    return Sandbox(ExactVerifier(), SandboxSettings.model_validate(chosen), HOSTILE)


@pytest.fixture(scope="module")
def closed() -> Iterator[Sandbox]:
    """One worker, for what leaves it as it was: to start one takes half a second."""
    with fenced(workers=1) as sandbox:
        yield sandbox


@pytest.fixture(scope="module")
def roomy() -> Iterator[Sandbox]:
    with fenced(workers=1, memory_mb=4096) as sandbox:
        yield sandbox


@pytest.mark.parametrize("action", ["burn", "burn-in-c", "burn-in-thread"])
def test_processor_time_is_counted_wherever_it_is_spent_and_ends_before_the_wall_clock(roomy, action):
    judge(roomy, "42")
    began = time.monotonic()
    assert judge(roomy, action, "42", "41") == [Score(None, unscorable=CPU), RIGHT, WRONG]
    assert time.monotonic() - began < 20


def test_waiting_takes_no_processor_time_and_meets_the_wall_clock():
    with fenced(timeout=0.5, cpu_seconds=60) as sandbox:
        [score] = judge(sandbox, "hang")
    assert score.unscorable == "timeout: no verdict within 0.5 s"


@pytest.mark.skipif(sys.platform != "linux", reason="seccomp is Linux")
@pytest.mark.parametrize("family", ["AF_INET", "AF_INET6", "AF_UNIX", "AF_NETLINK"])
def test_no_socket_of_any_family_can_be_made(closed, family):
    first, second = judge(closed, f"socket {family}", "42")
    assert (first.unscorable, second) == ("error: PermissionError: [Errno 1] Operation not permitted", RIGHT)


@pytest.mark.skipif(sys.platform != "linux", reason="seccomp is Linux")
def test_the_system_call_itself_is_refused_and_only_the_setting_opens_it(closed):
    assert judge(closed, "connect-by-number") == [RIGHT]
    with fenced(workers=1, network="open") as opened:
        assert judge(opened, "connect-by-number") == [WRONG]


def test_where_there_can_be_no_fence_the_worker_does_not_start_and_says_which_setting_does_without(tmp_path):
    path = tmp_path / "worker.py"
    path.write_text(
        "import platform, sys\nplatform.machine = lambda: 'pdp11'\n"
        f"sys.path[:0] = [{str(Path(HOSTILE[1]).parent)!r}]\n"
        "import hostile_worker\nfrom components.rewards.worker import serve\nserve(hostile_worker.build)\n"
    )
    command = (sys.executable, str(path))
    with (
        Sandbox(ExactVerifier(), SandboxSettings(), command) as sandbox,
        pytest.raises(EvenkeelError, match=r"no network fence on linux pdp11: .* network: open"),
    ):
        judge(sandbox, "42")
    with Sandbox(ExactVerifier(), SandboxSettings(network="open"), command) as sandbox:
        assert judge(sandbox, "42") == [RIGHT]


def interpret(code: bytes, call: int, audit: int, arguments: dict[int, int] | None = None) -> int:
    """What the kernel's interpreter returns for one system call; ``arguments`` by their offset, 0 unless given."""
    lines, at, word = list(struct.iter_unpack("HBBI", code)), 0, 0
    while True:
        kind, yes, no, value = lines[at]
        at += 1
        if kind == RETURN:
            return value
        if kind == LOAD:
            word = {0: call, 4: audit, **(arguments or {})}.get(value, 0)
        else:
            true = {EQUAL: word == value, ANY_BIT: bool(word & value)}.get(kind, word >= value)
            at += yes if true else no


@pytest.mark.parametrize("name", MACHINES)
def test_the_filter_refuses_exactly_the_listed_calls_and_every_other_abi(name):
    column, audit = MACHINES[name]
    code = network_filter(name)
    refused = {call for call in range(512) if interpret(code, call, audit) == REFUSE}
    assert refused == {numbers[column] for numbers in REFUSED_WITH_THE_NETWORK.values()}
    assert interpret(code, 0, audit) == ALLOW
    assert interpret(code, 0, 0x40000003) == REFUSE  # 32 bit
    assert interpret(code, X32 | 1, audit) == REFUSE


@pytest.mark.parametrize("name", MACHINES)
def test_the_filter_for_code_allows_exactly_the_listed_calls(name):
    column, audit = MACHINES[name]
    code = code_filter(name)
    listed = {numbers[column] for numbers in (*ALLOWED_FOR_CODE.values(), *CHECKED.values())} - {None}
    with_a_fitting_command = {16 + 8: 0x5401} | {16 + 16: 0}
    allowed = {call for call in range(1024) if interpret(code, call, audit) == ALLOW}
    assert allowed == listed - {CHECKED["ioctl"][column]}
    assert interpret(code, CHECKED["ioctl"][column], audit, with_a_fitting_command) == ALLOW
    assert interpret(code, 0, 0x40000003) == REFUSE
    assert interpret(code, X32 | 1, audit) == REFUSE


@pytest.mark.parametrize("name", MACHINES)
def test_the_filter_for_code_lets_files_be_opened_for_reading_only(name):
    column, audit = MACHINES[name]
    for call, place in (("open", 1), ("openat", 2)):
        number = CHECKED[call][column]
        for flag in (1 << bit for bit in range(16) if number is not None):
            found = interpret(code_filter(name), number, audit, {16 + 8 * place: flag})
            assert (found == REFUSE) == bool(flag & WRITES)


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize(
    ("call", "arguments", "answer"),
    [
        *[("fcntl", {24: command}, ALLOW) for command in (0, 1, 2, 3, 1030)],
        *[("fcntl", {24: command}, REFUSE) for command in (4, 5, 6, 7, 8, 10, 15, 37, 38, 1024, 1026, 1031, 1033)],
        *[("ioctl", {24: command}, ALLOW) for command in (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)],
        *[("ioctl", {24: command}, REFUSE) for command in (0, 0x5412, 0x5452, 0x8901, 0x8902, 0x8904)],
        ("prlimit64", {24: 7}, ALLOW),
        ("prlimit64", {16: 1}, REFUSE),
        ("prlimit64", {32: 4096}, REFUSE),
        ("prlimit64", {36: 1}, REFUSE),  # a pointer whose low half is zero
    ],
)
def test_the_filter_for_code_looks_at_arguments(name, call, arguments, answer):
    column, audit = MACHINES[name]
    assert interpret(code_filter(name), CHECKED[call][column], audit, arguments) == answer


def test_a_large_file_cannot_be_written(closed, tmp_path):
    texts = [f"write {tmp_path / 'small'} 1000", f"write {tmp_path / 'large'} 2000000", "42"]
    small, large, after = judge(closed, *texts)
    assert (small, after) == (WRONG, RIGHT)
    assert (large.unscorable or "").startswith("error: OSError: [Errno 27]")
    assert (tmp_path / "large").stat().st_size <= 2**20


def test_memory_that_earlier_items_took_is_not_held_against_a_later_one():
    with fenced(workers=1, cpu_seconds=10) as sandbox:
        *kept, too_much = judge(sandbox, "keep 300", "42", "keep 300", "keep 4000")
    assert [score.unscorable for score in kept] == [None] * 3
    assert too_much == Score(None, unscorable="memory: the verifier needs more than its limit")


def test_workers_are_kept_between_calls_and_replaced_only_after_a_failure(tmp_path):
    def pids() -> set[str]:
        return set((tmp_path / "pids").read_text().split())

    with fenced(workers=1) as sandbox:
        judge(sandbox, f"pid {tmp_path / 'pids'}")
        judge(sandbox, *[f"pid {tmp_path / 'pids'}"] * 3)
        assert len(pids()) == 1
        judge(sandbox, "burn", f"pid {tmp_path / 'pids'}")
        assert len(pids()) == 2


ACTIONS = st.sampled_from(["42", "42", "41", "41", "raise no", "die", "leave", "return 2", "part 0.5"])


@pytest.fixture(scope="module")
def three() -> Iterator[Sandbox]:
    with fenced(workers=3) as sandbox:
        yield sandbox


@settings(max_examples=3, deadline=None)
@given(st.lists(ACTIONS, max_size=12))
def test_scores_and_their_order_do_not_depend_on_the_number_of_workers(closed, three, texts):
    assert judge(closed, *texts) == judge(three, *texts)


def test_every_reason_begins_with_a_documented_code():
    texts = ["raise no", "die", "burn", "hang", "eat", "socket AF_INET", "return nan"]
    with fenced(timeout=5, workers=1) as sandbox:  # long enough that what burns meets its own limit on a busy machine
        reasons = [score.unscorable or "" for score in judge(sandbox, *texts)]
    assert {reason.partition(":")[0] for reason in reasons} <= CODES.keys()
    assert len(set(reasons)) == len(texts)
