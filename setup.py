"""Puts into a wheel the files of this folder that a project begins with; `components/config/shipped.py` finds them."""

from pathlib import Path
from shutil import copytree, ignore_patterns

from setuptools import setup
from setuptools.command.build_py import build_py

FILES = ("dvc.yaml", "prefect.yaml", "constraints.txt", ".dvcignore", ".dvc/config", ".dvc/.gitignore")


class WithFiles(build_py):
    def run(self) -> None:
        super().run()
        if self.editable_mode:  # then this folder itself is used
            return
        target = Path(self.build_lib) / "components" / "shipped"
        copytree("configs", target / "configs", dirs_exist_ok=True, ignore=ignore_patterns("__pycache__"))
        for name in FILES:
            self.mkpath(str((target / name).parent))
            self.copy_file(name, str(target / name))


setup(cmdclass={"build_py": WithFiles})
