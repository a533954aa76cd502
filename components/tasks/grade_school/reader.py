"""One published answer, e.g. ``48/2 = <<48/2=24>>24 clips\n#### 24``, taken apart."""

from __future__ import annotations

import re

MARKER = "####"
ANNOTATION = re.compile(r"<<[^<>\n]*>>")
NUMBER = re.compile(r"[-+]?(?:\d[\d,]*(?:\.\d+)?|\.\d+)$")


def read(published: str) -> tuple[str, str]:
    """The final answer and the solution.

    The answer is the number after the last ``####``, without thousands separators, currency or per cent signs; empty
    where there is none. The solution keeps its last line, which is what a verifier looks for, and loses the
    ``<<48/2=24>>`` annotations, which were instructions to a calculator and no part of the reasoning.
    """
    solution = ANNOTATION.sub("", published).strip()
    _, found, last = solution.rpartition(MARKER)
    answer = last.strip().strip("$€£%").strip()
    return (answer.replace(",", "") if found and NUMBER.match(answer) else ""), solution
