"""What code of a policy cannot do to other processes, read, or leave behind. Every victim is a process of the test."""

from __future__ import annotations

import json
import os
import platform
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from components.config.answers import CodeVerifier
from components.config.sandbox import SandboxSettings
from components.rewards import build_verifier, privileges
from components.rewards.code import child, template
from components.rewards.sandbox import Sandbox
from components.rewards.worker import judge as answer
from components.types import Prompt, Score

COLUMN = {"x86_64": 0, "aarch64": 1}.get(platform.machine())
pytestmark = pytest.mark.skipif(COLUMN is None or sys.platform != "linux", reason="seccomp filters of these machines")
needs_landlock = pytest.mark.skipif(privileges.landlock_version() == 0, reason="this kernel has no Landlock")
GOOD = "def f(): return 'done'"
DONE = "assert f() == 'done'"


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(CodeVerifier(kind="code", seconds=5), SandboxSettings(timeout=30, workers=1)) as sandbox:
        yield sandbox


@pytest.fixture
def victim() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
    yield process
    process.kill()
    process.wait()


def judge(sandbox: Sandbox, code: str, tests: str = DONE) -> Score:
    [found] = sandbox.judge([(Prompt("p", "?", tests, ""), f"```python\n{code}\n```")])
    return found


CALLS = {  # (x86_64, aarch64), arguments; {0} is the number of the victim
    "rt_tgsigqueueinfo": ((297, 240), "{0}, {0}, 9, ctypes.byref(signal_info)"),
    "fcntl F_SETOWN": ((72, 25), "pipe[0], 8, {0}"),
    "fcntl F_SETSIG": ((72, 25), "pipe[0], 10, 9"),
    "fcntl F_SETOWN_EX": ((72, 25), "pipe[0], 15, (ctypes.c_int * 2)(1, {0})"),
    "fcntl F_SETFL O_ASYNC": ((72, 25), "pipe[0], 4, 0o20000"),
    "ioctl FIOSETOWN": ((16, 29), "pipe[0], 0x8901, ctypes.byref(ctypes.c_int({0}))"),
    "ioctl SIOCSPGRP": ((16, 29), "pipe[0], 0x8902, ctypes.byref(ctypes.c_int({0}))"),
    "ioctl FIOASYNC": ((16, 29), "pipe[0], 0x5452, ctypes.byref(ctypes.c_int(1))"),
    "setpriority": ((141, 140), "0, {0}, 15"),
    "sched_setaffinity": ((203, 122), "{0}, 8, ctypes.byref(ctypes.c_ulong(1))"),
    "sched_setscheduler": ((144, 119), "{0}, 3, ctypes.byref(ctypes.c_int(0))"),
    "sched_setparam": ((142, 118), "{0}, ctypes.byref(ctypes.c_int(0))"),
    "sched_setattr": ((314, 274), "{0}, (ctypes.c_uint * 12)(48, 3), 0"),
    "ioprio_set": ((251, 30), "1, {0}, 3 << 13"),
    "prlimit64 of another": ((302, 261), "{0}, 0, 0, (ctypes.c_ulong * 2)()"),
    "prlimit64 sets": ((302, 261), "0, 4, (ctypes.c_ulong * 2)(0, 0), 0"),
    "shmget": ((29, 194), "0x5eed, 4096, 0o1600"),
    "msgget": ((68, 186), "0x5eed, 0o1600"),
    "semget": ((64, 190), "0x5eed, 1, 0o1600"),
    "mq_open": ((240, 180), "b'evenkeel-x', 0o100 | 2, 0o600, 0"),
    "add_key": ((248, 217), "b'user', b'evenkeel', b'x', 1, -4"),
    "keyctl": ((250, 219), "0, -4, 0"),
    "setxattr": ((188, 5), "b'/tmp', b'user.x', b'x', 1, 0"),
    "utimensat": ((280, 88), "-100, b'/tmp', 0, 0"),
    "flock": ((73, 32), "pipe[0], 2"),
    "perf_event_open": ((298, 241), "0, {0}, -1, -1, 0"),
    "pidfd_open": ((434, 434), "{0}, 0"),
    "process_vm_readv": ((310, 270), "{0}, 0, 0, 0, 0, 0"),
    "process_madvise": ((440, 440), "3, 0, 0, 0, 0"),
    "kcmp": ((312, 272), "{0}, {0}, 0, 0, 0"),
    "userfaultfd": ((323, 282), "0"),
    "bpf": ((321, 280), "0, 0, 0"),
    "memfd_create": ((319, 279), "b'x', 0"),
    "open_by_handle_at": ((304, 265), "-100, 0, 0"),
    "fsopen": ((430, 430), "b'tmpfs', 0"),
    "clock_settime": ((227, 112), "0, 0"),
    "prctl": ((157, 167), "4, 1, 0, 0, 0"),
    "wait4": ((61, 260), "-1, 0, 1, 0"),
    "a call of tomorrow": ((999, 999), ""),
}
TRY = """
import ctypes, os
def f():
    class Info(ctypes.Structure):
        _fields_ = [(name, ctypes.c_int) for name in ("signal", "error", "code")] + [("pad", ctypes.c_int * 29)]
    pipe, signal_info = os.pipe(), Info(9, 0, -1)
    libc = ctypes.CDLL(None, use_errno=True)
    found = libc.syscall(NUMBER, ARGUMENTS)
    return (found, ctypes.get_errno())
"""


