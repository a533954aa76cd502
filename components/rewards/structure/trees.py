"""Tree edit distance (Zhang and Shasha, SIAM Journal on Computing 18(6), 1989)."""

from __future__ import annotations

from components.rewards.structure.skeleton import Node

Matrix = list[list[int]]


def edit_distance(one: Node, other: Node) -> int:
    """Fewest nodes to insert, delete or relabel that turn one ordered tree into the other.

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
