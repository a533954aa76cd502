"""Several ranks without their processes: who scores which rows, sums over all of them, and messages."""

from __future__ import annotations

import math
import os
import pickle
import re
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, Listener
from pathlib import Path
from typing import Any

import pytest
import torch
from factories import policy, settings
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from test_learner import batch_of, sampled
from torch import Tensor

from components.config import substance
from components.config.training import LearnerSettings, RankSettings
from components.directories import write_directory
from components.errors import InputError, PeerLost
from components.files import sha256_bytes
from components.learner import worker
from components.learner.ranks import Peers, Ranks, idle_pass, share_of, split_rows
from components.learner.remote import entrance as entrance_module
from components.learner.remote import learner as learner_module
from components.learner.remote.entrance import Entrance
from components.learner.remote.learner import RemoteLearner
from components.learner.remote.link import Link, client, hang_up
from components.learner.remote.place import place_of
from components.learner.remote.protocol import KEY, LISTEN, RENDEZVOUS, STEP, address_of, must_agree
from components.learner.remote.wire import Message, decode, described, encode, pack, unpack
from components.learner.signals import TokenTotals
from components.objectives import Terms, TokenLoss
from components.processes import free_port
from components.training.assembly import DEPENDS_ON

# Rows


@given(st.lists(st.integers(1, 500), max_size=60), st.integers(1, 8))
def test_every_row_is_scored_by_one_rank_and_no_two_loads_differ_by_more_than_a_row(tokens, ranks):
    rows = split_rows(tokens, ranks)
    assert sorted(row for own in rows for row in own.tolist()) == list(range(len(tokens)))
    assert all(own.tolist() == sorted(own.tolist()) for own in rows)
    loads = [sum(tokens[row] for row in own) for own in rows]
    assert max(loads) - min(loads) <= max(tokens, default=0)


@pytest.mark.parametrize(
    ("tokens", "ranks", "expected"),
    [
        ([5, 5, 5, 5], 2, [[0, 2], [1, 3]]),
        ([1, 2, 3, 9], 2, [[3], [0, 1, 2]]),
        ([4], 3, [[0], [], []]),
        ([], 2, [[], []]),
    ],
)
def test_worked_shares(tokens, ranks, expected):
    assert [own.tolist() for own in split_rows(tokens, ranks)] == expected


@pytest.mark.parametrize("ranks", [1, 2, 3, 8, 11])
@pytest.mark.parametrize("max_tokens", [1, 40, 10_000])
def test_all_ranks_make_the_same_number_of_passes_and_count_every_token_once(ranks, max_tokens):
    batch = batch_of(sampled())
    shares = [share_of(batch, Ranks(rank, ranks), max_tokens) for rank in range(ranks)]
    assert len({len(share.parts) + len(share.idle) for share in shares}) == 1
    counted = [part.response_mask.sum().item() for share in shares for part in (*share.parts, *share.idle)]
    assert sum(counted) == batch.response_mask.sum().item()
    assert all(not part.response_mask.any() for share in shares for part in share.idle)


def test_an_idle_pass_has_no_token_in_the_loss_but_one_to_read():
    idle = idle_pass(batch_of(sampled()))
    assert (len(idle), int(idle.response_mask.sum())) == (1, 0)
    assert idle.attention_mask.any()


# Sums


@dataclass(frozen=True)
class Together(Ranks):
    """Ranks that are threads of this process; they meet at a barrier, and leave what they have in ``room``."""

    barrier: threading.Barrier = field(default_factory=lambda: threading.Barrier(1))
    room: dict[int, Tensor] = field(default_factory=dict)

    def total(self, values: Tensor) -> Tensor:
        return self._met(values).sum(0)

    def largest(self, values: Tensor) -> Tensor:
        return self._met(values).amax(0)

    def joined(self, values: Tensor) -> Tensor:
        return Peers.joined(self, values)

    def _met(self, values: Tensor) -> Tensor:
        self.room[self.rank] = values
        self.barrier.wait()
        found = torch.stack([self.room[rank] for rank in range(self.size)])
        self.barrier.wait()
        return found


