"""One run: its folder, its inputs, its stages.

- `workspace` — `runs/<run-id>`: recorded code, resolved settings; `inputs` — the data and models that it reads
- `stages` — one stage, brought up to date by DVC, with progress lines while it writes none
- `parameters` — the fields of the form that starts a run; `resumption` — continuing a stopped run
"""
