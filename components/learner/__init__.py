"""One update of the policy.

- `base` — the `Learner` seam
- `batch` — groups -> tensors
- `cuts` — where a batch is cut into passes
- `optimizer` — AdamW, clipping and schedules of every trainer, moments in host memory, and what an update does to a
  sample of the weights
- `scoring` — log-probabilities of a batch
- `objective` — a batch as the objective takes it, and adaptive weights of KL and entropy
- `signals` — what an update did, as scalars
- `torch_learner` — the learner: in this process, or in every one of several ranks
- `supervised` — the same for a loss over given texts, of stages `sft` and `dpo`, and which rows a step takes
- `sharding` — how its weights, gradients and optimizer state lie in memory
- `state` — its checkpoints: one shard a rank, by `torch.distributed.checkpoint`
- `ranks` — who of several processes scores which rows
- `group`, `leader`, `follower` — the processes of one learner: rank 0 runs the loop, the others follow its commands;
  `supervised_leader` is rank 0 of a supervised one
- `activations` — activation checkpointing
- `weights` — the weights of a learner as others read them
- `critic` — PPO's value model, which learns with the policy
- `build` — builds the one that ``learner.kind`` names, and the reference over ranks
"""
