"""A log that is judged while it grows: rotation, truncation, restarts, several files, and whom a verdict calls."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from typer.testing import CliRunner

from components.config.judgement import RuleSettings
from components.errors import InputError
from components.health.following.calls import command, stop, webhook
from components.health.following.live import LiveLog, Said
from components.health.following.tail import Tail
from flows.cli import app
from flows.judging.watch_log import Watch, pipe, sources

RULES = {"low": RuleSettings(when="reward < 0.2", level="rollback", why="a test")}
VERDICT = {"rule": "low", "step": 3}


def rows(*rewards: float, start: int = 1) -> str:
    """JSON lines as TRL's, one a step."""
    made = ({"step": n, "reward": value, "kl": 0.1, "loss": 1.0} for n, value in enumerate(rewards, start))
    return "".join(json.dumps(row) + "\n" for row in made)


def add(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


# --- the new lines of a file


def test_new_lines_come_once_and_whole(tmp_path):
    path = tmp_path / "log"
    tail = Tail(path)
    assert list(tail.read()) == []
    path.write_text("one\ntw")
    assert list(tail.read()) == ["one"]
    add(path, "o\r\x1b[32mthree\x1b[0m\n\n")
    assert list(tail.read()) == ["two", "three"]
    assert list(tail.read()) == []


def test_a_file_that_is_cut_short_is_read_from_its_start(tmp_path):
    path = tmp_path / "log"
    path.write_text("a long first line\nand a ra")
    tail = Tail(path)
    assert list(tail.read()) == ["a long first line"]
    path.write_text("new\n")
    assert list(tail.read()) == ["new"]


@pytest.mark.parametrize("gone", [False, True], ids=["replaced", "away for a while"])
def test_a_rotated_file_is_read_to_its_end_and_then_the_new_one(tmp_path, gone):
    path = tmp_path / "log"
    path.write_text("one\n")
    tail = Tail(path)
    assert list(tail.read()) == ["one"]
    path.rename(tmp_path / "log.1")
    add(tmp_path / "log.1", "last of the old\n")
    if gone:
        assert list(tail.read()) == ["last of the old"]
    path.write_text("first of the new\n")
    assert list(tail.read()) == (["first of the new"] if gone else ["last of the old", "first of the new"])


def test_the_log_is_never_written_and_what_is_no_file_is_refused(tmp_path):
    path = tmp_path / "log"
    path.write_text(rows(0.5, 0.1))
    path.chmod(0o400)
    before = path.stat()
    list(Tail(path).read())
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    with pytest.raises(InputError, match="a folder"):
        list(Tail(tmp_path).read())


# --- steps that are judged once


def judged(live: LiveLog, text: str, *, settled: bool = False, file: int = 0) -> list[tuple[int, list[str]]]:
    for line in text.splitlines():
        live.take(line, file)
    return [(record.step, [verdict.rule for verdict in verdicts]) for record, verdicts in live.due(settled)]


def test_a_step_is_judged_when_the_next_one_has_begun_or_the_log_has_settled():
    live = LiveLog(RULES)
    assert judged(live, "Loading\n" + rows(0.5, 0.5)) == [(1, [])]
    assert judged(live, "") == []
    assert judged(live, "", settled=True) == [(2, [])]
    assert judged(live, rows(0.1, start=3), settled=True) == [(3, ["low"])]


NEMO = "=== Step {} / 9 ===\nGenerating\n  • Loss: 0.1\n  • Avg Reward: {}\n".replace(" / ", "/")
CONSOLES = {
    "TRL": "Loading\n{{'loss': 0.1, 'reward': 0.5}}\n{{'loss': 0.1, 'reward': {1}}}\n",
    "verl": "step:1 - critic/score/mean:0.5\nstep:{0} - critic/score/mean:{1}\n",
    "NeMo RL": NEMO.format(1, 0.5).replace("{", "{{") + NEMO,
    "OpenRLHF": "Global step 1: {{'policy_loss': 1, 'reward': 0.5}}\nGlobal step {0}: {{'reward': {1}}}\n",
}


@pytest.mark.parametrize("text", CONSOLES.values(), ids=CONSOLES)
def test_whatever_console_it_is_it_is_recognised_by_its_first_lines(text):
    assert judged(LiveLog(RULES), text.format(2, 0.1), settled=True) == [(1, []), (2, ["low"])]


def test_a_run_that_goes_back_to_a_checkpoint_is_judged_again_from_there_on():
    live = LiveLog(RULES)
    assert [step for step, _ in judged(live, rows(0.5, 0.5, 0.5, 0.5), settled=True)] == [1, 2, 3, 4]
    assert judged(live, rows(0.5, 0.5, 0.1, start=3), settled=True) == [(3, []), (4, []), (5, ["low"])]


def test_other_ranks_add_what_the_first_one_lacks():
    live = LiveLog(RULES)
    judged(live, rows(0.5, 0.5))
    other = json.dumps({"step": 2, "reward": 0.0, "entropy": 0.25}) + "\n"
    assert judged(live, other, settled=True, file=1) == [(2, [])]
    assert judged(live, json.dumps({"step": 1, "reward": 0.0}) + "\n", settled=True, file=1) == []


# --- the whole watch


def watching(folder: Path, *logs: Path, calls=(), said=None) -> tuple[Watch, list[str]]:
    lines: list[str] = []
    state = folder / "state.json"
    before = Said.load(state)
    live = LiveLog(RULES, until=before.until, fired=list(before.fired))
    return Watch(live, before, state, calls, lines.append, every=0.01, quiet=0.05), lines


def test_a_restart_says_nothing_twice_and_goes_on(tmp_path):
    path, called = tmp_path / "log", []
    path.write_text(rows(0.5, 0.1))
    for expected in (["step 1", "step 2", "step 2: low", "step 2: called"], []):
        watch, lines = watching(tmp_path, path, calls=[lambda verdict: called.append(verdict) or "called"])
        assert watch.follow(sources([path])) == (3 if expected else 0)
        assert len(lines) == len(expected)
        assert all(line.startswith(start) for line, start in zip(lines, expected, strict=True))
    add(path, rows(0.1, 0.5, start=3))
    watch, lines = watching(tmp_path, path)
    assert watch.follow(sources([path])) == 0  # the rule goes on holding: it has been said
    assert [line.split("  ")[0] for line in lines] == ["step 3", "step 4"]
    assert [verdict["step"] for verdict in called] == [2]


def test_a_call_that_takes_longer_than_the_log_may_be_quiet_does_not_end_the_watch(tmp_path):
    path = tmp_path / "log"
    path.write_text(rows(0.1, 0.1))
    watch, lines = watching(tmp_path, path)
    watch.calls, watch.quiet = [lambda _: time.sleep(0.02) or "called"], 0.01
    watch.follow(sources([path]))
    assert [line.split("  ")[0] for line in lines if "  " in line] == ["step 1", "step 2"]


def test_a_rotated_log_and_a_restart_do_not_make_a_rule_speak_again(tmp_path):
    path = tmp_path / "log"
    path.write_text(rows(0.5, 0.1))
    watching(tmp_path, path)[0].follow(sources([path]))
    path.write_text(rows(0.1, 0.1, start=3))
    watch, lines = watching(tmp_path, path)
    watch.follow(sources([path]))
    assert [line.split("  ")[-1] for line in lines] == ["ok", "ok"]


def test_a_console_comes_through_a_pipe_until_its_end(tmp_path):
    receiver, sender = os.pipe()
    os.write(sender, b"{'loss': 0.1, 'reward': 0.5}\n{'loss': 0.1, 'reward': 0.0}\n")
    os.close(sender)
    watch, lines = watching(tmp_path)
    assert watch.follow([pipe(receiver)]) == 3
    os.close(receiver)
    assert [line.partition("  ")[0] for line in lines[:2]] == ["step 1", "step 2"]


def test_a_document_and_a_pipe_together_with_files_are_refused(tmp_path):
    path = tmp_path / "trainer_state.json"
    path.write_text('{"log_history": []}')
    with pytest.raises(InputError, match="does not grow"):
        sources([path])
    with pytest.raises(InputError, match="together with files"):
        sources([Path("-"), path])


@pytest.mark.parametrize(("rewards", "code"), [((0.5, 0.5), 0), ((0.5, 0.1), 3)])
def test_the_command_prints_a_line_a_step_and_its_exit_code_says_whether_a_grave_rule_spoke(tmp_path, rewards, code):
    path, rules = tmp_path / "log", tmp_path / "rules.yaml"
    path.write_text(rows(*rewards))
    rules.write_text("rules: {low: {when: reward < 0.2, level: stop, why: a test}}")
    words = ["watch", str(path), "--rules", str(rules), "--quiet", "0.01", "--every", "0.05", "--command", "true"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == code
    assert "step 1  reward 0.5  kl 0.1  ok" in result.output
    assert ("low says stop" in result.output) == ("the command ended with 0" in result.output) == (code == 3)


@pytest.mark.parametrize("text", ["[]", '{"until": "x", "spoken": []}', '{"until": 1}', "{"])
def test_a_state_that_is_none_is_refused(tmp_path, text):
    (tmp_path / "state.json").write_text(text)
    with pytest.raises(InputError):
        Said.load(tmp_path / "state.json")


# --- whom a grave verdict calls


def test_a_webhook_gets_the_verdict_as_json():
    got = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            got.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_):
            """Nothing is printed."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.handle_request, daemon=True).start()
    assert webhook(f"http://127.0.0.1:{server.server_port}/hook")(VERDICT) == "the webhook answered 204"
    server.server_close()
    assert got == [VERDICT]


def test_a_command_gets_the_verdict_on_its_input(tmp_path):
    copied = tmp_path / "verdict.json"
    assert command(f"tee '{copied}'")(VERDICT) == "the command ended with 0"
    assert json.loads(copied.read_text()) == VERDICT


def test_a_process_is_sent_sigterm_once():
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    call = stop(process.pid)
    assert call(VERDICT) == f"process {process.pid} was sent SIGTERM"
    assert process.wait(timeout=20) == -15
    assert "before" in call(VERDICT)


@pytest.mark.parametrize(
    ("call", "said"),
    [(webhook("http://127.0.0.1:9/"), "the webhook failed"), (command("/no/such/program"), "the command failed")],
    ids=["webhook", "command"],
)
def test_a_call_that_fails_is_said_and_the_watch_goes_on(call, said):
    assert call(VERDICT).startswith(said)


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (webhook, "file:///etc/passwd"),
        (command, "a 'b"),
        (command, " "),
        (stop, 2**22 + 1),
        (stop, 1),
        pytest.param(stop, os.getpid(), id="itself"),
    ],
)
def test_what_cannot_be_called_is_refused_at_once(make, argument):
    with pytest.raises(InputError):
        make(argument)


def test_a_log_that_is_not_there_is_waited_for_and_missed_at_the_end(tmp_path):
    path = tmp_path / "none.jsonl"
    found = CliRunner().invoke(app, ["watch", str(path), "--quiet", "0.05", "--every", "0.05"])
    assert found.stderr == f"{path} is not there yet: waiting for it\n"
    assert isinstance(found.exception, InputError)
    assert str(path) in str(found.exception)
