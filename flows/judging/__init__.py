"""Judging what exists already: `audit_log` — the health rules over any trainer's log; `rejudge` — the gate over a
finished run; `rules` — a file of health rules, printed."""