def together(size: int, program: Callable[[Ranks], Any]) -> list[Any]:
    """What ``program`` returns on every rank."""
    barrier, room = threading.Barrier(size), {}
    with ThreadPoolExecutor(size) as pool:
        return list(pool.map(lambda rank: program(Together(rank, size, barrier, room)), range(size)))


def counted(totals: TokenTotals, ratios: list[float], entropy: float) -> TokenTotals:
    ratio = torch.tensor([ratios])
    tokens = TokenLoss(torch.zeros_like(ratio), ratio < 0.8, ratio > 1.28, ratio)
    terms = Terms(torch.zeros(()), tokens, rejected=ratio == 0.5, nonfinite=ratio == 1.5)
    totals.add(torch.ones_like(ratio, dtype=torch.bool), torch.full_like(ratio, entropy), terms)
    return totals


def test_signals_are_those_of_all_ranks_on_every_rank():
    rows = [([1.5, 0.5, 1.0], 1.0), ([2.0], 3.0), ([], 0.0), ([1.0, 1.0, 0.25], 2.0)]
    whole = TokenTotals()
    for ratios, entropy in rows:
        counted(whole, ratios, entropy)

    def one(ranks: Ranks) -> dict[str, float]:
        totals = counted(TokenTotals(), *rows[ranks.rank])
        totals.reduce(ranks)
        return totals.means()

    assert together(4, one) == [pytest.approx(whole.means())] * 4


def test_rows_come_back_in_their_places_whoever_scored_them():
    batch = batch_of(sampled())
    ids = batch.input_ids[:, -batch.responses :].float()

    def one(ranks: Ranks) -> Tensor:
        share = share_of(batch, ranks, max_tokens=40)
        parts = [part.input_ids[:, -part.responses :].float() for part in share.parts]
        return share.whole(parts, batch.responses, len(batch), ranks)

    for found in together(3, one):
        assert torch.equal(found * batch.response_mask, ids * batch.response_mask)


# Messages


def test_a_message_comes_back_as_it_was():
    tensors = {"a": torch.randn(2, 3), "none": torch.zeros(0), "bool": torch.tensor([True, False])}
    found = decode(encode({"command": "step", "norm_limit": math.inf}, tensors))
    assert found.header == {"command": "step", "norm_limit": math.inf}
    assert all(torch.equal(found.tensors[name], tensor) for name, tensor in tensors.items())
    assert found.tensors.keys() == tensors.keys()


def test_a_batch_comes_back_with_what_was_set_and_nothing_else():
    batch = batch_of(sampled())
    found = unpack(decode(encode({}, pack(batch))).tensors)
    for name, tensor in batch.__dict__.items():
        assert (getattr(found, name) is None) == (tensor is None)
        assert tensor is None or torch.equal(getattr(found, name), tensor)


@given(st.binary(max_size=200))
def test_bytes_that_are_no_message_are_refused(data):
    with pytest.raises(InputError, match="not a message"):
        decode(data)


GOOD = encode({"command": "step"}, {"a": torch.zeros(2)})
PICKLE = pickle.dumps({"command": "step"})


@pytest.mark.parametrize(
    "data",
    [
        b"",
        GOOD[:-1],
        GOOD[:20],
        GOOD + b"more",
        PICKLE,
        len(PICKLE).to_bytes(8, "little") + PICKLE,
        (2**63).to_bytes(8, "little") + GOOD,
        (4).to_bytes(8, "little") + b"null" + GOOD[-10:],
        (2).to_bytes(8, "little") + b"[]" + encode({})[10:],
        (30_000).to_bytes(8, "little") + b"[" * 30_000,
    ],
)
def test_torn_hostile_and_pickled_bytes_are_refused(data):
    with pytest.raises(InputError, match="not a message"):
        decode(data)


