"""Where the rows came from, and that they stay the same while they are read twice."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from components.config.data import DataSettings
from components.config.environments import VerifiersSource
from components.config.pins import GYM, check_digest, check_version
from components.config.reasoning_gym import ReasoningGymSource
from components.config.sources import FileSource, PythonSource
from components.config.targets import check_code, locate
from components.data.candidates import Candidate
from components.data.sources import SOURCES
from components.errors import InputError

DIGEST = re.compile("[0-9a-fA-F]{64}")


@dataclass(frozen=True, slots=True)
class Provenance:
    """A source by name and digest, and whether its labels are trusted without an audit.

    ``trust`` says why: ``generated`` (the labels were computed), ``allow-listed`` (data.trusted holds the digest) or
    ``none``. A name vouches for nothing: any file can be called so.
    """

    name: str
    kind: str
    file: str | None
    sha256: str | None
    trust: str

    @property
    def trusted(self) -> bool:
        return self.trust != "none"

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "trusted": self.trusted}


class Passes:
    """A source that is read more than once and must give the same rows every time.

    Raises:
        InputError: the input is missing, is not the one whose digest is pinned, or is to be trusted by its name.
    """

    def __init__(self, data: DataSettings, seed: int) -> None:
        self._source, self._seed = data.source, seed
        self._made: list[Candidate] | None = None
        self.provenance = _provenance(data)

    def __call__(self) -> Iterator[Candidate]:
        """The rows, from the beginning. What is generated is generated once."""
        reader = SOURCES[self._source.kind]
        if isinstance(self._source, FileSource):
            return reader(self._source, self._seed)
        if self._made is None:
            self._made = list(reader(self._source, self._seed))
        return iter(self._made)

    def check_unchanged(self) -> None:
        """Compare the digest with that of the beginning."""
        if isinstance(self._source, FileSource):
            try:
                check_digest(self._source.path, self.provenance.sha256)
            except InputError as error:
                raise self.changed() from error

    def changed(self) -> InputError:
        """The error for rows that differ from one reading to the next."""
        return InputError(
            "the source changed while it was read",
            where=getattr(self._source, "path", "data.source"),
            how="let whoever writes the file finish, or copy it, and run the stage again",
        )


def _provenance(data: DataSettings) -> Provenance:
    source = data.source
    if isinstance(source, ReasoningGymSource):
        return Provenance(f"{GYM} {check_version(source.version)}", source.kind, None, None, "generated")
    if isinstance(source, VerifiersSource):
        return Provenance(source.target, source.kind, None, check_code(source, locate(source)), "generated")
    if isinstance(source, PythonSource):
        digest = check_code(source, locate(source))
        return Provenance(source.name or source.target, source.kind, None, digest, _vouched(digest, data))
    if not isinstance(source, FileSource):
        return Provenance(source.task, source.kind, None, None, "generated")
    digest, name = check_digest(source.path, source.sha256), source.name or source.path.stem
    if names := [entry for entry in data.trusted if not DIGEST.fullmatch(entry)]:
        raise InputError(
            f"{names[0]!r} is no sha256 digest, and a file is not trusted for what it is called",
            where="data.trusted",
            how=f"if you vouch for the labels of {source.path.name}, give its digest: {digest}",
        )
    return Provenance(name, source.kind, source.path.name, digest, _vouched(digest, data))


def _vouched(digest: str | None, data: DataSettings) -> str:
    return "allow-listed" if digest in {entry.casefold() for entry in data.trusted} else "none"
