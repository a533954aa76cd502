"""What is written with a notation of its own: ratios, times of day, numbers in a base."""

from __future__ import annotations

import math
import random

from tests.benchmarks.styles.reference import Reference


def ratio(rng: random.Random, number: int) -> Reference:
    """Reduced, of two different numbers."""
    one, two = rng.randint(1, 15), rng.randint(1, 15)
    while math.gcd(one, two) > 1 or one == two:
        one, two = rng.randint(1, 15), rng.randint(1, 15)
    answer = f"{one}:{two}"
    wrong = {
        "inverted": f"{two}:{one}",
        "nearby": f"{one + 1}:{two}",
        "sign": f"-{answer}",
        "juxtaposed": f"{one} {two}",
        "additional": f"{one}:{two}:{one}",
        "flat": f"{one}{two}",
        "times10": f"{10 * one}:{two}",
    }
    if two > 1:
        wrong["half"] = str(one)
    return Reference(
        answer=answer,
        forms={
            "same": answer,
            "spaces": f"{one} : {two}",
            "text": rf"{one}\text{{:}}{two}",
            "colon": rf"{one}\colon {two}",
        },
        wrong=wrong,
        question="What is the ratio of the areas?",
        other=f"{one + 20}:{two}",
    )


def time(rng: random.Random, number: int) -> Reference:
    """Every second one names the half of the day."""
    hour, minute = rng.randint(1, 12), rng.randint(0, 59)
    half, other_half = rng.choice([("a.m.", "p.m."), ("p.m.", "a.m.")])
    named = number % 2 == 1
    digits, suffix = f"{hour}:{minute:02d}", rf"\text{{ {half}}}" if named else ""
    letters = half.replace(".", "")
    if named:
        forms = {
            "upper": rf"{digits}\text{{ {letters.upper()}}}",
            "tie": rf"{digits}~\text{{{half}}}",
            "lower": rf"{digits}\text{{ {letters}}}",
        }
    else:
        forms = {"same2": digits}
    wrong = {
        "nearby": f"{hour}:{(minute + 1) % 60:02d}{suffix}",
        "hour": f"{hour % 12 + 1}:{minute:02d}{suffix}",
        "flat": f"{hour}{minute:02d}",
        "juxtaposed": f"{hour} {minute:02d}",
        "half": str(hour),
    }
    if named:
        wrong["other_unit"] = rf"{digits}\text{{ {other_half}}}"
    if 1 <= minute <= 12 and minute != hour:
        wrong["inverted"] = f"{minute}:{hour:02d}{suffix}"
    return Reference(
        answer=f"{digits}{suffix}",
        forms={"same": f"{digits}{suffix}"} | forms,
        wrong=wrong,
        question="At what time do they meet?",
        other=f"{(hour + 2) % 12 + 1}:{minute:02d}{suffix}",
    )


def base(rng: random.Random, number: int) -> Reference:
    """Three to five digits in a base from 2 to 9."""
    radix = rng.randint(2, 9)
    first = str(rng.randint(1, radix - 1))
    digits = first + "".join(str(rng.randrange(radix)) for _ in range(rng.randint(2, 4)))
    answer = rng.choice([f"{digits}_{radix}", f"{digits}_{{{radix}}}"])
    last = (int(digits[-1]) + 1) % radix
    return Reference(
        answer=answer,
        forms={"same": answer, "brace": f"{digits}_{{{radix}}}", "nobrace": f"{digits}_{radix}"},
        wrong={
            "base": f"{digits}_{{{radix + 1}}}",
            "nearby": f"{digits[:-1]}{last}_{{{radix}}}",
            "digit_dropped": f"{digits[:-1]}_{{{radix}}}",
            "digit_added": f"{digits}1_{{{radix}}}",
            "flat": f"{digits}{radix}",
            "sign": f"-{answer}",
            "times10": f"{digits}0_{{{radix}}}",
        },
        question=f"Write the number in base {radix}.",
        other=f"1{digits}_{{{radix}}}",
        variable="N",
    )
