"""Does the audit find holes of verifiers? Planted ones, each on top of a verifier that judges every probe rightly.

- `corpus`: questions with reference answers, one set for each kind of answer
- `reading`: how a careless verifier reads an answer
- `holes`, with `numbers`, `expressions`, `texts`, `programs`, `other_author`: the planted holes
- `planting`: audits a verifier with one of them
- `figures`: the table of them for the pages
- `__main__`: ``python -m tests.benchmarks.audit`` prints which are found, and which sorts of answers the project's own
  verifiers judge wrongly
"""
