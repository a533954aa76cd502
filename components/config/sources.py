"""Where prompts come from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field, field_validator

from components.config.base import Section
from components.config.environments import VerifiersSource
from components.config.extensions import PythonEntry
from components.config.reasoning_gym import ReasoningGymSource
from components.config.tasks import Generated
from components.patterns import compile_pattern


class FileSource(Section):
    """Rows of a JSON-lines or Parquet file, or of a folder that `datasets` wrote with `save_to_disk`."""

    kind: Literal["jsonl", "parquet", "arrow"] = Field(
        description="JSON lines, Parquet, or (arrow) a folder that `datasets` wrote."
    )
    path: Path = Field(description="The file or folder, relative to the folder where the command runs.")
    split: str = Field("", description="Which split of an arrow folder that holds several.")
    format: Literal["columns", "gsm8k"] = Field(
        "columns",
        description="How the answer column is read: as it is (see answer_pattern), or as in a package of "
        "`components.tasks` that knows the published form.",
    )
    sha256: str | None = Field(None, description="Digest of the input; filled in when the configuration is resolved.")
    name: str = Field("", description="Name of the source in records; the file's stem when empty.")
    question: str = Field("question", description="Column of the question.")
    answer: str = Field(
        "answer",
        description="Column of the reference answer or solution. Of an answer alone the solution becomes the answer "
        "where the verifier looks for it.",
    )
    answer_pattern: str | None = Field(
        None,
        description="Regular expression whose first group is the final answer inside the answer column. RE2 runs it in "
        r"linear time: no lookaround, no backreferences, and \b knows ASCII letters alone (see `components.patterns`).",
    )
    id: str | None = Field(None, description="Column of a unique id; ids are content hashes when absent.")
    family: str | None = Field(None, description="Column that names the family, for slices.")
    origin: str | None = Field(
        None, description="Column that names where a row comes from, see data.concentration.max_source."
    )
    difficulty: str | None = Field(None, description="Column with a number, higher is harder.")

    @field_validator("answer_pattern")
    @classmethod
    def _a_group_is_the_answer(cls, given: str | None) -> str | None:
        how = r"such as '####\s*(.+)$'"
        if given is not None and not compile_pattern(given).groups:
            raise ValueError(f"it has no group, and the first group is the final answer, {how}")
        return given

    def conflicts(self) -> Iterator[str]:
        if self.format != "columns" and self.answer_pattern is not None:
            yield f"format {self.format} finds the answer itself; leave answer_pattern out"
        if self.split and self.kind != "arrow":
            yield "split belongs to kind arrow; name the file of the split under path"


class PythonSource(PythonEntry):
    """A `SourceEntry` of `components.data` from outside the project: rows by code, checked like the rows of a file."""

    group: ClassVar[str] = "evenkeel.sources"

    name: str = Field("", description="Name of the source in records; the target when empty.")


Source = Annotated[
    Generated | ReasoningGymSource | FileSource | PythonSource | VerifiersSource, Field(discriminator="kind")
]


def computed(source: Source) -> bool:
    """Whether questions and labels are a generator's: distinct, alike on purpose, and right by construction."""
    return source.kind in ("generated", "reasoning_gym", "verifiers")  # by kind: stages declare that they read it
