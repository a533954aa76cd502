"""The words that may stand around an answer."""

from __future__ import annotations


def words(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


LEAD = words(
    """so thus therefore hence then and finally now a an the that this these it he she they we you i there final correct
    exact answer answers result solution total sum value values number amount cost price area length width height volume
    perimeter distance speed time age average mean probability difference product remainder is are was be equals equal
    to of gives get gets have has had will would need needs must make makes in all about approximately roughly exactly
    simply just my our his her their its conclude units ans simplified form as written us usd eur gbp rs inr"""
)
"""Words that may stand before an answer, in any order: they leave it what it is."""
_DENIALS = """not no never none neither nor isn't aren't wasn't don't doesn't wrong incorrect false except excluding
    without but unless instead rather maybe perhaps possibly if unlike"""
_NUMERALS = """zero one two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty sixty
    seventy eighty ninety half halves third thirds quarter quarters fourth fourths fifth fifths
    sixth sixths seventh sevenths eighth eighths ninth ninths tenth tenths tens
    hundredth hundredths thousandth thousandths score gross"""
OPERATIVE_BEFORE = words(
    f"""{_DENIALS} {_NUMERALS} twice double doubled triple thrice square squared cube cubed root factorial inverse
    reciprocal negative minus plus times divided multiplied over under above below less fewer more least most than
    between before after until up down near almost nearly opposite dozen hundred
    thousand million billion"""
)
OPERATIVE_BEHIND = words(
    f"""{_DENIALS} {_NUMERALS} factorial inverse reciprocal negative power raised halved doubled tripled plus minus
    times divided multiplied modulo mod choose than least most until squared cubed base percentage thousand hundred
    million billion dozen dozens"""
)
"""Words that change what the number next to them says, or take it back."""
SCALES = {
    "hundred": 10**2, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12, "lakh": 10**5,
    "crore": 10**7, "dozen": 12,
}  # fmt: skip
PERCENT = frozenset(("percent", "pct", "percentage"))
KNOWN = LEAD | OPERATIVE_BEFORE | OPERATIVE_BEHIND | words("on at by am pm me us go do la le")
"""Words of two or three letters that are no product of letters."""
TAIL_WORDS = 8
"""Words behind a number that may still be its unit."""
