"""Files that come with the package: configurations, recipes, health rules, the pipeline, the tested set of packages.

In a checkout they lie in its top folder; a wheel has them inside of this package (`setup.py`).
"""

from __future__ import annotations

import shlex
from pathlib import Path

INSTALLED = Path(__file__).parents[1] / "shipped"
SHIPPED = INSTALLED if INSTALLED.is_dir() else Path(__file__).parents[2]
"""The folder around them."""
PROJECT_CONFIGS = SHIPPED / "configs"
PREFIX = "evenkeel:"


def install(extra: str = "", *, tested: bool = True) -> str:
    """The command that installs what is missing: in a checkout by its folder, elsewhere for the installed package.

    Args:
        tested: with the versions of the working folder's `constraints.txt`, where there is one.
    """
    extras = f"[{extra}]" if extra else ""
    constraints = "-c constraints.txt " if tested and Path("constraints.txt").is_file() else ""
    what = f"-e {shlex.quote(f'.{extras}')}" if SHIPPED.resolve() == Path.cwd() else shlex.quote(f"evenkeel{extras}")
    return f"pip install {constraints}{what}"


def packaged(name: Path | str) -> Path | None:
    """The file that ``evenkeel:demo.yaml`` names, inside of `PROJECT_CONFIGS`; None for any other path."""
    text = str(name)
    return PROJECT_CONFIGS / text.removeprefix(PREFIX) if text.startswith(PREFIX) else None
