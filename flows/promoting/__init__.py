"""Requests a person's approval of a candidate, with a Prefect flow that is suspended until a person answers.

- `form` — the form; `evidence` — the text above it
- `report` — the report page, with what is known since the run, and the addresses of all pages
- `request` — what was shown, stored in the registry; `rounds` — requests and answers of this flow run
- `suspension` — sends the request and suspends; `answers` — turns an answer into an approval or a rejection
- `outcome` — what is decided, or what is missing; `duplicates` — one request per candidate at a time
- `waiting_runs` — runs that wait, and resuming them, without importing Prefect; `registries` — the registry of a run

The body of the flow is `flows.promote`. A suspended run has no process. When it resumes it starts again from its first
line, with the code of that time, and checks everything again.
"""
