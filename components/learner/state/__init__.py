"""Checkpoints of weights and optimizer state by `torch.distributed.checkpoint` (DCP), whatever the sharding.

A state is a folder with one safetensors file for each rank. Every tensor in it is flat, and each file has a contiguous
range of it: such ranges describe the rows of FSDP2, the pieces of ZeRO, and whole tensors alike, and DCP reads them
back on any number of ranks. There is no pickle in it, DCP's own ``.metadata`` included.

- `contents` — what a state consists of, the range of a tensor that one rank holds, and how an optimizer is prepared
- `shards` — the files
- `relay` — files of ranks that do not see the folder, through the process group
- `store` — DCP's writer and reader of these files
- `keeping` — `State`: save, copy and write later, check, load
"""

from components.learner.state.contents import AdamWContents, Contents, Piece
from components.learner.state.keeping import State
from components.learner.state.store import StoredWeights, read_tensors

__all__ = ["AdamWContents", "Contents", "Piece", "State", "StoredWeights", "read_tensors"]
