"""Word problems in the form in which GSM8K was published (2110.14168): read, not generated.

One answer, e.g. ``48/2 = <<48/2=24>>24 clips\n#### 24``, is taken apart.
"""

from __future__ import annotations

import re

MARKER = "####"
ANNOTATION = re.compile(r"<<[^<>\n]*>>")
# The published form and the usual dress around it, nothing else. Not read by `components.rewards.numeric`, with which a
# test compares it: stages that judge nothing would depend on all verifiers.
ANSWER = re.compile(
    r"\s*\**(?P<sign>[-+\u2212])?[$€£]?(?P<inner>(?<=[$€£])[-+\u2212])?"
    r"(?P<value>(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?|\.[0-9]+)"
    r"%?\**(?:\s(?!(?i:k|thousand|million|billion|trillion|hundred|dozen|percent|per cent)\b)[A-Za-z]+)*\.?\**\s*"
)


def read(published: str) -> tuple[str, str]:
    """The final answer and the solution.

    The answer is the one number after the last ``####``, without thousands separators, currency, unit or per cent sign;
    empty where there is none, or where there are several. The solution keeps its last line, which is what a verifier
    looks for, and loses the ``<<48/2=24>>`` annotations, which were instructions to a calculator and no part of the
    reasoning.
    """
    solution = ANNOTATION.sub("", published).strip()
    _, marker, last = solution.rpartition(MARKER)
    found = ANSWER.fullmatch(last) if marker else None
    if found is None:
        return "", solution
    negative = (found["sign"] or found["inner"] or "+") in "-\u2212"
    return ("-" if negative else "") + found["value"].replace(",", ""), solution
