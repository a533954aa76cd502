"""Do the tests notice when the code is wrong? Hand-picked mutations, each applied alone to a copy of the project.

- `table`: the mutations, by package
- `__main__`: ``python -m tests.benchmarks.mutations [PACKAGE ...]`` applies them and runs the tests of their package
"""
