"""``python -m components <stage>``, see `components.command`; says so before it loads what takes seconds to load.

Under torchrun rank 0 runs the stage, and the others follow it.
"""

from __future__ import annotations

import os
import sys

from components.progress import reporting
from components.working import working

if __name__ == "__main__":
    if os.environ.get("RANK", "0") != "0":
        from components.command import follow

        sys.exit(follow())
    with reporting(next(iter(sys.argv[1:]), "components")), working("loading the code"):
        from components.command import main
    sys.exit(main())