@pytest.mark.parametrize("change", [{"batch/odd": torch.zeros(1)}, {"batch/input_ids": None}])
def test_a_batch_with_unknown_or_missing_tensors_is_refused(change):
    tensors = {k: t for k, t in {**pack(batch_of(sampled())), **change}.items() if t is not None}
    with pytest.raises(InputError, match="not a message"):
        unpack(tensors)


def test_ranks_that_are_not_what_the_run_takes_them_for_are_refused_with_both_values():
    must_agree("another number of ranks", 2, 2, how="")
    with pytest.raises(InputError, match="another number of ranks: 2 in the run, 3 in its ranks"):
        must_agree("another number of ranks", 2, 3, how="set learner.ranks.processes")


@pytest.mark.parametrize(
    ("text", "expected"), [("/tmp/s", "/tmp/s"), ("learner-0:7000", ("learner-0", 7000)), ("::1:80", ("::1", 80))]
)
def test_an_address_is_a_socket_or_host_and_port(text, expected):
    assert address_of(text) == expected


@pytest.mark.parametrize("text", ["learner-0", "learner-0:", "learner-0:seven", "learner-0:0", "learner-0:70000", "80"])
def test_what_is_no_address_is_refused(text):
    with pytest.raises(InputError, match=f"'{text}' is no address"):
        address_of(text)


STARTED = {
    "RANK": "0",
    "WORLD_SIZE": "2",
    "MASTER_ADDR": "learner-0",
    "MASTER_PORT": "29500",
    LISTEN: "0.0.0.0:29400",
    KEY: "secret",
}


def test_a_rank_knows_its_place_and_only_rank_0_where_to_listen_and_for_whom():
    environment = dict(STARTED)
    assert place_of(environment) == (0, 2, 0, "env://", ("0.0.0.0", 29400), b"secret")
    assert KEY not in environment
    other = {**STARTED, "RANK": "1", "LOCAL_RANK": "1", RENDEZVOUS: "/tmp/meeting"}
    assert place_of(other) == (1, 2, 1, "file:///tmp/meeting", "", b"")


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({KEY: None}, f"{KEY} is not set"),
        ({KEY: ""}, f"{KEY} is not set"),  # nobody would be asked for it
        ({LISTEN: None}, f"{LISTEN} is not set"),
        ({LISTEN: "learner-0"}, "'learner-0' is no address"),
        ({"RANK": None}, "RANK is not set"),
        ({"RANK": "first"}, "RANK is 'first', which is no number"),
        ({"RANK": "2"}, "RANK is 2 of 2, counted from 0"),
        ({"WORLD_SIZE": None}, "WORLD_SIZE is not set"),
        ({"WORLD_SIZE": "-1"}, "WORLD_SIZE is '-1', which is no number"),
        ({"MASTER_ADDR": None}, "MASTER_ADDR is not set"),
        ({"MASTER_PORT": ""}, "MASTER_PORT is not set"),
    ],
)
def test_a_rank_that_was_started_wrongly_says_what_where_and_how_to_mend_it(change, what, monkeypatch, capsys):
    for name in ("LOCAL_RANK", RENDEZVOUS):
        monkeypatch.delenv(name, raising=False)
    for name, value in {**STARTED, **change}.items():
        monkeypatch.delenv(name, raising=False)
        if value is not None:
            monkeypatch.setenv(name, value)
    assert worker.main() == 2
    said = capsys.readouterr().err.splitlines()
    assert said[0] == what
    assert [line.split()[0] for line in said[1:]] == ["where:", "mend:"]


def test_a_rank_that_cannot_listen_says_so():
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(InputError, match="in use"):
        Entrance(taken.getsockname(), b"secret")


