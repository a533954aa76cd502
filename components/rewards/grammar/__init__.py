"""The grammar of answers, shared by the verifiers `numeric` and `math`. All of it takes time linear in the text.

- `dress` — takes off what changes nothing: emphasis, delimiters of formulas, typeset signs
- `tokens` — numbers in every style of thousands, letters, words, operators
- `prose` — the words that may stand around an answer, and those that change what it says
- `nodes`, `expressions`, `commands` — one expression, by recursive descent
- `reader` — one answer: relations, lists, sets, and what stands around them
- `arithmetic`, `values` — what an expression is worth, exactly or to 60 digits
- `comparison` — whether two answers are the same
- `judging` — right, wrong, or open to more than one reading
- `scan` — the number that a text is, and the statement with which a running text ends

Anything else raises `nodes.NotRead`: it is not one answer.
"""
