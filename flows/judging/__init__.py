"""Judging what exists already: `audit_log` — the health rules over any trainer's log, and a file of rules, printed;
`rejudge` — the gate over a finished run."""