def test_somebody_who_connects_and_says_nothing_keeps_nobody_out(monkeypatch, capsys):
    monkeypatch.setattr(entrance_module, "PATIENCE", 0.2)
    address = ("127.0.0.1", free_port())
    entrance = Entrance(address, b"secret")
    with ThreadPoolExecutor(1) as beside, socket.create_connection(address), socket.create_connection(address):
        accepted = beside.submit(entrance.accept)
        with client(f"127.0.0.1:{address[1]}", "secret", 30) as run, accepted.result(30) as found:
            assert capsys.readouterr().err.count("turned a connection away") == 2
            waiting = beside.submit(found.recv_bytes)
            assert not wait([waiting], 0.5).done  # who has said the word has all the time in the world
            run.send_bytes(b"a command")
            assert waiting.result(30) == b"a command"


def test_the_second_connection_is_that_of_the_run_that_made_the_first(tmp_path):
    """The next run after one that was killed knows the key too, but not the word."""
    address = str(tmp_path / "socket")
    entrance = Entrance(address, b"secret")
    with ThreadPoolExecutor(1) as beside:
        first = beside.submit(entrance.accept)
        run = client(address, "secret", 5)
        first.result()
    word = entrance.expect()
    next_run = client(address, "secret", 5)
    next_run.send_bytes(b"another run's first command, longer than any word")
    with pytest.raises((EOFError, OSError)):
        next_run.recv_bytes()
    notices = client(address, "secret", 5)
    notices.send_bytes(word.encode())
    entrance.report(b"written")
    assert notices.recv_bytes() == b"written"
    with pytest.raises(OSError, match="No such file"):
        client(address, "secret", 5)
    for connection in (run, next_run, notices):
        connection.close()


@pytest.fixture
def hung(tmp_path, monkeypatch) -> Iterator[tuple[Link, Connection]]:
    """A link, and the end that rank 0 does not read."""
    address = f"127.0.0.1:{free_port()}"
    monkeypatch.setenv(KEY, "secret")
    with Listener(address_of(address), authkey=b"secret") as listener, ThreadPoolExecutor(1) as beside:
        accepted = beside.submit(listener.accept)
        link = Link(RankSettings(address=address, start_timeout=5, reply_timeout=0.3))
        with accepted.result() as rank_0:
            yield link, rank_0
        link.close()


def test_a_rank_0_that_reads_nothing_is_given_up_in_time(hung):
    link, _ = hung
    with pytest.raises(InputError, match=r"did not carry out 'step' within 0.3 s.*\n.*\n.*learner.ranks.reply_timeout"):
        link.call(STEP, {}, {"large": torch.zeros(1 << 24)})


def test_a_rank_0_that_stops_in_the_middle_of_a_reply_is_given_up_in_time(hung):
    link, rank_0 = hung
    os.write(rank_0.fileno(), (100).to_bytes(4, "big") + b"half of it")
    with pytest.raises(PeerLost, match=r"did not carry out 'step' within 0.3 s"):
        link.call(STEP, {})
    with pytest.raises(PeerLost, match="have ended"):
        link.call(STEP, {})


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (InputError("another policy", where="learner.ranks"), InputError),
        (PeerLost("another policy"), PeerLost),
        (RuntimeError("another policy"), PeerLost),
    ],
)
def test_a_rank_elsewhere_that_says_no_is_bad_input_and_one_that_breaks_is_lost(hung, error, kind):
    link, rank_0 = hung
    rank_0.send_bytes(encode({"error": described(error)}))
    with pytest.raises(InputError, match="another policy") as caught:
        link.call(STEP, {})
    assert type(caught.value) is kind


@pytest.fixture
def apart(monkeypatch) -> Iterator[tuple[Link, Connection]]:
    """A link to ranks that see no folder of the run, and the end at which rank 0 tells of what it has written."""
    address = f"127.0.0.1:{free_port()}"
    monkeypatch.setenv(KEY, "secret")
    with Listener(address_of(address), authkey=b"secret") as listener, ThreadPoolExecutor(1) as beside:
        accepted = beside.submit(listener.accept)
        link = Link(RankSettings(address=address, start_timeout=5, reply_timeout=2, shared_folder=False))
        with accepted.result():
            accepted = beside.submit(listener.accept)
            link.listen("word")
            with accepted.result() as notices:
                assert notices.recv_bytes() == b"word"
                yield link, notices
        link.close()


