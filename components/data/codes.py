"""Why a row is in quarantine: a code for programs, what to do for people."""

from __future__ import annotations

REASONS: dict[str, str] = {
    "not_json": "fix or remove the line; JSON lines are UTF-8, one object each",
    "not_utf8": "write the cell as UTF-8 text",
    "not_object": "every line must be a JSON object, with columns for question and answer",
    "missing_column": "give the row the column, or name the right one under data.source",
    "not_text": "write the cell as text or as a number",
    "empty_question": "write the question, or remove the row",
    "empty_answer": "write the answer, or remove the row",
    "answer_not_found": "fix the row, or data.source.answer_pattern or data.source.format",
    "empty_id": "give the row an id, or leave data.source.id out: ids are then made from the question",
    "empty_origin": "say where the row comes from, or leave the origin out",
    "bad_difficulty": "write a finite number, or leave data.source.difficulty out",
    "too_long": "shorten or remove the row, or raise the limit under data.validation",
    "duplicate_id": "give every row an id of its own, or leave data.source.id out",
    "duplicate_question": "remove the repeated row; where the answers differ, keep the right one: the first was taken",
    "near_duplicate": "remove the row, or loosen data.validation.near_duplicates",
    "leak": "remove the row: its twin is in another split; or loosen data.validation.near_duplicates",
    "verifier_refused": "let the solution state the right answer where reward.verifier looks for it (its marker)",
    "unscorable_reference": "fix the answer, or the settings under reward.verifier and reward.sandbox",
    "template_tokens": "remove the tokens that the chat template uses for roles and turns from the row",
}
"""Code -> how to fix it. The codes are part of the format of `quarantine.jsonl` and `validation.json`."""
