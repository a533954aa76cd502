"""Tasks of an environment as prompts."""

from __future__ import annotations

import json
from collections import Counter

from components.config.environments import EnvironmentVerifier, VerifiersSource
from components.content_id import content_id, normalise
from components.environments.process import EnvironmentProcess
from components.errors import InputError
from components.types import Prompt


def environment_prompts(source: VerifiersSource) -> list[Prompt]:
    """The first ``source.rows`` tasks, or all there are.

    A record's text is what the policy reads first. Where another task opens with the same words, or with none, the
    number of the task is added to the record, for a question is known by its text; the policy does not read that.

    Raises:
        InputError: the environment cannot be loaded.
    """
    with EnvironmentProcess(source) as process:
        return prompts_of(source, process)


def prompts_of(source: VerifiersSource, process: EnvironmentProcess) -> list[Prompt]:
    """The same, of a process that runs the environment."""
    tasks = process.tasks(source.rows)
    openings = Counter(normalise(task["opening"]) for task in tasks)
    found = []
    for number, task in enumerate(tasks):
        opening = task["opening"]
        alone = opening and openings[normalise(opening)] == 1
        text = opening if alone else f"{opening}\n[task {number}]".lstrip()
        found.append(
            Prompt(
                id=content_id(source.target, f"{text}\n{task['hash']}"),
                text=text,
                answer=task["answer"],
                solution=task["solution"] or task["answer"],
                demonstration=task["solution"] or task["answer"],
                task=source.target,
                source=source.kind,
                family=source.target,
                reference=json.dumps({"task": number, "hash": task["hash"], "environment": source.digest}),
            )
        )
    return found


def check_rubric(source: VerifiersSource, verifier: EnvironmentVerifier) -> None:
    """Load the environment and compare the rewards that its first task declares with those that the settings name.

    Raises:
        InputError: it cannot be loaded, has no task, or declares other rewards.
    """
    with EnvironmentProcess(source) as process:
        tasks = process.tasks(1)
    if not tasks:
        raise InputError("the environment has no tasks", where="data.source", how="check data.source.settings")
    declared, named = set(tasks[0]["rewards"]), {verifier.accuracy, *verifier.rewards}
    if declared and declared != named:
        raise InputError(
            f"the environment's rewards are {', '.join(sorted(declared))}",
            where="reward.verifier",
            how="name one of them in `accuracy` and the others in `rewards`",
        )
