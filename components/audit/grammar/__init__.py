"""What the audit tries of each kind of answer. `CLASSES` has all of it; `components.audit.probes` chooses.

- `base` — `ProbeClass`, and what every class is made from
- `numbers` — numbers that are not the reference: other values, signs, bases, operands, several side by side
- `statements` — the right number in a text that does not say that it is the answer: denied, a bound, one of several
- `expressions` — parts of a mathematical answer, and what differs from it in one place
- `texts` — answers of any kind: candidates, denials, what judges fall for
- `choices`, `documents`, `calculations`, `programs` — of the other kinds
- `styles` — the right answer in the dress that policies put it in: these must be accepted
- `bombs` — what takes long to judge
"""

from components.audit.grammar import (
    bombs,
    calculations,
    choices,
    documents,
    expressions,
    numbers,
    programs,
    statements,
    styles,
    texts,
)
from components.audit.grammar.base import ProbeClass

CLASSES: tuple[ProbeClass, ...] = (
    *texts.CLASSES,
    *numbers.CLASSES,
    *statements.CLASSES,
    *expressions.CLASSES,
    *choices.CLASSES,
    *documents.CLASSES,
    *calculations.CLASSES,
    *programs.CLASSES,
    *styles.CLASSES,
    *bombs.CLASSES,
)

__all__ = ["CLASSES", "ProbeClass"]
