"""A run's own folder, `runs/<run-id>`: the recorded code, the resolved settings, and everything the run writes.

The run id follows from the settings and the code alone. The same command on the same tree therefore continues where it
was, and a change of either starts a new folder; stages whose inputs did not change come from the shared DVC cache.
Where servers and ranks are, how many, and how long is waited for them (`components.config.root`) is no part of it.
"""

from __future__ import annotations

import shlex
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from components.config import Settings, dump, load, pin_inputs, substance
from components.config.evaluation import FileSuite
from components.directories import write_directory
from components.errors import InputError
from components.extensions import check_extensions
from components.files import dump_json, os_errors, read_text, sha256_bytes, write_text
from components.health.rulebook import check_rules
from components.installed import check_installed
from components.layout import Layout
from components.sinks import check_sinks
from components.tasks.reasoning_gym import check_sources
from flows.host.branches import head_of
from flows.host.dvc import configure, describe, repair_rwlock
from flows.host.dvc_process import one_process
from flows.host.git import Snapshot, check_git_remote, check_out, code_at, git, snapshot
from flows.host.processes import lock_file, take_over
from flows.run.inputs import Input, place_inputs, resolve_inputs

WRITTEN = ("params.yaml", "dvc.lock", "run.json")
WRITTEN_BY_RUNS = (
    *("--untracked-files=all", "--", "."),
    *(f":!{name}" for name in WRITTEN),
    *(f":!.{name}.*" for name in WRITTEN),  # temporary files, where the process that wrote one was killed
)
POLL, REMIND_SECONDS = 0.5, 30.0
"""Seconds between two looks at a lock that is held, and between two words about it."""


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What the user requested: a configuration file, overrides of its settings, and a recipe in place of its own."""

    config: str = ""
    overrides: tuple[str, ...] = ()
    recipe: str = ""


UNKNOWN_REQUEST = RunRequest()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run came to: the digest of the proposed checkpoint, or None and the reason why there is none."""

    run_id: str
    workspace: str
    candidate: str | None
    reason: str = ""


@dataclass(frozen=True)
class RunFolder:
    """Where the files of a run are."""

    project: Path
    run_id: str

    @property
    def root(self) -> Path:
        return self.project / "runs" / self.run_id

    @property
    def layout(self) -> Layout:
        return Layout(self.root)

    @property
    def progress(self) -> Path:
        """JSON lines of what happens, see `components.progress` and `flows.run.stages`."""
        return self.layout.state / "progress.jsonl"

    def log(self, name: str) -> Path:
        """Everything that DVC and a stage, or a process that it started, printed."""
        return self.layout.logs / f"{name}.log"


