"""The process of one flow run in a pod of its own: ``python -m flows.serving.flow_run_pod``, see k8s/prefect.

Prefect's own runner, which ends a run that is cancelled and gives one back whose pod is evicted; `flow_run` leaves that
to a worker on the same machine. Here too a scheduled run that starts too late is skipped.
"""

from __future__ import annotations

import os
import sys

from flows.serving.flow_run import FLOW_RUN, START_WITHIN, skip_if_late

RUNNER = ("-m", "prefect", "flow-run", "execute")


def main() -> None:
    if START_WITHIN in os.environ and skip_if_late(os.environ[FLOW_RUN], float(os.environ[START_WITHIN])):
        return
    os.execv(sys.executable, [sys.executable, *RUNNER])


if __name__ == "__main__":
    main()
