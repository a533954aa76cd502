"""How a run reaches a tracker: everything once, in order, whatever fails, and the run notices nothing."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
from sink_runs import Fake, Log, Tracker, delivery, drain, response

import components.sinks as found_sinks
from components.config import Settings, load
from components.config.sinks import MlflowSink
from components.errors import InputError
from components.health.readers.names import NAMES_FOLDER, load_names
from components.health.signals import SIGNALS
from components.sinks import SINKS, check_sinks, chosen_sinks
from components.sinks.base import Batch
from components.sinks.delivery import MOST
from components.sinks.feed import LONGEST, Rows, translator
from components.sinks.follow import Follower, parameters
from components.types import Outcome
from tests.code_graph import ROOT


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path)


class Killed(BaseException):
    """The process is gone: nothing handles it."""


def fails(batch: Batch) -> None:
    raise ConnectionError("refused\nin detail")


def killed(batch: Batch) -> None:
    raise Killed


# What is sent


def test_a_step_has_our_signals_and_the_names_that_dashboards_of_trl_expect(log: Log) -> None:
    tracker = Tracker()
    log.steps(0, 2)
    drain(delivery(log.layout.root, tracker))
    assert tracker.steps[1] == {
        "evenkeel/reward": 1.0,
        "evenkeel/entropy": 0.5,
        "train/reward": 1.0,
        "train/entropy": 0.5,
    }


@pytest.mark.parametrize(
    ("dialect", "signal", "theirs", "value"),
    [
        ("trl", "kl_ref", "train/kl", 0.25),
        ("trl", "length_mean", "train/completions/mean_length", 0.25),
        ("trl", "grad_norm", "train/grad_norm", 0.25),
        ("trl", "loss", "train/loss", 0.25),
        ("trl", "lr", "train/learning_rate", 0.25),
        ("trl", "metric_style", "train/rewards/style/mean", 0.25),
        ("trl", "dev_pass_at_1", "eval/rewards/accuracy_reward/mean", 0.25),
        ("verl", "entropy", "actor/entropy", 0.25),
        ("verl", "reward", "critic/score/mean", 0.25),
        ("prime-rl", "grad_norm", "optim/grad_norm", 0.25),
    ],
)
def test_a_signal_has_the_name_of_the_mapping_file_in_reverse(
    dialect: str, signal: str, theirs: str, value: float
) -> None:
    assert translator(dialect)({signal: 0.25}) == {f"evenkeel/{signal}": 0.25, theirs: value}


@pytest.mark.parametrize("dialect", ["trl", "verl", "prime-rl"])
def test_what_we_show_under_their_name_is_read_back_as_our_signal(dialect: str) -> None:
    names = load_names(NAMES_FOLDER / f"{dialect}.yaml")
    for signal in SIGNALS:
        theirs = {name: value for name, value in translator(dialect)({signal: 0.25}).items() if "evenkeel/" not in name}
        plain = {name.removeprefix("train/").replace("eval/", "eval_", 1): v for name, v in theirs.items()}
        if theirs:
            assert names.translate(plain if dialect == "trl" else theirs)[signal] == pytest.approx(0.25), signal


def test_none_leaves_our_names_alone(log: Log) -> None:
    assert translator("none")({"reward": 1.0}) == {"evenkeel/reward": 1.0}


def test_responses_and_their_outcomes_come_as_notes_on_their_step(log: Log) -> None:
    tracker = Tracker()
    log.steps(0, 12)
    log.enter(response(1, 3, back_to=2), Outcome(1, 9, True))
    drain(delivery(log.layout.root, tracker))
    assert tracker.notes == {
        0: "3 collapse: intervene entropy is low; back to step 2",
        1: "9 response 1: recovered",
    }


def test_a_note_waits_for_its_step_and_one_that_is_late_comes_alone(log: Log) -> None:
    tracker = Tracker()
    one = delivery(log.layout.root, tracker)
    log.steps(0, 3)
    log.enter(response(1, 3))
    drain(one)
    assert tracker.notes == {}
    log.steps(3, 4)
    drain(one)
    log.enter(response(2, 3))
    drain(one)
    assert [text[:12] for text in tracker.notes.values()] == ["3 collapse: ", "3 collapse: "]


def test_a_warning_that_repeats_is_noted_every_tenth_step(log: Log) -> None:
    tracker = Tracker()
    log.steps(0, 25)
    log.enter(*(response(step, step, "warn") for step in range(25)))
    drain(delivery(log.layout.root, tracker))
    assert [text.split()[0] for text in tracker.notes.values()] == ["0", "10", "20"]


def test_a_text_of_a_table_has_a_longest_length(log: Log) -> None:
    batches: list[Batch] = []
    tracker = Tracker()
    tracker.fault = batches.append
    log.steps(0, 1)
    row = json.loads(log.records.read_text())
    row["notes"]["pairs"][0]["chosen"] = "x" * (LONGEST + 1)
    log.records.write_text(json.dumps(row) + "\n")
    drain(delivery(log.layout.root, tracker))
    (shown,) = batches[0].steps[0].completions
    assert (shown["prompt"], len(shown["chosen"])) == ("1+1=", LONGEST)


def test_the_results_come_when_the_run_is_over_and_again_only_if_they_change(log: Log) -> None:
    tracker = Tracker()
    log.steps(0, 1)
    log.report()
    drain(delivery(log.layout.root, tracker))
    assert tracker.results == []
    for _ in range(2):
        drain(delivery(log.layout.root, tracker), last=True)
    (results,) = tracker.results
    assert (results.figures, results.verdict) == ({"eval/trained/pass_at_1": 0.75}, "**Healthy.**")
    assert (results.report, results.completions) == (log.layout.report, ({"prompt": "1+1=", "after": "#2"},))
    log.report("<p>judged again</p>")
    drain(delivery(log.layout.root, tracker), last=True)
    assert len(tracker.results) == 2


def test_of_a_training_that_dvc_took_from_its_cache_the_outputs_are_read(log: Log) -> None:
    tracker = Tracker()
    log.steps(0, 3)
    log.layout.train.parent.mkdir(parents=True)
    log.records.parent.rename(log.layout.train)
    drain(delivery(log.layout.root, tracker))
    assert tracker.arrived == [0, 1, 2]


# What fails


def test_a_failing_sink_is_reported_once_and_closed_and_catches_up(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    tracker, said = Tracker(), list[str]()
    one = delivery(log.layout.root, tracker, said)
    tracker.fault = fails
    monkeypatch.setattr("components.sinks.delivery.PAUSES", (0.0,))
    log.steps(0, 2)
    assert [one.attempt() for _ in range(3)] == [False] * 3
    assert said == ["nothing can be sent to fake, which is tried again: ConnectionError: refused"]
    log.steps(2, 4)
    tracker.fault, tracker.arrived = lambda batch: None, []
    drain(one)
    assert tracker.arrived == [0, 1, 2, 3] and not one.failing
    assert said[1:] == ["fake works again; everything is sent that was missing"]
    assert tracker.opened == 4


def test_after_a_failure_there_is_a_pause_unless_the_run_is_over(log: Log) -> None:
    tracker = Tracker()
    one = delivery(log.layout.root, tracker)
    tracker.fault = fails
    log.steps(0, 1)
    assert not one.attempt()
    tracker.fault = lambda batch: None
    assert not one.attempt()
    assert one.attempt(last=True)


@pytest.mark.parametrize("error", [OSError("away"), SystemExit(1), MemoryError()])
def test_whatever_it_raises_stays_inside(log: Log, error: BaseException) -> None:
    def wrong(batch: Batch) -> None:
        raise error

    tracker = Tracker()
    tracker.fault = wrong
    log.steps(0, 1)
    assert not delivery(log.layout.root, tracker).attempt()


def test_one_that_cannot_even_be_opened_is_tried_again(log: Log) -> None:
    tracker, said, refuse = Tracker(), list[str](), [True]
    one = delivery(log.layout.root, tracker, said)

    def start() -> Fake:
        if refuse:
            raise ImportError("no such library")
        return Fake(tracker)

    one._start = start
    log.steps(0, 1)
    assert not one.attempt() and "ImportError: no such library" in said[0]
    refuse.clear()
    assert one.attempt(last=True) and tracker.arrived == [0]


def test_one_that_hangs_keeps_the_others_going_and_the_end_does_not_wait_for_it(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    stuck, quick = Tracker(), Tracker()
    stuck.fault = lambda batch: stuck.hangs.wait(60)
    arrived = threading.Event()
    quick.fault = lambda batch: arrived.set()
    one, other = delivery(log.layout.root, stuck), delivery(log.layout.root, quick)
    other.name, other._memory = "quick", log.layout.state / "quick.json"
    follower = Follower([one, other], poll=0.01)
    log.steps(0, 3)
    follower.start()
    assert arrived.wait(60)
    monkeypatch.setattr("components.sinks.follow.LATE", -1.0)
    assert "fake" in follower.late()
    assert follower.end(1.0) == ["fake"]
    assert quick.arrived == [0, 1, 2]
    stuck.hangs.set()


def test_a_slow_sink_gets_steps_in_batches_of_a_bounded_size(log: Log) -> None:
    sizes: list[int] = []
    tracker = Tracker()
    tracker.fault = lambda batch: sizes.append(len(batch.steps))
    log.steps(0, MOST + 10)
    drain(delivery(log.layout.root, tracker))
    assert sizes == [MOST, 10]


# What is killed, resumed, rolled back


@pytest.mark.parametrize("wrote", [False, True], ids=["before it arrived", "after it arrived"])
def test_a_process_that_dies_while_it_sends_sends_the_same_again_with_the_same_time(log: Log, wrote: bool) -> None:
    tracker, again = Tracker(), list[bool]()
    tracker.fault = killed
    log.steps(0, 3)
    with pytest.raises(Killed):
        delivery(log.layout.root, tracker).attempt()
    times = dict(tracker.times)
    if not wrote:
        tracker.steps.clear()
    log.steps(3, 5)
    tracker.fault = lambda batch: again.append(batch.again)
    drain(delivery(log.layout.root, tracker))
    assert again == [True, False]
    assert sorted(tracker.steps) == [0, 1, 2, 3, 4]
    assert {number: tracker.times[number] for number in times} == times


def test_steps_that_a_resumed_run_makes_again_are_not_sent_again(log: Log) -> None:
    tracker, said = Tracker(), list[str]()
    one = delivery(log.layout.root, tracker, said)
    log.steps(0, 7)
    log.enter(response(1, 5))
    drain(one)
    log.resume(4)
    drain(one)
    log.steps(4, 6)
    drain(one)
    log.enter(response(1, 5))
    log.steps(6, 9)
    drain(delivery(log.layout.root, tracker, said))  # another process: the first died with the run
    assert tracker.arrived == list(range(9))
    assert (len(tracker.notes), said) == (1, [])


def test_a_run_that_makes_its_steps_again_with_other_figures_is_reported(log: Log) -> None:
    tracker, said = Tracker(), list[str]()
    log.steps(0, 7)
    drain(delivery(log.layout.root, tracker))
    log.resume(4)
    log.steps(4, 9, scale=2.0)
    drain(delivery(log.layout.root, tracker, said))
    assert tracker.arrived == list(range(9))
    assert said == [
        "fake: the run made its last steps again with other figures; of steps before 7 it shows the first ones"
    ]


def test_a_batch_that_was_under_way_goes_on_with_what_the_resumed_run_has_of_it(log: Log) -> None:
    tracker, again = Tracker(), list[bool]()
    tracker.fault = killed
    log.steps(0, 7)
    with pytest.raises(Killed):
        delivery(log.layout.root, tracker).attempt()
    log.resume(4)
    tracker.fault, tracker.arrived = lambda batch: again.append(batch.again), []
    one = delivery(log.layout.root, tracker)
    drain(one)
    log.steps(4, 9)
    drain(one)
    assert tracker.arrived == list(range(9))
    assert again == [True, True, False]


def test_a_log_that_was_cut_and_grew_past_the_place_is_read_from_its_beginning(log: Log) -> None:
    tracker = Tracker()
    one = delivery(log.layout.root, tracker)
    log.steps(0, 7)
    drain(one)
    log.resume(2)
    log.steps(2, 9, scale=1000.0)  # longer lines: the old end is in the middle of one
    drain(one)
    assert tracker.arrived == list(range(9))


def test_after_a_roll_back_the_steps_go_on_counting_and_the_note_says_where_it_went(log: Log) -> None:
    tracker = Tracker()
    log.steps(0, 5)
    log.enter(response(1, 4, "rollback", back_to=2))
    log.steps(5, 8)
    drain(delivery(log.layout.root, tracker))
    assert tracker.arrived == list(range(8))
    assert tracker.notes[0].startswith("4 collapse: rollback") and "back to step 2" in tracker.notes[0]


def test_a_line_that_is_being_written_is_left_for_later(log: Log) -> None:
    log.steps(0, 2)
    whole = log.records.read_bytes()
    log.records.write_bytes(whole[:-5])
    rows = Rows([log.records])
    assert [row["step"] for row in rows.read(0, 10)] == [0]
    log.records.write_bytes(whole)
    assert [row["step"] for row in rows.read(1, 10)] == [1]


def test_a_log_without_the_next_step_is_an_error_that_names_it(log: Log) -> None:
    log.steps(3, 5)
    with pytest.raises(InputError, match="cannot read step 2: step 3 comes before it"):
        Rows([log.records]).read(2, 10)


# Settings


def settings(*overrides: str) -> Settings:
    return load(ROOT / "configs/demo.yaml", overrides)


@pytest.mark.parametrize(("installed", "names"), [(True, ["tensorboard"]), (False, [])])
def test_tensorboard_is_on_where_it_is_installed(
    monkeypatch: pytest.MonkeyPatch, installed: bool, names: list[str]
) -> None:
    monkeypatch.setattr("components.sinks.base.find_spec", lambda name: object() if installed else None)
    assert [name for name, _ in chosen_sinks(settings())] == names
    assert [name for name, _ in chosen_sinks(settings("sinks.tensorboard=null"))] == []
    check_sinks(settings())


@pytest.mark.parametrize("kind", ["tensorboard", "mlflow", "wandb", "trackio"])
def test_one_that_is_named_and_not_installed_is_an_error_with_the_command(
    monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr("components.sinks.base.find_spec", lambda name: None)
    with pytest.raises(InputError, match="the package of this sink is not installed") as caught:
        check_sinks(settings(f"sinks.mine={{kind: {kind}}}"))
    assert caught.value.where == "sinks.mine" and f"-e '.[{kind}]'" in str(caught.value.how)


def test_a_password_is_refused_and_not_repeated() -> None:
    with pytest.raises(InputError, match="MLFLOW_TRACKING_PASSWORD") as caught:
        settings("sinks.mine={kind: mlflow, uri: 'http://me:secret@tracker'}")
    assert "secret" not in str(caught.value)


def test_the_parameters_of_a_run_are_its_settings_without_rules_and_sinks() -> None:
    found = dict(parameters(settings()))
    assert (found["seed"], found["train.steps"]) == (0, settings().train.steps)
    assert not [name for name in found if name.startswith(("health.rules.", "sinks"))]


def test_every_kind_of_the_settings_has_an_entry_and_every_entry_a_model_of_its_settings() -> None:
    assert {"tensorboard", "mlflow", "wandb", "trackio", "prometheus"} == set(SINKS)
    assert SINKS["mlflow"].settings is MlflowSink


def test_nothing_of_a_tracker_is_imported_before_it_is_opened() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in Path(found_sinks.__file__).parent.glob("*.py"))
    lines = [line for line in text.splitlines() if line.startswith(("import ", "from "))]
    assert not [one for one in lines if one.split()[1].split(".")[0] in ("tensorboard", "mlflow", "wandb", "trackio")]


def test_a_look_at_a_long_log_goes_on_from_its_place(log: Log) -> None:
    log.steps(0, 50)
    rows = Rows([log.records])
    assert len(rows.read(0, 50)) == 50
    log.records.write_bytes(b"x" * log.records.stat().st_size)  # a second look at it would be an error
    log.steps(50, 51)
    assert [row["step"] for row in rows.read(50, 10)] == [50]
