"""Requests a person's approval of a candidate, with a Prefect flow that is suspended until a person answers.

- `suspension` — the text that is shown, the request, and the suspension
- `report` — the report page, with what is known since the run, and the addresses of all pages
- `rounds` — requests and answers of this flow run, one at a time
- `answers` — the form; turns an answer into an approval or a rejection; what is decided, or what is missing
- `waiting_runs` — what was shown, stored in the registry; runs that wait, and resuming them, without importing Prefect

The body of the flow is `flows.promote`. A suspended run has no process. When it resumes it starts again from its first
line, with the code of that time, and checks everything again.
"""
