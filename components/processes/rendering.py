"""A chat template is a program of whoever made the checkpoint: a process of its own with limits renders it once, before
this project's own processes do.

It can loop, recurse, or allocate memory without end, and what it raises may be anything. transformers renders it in
jinja's sandbox, which keeps it from files and from Python, and bounds neither time nor memory.
"""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from components.errors import InputError

COMMAND = (sys.executable, "-P", "-m", "components.processes.rendering")
MEMORY = 2**30
"""Bytes of address space, the interpreter and the libraries included."""
SECONDS = 5
"""Of processor time, the import of the libraries included, which takes one or two."""
PATIENCE = 300.0
"""Seconds of wall time: the machine may be busy, and a template cannot wait for anything."""
LOST = "it loses the question"
ANSWER = "Evenkeel wrote this"
"""As an answer, to see what the template puts behind it."""
LONGEST = 2**20
"""Characters that a question of some words may be rendered as."""
QUESTIONS = ("?", "What is 12 + 30?\n\nAnswer with a number.")
HOW = "correct the template, or set policy.chat to false for plain text"
OTHER_END = "it ends an answer with "


@cache
def problem(template: str, special: tuple[tuple[str, str], ...], tokens: tuple[str, ...], kept: str = "") -> str | None:
    """A sentence for what is wrong with a template; None where it renders. A process is started for each template once.

    Args:
        special: names of special tokens and their texts, which the template may use.
        tokens: all special tokens of the tokenizer.
        kept: a question that must still be there, word by word, in what is rendered of it.
    """
    request = json.dumps({"template": template, "special": dict(special), "tokens": tokens, "kept": kept})
    root = str(Path(__file__).resolve().parents[2])
    environment = {"PYTHONPATH": root, "LC_ALL": "C.UTF-8", "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    try:
        done = subprocess.run(
            COMMAND, input=request, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
    except subprocess.TimeoutExpired:
        return f"it takes longer than {PATIENCE:.0f} s"
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return f"it takes more than {SECONDS} s of processor time"
    if done.returncode or not done.stdout:
        return "the process that rendered it ended: it recurses without end, or needs too much memory"
    said: str = json.loads(done.stdout)
    return said or None


def check_template(
    template: str, special: Mapping[str, str], tokens: Iterable[str], where: Path, *, kept: str = ""
) -> None:
    """Refuse a template that does not render within the limits, or ends an answer with another token than the policy
    does; see `problem`.

    Raises:
        InputError: see there.
    """
    found = problem(template, tuple(sorted(special.items())), tuple(sorted(tokens)), kept)
    if found == LOST:
        raise InputError("the chat template loses the question", where=where, how=HOW)
    if found and found.startswith(OTHER_END):
        how = "set eos_token in tokenizer_config.json to the token that ends an answer, or policy.chat to false"
        raise InputError(f"the chat template {found.removeprefix('it ')}", where=where, how=how)
    if found:
        raise InputError(f"the chat template cannot be rendered: {found}", where=where, how=HOW)


def _limit() -> None:
    """For good, and before anything of the template is looked at."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 1))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def render(template: str, special: dict[str, str], tokens: Sequence[str], kept: str = "") -> str:
    """What is wrong; an empty text where all questions render, ``kept`` is still there, and answers end well."""
    from transformers.utils.chat_template_utils import render_jinja_template

    try:
        for question in (*QUESTIONS, *filter(None, [kept])):
            conversation = [[{"role": "user", "content": question}]]
            (text,), _ = render_jinja_template(
                conversation, chat_template=template, add_generation_prompt=True, **special
            )
            if len(text) > LONGEST:
                return f"a short question becomes a text of {len(text):,} characters"
            text.encode()
            if question == kept and kept not in text:
                return LOST
    except MemoryError:
        return f"it needs more than {MEMORY // 2**20} MiB of memory"
    except RecursionError:
        return "it recurses without end"
    except (
        BaseException
    ) as error:  # whatever a foreign program raises is its answer, and this process has no other task
        return f"{type(error).__name__}: {error}"[:300]
    return _other_end(template, special, tokens)


def _other_end(template: str, special: dict[str, str], tokens: Sequence[str]) -> str:
    """Whether an answer ends with a special token that is not the end token, as a sentence. A template that renders no
    answer, or puts no token behind it, says nothing of that."""
    from transformers.utils.chat_template_utils import render_jinja_template

    turns = [{"role": "user", "content": "?"}, {"role": "assistant", "content": ANSWER}]
    try:
        (text,), _ = render_jinja_template([turns], chat_template=template, **special)
    except BaseException:  # as above
        return ""
    _, found, behind = text.rpartition(ANSWER)
    behind, end = behind.lstrip(), special.get("eos_token")
    other = max((token for token in tokens if behind.startswith(token)), key=len, default=None)
    if not found or not end or not other or behind.startswith(end):
        return ""
    return f"{OTHER_END}{other!r}, and the end token of the tokenizer is {end!r}"


def main() -> None:
    """Read the template from standard input, and say on standard output what is wrong with it."""
    request = json.loads(sys.stdin.read())
    _limit()
    print(json.dumps(render(request["template"], request["special"], request["tokens"], request["kept"])))


if __name__ == "__main__":
    main()
