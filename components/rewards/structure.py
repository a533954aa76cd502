"""Rewards for structure: code skeletons (`components.rewards.skeleton`) as an intermediate representation (P4IR,
2606.22402). No code is executed.
"""

from __future__ import annotations

from collections.abc import Set

from rapidfuzz.distance import Levenshtein

from components.rewards.base import Judgement, JudgingVerifier, final_answer
from components.rewards.skeleton import Limits, Node, Skeleton, SkeletonError, TooLarge, parse, without_values
from components.types import Prompt

Matrix = list[list[int]]


def edit_distance(one: Node, other: Node) -> int:
    """Fewest nodes to insert, delete or relabel that turn one ordered tree into the other.

    By Zhang and Shasha, SIAM Journal on Computing 18(6), 1989.

    A metric. Trees in sorted order are compared as they stand, so a node that is relabelled and therefore sorted
    elsewhere can cost more than 1. Time is O(n² · depth²).
    """
    if one == other:
        return 0
    a, b = _Numbered(one), _Numbered(other)
    trees = [[0] * len(b.labels) for _ in a.labels]
    for i in a.keyroots:
        for j in b.keyroots:
            _compare(a, b, i, j, trees)
    return trees[-1][-1]


class _Numbered:
    """A tree by the post-order numbers of its nodes.

    ``leftmost[i]`` is the first leaf below node i; ``keyroots`` are the nodes that have a left sibling, and the root.
    """

    def __init__(self, tree: Node) -> None:
        self.labels: list[str] = []
        self.leftmost: list[int] = []
        self._number(tree)
        last = {first: i for i, first in enumerate(self.leftmost)}  # of the nodes that share a leaf the highest stays
        self.keyroots = sorted(last.values())

    def _number(self, node: Node) -> int:
        """Number ``node`` after what is below it; returns its first leaf."""
        firsts = [self._number(child) for child in node.children]
        first = firsts[0] if firsts else len(self.labels)
        self.labels.append(node.label)
        self.leftmost.append(first)
        return first


def _compare(a: _Numbered, b: _Numbered, i: int, j: int, trees: Matrix) -> None:
    """Fill ``trees`` for all pairs of subtrees that lie on the left edges of the subtrees i and j.

    ``forests[x][y]`` is the distance between the first x nodes of subtree i and the first y nodes of subtree j.
    """
    start, begin = a.leftmost[i], b.leftmost[j]
    forests = [list(range(j - begin + 2))] + [[x] + [0] * (j - begin + 1) for x in range(1, i - start + 2)]
    for x in range(1, i - start + 2):
        p = start + x - 1
        row, above = forests[x], forests[x - 1]
        for y in range(1, j - begin + 2):
            q = begin + y - 1
            shorter = min(above[y], row[y - 1]) + 1
            if a.leftmost[p] == start and b.leftmost[q] == begin:
                row[y] = trees[p][q] = min(shorter, above[y - 1] + (a.labels[p] != b.labels[q]))
            else:
                row[y] = min(shorter, forests[a.leftmost[p] - start][b.leftmost[q] - begin] + trees[p][q])


class StructureVerifier(JudgingVerifier):
    """Right when both trees are the same; the reward parts say how much of the reference was found.

    Parts: ``jaccard_class``, ``jaccard_function`` and ``jaccard_parameter``, the overlap of the sets of names; with
    ``tree`` also 1 - edit distance / nodes of the larger tree. Sets see neither nesting nor repetition, and a reference
    without parameters gives that part away to whoever writes none either. A text that is not a skeleton, or is larger
    than the limits, is wrong and has nothing in common with any reference.

    Metrics: ``parsed``, ``too_large``, ``jaccard`` (mean of the three), ``tree_edit_distance`` (a text without a tree
    counts as an empty one, and one beyond the limits as one of ``max_nodes`` strange nodes) and ``levenshtein``
    (of the texts, white space evened out, over the length of the longer one).
    """

    def __init__(self, marker: str, values: bool, tree: bool, max_chars: int, max_nodes: int, max_depth: int) -> None:
        self.marker, self._values, self._tree = marker, values, tree
        self._limits = Limits(max_chars, max_nodes, max_depth)

    def judge(self, prompt: Prompt, text: str) -> Judgement:
        """Raises ValueError when the reference is not a skeleton: nothing could be right then."""
        try:
            reference = parse(prompt.answer, self._limits)
        except SkeletonError as error:
            raise ValueError(f"the reference is not a skeleton: {error}") from error
        written = final_answer(text, self.marker) or ""
        found, unread = self._read(written)
        size, distance = reference.tree.size, max(unread, reference.tree.size)
        if found is not None:
            size, distance = max(size, found.tree.size), edit_distance(found.tree, reference.tree)
        jaccards = self._jaccards(found, reference)
        parts = {**jaccards, "tree": max(0.0, 1 - distance / size)} if self._tree else jaccards
        metrics = {
            "parsed": float(found is not None),
            "too_large": float(unread > 0),
            "jaccard": sum(jaccards.values()) / len(jaccards),
            "tree_edit_distance": float(distance),
            "levenshtein": Levenshtein.normalized_distance(_even(prompt.answer), _even(written)),
        }
        return Judgement(float(found is not None and found.tree == reference.tree), parts, metrics)

    def equivalents(self, prompt: Prompt) -> dict[str, str]:
        if self._read(prompt.answer)[0] is None:
            return {}
        return {
            "white space": self.wrap("\n".join(prompt.answer.split())),
            "comment": self.wrap(f"# the whole rule\n{prompt.answer}\n"),
        }

    def _read(self, text: str) -> tuple[Skeleton | None, int]:
        """The skeleton, or None and the number of nodes that stand for what was too large to read."""
        try:
            return parse(text, self._limits), 0
        except TooLarge:
            return None, self._limits.nodes
        except SkeletonError:
            return None, 0

    def _jaccards(self, found: Skeleton | None, reference: Skeleton) -> dict[str, float]:
        if found is None:
            return dict.fromkeys(("jaccard_class", "jaccard_function", "jaccard_parameter"), 0.0)
        parameters = [found.parameters, reference.parameters]
        return {
            "jaccard_class": jaccard(found.classes, reference.classes),
            "jaccard_function": jaccard(found.functions, reference.functions),
            "jaccard_parameter": jaccard(*(parameters if self._values else map(without_values, parameters))),
        }


def jaccard(one: Set[str], other: Set[str]) -> float:
    """|A ∩ B| / |A ∪ B|; 1 for two empty sets."""
    return len(one & other) / len(one | other) if one or other else 1.0


def _even(text: str) -> str:
    """The text with one blank in the place of all white space between words."""
    return " ".join(text.split())
