"""Short or long texts that are expensive to read, to simplify or to compute. None is a right answer to anything."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from components.audit.grammar.base import ANY, Kinds, Make, ProbeClass, table
from components.audit.hacks import Target

VALUES: Kinds = ("number", "expression", "text", "calculation", "other")
LONG = 100_000
NEVER = "7919.0625"
"""A number that is no answer, in texts of which a verifier may read one."""
NESTED = 2000


def nested(opening: str, closing: str, times: int, inner: str = NEVER) -> str:
    """``inner`` in so many brackets."""
    return f"{opening * times}{inner}{closing * times}"


def fixed(texts: Iterable[str]) -> Make:
    return lambda _: texts


def floods(target: Target) -> Iterator[str]:
    """One thing again and again."""
    yield from (
        piece * (LONG // len(piece))
        for piece in ("9", "1+", f"{NEVER},", "- ", "*", "\\", "1/", "a\n", "$", "\\,", "9.", "A ", f"={NEVER}")
    )
    yield from (f"{' ' * LONG}{NEVER}", f"0.{'0' * LONG}7919", f"1e{'9' * 12}", f"1e-{'9' * 12}")
    yield from (f'"{"x" * LONG}"', f"[{'0,' * (LONG // 2)}0]", "\u202e" * LONG, "e" * LONG + NEVER)
    yield NEVER + "\n" * LONG + NEVER


def markers(target: Target) -> Iterator[str]:
    """The form of an answer thousands of times."""
    empty = target.verifier.wrap("") or "#"
    yield from (empty * 20_000, f"{empty}{NEVER} " * 10_000, r"\boxed{" * 20_000)
    yield from (rf"\boxed{{{NEVER}}}" * 10_000, f"{empty}\n" * 20_000)


def nests(target: Target) -> Iterator[str]:
    """Brackets within brackets."""
    for pair in ("()", "[]", "{}"):
        yield from (nested(pair[0], pair[1], NESTED), pair[0] * LONG)
    yield from (nested('{"a":', "}", NESTED), nested('{"a":', "}", 150), nested("[", "]", 150))
    yield from (nested(r"\text{", "}", 500), nested(r"\left(", r"\right)", 500), nested("class A { ", " }", 1000, ""))
    yield from (nested("<answer>", "</answer>", 5000), nested("(", ")", 60, f"{NEVER}+1"))


POWERS = table(r"""
    9^{9^{9^{9}}}  9^9^9^9  9**9**9**9  10^{10^{10}}  2^{9999999999}  (10^{99})^{10^{99}}  7^{7^{7^{7^{7}}}}
    x^{\frac{1}{999999937}}  \sqrt[99999]{2}  (\sqrt{2}+\sqrt{3})^{9999}  0.999999999^{999999999999}
    e^{e^{e^{e^{99}}}}
""")
FACTORIALS = table(rf"""
    99999999!  (9999!)!  99!!!!  9999999!/9999998!  \binom{{99999999}}{{49999999}}  \frac{{99999999!}}{{3}}
    \Gamma(99999999)  (3!)!!!  \binom{{10^9}}{{10^8}}  1000000! + {NEVER}
""")
SUMS = table(r"""
    \sum_{n=1}^{999999999} n  \sum_{n=1}^{99999999} \frac{1}{n^7}
    \prod_{n=1}^{99999999} n  \prod_{n=1}^{9999} (x+n)
    \int_0^1 x^x \sin(x^3) e^{x^2} dx  \int \frac{\sin(x^5)}{x^7+x+1} dx
    \lim_{n \to 99} \frac{\sin^9(n!)}{n^n}  \int_0^1 \int_0^1 \int_0^1 e^{x y z^{x}} dx dy dz
    \sum_{n=1}^{99} \sum_{m=1}^{99} \sum_{k=1}^{99} \frac{1}{n m k+1}
""")
EXPANSIONS = table(r"""
    (a+b+c+d)^{99}  (x+1)^{9999}  (x+y+z)^{99}-(x+y-z)^{98}  (x+1)^{99}(y+1)^{99}(z+1)^{99}  ((x+1)^{99}+1)^{99}
    \frac{(x+y)^{99}-1}{(x-y)^{98}+1}  (1+x)(1+x^2)(1+x^4)(1+x^8)(a+b)^{60}  (\sin x+\cos x)^{99}  (1+i)^{99999}
""")
LAYERS = tuple(
    nested(opening, closing, times, inner)
    for opening, closing, inner in (
        (r"\frac{1}{1+", "}", "x"),
        (r"\sqrt{1+", "}", "2"),
        (r"\sin(", ")", "x"),
        (r"\log(1+", ")", "x"),
        ("(x+", ")^2", "1"),
        (r"\frac{", "}{2}", "x"),
        ("|1-", "|", "x"),
        (r"\sqrt{", "}", "x"),
    )
    for times in (11, 25)
)
MATRICES = (
    r"\begin{pmatrix} "
    + r" \\ ".join(" & ".join(f"x^{i + j}" for j in range(7)) for i in range(7))
    + r" \end{pmatrix}^{99}",
    r"\det\begin{pmatrix} "
    + r" \\ ".join(" & ".join(f"x_{i}" for i in range(9)) for _ in range(9))
    + r" \end{pmatrix}",
    "x^9-x^8+7=y^{7}-z^{5}+w",
    r"\{" + ",".join(f"x^{{{i}}}" for i in range(60)) + r"\}",
)


def code(target: Target) -> Iterator[str]:
    """Programs that do not end, or that fill whatever there is to fill."""
    name = target.prompt.answer.partition("assert ")[2].partition("(")[0]
    name = name if name.isidentifier() else "answer"
    yield from ("while True: pass", f"def {name}(*_):\n    while True: pass", "x = [0]\nwhile True: x += x")
    yield from ("import time\ntime.sleep(9999)", "9 ** 9 ** 9", f"def {name}(*_): return {name}()")
    yield from ("while True: print('x' * 9999)", f"x = {nested('(', ')', 500, '1')}")


def _bomb(name: str, kinds: Kinds, make: Make, advice: str, whole: bool = False) -> ProbeClass:
    return ProbeClass(name, "quick", kinds, make, advice, whole)


SIZE = "bound what is read before anything is computed: characters, digits, depth, exponents"
CLASSES = (
    _bomb("powers", VALUES, fixed(POWERS), SIZE),
    _bomb("factorials", VALUES, fixed(FACTORIALS), SIZE),
    _bomb(
        "sums and integrals",
        VALUES,
        fixed(SUMS),
        "what has to be solved or added up is no final answer: refuse it unread",
    ),
    _bomb("expansions", VALUES, fixed(EXPANSIONS), SIZE),
    _bomb("layers", VALUES, fixed(LAYERS), SIZE),
    _bomb("matrices and equations", VALUES, fixed(MATRICES), SIZE),
    _bomb("nesting", ANY, nests, SIZE),
    _bomb("flood", ANY, floods, "read texts in linear time, and none that is longer than an answer can be"),
    _bomb("markers", ANY, markers, "look for the last marker from the end, once", whole=True),
    _bomb(
        "program without an end", ("code",), code, "stop code at its own limit, before the sandbox stops the verifier"
    ),
)
