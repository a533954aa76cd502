"""Code and its tests: what passes, what must not, and what code cannot do to get there."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from components.config.answers import CodeVerifier
from components.config.sandbox import SandboxSettings
from components.rewards.code.tests import read_tests
from components.rewards.sandbox import Sandbox
from components.types import Prompt

TESTS = """import math
assert square(3) == 9
assert square(-2) == 4
assert 0 == square(0)
assert math.isclose(square(0.5), 0.25)"""
RIGHT = "def square(x):\n    return x * x"
HALF = "def square(x):\n    return x * 3"  # two of four


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(CodeVerifier(kind="code", seconds=2, score="share"), SandboxSettings(timeout=30)) as sandbox:
        yield sandbox


def score(sandbox: Sandbox, code: str, tests: str = TESTS) -> float | None:
    text = f"It is simple:\n```python\n{code}\n```\n"
    [found] = sandbox.judge([(Prompt("p", "?", tests, ""), text)])
    assert found.unscorable is None
    return found.accuracy


@pytest.mark.parametrize(
    ("code", "share"),
    [
        (RIGHT, 1.0),
        (HALF, 0.5),
        ("def square(x):\n    return 9", 0.25),
        ("def cube(x):\n    return 9", 0.0),
        ("def square(x)\n    return x * x", 0.0),
        (f"print('noise')\n{RIGHT}\nraise ValueError", 1.0),  # what was defined before can be tested
        (f"import collections, itertools, re\n{RIGHT}", 1.0),
    ],
)
def test_the_share_of_tests_that_hold(sandbox, code, share):
    assert score(sandbox, code) == share


@pytest.mark.parametrize(
    "code",
    [
        "import sys; sys.exit(0)",
        "import os; os._exit(0)",
        "raise SystemExit(0)",
        "print('4 passed'); print(True)",
        "def square(x):\n    import os; os._exit(0)",
        "def square(x):\n    import sys; sys.exit(0)",
        "class Any:\n    __eq__ = lambda s, o: True\n    __hash__ = None\ndef square(x): return Any()",
        "class Any(int):\n    __eq__ = lambda s, o: True\n    __hash__ = None\ndef square(x): return Any(7)",
        "class Any(float):\n    __repr__ = lambda s: '9'\ndef square(x): return Any(7)",
        "import builtins\nbuiltins.compile = lambda *a, **k: 'True'\nbuiltins.eval = lambda *a, **k: True",
        "import builtins\nbuiltins.repr = lambda v: '9'\nbuiltins.AssertionError = None",
        "import os\nfor n in range(4): os.write(3, b'%d 9\\n' % n)\nos._exit(0)",
        "import ast\nast.literal_eval = lambda t: ['x', '', 'True']",
        "import sys\nf = sys._getframe()\nwhile f.f_back: f = f.f_back\nx = [v.f_locals for v in [f]]",
        "def square(x):\n    while True: pass",
        "def square(x):\n    import time; time.sleep(100)",
        "while True: pass",
        "def square(x): return square(x)",
        "x = bytearray(10**11)",
        "x = 9**9**9",
        "(" * 5000,
        "\x00",
        "def square(x):\n    return '\\ud800'",
    ],
)
def test_code_that_does_not_square_does_not_pass(sandbox, code):
    assert score(sandbox, code) == 0.0
    assert score(sandbox, RIGHT) == 1.0


CANNOT = {
    "socket": "import socket; socket.socket()",
    "fork": "import os; os.fork()",
    "exec": "import os; os.execv('/bin/true', ['true'])",
    "subprocess": "import subprocess; subprocess.run(['/bin/true'])",
    "thread": "import _thread; _thread.start_new_thread(print, ())",
    "kill": "import os; os.kill(os.getppid(), 9)",
    "write": "open('x', 'w')",
    "write elsewhere": "open('/tmp/evenkeel-x', 'w')",
    "append": "open('/tmp/evenkeel-x', 'a')",
    "remove": "import os; os.remove('/tmp/evenkeel-x')",
    "folder": "import os; os.mkdir('/tmp/evenkeel-y')",
    "move": "import os; os.rename('/tmp', '/tmp-x')",
    "raise limits": "import resource; resource.setrlimit(resource.RLIMIT_CPU, (100, 100))",
}


@pytest.mark.parametrize("name", CANNOT)
def test_code_cannot(sandbox, name):
    body = "\n        ".join(CANNOT[name].split("; "))
    code = f"""
def tried():
    try:
        {body}
    except (OSError, RuntimeError, ValueError) as error:
        return str(error)
    return "done"
"""
    tests = "assert any(word in tried() for word in ('not permitted', 'not allowed', 'start new thread'))"
    assert score(sandbox, code, tests) == 1.0


def test_code_sees_no_environment_an_empty_folder_and_none_of_the_expected_values(sandbox):
    code = """
