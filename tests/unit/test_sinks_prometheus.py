"""What Prometheus reads of a run, and the dashboard that is drawn from it."""

from __future__ import annotations

import re
import socket
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from components.config import load
from components.config.judgement import PrometheusSettings, RuleSettings
from components.errors import InputError
from components.files import append_line, dump_json
from components.health.grafana import acting_signals, dashboard, thresholds
from components.health.limits import limits
from components.health.signals import PREFIXES, SIGNALS
from components.layout import Layout
from components.sinks.base import Batch, Note, Run, Step
from components.sinks.delivery import Delivery
from components.sinks.feed import Feed
from components.sinks.prometheus import Prometheus, metric_of
from components.types import Response, StepRecord, Verdict
from tests.code_graph import ROOT

RULES = load(ROOT / "configs/demo.yaml").health.rules
FEW = {
    "low": RuleSettings(when="entropy < 0.5", level="warn", why="low"),
    "broken": RuleSettings(when="nonfinite > 0", level="stop", why="broken"),
}
HERE = {"textfile": None, "port": None, "host": "127.0.0.1"}
ALL = {name: 0.5 for name in SIGNALS} | {f"{prefix}x": 0.25 for prefix in PREFIXES}


def samples(text):
    """Sample -> value, the run's label left out."""
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = {name: value for name, value in sample.labels.items() if name != "run"}
            assert sample.labels["run"] == "demo"
            found[sample.name, tuple(sorted(labels.items()))] = sample.value
    return found


def scrape(exporter):
    with urllib.request.urlopen(f"http://127.0.0.1:{exporter.port}/metrics", timeout=10) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain")
        return samples(answer.read().decode())


def made(rules, **settings):
    return Prometheus(Run("demo", "", Path()), PrometheusSettings.model_construct(**{**HERE, **settings}), rules)


@contextmanager
def opened(rules, **settings):
    exporter = made(rules, **settings)
    try:
        yield exporter
    finally:
        exporter.close()


def observe(exporter, step, signals, verdicts=(), responses=()):
    notes = tuple(Note(number, one.step, "", "", True, one) for number, one in enumerate(responses))
    exporter.send(Batch(0.0, (Step(step, {}, signals, tuple(verdicts)),), notes))


def response(level):
    return Response(1, 7, "broken", "stop", level, "why", {}, (), None, ())


def test_a_scrape_over_http_gives_the_signals_of_the_latest_step():
    with opened(FEW, port=0) as exporter:
        assert scrape(exporter)["evenkeel_running", ()] == 1
        observe(exporter, 6, {"entropy": 0.5})
        observe(exporter, 7, {"entropy": 0.25, "canary_fairness": 0.9})
        found = scrape(exporter)
    assert found["evenkeel_step", ()] == 7
    assert found["evenkeel_entropy", ()] == 0.25
    assert found["evenkeel_canary", (("name", "fairness"),)] == 0.9


def test_it_serves_this_machine_only_and_no_longer_than_the_run():
    with opened(FEW, port=0) as exporter:
        port = exporter.port
        assert exporter._server.server_address[0] == "127.0.0.1"
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=5)


def test_a_port_that_is_taken_is_an_error_that_names_the_setting():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match="cannot serve metrics") as caught, opened(FEW, port=port):
            pass
    assert (caught.value.where, "health.prometheus.port" in caught.value.how) == (f"127.0.0.1:{port}", True)


def test_the_textfile_is_whole_after_every_step_and_says_when_the_run_is_over(tmp_path: Path):
    path = tmp_path / "metrics" / "evenkeel.prom"
    with opened(FEW, textfile=path) as exporter:
        observe(exporter, 0, ALL)
        assert samples(path.read_text())["evenkeel_running", ()] == 1
        assert samples(path.read_text())["evenkeel_step", ()] == 0
    assert samples(path.read_text())["evenkeel_running", ()] == 0
    assert [file.name for file in path.parent.iterdir()] == ["evenkeel.prom"]


def broken(monkeypatch):
    def refuse(*_):
        raise InputError("cannot write: No space left on device")

    monkeypatch.setattr("components.sinks.prometheus.write_text", refuse)


def test_where_it_cannot_write_any_more_nothing_is_served_either(tmp_path: Path, monkeypatch):
    said = []
    feed = Feed(Layout(tmp_path), dict, 0)
    delivery = Delivery(
        "it", lambda: made(FEW, textfile=tmp_path / "a.prom", port=0), lambda *_: feed, None, said.append
    )
    append_line(tmp_path / ".state/train/records.jsonl", StepRecord(0, {"entropy": 0.5}).to_dict())
    delivery.open()
    port = delivery._sink.port
    broken(monkeypatch)
    assert not delivery.attempt()
    assert len(said) == 1 and "No space left on device" in said[0]
    with pytest.raises(ConnectionRefusedError):  # rather nothing than figures that stand still
        socket.create_connection(("127.0.0.1", port), timeout=5)


def test_an_exporter_that_cannot_write_from_the_start_is_an_error(tmp_path: Path, monkeypatch):
    broken(monkeypatch)
    with pytest.raises(InputError, match="cannot write"), opened(FEW, textfile=tmp_path / "evenkeel.prom"):
        pass


