"""Is this run healthy? Signals in, verdicts out; no torch, no I/O besides `records`.

- `signals` — `SIGNALS`, what every number of a step means, and how those of its groups are computed
- `invariants` — `INVARIANTS`, what holds in every step of a sound run; `sampling_rules` — what a step is checked by,
  and what holds of everything that is sampled
- `sequential` — tests of counts that may be looked at after every step: whether completions are drawn independently,
  and updates do what they are made for
- `falls` — held-out accuracy, by family, and whether held-out completions end, can be judged, and have a usual length
- `diagnosis` — which part of a run is to blame
- `windows` — what is remembered of a signal, in bounded memory; `WINDOWS`, the functions over it that a rule may call
- `rules` — from the text of a rule to a checked condition
- `monitor` — applies rules step by step; the same code replays a saved run
- `responses` — from verdicts to bounded actions, and the ledger of both
- `records` — reads a saved run and its ledger back; the steps that roll-backs threw away
- `readers` — reads the logs of TRL, verl, prime-rl and others; `rulebook` a file of rules
- `callback` — the monitor inside a training of TRL; imported by those who need it, for it needs transformers
- `limits` — the constants that rules compare signals with
- `summaries` — a run's health in sentences; `grafana` — a dashboard of what `components.sinks.prometheus` shows

A new signal is one entry in `SIGNALS`, a new function one in `WINDOWS`, a new knob one in `KNOBS`, a new rule one in
`configs/health/`.
"""
