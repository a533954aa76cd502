"""A run's signals, verdicts and responses for Prometheus: scraped over HTTP, or in a file for node_exporter.

Metrics, each with the label ``run``:

- ``evenkeel_<signal>``: a gauge of every name in `SIGNALS`. It keeps its last value in steps that do not measure it.
- ``evenkeel_<prefix>{name}``: the same for names that the settings give, such as ``evenkeel_canary{name="fairness"}``.
- ``evenkeel_step``: the latest step; ``evenkeel_running``: 1 until the run ends.
- ``evenkeel_verdicts_total{rule, level}``, ``evenkeel_responses_total{rule, level}``: counters, from 0 for every rule
  that is configured, so that the first event shows as an increase.

Counters restart from 0 when a run is resumed, which Prometheus expects of counters.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from prometheus_client import CollectorRegistry, generate_latest, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from components.config.judgement import RuleSettings
from components.errors import InputError
from components.files import write_text
from components.health.monitor import LEVELS
from components.health.signals import PREFIXES, SIGNALS, find_signal
from components.types import Level, Response, StepRecord, Verdict

LOOPBACK = "127.0.0.1"
"""Only this machine can read the figures; put a proxy in front to publish them."""
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


class Exporter(Collector):
    """Exports a run while it trains; use it as a context manager. One that cannot start raises. One that fails later
    says so once on stderr and goes off: what shows a training must not end it.

    Args:
        run: the run's name.
        rules: those that watch.
        textfile: written whole after every step; node_exporter wants a name that ends in .prom.
        port: served on ``host``; 0 takes a free one. Neither file nor port: nothing is exported.
    """

    def __init__(
        self,
        run: str,
        rules: Mapping[str, RuleSettings],
        textfile: Path | None = None,
        port: int | None = None,
        host: str = LOOPBACK,
    ) -> None:
        acting = LEVELS[LEVELS.index("intervene") :]
        self._verdicts: Events = Counter({(name, rule.level): 0 for name, rule in rules.items()})
        self._responses: Events = Counter(
            {(name, level): 0 for name, rule in rules.items() if rule.level in acting for level in acting}
        )
        self._textfile, self._wanted, self._host = textfile, port, host
        self._registry = CollectorRegistry()
        self._registry.register(self)
        self._figures = Figures(run, verdicts=dict(self._verdicts), responses=dict(self._responses))
        self._off = False
        self.port: int | None = None
        """Where it serves, once it does."""

    def collect(self) -> Iterator[Metric]:
        """Called by the registry, in the thread of a scrape."""
        return self._figures.collect()

    def __enter__(self) -> Self:
        """Start serving.

        Raises:
            InputError: the port is taken, or the file cannot be written.
        """
        self._write()
        if self._wanted is not None:
            try:
                self._server, self._thread = start_http_server(self._wanted, addr=self._host, registry=self._registry)
            except OSError as error:
                raise InputError(
                    f"cannot serve metrics: {error.strerror or error}",
                    where=f"{self._host}:{self._wanted}",
                    how="choose another health.prometheus.port, or null",
                ) from error
            self.port = self._server.server_port
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._attempt(self._close)
        self._attempt(lambda: self._show(running=False))

    def observe(self, record: StepRecord, verdicts: Sequence[Verdict], responses: Sequence[Response] = ()) -> None:
        """One finished step, and what was said and done in it; never raises."""
        self._attempt(lambda: self._observe(record, verdicts, responses))

    def _attempt(self, act: Callable[[], None]) -> None:
        """Go off where it fails. Nothing is served then: an endpoint that is down is noticed, one that stands still is
        not."""
        if self._off:
            return
        try:
            act()
        except Exception as error:
            self._off = True
            with suppress(Exception):  # a broken pipe, for one
                said = f"{type(error).__name__}: {error}"
                print(f"health.prometheus is off from here on ({said}); training goes on", file=sys.stderr, flush=True)
            with suppress(Exception):
                self._close()

    def _close(self) -> None:
        if self.port is not None:
            self.port = None
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()

    def _observe(self, record: StepRecord, verdicts: Sequence[Verdict], responses: Sequence[Response]) -> None:
        self._verdicts.update((verdict.rule, verdict.level) for verdict in verdicts)
        self._responses.update((response.rule, response.level) for response in responses)
        self._show(step=record.step, signals={**self._figures.signals, **record.signals})

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