def checkpointed(link: Link, target: Path, notices: Connection, messages: Sequence[dict[str, Any]]) -> None:
    """A checkpoint for which these messages come before rank 0 says that it is through."""

    def fill(folder: Path) -> None:
        for header in messages:
            tensors = {"data": torch.arange(4).byte()} if "file" in header else {}
            notices.send_bytes(encode({"folder": str(folder), **header}, tensors))
        notices.send_bytes(encode({"written": str(folder)}))
        link.written(str(folder))

    write_directory(target, fill)


SENT = {"file": "learner.json", "at": 0}
WHOLE = {"files": {"learner.json": sha256_bytes(bytes(range(4)))}}


def test_a_checkpoint_that_came_over_the_connection_is_there(apart, tmp_path):
    checkpointed(apart[0], tmp_path / "step", apart[1], [SENT, WHOLE])
    assert (tmp_path / "step" / "learner.json").read_bytes() == bytes(range(4))


@pytest.mark.parametrize(
    "messages",
    [[], [SENT], [WHOLE], [SENT, {"files": {"learner.json": "0" * 64}}], [{**SENT, "at": 4}, WHOLE]],
    ids=["nothing", "no end", "no file", "other bytes", "no beginning"],
)
def test_a_checkpoint_that_came_in_part_is_an_error_and_not_there(apart, tmp_path, messages):
    with pytest.raises(PeerLost, match="damaged on their way"):
        checkpointed(apart[0], tmp_path / "step", apart[1], messages)
    assert not list(tmp_path.iterdir())


def test_a_rank_0_that_hangs_up_in_the_middle_of_a_checkpoint_leaves_none(apart, tmp_path):
    link, notices = apart

    def fill(folder: Path) -> None:
        notices.send_bytes(encode({"folder": str(folder), **SENT}, {"data": torch.arange(4).byte()}))
        hang_up(notices)
        link.written(str(folder))

    with pytest.raises(PeerLost, match="the learner hung up during 'save'"):
        write_directory(tmp_path / "step", fill)
    assert not list(tmp_path.iterdir())


def test_ranks_elsewhere_that_hang_up_are_lost(hung):
    link, rank_0 = hung
    rank_0.close()
    with pytest.raises(PeerLost, match="the learner hung up during 'step'"):
        link.call(STEP, {})


class Obedient:
    """Stands in for `Link`: rank 0 carries everything out, until it is lost."""

    def __init__(self, *_: object) -> None:
        self.stopping, self.lost, self.commands = False, False, list[str]()

    def listen(self, word: str) -> None: ...

    def close(self) -> None: ...

    def call(self, command: str, *_: object) -> Message:
        if self.lost:
            raise PeerLost("the learner hung up")
        self.commands.append(command)
        return Message({"coefficients": [0.5, 0.0], "stopping": self.stopping, "notices": "word"}, {})


@pytest.fixture
def remote(tmp_path, monkeypatch) -> Iterator[tuple[RemoteLearner, Obedient]]:
    monkeypatch.setattr(learner_module, "Link", Obedient)
    monkeypatch.setattr(learner_module, "PING_EVERY", 0.01)
    chosen = settings(learner={"kind": "fsdp2", "ranks": {"address": "learner:29400"}})
    learner = RemoteLearner(policy(), chosen, tmp_path / "logs")
    yield learner, learner._link
    learner.close()


def test_ranks_elsewhere_that_are_asked_to_end_are_heard_while_the_run_samples(remote):
    learner, link = remote
    told = threading.Event()
    learner.when_asked_to_stop(told.set)
    assert not told.wait(0.1)
    link.stopping = True
    assert told.wait(20)
    assert set(link.commands[1:]) == {"ping"}
    late = threading.Event()
    learner.when_asked_to_stop(late.set)
    assert late.is_set()


