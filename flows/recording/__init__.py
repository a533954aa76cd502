"""What remains of a run: its record, its branch, and its outputs and inputs in the DVC remote.

- `record` — `run.json`: what ran, on which machine with which packages, how it ended, and every figure
- `inputs` — puts inputs that neither Git nor DVC tracks under DVC
- `lineage` — where a candidate comes from, and who started the run; puts the checkpoint into the registry
- `storing` — writes all of that to the run's branch (`flows.host.branches`) at the end of a run, and pushes; the result
  is in the workspace's `.state/recording.json`
- `reproduction` — checks the branch out, executes it again, and compares the results with the record
"""

from flows.recording.record import RunRecord, read_record
from flows.recording.storing import RecordingResult, read_recording, recorded, store_run

__all__ = ["RecordingResult", "RunRecord", "read_record", "read_recording", "recorded", "store_run"]
