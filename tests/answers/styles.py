"""How a model states an answer: what stands around it, behind a marker or in a box."""

from __future__ import annotations

MARKED = {
    "plain": "#### {}",
    "full stop": "#### {}.",
    "bold": "#### **{}**",
    "italics": "#### *{}*",
    "formula": "#### ${}$",
    "display": "#### $${}$$",
    "brackets": r"#### \({}\)",
    "box": r"#### \boxed{{{}}}",
    "box in a formula": r"#### $\boxed{{{}}}$.",
    "sentence": "#### The answer is {}.",
    "label": "#### Answer: {}",
    "bold label": "#### **Final answer:** {}",
    "next line": "####\n{}\n",
    "a line behind": "#### {}\n\nThat is what was asked for, 1 of 2 results.",
    "code": "#### `{}`",
}
BOXED = {
    "plain": r"So it is \boxed{{{}}}.",
    "spaces": r"\boxed{{ {} }}",
    "formula": r"\[ \boxed{{{}}} \]",
    "dollars": r"\boxed{{${}$}}",
    "display": r"$$\boxed{{\displaystyle {}}}$$",
    "frame": r"\fbox{{{}}}",
    "full stop": r"\boxed{{{}.}}",
    "bold": r"**\boxed{{{}}}**",
    "second": r"\boxed{{7}} is wrong; it is \boxed{{{}}}",
    "sentence": r"The answer is $\boxed{{{}}}$, as was to be shown.",
}
