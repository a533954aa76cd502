"""``python -m tests.benchmarks.audit [KIND ...]``: which planted holes the audit finds, and what it says against ours.

Exit code 1 where it finds fewer than 95 of 100 holes, or judges one of the project's own verifiers to be at fault.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import get_args

from components.files import write_jsonl
from tests.benchmarks.audit.holes import Half, all_holes
from tests.benchmarks.audit.planting import real, reasons
from tests.benchmarks.lines import provenance
from tests.benchmarks.measured_code import Code

ENOUGH = 0.95


def main() -> int:
    """Print a line a hole, then a line a verifier."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.audit")
    parser.add_argument("kinds", nargs="*", help="of " + ", ".join(all_holes()))
    parser.add_argument("--out", type=Path, help="JSON lines, one a hole")
    parser.add_argument("--planted-only", action="store_true", help="leave out the project's own verifiers")
    options = parser.parse_args()
    wanted = options.kinds or list(all_holes())
    code, rows = Code.now(), []
    for kind in wanted:
        for hole in all_holes()[kind]:
            found = reasons(kind, hole)
            rows.append(
                {"answers": kind, "hole": hole.name, "half": hole.half, "found_by": found[0] if found else None}
            )
            print(
                "found" if found else "missed",
                kind,
                hole.half,
                hole.name,
                found[0] if found else "",
                sep="\t",
                flush=True,
            )
    if options.out:
        write_jsonl(options.out, [row | provenance(code) for row in rows])
    for half in get_args(Half):
        found_by = [row["found_by"] for row in rows if row["half"] == half]
        print(f"{half}: {sum(found is not None for found in found_by)} of {len(found_by)} found")
    against = {} if options.planted_only else {kind: real(kind) for kind in wanted}
    for kind, said in against.items():
        print(f"our verifier of {kind}:", "\n  ".join(said) or "silent")
    enough = sum(row["found_by"] is not None for row in rows) >= ENOUGH * len(rows)
    return 1 if any(against.values()) or not enough else 0


if __name__ == "__main__":
    sys.exit(main())