def _try(name: str, pid: int) -> str:
    numbers, arguments = CALLS[name]
    return TRY.replace("NUMBER", str(numbers[COLUMN or 0])).replace("ARGUMENTS", arguments.format(pid))


@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_reaches_others_or_outlives_the_item_is_refused(sandbox, victim, name):
    before = resource.prlimit(victim.pid, resource.RLIMIT_CORE), os.getpriority(os.PRIO_PROCESS, victim.pid)
    assert judge(sandbox, _try(name, victim.pid), "assert f() == (-1, 1)") == Score(1.0, metrics={"tests_passed": 1.0})
    assert victim.poll() is None
    assert before == (
        resource.prlimit(victim.pid, resource.RLIMIT_CORE), os.getpriority(os.PRIO_PROCESS, victim.pid),
    )  # fmt: skip
    assert os.sched_getaffinity(victim.pid) == os.sched_getaffinity(0)


FORBIDDEN = {
    "its own state": "/proc/self/status",
    "memory of its parent": "/proc/{parent}/mem",
    "handles of its parent": "/proc/{parent}/fd/0",
    "processes": "/proc",
    "accounts": "/etc/passwd",
    "the root": "/",
    "temporary files": tempfile.gettempdir(),
    "this file": __file__,
    "up from its folder": "..",
}


@needs_landlock
@pytest.mark.parametrize("name", FORBIDDEN)
def test_code_cannot_read_what_is_not_the_python_installation(sandbox, name):
    code = f"""
import os
def f():
    try:
        os.close(os.open({FORBIDDEN[name]!r}.format(parent=os.getppid()), os.O_RDONLY))
    except OSError as error:
        return type(error).__name__
"""
    assert judge(sandbox, code, "assert f() == 'PermissionError'").accuracy == 1.0


STEAL = """
import os, re
def parent(pid): return int(re.search(r"PPid:\\s*(\\d+)", open(f"/proc/{pid}/status").read())[1])
def f():
    worker, pattern = parent(os.getppid()), re.compile(rb"zqpre([0-9a-f]{12})zqpost")
    memory = open(f"/proc/{worker}/mem", "rb", buffering=0)
    for line in open(f"/proc/{worker}/maps"):
        span, rights, *_ = line.split()
        begin, end = (int(part, 16) for part in span.split("-"))
        if "rw" in rights and end - begin < 1 << 27:
            try:
                memory.seek(begin)
                found = pattern.search(memory.read(end - begin))
            except OSError:
                continue
            if found:
                return found[0].decode()
"""


def test_the_expected_value_cannot_be_read_from_the_worker(sandbox):
    wanted = f"zqpre{os.urandom(6).hex()}zqpost"
    assert judge(sandbox, STEAL, f"assert f() == {wanted!r}").accuracy == 0.0


def test_without_landlock_the_worker_still_cannot_be_looked_into_and_ordinary_code_runs(tmp_path):
    path = tmp_path / "worker.py"
    path.write_text(
        "from components.rewards import privileges, worker\n"
        "privileges.landlock_version = lambda: 0\nworker.serve(worker._from_settings)\n"
    )
    command = (sys.executable, str(path))
    with Sandbox(CodeVerifier(kind="code", seconds=5), SandboxSettings(workers=1), command=command) as sandbox:
        wanted = f"zqpre{os.urandom(6).hex()}zqpost"
        assert judge(sandbox, STEAL, f"assert f() == {wanted!r}").accuracy == 0.0
        assert judge(sandbox, "def f(): return len(open('/proc/self/maps').read()) > 0", "assert f()").accuracy == 1.0


