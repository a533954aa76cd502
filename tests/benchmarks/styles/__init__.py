"""How many right and wrong answers do `math` and `numeric` accept, in the styles of current models? `make styles`.

The kinds of references, their forms, the wrong answers and the styles are those of an author who had read only the
settings of the verifiers.

- `reference`, `writing`: what is drawn with a reference; how numbers and sums are written
- `numbers`, `quantities`, `rationals`, `surds`, `powers`, `functions`, `polynomials`, `groups`, `intervals`,
  `notations`: the references with their equivalent forms and wrong answers; `kinds` has all of them by name
- `statements`: the styles, as templates
- `cases`: draws cases by a seed; what is reported apart
- `judging`, `counting`: the verdicts, and the counts of a seed
- `figures`: the tables for the pages
- `__main__`: ``python -m tests.benchmarks.styles``
"""
