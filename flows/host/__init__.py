"""Tools of this machine: Git, DVC, locks and processes.

- `git` — records the code of a run as a commit; `branches` — the branch of a run
- `dvc` — DVC's configuration, locks and commands; `dvc_process` — one process for all commands of a run, in which
  `dvc_commands` runs them and `dvc_yaml` reads and writes DVC's files
- `processes` — file locks, and child processes that end with their run
- `doctor` — checks of this machine and this project
"""