import gc, os
def environment(): return dict(os.environ)
def folder(): return os.listdir(".")
def known(): return any("31337" + "42" in str(o) for o in gc.get_objects() if isinstance(o, (str, dict, list)))
"""
    tests = "assert environment() == {}\nassert folder() == []\nassert known() == False\nassert 1 + 1 == 3133742"
    assert score(sandbox, code, tests) == 0.75


def test_all_tests_or_nothing():
    with Sandbox(CodeVerifier(kind="code"), SandboxSettings(workers=1)) as sandbox:
        assert [score(sandbox, code) for code in (RIGHT, HALF)] == [1.0, 0.0]


@pytest.mark.parametrize("reference", ["", "square(3)", "assert", "def check(f):\n    assert f(1) == 1"])
def test_a_reference_without_tests_is_refused(sandbox, reference):
    [found] = sandbox.judge([(Prompt("p", "?", reference, ""), f"```python\n{RIGHT}\n```")])
    assert (found.unscorable or "").startswith("refused: the reference")


def test_a_text_without_code_is_wrong(sandbox):
    [found] = sandbox.judge([(Prompt("p", "?", TESTS, ""), "def square(x): return x * x")])
    assert found.accuracy == 0.0


def test_an_equality_with_a_literal_keeps_the_literal_out_of_the_child():
    found = read_tests("x = 1\nassert f(2) == [4, {'a': None}]\nassert (1, 2) == g()\nassert f(3) > 2")
    assert found.setup == "x = 1"
    assert [(test.expression, test.wanted) for test in found.tests] == [
        ("f(2)", [4, {"a": None}]), ("g()", (1, 2)), ("not not (f(3) > 2)", True),
    ]  # fmt: skip


PLAIN = ("None", "True", "-1", "1.5", "'é\\n'", "b'x'", "2j", "{1, 2}", "[]", "(1,)", "{'a': [1]}")
OTHERS = [("float('inf')", "1e999"), ("frozenset({1})", "{1}"), ("np.int64(4)", "4"), ("np.bool_(True)", "True")]
OTHERS += [("np.float32(0.5)", "0.5"), ("[np.int8(1)]", "[1]")]


@pytest.mark.parametrize(("value", "literal"), [*zip(PLAIN, PLAIN, strict=True), *OTHERS])
def test_values_of_every_plain_type_come_back_and_scalars_of_numpy_equal_them(sandbox, value, literal):
    imports = "import numpy as np\n" if "np." in value else ""
    assert score(sandbox, f"{imports}def f(): return {value}", f"assert f() == {literal}") == 1.0


def test_memory_is_capped_below_what_the_machine_has(sandbox):
    code = "def f():\n    try:\n        return len(bytearray(700 * 2**20))\n    except MemoryError:\n        return -1"
    assert score(sandbox, code, "assert f() == -1") == 1.0


@pytest.mark.parametrize(
    "code",
    [
        "from __future__ import annotations\n" + RIGHT,
        "def f(a: int): pass\ndef square(x): return x * x * (f.__annotations__['a'] is int)",
        "import dataclasses\n@dataclasses.dataclass\nclass A:\n    x: float\ndef square(x): return A(x).x ** 2",
        "from typing import NamedTuple\nclass A(NamedTuple):\n    x: int\ndef square(x): return A(x).x ** 2",
        "import pickle\nclass A: pass\ndef square(x): return x * x * isinstance(pickle.loads(pickle.dumps(A())), A)",
        "import numpy as np\ndef square(x): return int(np.int64(x) ** 2) if x != 0.5 else 0.25",
        "import numpy as np\ndef square(x): return np.float64(x) ** 2",
        "import numpy as np\ndef square(x): return (np.arange(3) @ np.eye(3))[1] * np.int64(4 * x) * x / 4",
        "import random, heapq, json, decimal, datetime, statistics, asyncio, threading, time\n" + RIGHT,
        "import zoneinfo, sqlite3, ctypes, hashlib\nzoneinfo.ZoneInfo('UTC')\n" + RIGHT,
    ],
)
def test_ordinary_code_runs(sandbox, code):
    assert score(sandbox, code) == 1.0


def test_a_child_is_cheap():
    with Sandbox(CodeVerifier(kind="code"), SandboxSettings(workers=1)) as sandbox:
        score(sandbox, RIGHT)
        began = time.monotonic()
        scores = sandbox.judge([(Prompt("p", "?", TESTS, ""), f"```python\n{RIGHT}\n```")] * 20)
        assert time.monotonic() - began < 10
    assert [found.accuracy for found in scores] == [1.0] * 20
