"""``python -m tests.benchmarks.styles --seeds 101 102 103``: how many right and how many wrong answers are accepted.

Exit code 1 where a verifier accepts fewer than 99 of 100 right answers or more than 1 of 1,000 wrong ones, of the
styles and forms that were held back or of the others.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from components.files import write_jsonl
from tests.benchmarks.lines import provenance
from tests.benchmarks.measured_code import Code
from tests.benchmarks.section import Row
from tests.benchmarks.styles.cases import draw_cases
from tests.benchmarks.styles.counting import counted
from tests.benchmarks.styles.figures import figures, short_of_aim
from tests.benchmarks.styles.judging import Judged, judge


def main() -> int:
    """Judge the cases of every seed; print every verdict that is not as it should be, then the tables."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.styles")
    parser.add_argument("--seeds", nargs="+", type=int, default=[101, 102, 103])
    parser.add_argument("--each", type=int, default=30, help="references of a kind")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--out", type=Path, help="JSON lines, one a seed")
    options = parser.parse_args()
    code, rows = Code.now(), list[Row]()
    for seed in options.seeds:
        judged = list(judge(list(draw_cases(seed, options.each)), options.jobs))
        for one in judged:
            if one.unexpected:
                print(line(one), flush=True)
        rows.append(counted(seed, judged))
    if options.out:
        write_jsonl(options.out, [row | provenance(code) for row in rows])
    for name, text in figures([row | provenance(code) for row in rows]).items():
        print(f"\n{name}\n\n{text}")
    for what in (short := short_of_aim(rows)):
        print(f"short of the aim: {what}")
    return 1 if short else 0


def line(one: Judged) -> str:
    """A case with its verdict and its text."""
    case = one.case
    said = "right" if case.right else "wrong"
    names = (one.outcome, said, case.verifier, str(case.marker), case.kind, case.form, case.style)
    return "\t".join((*names, repr(case.reference), repr(case.text), one.reason))


if __name__ == "__main__":
    sys.exit(main())
