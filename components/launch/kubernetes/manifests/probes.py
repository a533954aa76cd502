"""When a server is ready, and when it is restarted.

That it answers is all that a probe can know. Whether it still computes, and with which weights, the run finds out by
itself: one-token canaries, and a check of log-probabilities after every hand-over (`components.rollout.servers`).
"""

from __future__ import annotations

from math import ceil
from typing import Any

STARTUP_PERIOD = 10
DRAIN = 15
"""Seconds between the end of a pod being announced and its server hearing of it: requests in flight go on."""


def server_probes(start_timeout: float) -> dict[str, Any]:
    """Of a vLLM server: ``start_timeout`` seconds to load its model; after that `/health`, which needs no model."""
    return {
        "startupProbe": {
            "httpGet": {"path": "/v1/models", "port": "http"},
            "periodSeconds": STARTUP_PERIOD,
            "timeoutSeconds": 5,
            "failureThreshold": max(1, ceil(start_timeout / STARTUP_PERIOD)),
        },
        "readinessProbe": {
            "httpGet": {"path": "/health", "port": "http"},
            "periodSeconds": 5,
            "timeoutSeconds": 5,
            "failureThreshold": 3,
        },
        "livenessProbe": {
            "httpGet": {"path": "/health", "port": "http"},
            "periodSeconds": 20,
            "timeoutSeconds": 10,
            "failureThreshold": 6,  # a hand-over of weights holds the server for a while
        },
        "lifecycle": {"preStop": {"sleep": {"seconds": DRAIN}}},
    }
