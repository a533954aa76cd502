"""Runs one stage in the present folder: ``python -m components <stage> --config params.yaml [--set a.b=value]``.

Exit codes: 0 done; 2 the input or the machine is not as it must be; 3 the answer is no; 75 something that it depended
on has gone, such as all inference servers; 130 interrupted; 143 stopped by SIGTERM; 1 a bug, with its traceback.
After 75, 130 and 143 the same command goes on from the newest checkpoint.
"""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from components.config import Settings, load
from components.config.policy import CheckpointModel
from components.config.targets import check_code_of
from components.config.training import RANKED
from components.errors import EXIT_STOPPED, CorrectableError, EvenkeelError, InputError, MachineError, of_machine
from components.health.rulebook import check_rules
from components.installed import check_installed
from components.launch import LAUNCHERS, Job
from components.layout import Layout
from components.opening import check_working_folder
from components.processes.environments import DEVICE
from components.processes.memory import check_stages
from components.processes.ranked import STARTED, is_ranked
from components.processes.stopping import STOPPING, StopRequested
from components.progress import reporting
from components.stages import STAGES, run_stage
from components.status import StageStatus, clear_status, write_status
from components.working import working

EXIT_BUG = 1
EXIT_INTERRUPTED = 130
LAUNCHED = ("train",)
"""Stages that run where ``launch.kind`` says, on this machine. The others are short and stay in this process, but for
those of `RANKED` whose learner has several ranks."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the stage named on the command line; returns the exit code."""
    options = _parser().parse_args(arguments)
    layout = Layout()
    try:
        check_working_folder()
        with STOPPING.on_signal(), reporting(options.stage):
            clear_status(layout, options.stage)
            with working("reading the settings"):
                settings = load(options.config, options.overrides)
                check_rules(settings.health.rules)
                check_code_of(settings)
                check_installed(Path())
            prepare_environment(settings)
            execute(options.stage, settings, layout)
            status = StageStatus(0)
    except (Exception, KeyboardInterrupt, StopRequested, SystemExit) as error:  # SystemExit: of code from outside
        status = explain(error)
        if options.debug or status.exit_code == EXIT_BUG:
            traceback.print_exc()
        else:
            print(f"\n{options.stage}: {status.message}", file=sys.stderr)
    _record(layout, options.stage, status)
    return status.exit_code


def follow(arguments: Sequence[str] | None = None) -> int:
    """Be rank 1 or higher of the stage that rank 0 runs; returns the exit code. Rank 0 alone writes the status."""
    options = _parser().parse_args(arguments)
    try:
        if options.stage not in RANKED:
            how = "start it without torchrun"
            raise InputError(f"stage {options.stage} has one process", where=STARTED, how=how)
        settings = load(options.config, options.overrides)
    except EvenkeelError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    prepare_environment(settings)
    from components.learner.follower import main as follower  # loads torch

    return follower(settings)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m components", description="Run one stage in this folder.")
    parser.add_argument("stage", choices=STAGES)
    parser.add_argument("--config", type=Path, default=Path("params.yaml"), help="YAML file (default: params.yaml)")
    parser.add_argument("--set", dest="overrides", action="append", default=[], metavar="A.B=VALUE")
    debug = bool(os.environ.get("EVENKEEL_DEBUG"))
    parser.add_argument("--debug", action="store_true", default=debug, help="show tracebacks (or EVENKEEL_DEBUG=1)")
    return parser


def prepare_environment(settings: Settings) -> None:
    """Fix what must be in the environment before torch is imported.

    Results on CPU depend on the number of threads, so it comes from the settings and not from the machine. Nothing here
    depends on ``PYTHONHASHSEED``: no output takes its order from a set or a hash.
    """
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = str(settings.threads)
    os.environ[DEVICE] = settings.device
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    os.environ["HF_HUB_OFFLINE"] = "1"


def execute(stage: str, settings: Settings, layout: Layout) -> None:
    """Run the stage here, or hand it to the launcher and wait for its end."""
    check_stages(settings, [stage], starts_from(stage, settings, layout))
    kind = settings.launch.kind
    if kind != "inline" and stage in launched(settings) and not is_ranked(os.environ):  # a rank has been launched
        with working(f"waiting for the job (launch.kind {kind})"):
            LAUNCHERS[kind]().run(Job(stage, settings, layout.root))
        return
    run_stage(stage, settings, layout)
    if is_ranked(os.environ) and stage in RANKED:
        from components.learner.group import dismiss  # loads torch

        dismiss()


def starts_from(stage: str, settings: Settings, layout: Layout) -> Path:
    """The checkpoint whose weights a stage loads, or weights of that size; a tiny model has none before `sft`."""
    model = settings.policy.model
    return model.path if stage == "sft" and isinstance(model, CheckpointModel) else layout.sft_checkpoint


def launched(settings: Settings) -> tuple[str, ...]:
    """The stages that run where ``launch.kind`` says; the others stay in this process."""
    how = settings.launch
    if how.kind == "kubernetes" and how.kubernetes is not None:
        return how.kubernetes.stages
    if not settings.learner.has_ranks:
        return LAUNCHED
    idle = {stage for stage, steps in (("sft", settings.sft.steps), ("dpo", settings.dpo.steps)) if steps == 0}
    return tuple(stage for stage in RANKED if stage not in idle)  # rank 0 would not meet the others there


def explain(error: BaseException) -> StageStatus:
    """Exit code and message of what a stage raised."""
    if isinstance(error, EvenkeelError):
        return StageStatus(error.exit_code, str(error))
    if isinstance(error, KeyboardInterrupt):
        return StageStatus(EXIT_INTERRUPTED, "interrupted; the same command continues from the last checkpoint")
    if isinstance(error, StopRequested):
        return StageStatus(EXIT_STOPPED, "stopped on request; the same command continues from the last checkpoint")
    if _out_of_memory(error):
        how = "use smaller batches (rollout.engine.batch_rows, learner.micro_batch_tokens), or a larger machine"
        problem = MachineError("the machine ran out of memory", how=how)
    elif isinstance(error, OSError) and (refused := of_machine(error)) is not None:
        problem = refused
    else:
        return StageStatus(EXIT_BUG, f"{type(error).__name__}: {error}")
    return StageStatus(problem.exit_code, str(problem))


def _out_of_memory(error: BaseException) -> bool:
    """Python's own error, and those of torch (which is not imported here) on GPU and on CPU."""
    return (
        isinstance(error, MemoryError)
        or type(error).__name__ == "OutOfMemoryError"
        or (isinstance(error, RuntimeError) and "can't allocate memory" in str(error))
    )


def _record(layout: Layout, stage: str, status: StageStatus) -> None:
    """Leave the status for whoever started us. Where nothing can be written, standard error has already said it."""
    try:
        write_status(layout, stage, status)
    except CorrectableError as error:
        if status.exit_code == 0:
            print(f"{stage}: {error}", file=sys.stderr)
