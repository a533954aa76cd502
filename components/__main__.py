"""``python -m components <stage>``, see `components.command`; says so before it loads what takes seconds to load."""

from __future__ import annotations

import sys

from components.progress import reporting
from components.working import working

if __name__ == "__main__":
    with reporting(next(iter(sys.argv[1:]), "components")), working("loading the code"):
        from components.command import main
    sys.exit(main())
