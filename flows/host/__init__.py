"""Tools of this machine: Git, DVC, locks and processes.

- `git` — records the code of a run as a commit; `branches` — the branch of a run
- `dvc` — DVC's commands, configuration and locks
- `locks` — file locks; `processes` — child processes that end with their run
- `doctor` — checks of this machine and this project
"""
