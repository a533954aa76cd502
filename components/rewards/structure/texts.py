"""Levenshtein distance between texts."""

from __future__ import annotations


def levenshtein(one: str, other: str) -> int:
    """Fewest characters to insert, delete or replace that turn one text into the other.

    One column of the usual table is two integers whose bits say where the distance rises and falls from row to row
    (Myers 1999, as simplified by Hyyrö 2003), so that a character of ``other`` costs a few operations.
    """
    if not one:
        return len(other)
    rows = (1 << len(one)) - 1
    last = 1 << (len(one) - 1)
    places: dict[str, int] = {}
    for row, character in enumerate(one):
        places[character] = places.get(character, 0) | 1 << row
    rises, falls, distance = rows, 0, len(one)
    for character in other:
        equal = places.get(character, 0)
        diagonal = (((equal & rises) + rises) ^ rises) | equal
        right_rises = falls | (rows & ~(diagonal | rises))
        right_falls = rises & diagonal
        distance += bool(right_rises & last) - bool(right_falls & last)
        right_rises = right_rises << 1 | 1
        right_falls <<= 1
        here = equal | falls
        rises = rows & (right_falls | ~(here | right_rises))
        falls = rows & right_rises & here
    return distance


def normalised_levenshtein(one: str, other: str) -> float:
    """Levenshtein distance over the length of the longer text, in [0, 1]; white space is evened out first."""
    one, other = " ".join(one.split()), " ".join(other.split())
    longer = max(len(one), len(other))
    return levenshtein(one, other) / longer if longer else 0.0
