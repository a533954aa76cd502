"""Can the verifier be trusted? Answers that are known to be right or wrong, judged behind the run's own fence.

A noisy verifier looks healthy: it breaks ties, so fewer groups seem dead, while the gradient points at noise. So it is
measured before anything is trained on its word.

- `probes` — right answers (as given, alone, in other words) and wrong ones (those of other questions, planted hacks)
- `hacks` — what a policy without a clue could write; `HACKS` maps a name to it
- `grammar` — right answers, wrong ones and slow ones, made from the reference for each kind of answer
- `reference` — what a reference answer is, read without a verifier
- `functions` — what functions of the reward pay for wrong answers
- `measure` — how the probes were judged: rates with Wilson intervals, repeats, the second verifier
- `verdict` — may anything be trained with this verifier? And all of it as a page to read
"""
