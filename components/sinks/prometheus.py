"""A run's signals, verdicts and responses for Prometheus: scraped over HTTP, or in a file for node_exporter.

Metrics, each with the label ``run``:

- ``evenkeel_<signal>``: a gauge of every name in `SIGNALS`. It keeps its last value in steps that do not measure it.
- ``evenkeel_<prefix>{name}``: the same for names that the settings give, such as ``evenkeel_canary{name="fairness"}``.
- ``evenkeel_step``: the latest step; ``evenkeel_running``: 1 until the run ends.
- ``evenkeel_verdicts_total{rule, level}``, ``evenkeel_responses_total{rule, level}``: counters, from 0 for every rule
  that is configured, so that the first event shows as an increase.

It is in the process of the training, whose pod or machine is scraped, and follows the log like every sink. Each start
counts from the first step on, so that a resumed run shows what it showed before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, generate_latest, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from components.config.judgement import PrometheusSettings, RuleSettings
from components.errors import InputError
from components.files import write_text
from components.health.monitor import LEVELS
from components.health.signals import PREFIXES, SIGNALS, find_signal
from components.sinks.base import Batch, Run, Sink
from components.types import Level, Response

Events = Counter[tuple[str, Level]]
"""How often, by rule and level."""


def metric_of(signal: str) -> tuple[str, str | None]:
    """The metric of a signal, and its label ``name`` where it is one of a prefix.

    Raises:
        ValueError: no such signal.
    """
    if signal in SIGNALS:
        return f"evenkeel_{signal}", None
    for prefix in PREFIXES:
        if signal.startswith(prefix) and signal != prefix:
            return f"evenkeel_{prefix.removesuffix('_')}", signal.removeprefix(prefix)
    raise ValueError(f"undocumented signal: {signal}")


@dataclass(frozen=True)
class Figures(Collector):
    """What is exported at one moment. Never changed, so that a scrape in its own thread sees one step whole."""

    run: str
    step: int | None = None
    running: bool = True
    signals: Mapping[str, float] = field(default_factory=dict)
    verdicts: Mapping[tuple[str, Level], int] = field(default_factory=dict)
    responses: Mapping[tuple[str, Level], int] = field(default_factory=dict)

    def collect(self) -> Iterator[Metric]:
        yield self._gauge("evenkeel_running", "1 while the run trains", float(self.running))
        if self.step is not None:
            yield self._gauge("evenkeel_step", "latest step", self.step)
        families: dict[str, GaugeMetricFamily] = {}
        for signal, value in sorted(self.signals.items()):
            metric, name = metric_of(signal)
            if metric not in families:
                known = find_signal(signal)
                meaning = f"{known.meaning} ({known.unit})" if known else ""
                families[metric] = GaugeMetricFamily(
                    metric, meaning, labels=["run"] if name is None else ["run", "name"]
                )
            families[metric].add_metric([self.run] if name is None else [self.run, name], value)
        yield from families.values()
        for kind, events in (("verdicts", self.verdicts), ("responses", self.responses)):
            counter = CounterMetricFamily(
                f"evenkeel_{kind}", f"{kind} by rule and level", labels=["run", "rule", "level"]
            )
            for (rule, level), count in sorted(events.items()):
                counter.add_metric([self.run, rule, level], count)
            yield counter

    def _gauge(self, metric: str, meaning: str, value: float) -> Metric:
        family = GaugeMetricFamily(metric, meaning, labels=["run"])
        family.add_metric([self.run], value)
        return family


class Prometheus(Sink, Collector):
    """Serves from the moment it is made until it is closed. Where it fails nothing is served: an endpoint that is down
    is noticed, one that stands still is not.

    Args:
        rules: those that watch.

    Raises:
        InputError: the port is taken, or the file cannot be written.
    """

    def __init__(self, run: Run, settings: PrometheusSettings, rules: Mapping[str, RuleSettings] | None = None) -> None:
        acting, known = LEVELS[LEVELS.index("intervene") :], rules or {}
        self._verdicts: Events = Counter({(name, rule.level): 0 for name, rule in known.items()})
        self._responses: Events = Counter(
            {(name, level): 0 for name, rule in known.items() if rule.level in acting for level in acting}
        )
        self._textfile = settings.textfile
        self._registry = CollectorRegistry()
        self._registry.register(self)
        self._figures = Figures(run.name, verdicts=dict(self._verdicts), responses=dict(self._responses))
        self._write()
        self.port: int | None = None
        """Where it serves, if it does."""
        if settings.port is not None:
            self._serve(settings.port, settings.host)

    def collect(self) -> Iterator[Metric]:
        """Called by the registry, in the thread of a scrape."""
        return self._figures.collect()

    def send(self, batch: Batch) -> None:
        signals = dict(self._figures.signals)
        for step in batch.steps:
            self._verdicts.update((verdict.rule, verdict.level) for verdict in step.verdicts)
            signals |= step.signals
        answers = [note.entry for note in batch.notes if isinstance(note.entry, Response)]
        self._responses.update((response.rule, response.level) for response in answers)
        self._show(step=batch.steps[-1].number if batch.steps else self._figures.step, signals=signals)

    def close(self) -> None:
        if self.port is not None:
            self.port = None
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()
        self._show(running=False)

    def _serve(self, port: int, host: str) -> None:
        try:
            self._server, self._thread = start_http_server(port, addr=host, registry=self._registry)
        except OSError as error:
            raise InputError(
                f"cannot serve metrics: {error.strerror or error}",
                where=f"{host}:{port}",
                how="choose another health.prometheus.port, or null",
            ) from error
        self.port = self._server.server_port

    def _show(self, **changed: object) -> None:
        counted = {"verdicts": dict(self._verdicts), "responses": dict(self._responses)}
        self._figures = Figures(**{**vars(self._figures), **counted, **changed})
        self._write()

    def _write(self) -> None:
        if self._textfile is not None:
            write_text(self._textfile, self.text())

    def text(self) -> str:
        """All of it in Prometheus' text format."""
        return generate_latest(self._registry).decode()
