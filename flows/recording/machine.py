"""What a result may depend on that is neither in the settings nor in the code."""

from __future__ import annotations

import functools
import importlib.metadata
import platform
import re
from pathlib import Path

from components.config.base import Section


class Machine(Section):
    """The machine of a run, and the packages that `constraints.txt` pins."""

    python: str
    platform: str
    cpu: str
    packages: dict[str, str]


def this_machine(project: Path) -> Machine:
    """The present machine."""
    return Machine(
        python=platform.python_version(),
        platform=platform.platform(),
        cpu=cpu_model(),
        packages=packages(project / "constraints.txt"),
    )


def cpu_model(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """The name of the processor; its architecture where the system does not tell."""
    try:
        named = re.search(r"^model name\s*:\s*(.+)$", cpuinfo.read_text(encoding="utf-8"), re.MULTILINE)
    except OSError:
        named = None
    return named[1].strip() if named else platform.processor() or platform.machine()


def packages(constraints: Path) -> dict[str, str]:
    """Installed versions of what the file pins; what is not installed is left out."""
    if not constraints.is_file():
        return {}
    names = re.findall(r"^([\w.\-]+)==", constraints.read_text(encoding="utf-8"), re.MULTILINE)
    found = {}
    for name in sorted(names, key=str.lower):
        try:
            found[name] = _version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


@functools.cache
def _version(name: str) -> str:
    return importlib.metadata.version(name)


def differences(recorded: Machine, found: Machine) -> list[str]:
    """What is not the same on both, a line each."""
    pairs = [
        ("python", recorded.python, found.python),
        ("platform", recorded.platform, found.platform),
        ("processor", recorded.cpu, found.cpu),
    ]
    for name in sorted(recorded.packages | found.packages):
        before, now = (machine.packages.get(name, "not installed") for machine in (recorded, found))
        pairs.append((name, before, now))
    return [f"{what}: {before}, here {now}" for what, before, now in pairs if before != now]
