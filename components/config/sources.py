"""Where prompts come from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from components.config.base import Section
from components.config.tasks import Generated


class FileSource(Section):
    """Rows of a JSON-lines or Parquet file."""

    kind: Literal["jsonl", "parquet"]
    path: Path = Field(description="The file, relative to the folder where the command runs.")
    sha256: str | None = Field(None, description="Digest of the file; filled in when the configuration is resolved.")
    name: str = Field("", description="Name of the source in records; the file's stem when empty.")
    question: str = Field("question", description="Column of the question.")
    answer: str = Field("answer", description="Column of the reference answer or solution.")
    answer_pattern: str | None = Field(
        None, description="Regular expression whose first group is the final answer inside the answer column."
    )
    id: str | None = Field(None, description="Column of a unique id; ids are content hashes when absent.")
    family: str | None = Field(None, description="Column that names the family, for slices.")
    difficulty: str | None = Field(None, description="Column with a number, higher is harder.")


Source = Annotated[Generated | FileSource, Field(discriminator="kind")]
