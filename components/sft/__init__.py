"""The supervised stage.

- `trainer` — cross-entropy on demonstrations
- `triage` — is this checkpoint fit to start RL from?
"""