def test_nothing_is_written_and_nothing_served_where_neither_is_asked_for(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with opened(FEW) as exporter:
        observe(exporter, 0, {"entropy": 1.0})
        assert exporter.port is None
    assert list(tmp_path.iterdir()) == []


def test_a_signal_that_a_step_does_not_measure_keeps_its_last_value():
    exporter = made(FEW)
    observe(exporter, 0, {"dev_pass_at_1": 0.4, "entropy": 1.0})
    observe(exporter, 1, {"entropy": 0.9})
    found = samples(exporter.text())
    assert (found["evenkeel_dev_pass_at_1", ()], found["evenkeel_entropy", ()]) == (0.4, 0.9)


def test_events_are_counted_by_rule_and_level_from_zero_so_that_the_first_one_is_an_increase():
    exporter = made(FEW)
    before = samples(exporter.text())
    observe(exporter, 0, {}, [Verdict("low", "warn", 0, "why")])
    observe(exporter, 7, {}, [Verdict("broken", "stop", 7, "why")], [response("rollback")])
    after = samples(exporter.text())
    for kind, rule, level in (
        ("verdicts", "low", "warn"),
        ("verdicts", "broken", "stop"),
        ("responses", "broken", "rollback"),
    ):
        key = f"evenkeel_{kind}_total", (("level", level), ("rule", rule))
        assert (before[key], after[key]) == (0, 1)
    assert after["evenkeel_responses_total", (("level", "stop"), ("rule", "broken"))] == 0
    assert not [labels for name, labels in after if name == "evenkeel_responses_total" and ("rule", "low") in labels]


@pytest.mark.parametrize(
    ("signal", "expected"),
    [
        ("entropy", ("evenkeel_entropy", None)),
        ("zero_variance_cluster_max", ("evenkeel_zero_variance_cluster_max", None)),
        ("zero_variance_cluster_3", ("evenkeel_zero_variance_cluster", "3")),
        ('part_over-long "x"', ("evenkeel_part", 'over-long "x"')),
    ],
)
def test_a_name_that_the_settings_give_is_a_label_and_can_be_anything(signal, expected):
    assert metric_of(signal) == expected
    exporter = made(FEW)
    observe(exporter, 0, {signal: 0.125})
    metric, name = expected
    assert samples(exporter.text())[metric, () if name is None else (("name", name),)] == 0.125


def test_an_undocumented_signal_has_no_metric():
    with pytest.raises(ValueError, match="undocumented signal: vibes"):
        metric_of("vibes")


def test_every_documented_signal_is_exported_under_a_name_of_its_own():
    exporter = made(RULES)
    observe(exporter, 0, ALL)
    gauges = [key for key, _ in samples(exporter.text()).items() if not key[0].endswith("_total")]
    assert len(gauges) == len(ALL) + 2


def test_the_dashboard_file_is_the_one_that_the_rules_make():
    command = "python -m components.health.grafana > configs/health/grafana.json"
    text = (ROOT / "configs/health/grafana.json").read_text(encoding="utf-8")
    assert text == dump_json(dashboard(RULES)), f"out of date: {command}"


def test_every_metric_that_the_dashboard_names_is_exported_with_the_labels_it_uses():
    exporter = made(RULES)
    observe(exporter, 0, ALL)
    exported = {}
    for family in text_string_to_metric_families(exporter.text()):
        for sample in family.samples:
            exported.setdefault(sample.name, set()).update(sample.labels)
    board = dashboard(RULES)
    queries = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    queries += [one["expr"] for one in board["annotations"]["list"]] + [board["templating"]["list"][1]["definition"]]
    for query in queries:
        (metric,) = re.findall(r"evenkeel_\w+", query)
        labels = re.findall(r"(\w+)=~?\"", query)
        assert set(labels) <= exported[metric], query
    signals = {panel["title"] for panel in board["panels"]} & set(SIGNALS)
    assert signals == set(acting_signals(RULES)) & set(SIGNALS)


def test_every_signal_of_a_rule_that_acts_has_a_panel_and_those_of_mere_warnings_have_none():
    assert acting_signals(FEW) == {"nonfinite": ["broken"]}
    titles = [panel["title"] for panel in dashboard(FEW)["panels"]]
    assert titles == ["Step", "Verdicts so far", "Responses so far", "nonfinite"]


def test_panels_do_not_overlap_and_have_ids_of_their_own():
    panels = dashboard(RULES)["panels"]
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels]
    assert len(set(places)) == len({panel["id"] for panel in panels}) == len(panels)
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in panels)


@pytest.mark.parametrize(
    ("rules", "steps"),
    [
        ([("entropy < 0.5", "warn")], [("yellow", None), ("transparent", 0.5)]),
        ([("nonfinite > 0", "stop")], [("transparent", None), ("red", 0.0)]),
        ([("ess > 0.7", "warn"), ("ess > 0.9", "stop")], [("transparent", None), ("yellow", 0.7), ("red", 0.9)]),
        ([("ess < 0.1", "stop"), ("ess > 0.9", "warn")], [("red", None), ("transparent", 0.1), ("yellow", 0.9)]),
    ],
)
def test_thresholds_have_the_colour_of_the_gravest_rule_beyond_them(rules, steps):
    settings = {f"r{i}": RuleSettings(when=when, level=level, why="why") for i, (when, level) in enumerate(rules)}
    assert [(step["color"], step["value"]) for step in thresholds(limits(settings))] == steps
