"""What `--json` prints, a command a line: its keys. Later versions add keys, and rename none."""

from __future__ import annotations

ONE_RUN = "one run: as in `status`, and `stages`, `settings`, `processes`, `logs`, `next`"
OUTPUTS: dict[str, str] = {
    "status": "a list of runs: `run`, `state`, `flow`, `stage`, `done`, `total`, `says`, `began`, `ended`, `seconds`, "
    "`candidate`, `reason`, `pid`, `flow_run`, `workspace`, `waiting` (null, or `candidate`, `run`, `since`, "
    "`waits_for`, `suspended`, `decide`); a candidate of no run that is here has `run`, `state`, `candidate`, "
    f"`waiting`. With RUN {ONE_RUN}",
    "run": f"{ONE_RUN}. With `--dry-run`: `run`, `workspace`, `commit`, `clean`, `states`, `stages`, `seconds`, `low`, "
    "`high`, `gpu_hours`, `refused`, `settings`",
    "launch": "as `run`; with `--dry-run` the manifests are the output",
    "adopt": "as `run`",
    "nightly": "as `run`; where there is nothing new `run` (null) and `says`",
    "compare": "by the letters of the runs: `runs`, `settings`, `curves`, `evaluation` (`suites`, `over_sft`, "
    "`pairs`), `costs`",
    "audit-verifier": "the content of `out/audit.json`",
    "audit": "`log`, `format`, `trainer`, `steps`, `first_step`, `last_step`, `signals`, `remarks`, `unread`, "
    "`proposal`, `verdicts`, `worst`, `judged`, `unjudged`, `too_short`, `exit_code`",
    "gate": "`run`, `result`, `before`, `rules`, `checks`",
    "rules": "name of a rule -> its settings",
    "plan": "`fits`, `room`, `parameters`, `trainable`, `processes`, `lacks`, `helps`, `others`; sizes in bytes",
    "version": "name of a package, `python`, `commit` -> its version; null where there is none",
    "doctor": "a list of checks: `name`, `state`, `finding`, `fix`",
    "history": "a list: the promotion records as they are stored",
    "show": "`digest`, `evidence`, `names`, `run`, `state`, `gate`, `decision`, `approvals`",
    "verify": "a list: what was looked at, and whether it holds",
    "reproduce": "what differs, as `.state/comparison.json` of the workspace has it",
    "janitor": "a list of what was removed, or was not, and why",
    "cluster status": "a list of runs on the cluster; with RUN one, and its `findings`",
}
