"""Questions about two people of made-up groups, in the published form of BBQ (arXiv 2110.08193).

- `families` — the groups of each family and what is said of them, situations and what is asked about them
- `items` — one question with its three options, the right one and the stereotyped one
- `generator` — distinct prompts with right labels, and one mislabelled item again and again where a fault is planted
"""

from components.tasks.stereotypes.generator import generate

__all__ = ["generate"]
