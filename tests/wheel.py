"""The wheel of this project, and an environment that has it in place of this checkout. No network is needed."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

from flows.host.git import git
from tests.code_graph import ROOT


def tracked(*folders: str) -> list[str]:
    """Files of these folders that a commit of now would have."""
    listed = git(ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *folders)
    return [name for name in listed.split("\0") if (ROOT / name).is_file()]


def build(folder: Path) -> Path:
    """A wheel, built of a copy so that nothing is left in the checkout."""
    source = folder / "source"
    for name in tracked():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, source / name)
    call = f"from setuptools.build_meta import build_wheel; build_wheel({str(folder)!r})"
    subprocess.run([sys.executable, "-c", call], cwd=source, check=True, capture_output=True)
    return next(folder.glob("evenkeel-*.whl"))


def environment(wheel: Path, folder: Path) -> Path:
    """A virtual environment with the wheel, and with the packages of this one; returns its folder of programs."""
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    say = "import sysconfig; print(sysconfig.get_path('purelib'))"
    packages = Path(subprocess.run([python, "-c", say], check=True, capture_output=True, text=True).stdout.strip())
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)
    # Editable installs of that folder do not count: files of paths are read in folders of the environment itself only.
    (packages / "others.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    program = folder / "bin" / "evenkeel"
    program.write_text(f"#!{python}\nfrom flows.cli import main\nmain()\n", encoding="utf-8")
    program.chmod(0o755)
    return folder / "bin"
