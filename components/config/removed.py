"""Settings that are gone, and what replaces each of them."""

from __future__ import annotations

RANK_0 = "rank 0 of the learner runs the loop"
REMOVED = {
    "launch.kubernetes.driver": f"{RANK_0} now: give launch.kubernetes.learner the resources of both",
    "launch.kubernetes.images.driver": f"{RANK_0} now: name the image in launch.kubernetes.images.learner",
    "learner.ranks.address": f"{RANK_0} now, and the others meet it by torchrun: remove it, and set launch.kind to "
    "processes (this machine) or kubernetes (launch.kubernetes.learner)",
    "learner.ranks.shared_folder": "ranks get policy, batches and checkpoints from rank 0 and need no common folder: "
    "remove it",
}
