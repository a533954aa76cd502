"""The container ``rollout``: ``python -m components.pods.server COMMAND...`` runs a server that must not end.

A job takes exit code 0 for the end of its work, and vLLM leaves with it when its engine has died. So a server that ends
by itself has failed, whatever it says, and its pod is replaced. It runs in the server's own environment and needs
nothing but psutil.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence

from components.errors import EXIT_STOPPED
from components.pods.child import FirstProcess

FAILED = 1


def main(command: Sequence[str] | None = None) -> int:
    """Run the command until it ends or is stopped; returns the exit code of the container."""
    first = FirstProcess()
    code = first.run(sys.argv[1:] if command is None else command)
    if signal.SIGTERM in first.received:
        return EXIT_STOPPED
    print(f"server: it ended by itself, with exit code {code}", file=sys.stderr, flush=True)
    return code or FAILED


if __name__ == "__main__":
    sys.exit(main())
