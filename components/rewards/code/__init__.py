"""Python code, judged by tests. The only verifier that runs what a policy wrote.

- `tests` — the reference answer: assertions, each split into an expression and the value that it must have; code that
  solves nothing, for the audit
- `template` — a process that has seen no prompt; it forks a child for each item
- `child` — runs the code, then the expressions, and reports the values
- `verifier` — the `Verifier` that finds the code in a completion and compares the values

What a child cannot do, by a list of the system calls that it may make: reach the network, make processes or threads,
signal, slow or trace a process, write, make or remove a file, or leave anything in shared memory, queues or keys for
the next one. It has no capabilities, an empty folder, no environment, and its limits of time and memory. What it cannot
forge: a value that it does not know. The values that the tests ask for never enter the child, so neither ``sys.exit``,
printing, patched builtins nor objects that equal everything help; and the worker that knows them, like the template,
has its memory and its handles closed to other processes of the same user (PR_SET_DUMPABLE).

What it can read: with Landlock (Linux 5.13), the Python installation, its packages and the system's libraries, and
nothing in /proc. It can still ask whether a path exists and how large it is. Where the kernel has no Landlock, or has
it switched off, it can read every file of this user, and what processes of this user other than worker and template
show in /proc; see `components.rewards.privileges.landlock_version`. Code that could not be confined is not run, and its
item is unscorable.

What is not defended: an assertion that is not ``expression == literal`` has the value True, which can be guessed. Only
a secret that the child gets after the code was read stands before it, and code that looks for it in its own process can
find it. A template that is replaced, after something else ended it, is forked from a worker that has seen references;
what a child finds in its own memory then may be one of them. A flaw of the kernel in a call that is allowed is one.
"""

from components.rewards.code.verifier import CodeVerifier

__all__ = ["CodeVerifier"]
