"""``python -m components <stage>``, see `components.command`; says so before it loads what takes seconds to load.

Under torchrun rank 0 runs the stage, and the others follow it.
"""

from __future__ import annotations

import gc
import os
import signal
import sys

from components.processes.ranked import die_with_parent, is_ranked

if __name__ == "__main__":
    if is_ranked(os.environ):
        die_with_parent()
    if is_ranked(os.environ) and os.environ["RANK"] != "0":
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # before any library starts a thread
        from components.command import follow

        code = follow()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)  # the ordinary way out waits for ranks that may be gone
    from components.loading import without_collection
    from components.progress import reporting
    from components.working import working

    with reporting(next(iter(sys.argv[1:]), "components")), working("loading the code"), without_collection():
        from components.command import main
    code = main()
    gc.freeze()  # or the interpreter looks through everything once more, which takes a second
    sys.exit(code)
