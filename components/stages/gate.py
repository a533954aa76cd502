"""Stage `gate`: may approval of this checkpoint be requested?

The checks are in `components.gate`. The stage succeeds whatever the answer is; what follows from the answer is the
caller's business.
"""

from __future__ import annotations

from components.config import Settings
from components.errors import InputError
from components.files import write_json
from components.gate.checks import conclude, judge, policy_sha256
from components.gate.evidence import collect
from components.layout import Layout
from components.working import working


def run(settings: Settings, layout: Layout) -> None:
    """Judge the run in ``layout`` and write `out/gate.json`."""
    with working("reading metrics"):
        evidence = collect(layout)
    checks = judge(evidence, settings)
    digest = evidence.parts["checkpoint"]
    write_json(
        layout.gate,
        {
            "result": conclude(checks),
            "checks": [check.to_dict() for check in checks],
            "checkpoint_sha256": None if isinstance(digest, InputError) else digest,
            "policy_sha256": policy_sha256(settings),
        },
    )
