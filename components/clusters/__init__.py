"""Groups of similar training prompts, ranked by difficulty: what stage `clusters` computes for schedules to read.

- `clustering` — embeddings of prompts, k-means, difficulty
- `embedding` — prompts as a sentence-embedding model sees them
- `difficulty` — whether the difficulty agrees with measured success, where both are known
"""
