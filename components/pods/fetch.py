"""Brings a run's input into a folder: ``python -m components.pods.fetch s3://bucket/prefix/<run> FOLDER``.

What the container ``fetch`` does before the others of its pod begin. It may be interrupted and repeated.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from components.errors import EXIT_STOPPED, EvenkeelError
from components.pods import parcels
from components.pods.depot import Depot
from components.pods.ending import leave, status_of
from components.processes.stopping import STOPPING, StopRequested

INPUT = "input.json"


def main(arguments: Sequence[str] | None = None) -> int:
    """Fetch it; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m components.pods.fetch", description="Bring a run's input here.")
    parser.add_argument("uri", help="the run's files, s3://bucket/prefix/run")
    parser.add_argument("folder", type=Path)
    options = parser.parse_args(arguments)
    try:
        with STOPPING.on_signal():  # else a process with the number 1 ignores SIGTERM
            bucket = Depot.of(options.uri).bucket("input")
            parcel = parcels.read(bucket, INPUT)
            parcels.fetch(bucket, parcel, options.folder)
            print(f"fetch: {len(parcel.files)} files in {options.folder}")
            return 0
    except StopRequested:
        return EXIT_STOPPED
    except EvenkeelError as error:
        print(f"fetch: {error}", file=sys.stderr, flush=True)
        return leave(status_of(error))


if __name__ == "__main__":
    sys.exit(main())
