"""The seam between the loop and whatever computes gradients."""

from __future__ import annotations

import math
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path

from torch import Tensor

from components.config.objective import ObjectiveSettings
from components.config.training import LearnerSettings
from components.learner.batch import Batch, batch_of_rows
from components.objectives.controllers import Coefficients
from components.policy.weights import Weights

IN_FORCE = "settings_checksum"
"""What `Learner.step` returns besides signals: `settings_checksum` of the settings that it worked with."""


SPLIT = {"kind", "ranks", "zero", "micro_batch_tokens", "activation_checkpointing"}
"""Settings that state how an update is split, which changes nothing but its last bits."""


def settings_checksum(settings: LearnerSettings, objective: ObjectiveSettings) -> float:
    """Of all settings that an update depends on; both sides of a hand-over compute it."""
    text = settings.model_dump_json(exclude=SPLIT) + objective.model_dump_json()
    return float(zlib.crc32(text.encode()))


class Learner(ABC):
    """Owns the policy's weights and the optimizer."""

    @property
    @abstractmethod
    def coefficients(self) -> Coefficients:
        """What multiplies the KL term and the entropy bonus at present."""

    @abstractmethod
    def logprobs(self, batch: Batch, temperature: float | None = None) -> Tensor:
        """Log-probabilities of the response tokens under the current weights, ``[B, R]`` fp32, without gradient; at the
        temperature that the run samples at where none is given."""

    def scores(self, texts: Sequence[tuple[Sequence[int], Sequence[int]]], temperature: float) -> Tensor:
        """Log-probabilities of the tokens that follow each context, one text after the other: ``[tokens]`` fp32 nats,
        under the current weights."""
        batch = batch_of_rows(texts, pad_id=0)  # padding is masked, so any id serves
        return self.logprobs(batch, temperature)[batch.response_mask]

    @abstractmethod
    def configure(self, settings: LearnerSettings, objective: ObjectiveSettings) -> None:
        """Go on with other settings: learning rate, clip bounds, weights of KL and entropy, sampler correction."""

    @abstractmethod
    def step(self, batch: Batch, seed: int, norm_limit: float = math.inf) -> dict[str, float]:
        """Update on a batch and return the update's signals. An update whose gradient norm is above the limit is
        skipped, as one that is not finite always is.

        A batch that is `refused` changes nothing: it is not the one that was built. The batch has its advantages.
        ``old_logp`` is the learner's own: computed with the weights from before the first
        update.
        """

    @abstractmethod
    def reference(self, batch: Batch) -> Tensor:
        """Log-probabilities as `logprobs` gives them, under the weights that the learner was made with.

        Raises:
            ValueError: it was made without a reference.
        """

    @abstractmethod
    def weights(self) -> Weights:
        """Current weights by the names that the policy has for them, each read when it is used. They are those of this
        moment until the next update, and are not to be changed."""

    @abstractmethod
    def weights_at(self, directory: Path) -> Weights:
        """The weights that `save` wrote there, likewise; without their log-probabilities."""

    def broken(self) -> int:
        """How many of the weights hold a NaN or an infinity."""
        return sum(not bool(weight.isfinite().all()) for weight in self.weights().values())

    @abstractmethod
    def save(self, directory: Path) -> None:
        """Write weights, optimizer and counters into an empty folder, bit-exact."""

    def snapshot(self, directory: Path) -> Callable[[], None]:
        """Take what `save` would write now; the call that is returned writes it into the empty folder.

        It may be called from another thread, and later, but before the next snapshot is taken: what the learner does
        meanwhile changes none of it. Learners that cannot copy themselves write everything at once.
        """
        self.save(directory)
        return _written

    @abstractmethod
    def load(self, directory: Path) -> None:
        """Continue exactly where `save` was called."""

    def rest(self) -> None:  # noqa: B027 - on a CPU there is nothing to give up
        """Give up what of the device's memory the next update can get back: gradients are dropped, and the moments of
        the optimizer stay in host memory until then. Nothing on a CPU. What is saved or scored meanwhile is the same.
        """

    @abstractmethod
    def save_policy(self, directory: Path) -> None:
        """Write the policy alone as a checkpoint folder for others to load."""

    def on_stop_request(self, notify: Callable[[], None]) -> None:  # noqa: B027 - without ranks no other process's
        """Have ``notify`` called, perhaps by another thread, once another process of the learner was requested to
        stop."""

    def close(self) -> None:  # noqa: B027 - most learners have nothing to let go of
        """Let go of processes and connections; nothing is learned after it."""


def _written() -> None:
    """Nothing is left to write."""
