"""Takes off what changes nothing: typesetting, emphasis, delimiters. Everything here takes time linear in the text."""

from __future__ import annotations

import re
import unicodedata

_SIGNS = str.maketrans(
    {
        **dict.fromkeys("\u2212\ufe63\uff0d", "-"),
        **dict.fromkeys("×∙⋅·∗⨯", "*"),
        **{"÷": "/", "⁄": "/", "∕": "/", "≤": r"\le ", "≥": r"\ge ", "≠": r"\ne ", "≈": r"\approx ", "π": r"\pi "},
        **{"√": r"\sqrt ", "∞": r"\infty ", "∪": r"\cup ", "∩": r"\cap ", "∈": r"\in ", "∅": r"\emptyset "},
        **{"θ": r"\theta ", "ℝ": r"\R ", "ℤ": r"\Z ", "ℕ": r"\N ", "ℚ": r"\Q ", "ℂ": r"\C "},
        **{"’": "'", "‘": "'", "“": '"', "”": '"', "`": ""},
    }
)
_DASH = re.compile("(?<![0-9A-Za-z)}])[\u2010-\u2015]\\s?(?=[0-9.$€£(\\\\])")
"""A dash before a number and behind none is a minus; between two it is a range."""
_RAISED = re.compile("[⁰¹²³⁴-⁹]+|⁻[⁰¹²³⁴-⁹]+")
_VULGAR = re.compile("[¼-¾⅐-⅞]")
_BOLD = re.compile(r"(?<![\w)\]}*])(\*{1,3})(?=[^\s*])([^*\n]*[^\s*])\1(?![\w(*])")
_CIRCLE = re.compile(r"\^\s*(?:\\circ(?![A-Za-z])|\{\s*\\circ\s*\}|∘|\{\s*∘\s*\})|\\degrees?(?![A-Za-z])")
_HALF = re.compile(
    r"(?<=[0-9])(?:\s|\\[,; ]|~){0,4}(?:\\(?:text|mathrm)\s*\{\s*)?([aApP])\.?\s?[mM](?![A-Za-z])\.?(?:\s*\})?"
)
_ROWS = re.compile(r"\\\\\s*\[[^\]]{0,20}\]")
_NO_SIGN = re.compile(
    r"\\(?:left|right|[bB]igg?[lr]?|displaystyle|textstyle|limits|mathstrut|strut|phantom\{\})(?![A-Za-z])\.?"
    r"|\\(?:bf|it|bfseries|large|Large|huge)(?![A-Za-z])|\\(?:color|textcolor|hspace|vspace)\s*\{[\w.]*\}"
    r"|\\[()\[\]]"
)
_MARKUP = re.compile(r"</?(?:answer|b|strong|em|code|br)\s?/?>|<\|[a-z_]{2,30}\|>|</s>|<end_of_turn>|[✅✓✔☑👉🎉\ufe0f]")
"""Tags, signs with which models end, and signs of approval."""
_INFIX = re.compile(r"\{([^{}]*)\\(over|choose)(?![A-Za-z])([^{}]*)\}")
_GOES_ON = re.compile(r"(\.[0-9]{0,12}?)([0-9])\2{2,12}(?:\.{3}|…|\\[lc]?dots(?![A-Za-z]))")
"""A digit that stands three times before the dots repeats."""
_NEGATIVE = re.compile(r"(?i)(?<![a-z-])(?:minus|negative)\s(?=[0-9.$\\])")
_BUILDER = re.compile(
    r"\\\{\s*([A-Za-z])\s*(?:\\in\s*\\(?:mathbb\s*\{?\s*)?R\s*\}?\s*)?(?:\\[,;:]\s?)?(?:\\(?:mid|vert)(?![A-Za-z])|[|:])"
    r"((?=[^{}=]*\1)(?=[^{}=]*(?:[<>]|\\[lg](?:e|t|eq)(?![A-Za-z])))[^{}=]*)\\\}"
)
"""A set of the numbers for which an inequality holds is that inequality."""
_FACE = re.compile(r"\\(?:mathbf|boldsymbol|bm|mathit|mathsf|mathcal|ensuremath|underline)\s*(?=\{)")
_DRESSED_NUMBER = re.compile(r"\\(?:text|textbf|textit|textrm|mathrm|mbox)\s*(\{[-+0-9., ]+\})")
_COLON = re.compile(r"(?:\\(?:text|mathrm)\s*)?\{\s*:\s*\}")
_WRAPPERS = ("$$", "$", "**", "__", "*", "_", '"', "'")
_INSIDE = {"$": 1, "*": 1000, "**": 1000}
"""How often a wrapper may stand inside: a currency in a formula; an asterisk begins and ends no formula."""
_WHOLE_TEXT = re.compile(r"(?:\\(?:text|mathrm|textbf|textit|textrm|mbox|operatorname)\s*)?\{([^{}]*)\}")
_DOLLAR = re.compile(r"(?<!\\)\$")
END = " \t\r\n.,;:"
"""What may end a sentence. A full stop before a digit never stands there."""


def undressed(text: str) -> str:
    """The text in ASCII signs, without emphasis, quotation marks, delimiters of formulas and the end of a sentence."""
    text = _GOES_ON.sub(r"\1\\overline{\2}", _MARKUP.sub(" ", text))
    text = _DASH.sub("-", text).translate(_SIGNS)
    if not text.isascii():
        text = _RAISED.sub(lambda found: f"^{{{unicodedata.normalize('NFKC', found[0])}}}".replace("\u2212", "-"), text)
        text = _VULGAR.sub(_fraction, text)
    if "matrix" not in text and "array" not in text and "cases" not in text:
        text = re.sub(r"\\\\(?=[A-Za-z])", r"\\", text)
    text = _DRESSED_NUMBER.sub(r"\1", _CIRCLE.sub("°", _ROWS.sub(r"\\\\ ", text)))
    text = _NO_SIGN.sub(" ", _FACE.sub("", text))
    text = _COLON.sub(":", _NEGATIVE.sub("-", _HALF.sub(r" \1m", text)))
    text = _INFIX.sub(_prefix, text)
    text = _unwrapped(_BOLD.sub(lambda found: found[2], text).strip())
    return built[2].strip() if (built := _BUILDER.fullmatch(text)) else text


def _fraction(found: re.Match[str]) -> str:
    above, _, below = unicodedata.normalize("NFKC", found[0]).partition("\u2044")
    return rf"\frac{{{above}}}{{{below}}}"


def _prefix(found: re.Match[str]) -> str:
    name = "frac" if found[2] == "over" else "binom"
    return rf"\{name}{{{found[1]}}}{{{found[3]}}}"


def _unwrapped(text: str) -> str:
    for _ in range(len(_WRAPPERS)):
        text = text.rstrip(END).removesuffix("\\").removesuffix("\\").rstrip(END).lstrip()
        for wrapper in _WRAPPERS:
            inner = text[len(wrapper) : -len(wrapper)]
            whole = (
                text.startswith(wrapper) and text.endswith(wrapper) and inner.count(wrapper) <= _INSIDE.get(wrapper, 0)
            )
            if whole and len(text) > 2 * len(wrapper):
                text = inner.strip()
                break
        else:
            if (face := _WHOLE_TEXT.fullmatch(text)) is None:
                break
            text = face[1]
    if len(_DOLLAR.findall(text)) % 2 == 0:  # they are delimiters; a single one is a currency
        text = _DOLLAR.sub(" ", text).strip()
    return text.rstrip(END)
