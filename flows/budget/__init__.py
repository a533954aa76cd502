"""What a run will take, and where that ends.

- `costs` — what a token costs, by the shape of the model
- `work` — how much there is to do in a stage, and on how many GPUs
- `history` — `.state/history.jsonl` of the project: what executed stages took, and what their results depend on
- `estimate` — time and GPU-hours of a run: from the same settings before, from others scaled by work, or a rough guess;
  as a table, a line, or Markdown
- `spending` — what a run has taken so far, all attempts together, and the limit on it
"""
