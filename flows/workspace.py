"""A run's own folder, `runs/<run-id>`: the recorded code, the resolved settings, and everything the run writes.

The run id follows from the settings and the code alone. The same command on the same tree therefore continues where it
was, and a change of either starts a new folder; stages whose inputs did not change come from the shared DVC cache.
Where servers and ranks are, how many, and how long is waited for them (`components.config.logistics`) is no part of it.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from components.config import Settings, dump, load, pin_inputs, substance
from components.config.load import input_sections
from components.errors import InputError
from components.files import dump_json, os_errors, read_text, sha256_bytes, write_directory, write_text
from components.health import check_rules
from components.layout import Layout
from flows.git import Snapshot, at_commit, check_out, git, snapshot, succeeds
from flows.processes import take_over

WRITTEN_BY_RUNS = ("--", ".", ":!params.yaml", ":!dvc.lock")


@dataclass(frozen=True)
class Workspace:
    """One run's folder. Finding it writes nothing; `ensure` makes it."""

    project: Path
    run_id: str
    settings: Settings
    snapshot: Snapshot

    @property
    def root(self) -> Path:
        return self.project / "runs" / self.run_id

    @property
    def layout(self) -> Layout:
        return Layout(self.root)

    @property
    def progress(self) -> Path:
        """JSON lines of what happens, see `components.progress` and `flows.stages`."""
        return self.layout.state / "progress.jsonl"

    def log(self, stage: str) -> Path:
        """Everything that DVC and the stage printed."""
        return self.root / "logs" / f"{stage}.log"

    @property
    def params(self) -> str:
        """The resolved settings, as they stand in the workspace's `params.yaml`."""
        return self._params(self.settings)

    def _params(self, settings: Settings) -> str:
        return f"# The resolved settings of run {self.run_id}.\n{dump(settings)}"

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the workspace. The lock ends with the process, however that ends.

        Raises:
            InputError: another process holds it.
        """
        path = self.project / ".state" / "locks" / self.run_id
        with os_errors("lock", path):
            path.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                owner = os.pread(handle, 32, 0).decode() or "unknown"
                how = "wait for it, or stop it; a different setting or a different tree gets a run of its own"
                raise InputError(f"this run is in progress in process {owner}", where=self.root, how=how) from error
            os.ftruncate(handle, 0)
            os.pwrite(handle, str(os.getpid()).encode(), 0)
            yield
        finally:
            os.close(handle)

    @contextmanager
    def held(self, *, fresh: bool = False) -> Iterator[None]:
        """Hold the workspace, with nothing left running of a run that was killed, and the folder made or checked.

        Raises:
            InputError: as `lock` and `ensure` do.
        """
        with self.lock():
            take_over(self.project)
            self.ensure(fresh=fresh)
            yield

    def ensure(self, *, fresh: bool = False) -> None:
        """Make the folder, whole or not at all, or check that the one there is this run's. Call with the lock held.

        Raises:
            InputError: somebody edited the code or the settings inside the workspace.
        """
        if fresh and self.root.exists():
            with os_errors("remove", self.root):
                shutil.rmtree(self.root)
        if self.root.exists():
            self._check()
        else:
            write_directory(self.root, self._fill)
        git(self.project, "update-ref", f"refs/evenkeel/runs/{self.run_id}", self.snapshot.commit)

    def _fill(self, target: Path) -> None:
        check_out(self.project, self.snapshot.commit, target)
        write_text(target / "params.yaml", self.params)
        cache = self.project / ".dvc" / "cache"
        write_text(target / ".dvc" / "config.local", f"[cache]\n    dir = {cache}\n")

    def _check(self) -> None:
        edited = git(self.root, "status", "--porcelain", *WRITTEN_BY_RUNS)
        if not edited and read_text(self.root / "params.yaml") != self.params:
            if self._were_mine(self.root / "params.yaml"):
                write_text(self.root / "params.yaml", self.params)
            else:
                edited = "params.yaml"
        if edited:
            how = "change the project and its configuration, not the workspace; `--fresh` makes the workspace anew"
            raise InputError(f"files inside the workspace were edited:\n{edited}", where=self.root, how=how)

    def _were_mine(self, params: Path) -> bool:
        """Whether an earlier command of this run wrote the file: only the logistics in it are others."""
        try:
            found = load(params)
        except InputError:
            return False
        return substance(found) == substance(self.settings) and read_text(params) == self._params(found)


def locate(
    project: Path,
    config: Path,
    overrides: Sequence[str] = (),
    commit: str | None = None,
    recipe: Path | None = None,
) -> Workspace:
    """The workspace of a configuration on the present tree, or on ``commit``. Nothing is created but Git objects."""
    wanted = load(config, overrides, recipe)
    check_rules(wanted.health.rules)
    taken = at_commit(project, commit) if commit else snapshot(project)
    settings = settle_paths(pin_inputs(wanted), project, taken.commit)
    digest = sha256_bytes((dump_json(substance(settings)) + taken.tree).encode())[:8]
    return Workspace(project, f"{settings.name}-{digest}", settings, taken)


def settle_paths(settings: Settings, project: Path, commit: str) -> Settings:
    """Make input paths work from inside the workspace.

    What the commit holds is in the workspace too and keeps its relative path, so that the run can be reproduced
    elsewhere; anything else becomes absolute.
    """
    tree = settings.model_dump(mode="json")
    for node in input_sections(tree):
        path = Path(node["path"]).resolve()
        inside = path.relative_to(project).as_posix() if path.is_relative_to(project) else None
        recorded = inside is not None and succeeds(project, "cat-file", "-e", f"{commit}:{inside}")
        node["path"] = inside if recorded else str(path)
    engine = tree["rollout"]["engine"]
    if engine.get("python"):
        engine["python"] = str(Path(engine["python"]).absolute())
    return Settings.model_validate(tree)