@dataclass(frozen=True)
class Workspace(RunFolder):
    """One run's folder, to run it there. Finding it writes nothing; `ensure` makes it."""

    settings: Settings
    snapshot: Snapshot
    inputs: tuple[Input, ...] = ()
    request: RunRequest = UNKNOWN_REQUEST

    @property
    def evaluations(self) -> Path:
        """Answers of checkpoints to test prompts, shared by the runs of the project: the same to the byte."""
        return Layout(self.project).evaluations

    @property
    def params(self) -> str:
        """The resolved settings, as they stand in the workspace's `params.yaml`."""
        return self._params(self.settings)

    def _params(self, settings: Settings) -> str:
        return f"# The resolved settings of run {self.run_id}.\n{dump(settings)}"

    @property
    def _lock_file(self) -> Path:
        return lock_of(self.project, self.run_id)

    @contextmanager
    def lock(self, wait: Callable[[str], None] | None = None) -> Iterator[None]:
        """Hold the workspace. The lock ends with the process, however that ends.

        Args:
            wait: called with a message every half minute while another process holds the lock; None: refuse at once.

        Raises:
            InputError: another process holds it.
        """
        said = -REMIND_SECONDS
        with lock_file(self._lock_file) as lock:
            while not lock.take():
                owner = lock.owner
                if wait is None:
                    how = "wait for it, or stop it; a different setting or a different tree gets a run of its own"
                    raise InputError(f"this run is in progress in process {owner}", where=self.root, how=how)
                if time.monotonic() - said >= REMIND_SECONDS:
                    said = time.monotonic()
                    who = describe(int(owner)) if owner.isdigit() else owner
                    wait(f"{self.run_id} waits for {who}, which runs it now")
                time.sleep(POLL)
            yield

    @contextmanager
    def held(self, *, fresh: bool = False, wait: Callable[[str], None] | None = None) -> Iterator[None]:
        """Hold the workspace as `lock` does, with nothing left running of a run that was killed, and the folder made or
        checked as by `ensure`."""
        with self.lock(wait):
            take_over(self.project)
            with one_process(self.root):  # it loads DVC meanwhile
                repair_rwlock(self.root)
                self.ensure(fresh=fresh)
                yield

    def ensure(self, *, fresh: bool = False) -> None:
        """Make the folder, whole or not at all, or check that the one there is this run's. Call with the lock held.

        Raises:
            InputError: the code or the settings inside the workspace were edited, an input is gone, or the run's
                branch belongs to something else.
        """
        head_of(self.project, self.run_id)
        if fresh and self.root.exists():
            with os_errors("remove", self.root):
                shutil.rmtree(self.root)
        if self.root.exists():
            self._check()
        else:
            write_directory(self.root, self._fill)
        place_inputs(self.root, self.project, self.inputs, log=self.log("inputs"))
        git(self.project, "update-ref", f"refs/evenkeel/runs/{self.run_id}", self.snapshot.commit)

    def _fill(self, target: Path) -> None:
        check_out(self.project, self.snapshot.commit, target)
        write_text(target / "params.yaml", self.params)
        configure(target, self.project)

    def _check(self) -> None:
        linked = [f":!{PurePosixPath(one.path).parent}" for one in self.inputs if one.kept_by == "link"]
        edited, params = git(self.root, "status", "--porcelain", *WRITTEN_BY_RUNS, *linked), self.layout.params
        if not edited and read_text(params) != self.params:
            if self._written_by_this_run(params):
                write_text(params, self.params)
            else:
                edited = "params.yaml"
        if edited:
            how = "change the project and its configuration, not the workspace; `--fresh` creates the workspace again"
            raise InputError(f"files inside the workspace were edited:\n{edited}", where=self.root, how=how)

    def _written_by_this_run(self, params: Path) -> bool:
        """Whether an earlier command of this run wrote the file: only the logistics in it are others."""
        try:
            found = load(params)
        except InputError:
            return False
        return substance(found) == substance(self.settings) and read_text(params) == self._params(found)


def lock_of(project: Path, run_id: str) -> Path:
    """The lock file of a workspace."""
    return project / ".state" / "locks" / run_id


def locate(
    project: Path, config: Path, overrides: Sequence[str] = (), commit: str | None = None, recipe: Path | None = None
) -> Workspace:
    """The workspace of a configuration on the present tree, or on ``commit``. Nothing is created but Git objects.

    Raises:
        InputError: the settings, an input or the commit cannot be had, or the working folder is not the project's top,
            which paths in configurations are relative to.
    """
    if project.resolve() in Path.cwd().parents:
        how = f"cd {shlex.quote(str(project))}"
        raise InputError("a run begins in the top folder of its project", where=Path.cwd(), how=how)
    check_installed(project)
    wanted = load(config, overrides, recipe)
    check_rules(wanted.health.rules)
    check_git_remote(project, wanted.record.git_remote)
    taken = code_at(project, commit) if commit else snapshot(project)
    pinned = pin_inputs(wanted)
    check_sources(pinned)
    check_extensions(pinned)
    check_sinks(pinned)
    check_suites(pinned)
    settings, inputs = resolve_inputs(pinned, project, taken.commit)
    request = RunRequest(str(config), tuple(overrides), recipe.stem if recipe else "")
    return Workspace(project, name_of(settings, taken.tree), settings, taken, inputs, request)


def check_suites(settings: Settings) -> None:
    """Read the files of all suites: what is wrong with one is found before the training, and not after it.

    Raises:
        InputError: a file is missing or empty, or a line cannot be read.
    """
    for name, suite in settings.evaluation.suites.items():
        if isinstance(suite, FileSuite):
            from components.evaluation.formats import read_problems  # loads the verifiers

            read_problems(suite.path, suite.format, name)


def name_of(settings: Settings, tree: str) -> str:
    """The id of the run of settings on a tree of code."""
    digest = sha256_bytes((dump_json(substance(settings)) + tree).encode())[:8]
    return f"{settings.name}-{digest}"
