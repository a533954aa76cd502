"""A project that uses the installed package has digests of its code in place of the code: `package/<stage>`.

DVC repeats the stages whose digest has changed, Git has them with every run, and what is installed is held against them
before a run and by every stage.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from components.config.documents import foreign
from components.config.shipped import SHIPPED
from components.errors import InputError
from components.files import read_text, sha256_bytes, sha256_file, sha256_json, write_text

FOLDER = "package"
CODE = "components"
CONSTRAINTS = "constraints.txt"
PINS = "# The package, and the versions that it was tested with, as `evenkeel update` writes them.\nevenkeel=="
HEAD = "# The pipeline of the installed package, as `evenkeel update` writes it. package/STAGE: digest of its code.\n"
UPDATE = "`evenkeel update` records what is installed, commit that; or install the version that constraints.txt has"


@cache
def pipeline() -> Mapping[str, dict[str, Any]]:
    """The stages of the package's own `dvc.yaml`."""
    path = SHIPPED / "dvc.yaml"
    found: dict[str, dict[str, Any]] = foreign(read_text(path), path)["stages"]
    return found


@cache
def digests() -> Mapping[str, str]:
    """Stage -> digest of the installed code that can change a byte of what it writes."""
    return {stage: _digest(entry["deps"]) for stage, entry in pipeline().items()}


def _digest(deps: Sequence[str]) -> str:
    top, paths = Path(__file__).parents[1], [path for path in deps if path.split("/")[0] == CODE]
    found = {file for path in paths for file in ([top / path] if (top / path).is_file() else (top / path).rglob("*"))}
    files = {file for file in found if file.is_file() and "__pycache__" not in file.parts}
    return sha256_json({file.relative_to(top).as_posix(): sha256_file(file) for file in files})


def own_pipeline() -> str:
    """The `dvc.yaml` of a project that uses the installed package."""
    stages = {}
    for stage, entry in pipeline().items():
        outputs = [path for path in entry["deps"] if path.split("/")[0] != CODE]
        stages[stage] = {**entry, "deps": [f"{FOLDER}/{stage}", *outputs]}
    return HEAD + yaml.safe_dump({"stages": stages}, sort_keys=False, allow_unicode=True, width=120)


def record(project: Path) -> list[str]:
    """Write pipeline and digests into a project; returns the stages whose code was another before."""
    changed = [stage for stage, digest in digests().items() if _recorded(project, stage) != digest]
    write_text(project / "dvc.yaml", own_pipeline())
    for stage in changed:
        write_text(project / FOLDER / stage, f"{digests()[stage]}\n")
    return changed


def own_constraints(version: str) -> str:
    """The `constraints.txt` of a project that uses this version of the package."""
    return f"{PINS}{version}\n{read_text(SHIPPED / CONSTRAINTS)}"


def pins_digest(project: Path) -> str:
    """Digest of a project's `constraints.txt` without the package itself, which images, made of a checkout, do not have
    as a package; empty where there is none."""
    path = project / CONSTRAINTS
    if not path.is_file():
        return ""
    text = read_text(path)
    return sha256_bytes((text.removeprefix(PINS).partition("\n")[2] if text.startswith(PINS) else text).encode())


def check_installed(folder: Path) -> None:
    """Refuse to work in a project, or a workspace of one, whose record is of other code than is installed. A checkout,
    which has the code itself, has no such record.

    Raises:
        InputError: with the stages whose code differs.
    """
    if not (folder / FOLDER).is_dir() or (folder / CODE).is_dir():
        return
    if other := [stage for stage, digest in digests().items() if _recorded(folder, stage) != digest]:
        what = f"the installed package has other code than is recorded, for {', '.join(other)}"
        raise InputError(what, where=folder / FOLDER, how=UPDATE)


def _recorded(project: Path, stage: str) -> str:
    path = project / FOLDER / stage
    return read_text(path).strip() if path.is_file() else ""
