"""Real servers that die, freeze, or lose a hand-over half way: nothing is lost, stale, or left over."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from components.errors import InputError
from components.policy.weights import weights_of
from components.processes.living import lives
from components.rollout.servers import local
from tests.unit.fake_vllm import until
from tests.vllm.tiny import GREEDY, LONG, engine_of, moved, processes, prompts, servers, tiny


def whole(engine, seconds=400):
    until(lambda: len(engine._fleet.serving) == len(servers(engine)), seconds)


def kill(server):
    for process in processes(server)[1:]:
        process.kill()


def test_a_server_killed_in_the_middle_of_its_work_loses_nothing_and_is_replaced(pair):
    own = tiny()
    victim = servers(pair)[0]
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(pair.generate, prompts(own, 24), LONG)
        until(lambda: len(victim.calls) > 0)
        time.sleep(0.5)
        kill(victim)
        groups = future.result()
    assert [len(group) for group in groups] == [8] * 24
    whole(pair)
    assert "no connection" in victim.said or "drained" in victim.said or "ended" in victim.said
    pair.load_weights(moved(own))
    groups = pair.generate(prompts(own, 24), GREEDY)
    assert {version for (one,) in groups for version in one.versions} == {pair.version}


def test_a_server_that_freezes_is_found_by_its_canary_and_replaced(pair):
    own = tiny()
    whole(pair)
    victim = servers(pair)[1]
    frozen = processes(victim)[1:]
    for process in frozen:
        process.send_signal(signal.SIGSTOP)
    begin = time.monotonic()
    assert len(pair.generate(prompts(own, 24), GREEDY)) == 24
    assert time.monotonic() - begin < 200
    assert "canary" in victim.said
    whole(pair)
    assert not any(map(lives, frozen))


def test_weights_torn_by_the_death_of_a_server_are_never_sampled_from(pair):
    own = tiny()
    whole(pair)
    victim = servers(pair)[0]
    client, real = victim.link, victim.link.update

    async def torn(info, timeout):
        kill(victim)
        await real(info, timeout)

    client.update = torn
    pair.load_weights(moved(own, by=0.1))
    groups = pair.generate(prompts(own, 24), GREEDY)
    assert {version for (one,) in groups for version in one.versions} == {pair.version}
    whole(pair)
    assert set(pair.gaps()) == {"rollout-0", "rollout-1"}
    assert all(measured.mean < 1e-4 for measured in pair.gaps().values())


def test_a_server_left_in_an_update_by_a_dead_run_takes_the_next_one(tied):
    (server,) = servers(tied)
    tied._loop.run(server.link.begin_update(60))
    tied.load_weights(weights_of(tiny()))
    assert tied.generate(prompts(tiny(), 1), GREEDY)


def test_a_port_that_is_taken_away_costs_another_start_and_nothing_else(tmp_path, monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        ports = iter([taken.getsockname()[1]])
        real = local.free_port
        monkeypatch.setattr(local, "free_port", lambda: next(ports, None) or real())
        with engine_of(tiny(), tmp_path) as engine:
            (server,) = servers(engine)
            assert server.link.url != f"http://127.0.0.1:{taken.getsockname()[1]}"
            assert engine.generate(prompts(tiny(), 1), GREEDY)


def test_a_server_that_cannot_start_says_so_with_the_end_of_its_log(tmp_path):
    broken = engine_of(tiny(), tmp_path, tensor_parallel=7)
    with pytest.raises(InputError, match="rollout-0 did not start: rollout-0 ended with exit code") as caught:
        broken.__enter__()
    assert "rollout-0.log" in str(caught.value)


RUN = """
import sys, time
from pathlib import Path
from tests.vllm.tiny import engine_of, processes, servers, tiny
with engine_of(tiny(), Path(sys.argv[1])) as engine:
    print("pids", *(process.pid for server in servers(engine) for process in processes(server)), flush=True)
    time.sleep(600)
"""


def test_a_run_that_is_killed_leaves_no_server_behind(tmp_path):
    root = Path(__file__).resolve().parents[2]
    command = [sys.executable, "-c", RUN, str(tmp_path)]
    with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        said = next(line for line in run.stdout if line.startswith("pids"))
        pids = [int(word) for word in said.split()[1:]]
        assert len(pids) >= 3
        run.kill()
    until(lambda: not any(map(lives, pids)), 40)
