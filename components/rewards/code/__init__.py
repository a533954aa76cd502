"""Python code, judged by tests. The only verifier that runs what a policy wrote.

- `tests` — the reference answer: assertions, each split into an expression and the value that it must have
- `template` — a process that has seen no prompt; it forks a child for each item
- `child` — runs the code, then the expressions, and reports the values
- `hacks` — code that solves nothing, for the audit
- `verifier` — the `Verifier` that compares them

What a child cannot do: reach the network, make processes or threads, send signals, write, make or remove a file, see an
environment, or take more time and memory than its limits. What it cannot forge: a value that it does not know. The
values that the tests ask for never enter the template or the child, so neither ``sys.exit``, printing, patched builtins
nor objects that equal everything help.

What is not defended: an assertion that is not ``expression == literal`` has the value True, which can be guessed. Only
a secret that the child gets after the code was read stands before it, and code that looks for it in its own process can
find it. Files that this user can read can be read.
"""

from components.rewards.code.verifier import CodeVerifier

__all__ = ["CodeVerifier"]