def test_ranks_elsewhere_that_are_lost_while_the_run_samples_are_named_by_the_next_command(remote):
    learner, link = remote
    link.lost = True
    while learner._failed is None:
        threading.Event().wait(0.01)
    link.lost = False
    with pytest.raises(PeerLost, match="the learner hung up"):
        learner.configure(settings().learner, settings().objective)


def test_somebody_who_listens_and_never_asks_for_the_key_is_not_waited_for():
    with socket.create_server(("127.0.0.1", 0)) as mute, pytest.raises(TimeoutError, match="does not answer"):
        client(f"127.0.0.1:{mute.getsockname()[1]}", "key", seconds=0.2)


def test_ranks_elsewhere_need_a_key_and_somebody_who_listens(monkeypatch):
    nobody = RankSettings(address=f"127.0.0.1:{free_port()}", start_timeout=0.3)
    monkeypatch.delenv(KEY, raising=False)
    with pytest.raises(InputError, match=f"{KEY} is not set"):
        Link(nobody)
    monkeypatch.setenv(KEY, "secret")
    with pytest.raises(PeerLost, match=r"did not carry out 'start' within 0.3 s"):
        Link(nobody)


# Settings


@pytest.mark.parametrize(
    ("learner", "why"),
    [
        ({"ranks": {"processes": 4}}, "kind torch has one process"),
        ({"kind": "fsdp2", "zero": {"stage": 3}}, "learner.zero is for kind deepspeed, not for fsdp2"),
        ({"zero": {"stage": 3}}, "learner.zero is for kind deepspeed, not for torch"),
        ({"kind": "deepspeed", "zero": {"stage": 4}}, "zero.stage"),
        ({"kind": "deepspeed", "ranks": {"processes": 0}}, "ranks.processes"),
        ({"kind": "fsdp2", "ranks": {"address": "nowhere"}}, "ranks.address"),
        *(
            ({"kind": "fsdp2", "ranks": {"address": f"learner-0:{port}"}}, f"port {port} is not one of 1 to 65535")
            for port in (0, 65536, 99999)
        ),
        ({"activation_checkpointing": True, "routing_replay": True}, "would route freely"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(learner, why):
    with pytest.raises(ValidationError, match=re.escape(why)):
        LearnerSettings.model_validate(learner)


@pytest.mark.parametrize(("ranks", "refused"), [(2, False), (4, False), (3, True), (16, True)])
def test_a_number_of_ranks_that_does_not_divide_the_completions_of_an_update_is_refused(ranks, refused):
    learner = {"kind": "fsdp2", "updates_per_step": 2, "ranks": {"processes": ranks}}  # of 4 prompts x 4 completions
    if not refused:
        assert settings(learner=learner, launch={"kind": "processes"}).learner.ranks.processes == ranks
        return
    why = rf"the 16 completions .* \(2\) updates .*learner.ranks.processes \({ranks}\)"
    with pytest.raises(ValidationError, match=why):
        settings(learner=learner, launch={"kind": "processes"})


def test_several_ranks_that_nothing_would_start_are_refused_with_what_does():
    with pytest.raises(ValidationError, match=r"set launch\.kind processes"):
        settings(learner={"kind": "fsdp2", "ranks": {"processes": 2}})


def test_how_a_learner_is_spread_is_no_part_of_a_runs_identity():
    def identity(**learner: Any) -> dict[str, Any]:
        return substance(settings(learner=learner, launch={"kind": "processes"}), DEPENDS_ON)

    two = identity(kind="deepspeed", ranks={"processes": 2})
    assert identity(kind="deepspeed", ranks={"processes": 4}, zero={"stage": 3}) == two
    assert identity(kind="fsdp2") != two
    assert identity(kind="deepspeed", lr=1e-5) != two
