"""What remains of a run: its record, its branch, and its outputs and inputs in the DVC remote.

- `record` — `run.json`: what ran, on what, how it ended, and every figure
- `machine` — the machine and the packages, for when a result does not come out again
- `inputs` — what neither Git nor DVC knew is put under DVC
- `keeping` — all of that at the end of a run, on the run's branch (`flows.branches`), and the push; what was kept is in
  the workspace's `.state/recording.json`
- `reproduction` — the branch checked out and executed anew; `comparison` — what came out, beside what was recorded
"""

from flows.recording.keeping import Kept, keep, read_kept, recorded
from flows.recording.record import RunRecord, read_record

__all__ = ["Kept", "RunRecord", "keep", "read_kept", "read_record", "recorded"]
