"""What a run is doing: for whoever looks at the Prefect UI, at a terminal, or comes after it died.

- `execution` — who runs a workspace now, or ran it last, and how that ended
"""