def test_the_requests_of_other_items_cannot_be_taken_from_the_worker(sandbox):
    thief = (
        "import os\nworker = int(open(f'/proc/{os.getppid()}/stat').read().rpartition(')')[2].split()[1])\n"
        "handle = os.open(f'/proc/{worker}/fd/0', os.O_RDONLY | os.O_NONBLOCK)\n"
        "while os.read(handle, 65536): pass\n"
    )
    padded = "#" + "x" * 3000 + "\n" + GOOD
    texts = [thief, *[padded] * 20]
    found = sandbox.judge([(Prompt("p", "?", DONE, ""), f"```python\n{code}\n```") for code in texts])
    assert [score.accuracy for score in found] == [0.0, *[1.0] * 20]


def test_the_template_has_no_capabilities_can_gain_none_and_is_hidden():
    verifier = build_verifier(CodeVerifier(kind="code"))
    verifier.prepare()
    pid = verifier._template.pid
    lines = dict(line.split(":\t") for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    verifier._template.close()
    assert {int(lines[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")} == {0}
    assert lines["NoNewPrivs"] == "1" or privileges.landlock_version() == 0


def test_a_hidden_process_is_closed_to_a_process_of_the_same_user_without_capabilities():
    code = "from components.rewards.privileges import hide; hide(); print(flush=True); input()"
    look = (
        "import sys; from components.rewards.privileges import drop_capabilities; drop_capabilities()\n"
        "try: open(f'/proc/{sys.argv[1]}/mem', 'rb')\nexcept PermissionError: print('refused')"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout and process.stdout.readline() == b"\n"
        looked = subprocess.run([sys.executable, "-c", look, str(process.pid)], capture_output=True, check=True)
        process.communicate(b"\n")
    assert looked.stdout == b"refused\n"


def test_no_temporary_folder_is_an_error_and_not_a_wrong_answer(monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", "/nonexistent")
    verifier = build_verifier(CodeVerifier(kind="code"))
    with pytest.raises(RuntimeError, match=r"template process was not confined: FileNotFoundError.*nonexistent"):
        verifier.prepare()


def _fail(error: Exception) -> Callable[..., None]:
    def fail(*_: object) -> None:
        raise error

    return fail


@pytest.mark.parametrize(
    ("place", "replacement", "reason"),
    [
        ("install_compute_only_filter", _fail(RuntimeError("no filter today")), "RuntimeError: no filter today"),
        ("resource.setrlimit", _fail(ValueError("not allowed")), "ValueError: not allowed"),
        ("_confine", lambda _: os._exit(0), "its process was not confined"),
    ],
)
def test_a_child_that_could_not_be_confined_makes_its_item_unscorable(monkeypatch, place, replacement, reason):
    monkeypatch.setattr(f"components.rewards.code.child.{place}", replacement)
    reply = _answer(build_verifier(CodeVerifier(kind="code")))
    assert reply == {"unscorable": f"error: RuntimeError: the code was not run: {reason}"}


def _answer(verifier: object) -> dict[str, str]:
    prompt = {"id": "p", "text": "?", "answer": DONE, "solution": ""}
    return answer(verifier, json.dumps({"prompt": prompt, "text": f"```python\n{GOOD}\n```"}).encode())


def test_a_template_that_died_costs_one_item_and_leaves_no_handle_and_no_zombie():
    verifier, prompt = build_verifier(CodeVerifier(kind="code")), Prompt("p", "?", DONE, "")
    text = verifier.wrap(GOOD)
    assert verifier.accuracy(prompt, text) == 1.0
    handles, dead = _handles(os.getpid()), []
    for _ in range(3):
        dead.append(verifier._template.pid)
        os.kill(dead[-1], signal.SIGKILL)
        with pytest.raises((OSError, RuntimeError)):
            verifier.accuracy(prompt, text)
        assert verifier.accuracy(prompt, text) == 1.0
    assert _handles(os.getpid()) == handles
    assert not any(Path(f"/proc/{pid}").exists() for pid in dead)
    verifier._template.close()


def test_tests_that_a_child_never_read_leave_no_handle_in_the_template():
    made = template.Template(child.Limits(5, 512))
    long = ["f()" + " " * 100_000]
    made.run("import os\nos._exit(0)", ["secret", "", *long])
    handles = _handles(made.pid)
    for _ in range(5):
        assert made.run("import os\nos._exit(0)", ["secret", "", *long]) == []
    assert _handles(made.pid) == handles
    made.close()


def _handles(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))
