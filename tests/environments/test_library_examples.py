"""Environments of the library's own repository, unchanged, run as an environment of one's own is run.

The package of the library does not contain them. `make test-environments` puts a checkout into ``build/verifiers``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from components.config.environments import VerifiersSource
from components.rollout.base import Sampling
from components.types import Score
from tests.environments.conftest import Scripted, Table, player, rubric

EXAMPLES = Path(__file__).resolve().parents[2] / "build/verifiers/environments"
LIMITS = Sampling(n=2, max_new_tokens=1000, temperature=1.0, seed=0)

pytestmark = pytest.mark.skipif(
    not EXAMPLES.is_dir(), reason="no checkout of the library's repository: make verifiers-examples"
)

Play = Callable[..., tuple[list[list[Score]], list[str]]]


@pytest.fixture
def play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Play:
    """Plays the first tasks of an example: the scores of each task, and the text of each first episode.

    The example alone is in the working directory, so that nothing else of the repository can be imported.
    """
    monkeypatch.chdir(tmp_path)

    def play(name: str, reward: str, say: Callable[[str], str], **taskset: Any) -> tuple[list[list[Score]], list[str]]:
        (tmp_path / name).symlink_to(EXAMPLES / name / name)
        source = VerifiersSource(kind="verifiers", target=name, rows=4, settings={"taskset": taskset})
        table, own = Table(source, rubric(reward)), player(positions=4096)
        with table.process:
            played = table.episodes(own, Scripted(own, say)).play(table.prompts, LIMITS)
        texts = [own.tokenizer.decode(one.prompt_ids + one.completions[0].token_ids) for one in played]
        return [list(one.verdicts) for one in played], texts

    return play


def rows(folder: Path, *records: dict[str, Any]) -> None:
    """A data set in a folder, which `datasets` reads instead of one of a hub that has the folder's name."""
    folder.mkdir(parents=True)
    (folder / "train.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))


def last(text: str, role: str) -> str:
    """The last message of a role."""
    return text.rpartition(f"<|{role}|>")[2].partition("<|end|>")[0].partition("<|assistant|>")[0]


def call(tool: str, **arguments: str) -> str:
    return f"<tool_call>{json.dumps({'name': tool, 'arguments': arguments})}</tool_call>"


def accuracies(scores: list[list[Score]]) -> list[list[float | None]]:
    assert [score.unscorable for task in scores for score in task] == [None] * sum(map(len, scores))
    return [[score.accuracy for score in task] for task in scores]


def test_reverse_text_gives_a_share_for_a_text_that_is_partly_right(play, tmp_path):
    rows(tmp_path / "texts", {"prompt": "even keel"}, {"prompt": "abcd"})

    def say(text: str) -> str:
        words = last(text, "user")
        return f"<reversed_text>{'dcxy' if words == 'abcd' else words[::-1]}</reversed_text>"

    scores, _ = play("reverse_text", "lcs", say, dataset_name="texts")
    assert accuracies(scores) == [[1.0] * 2, [0.5] * 2]


def test_glossary_answers_are_right_only_after_its_tool_was_called(play):
    def say(text: str) -> str:
        if "<|tool|>" in text:
            return f"<answer>{last(text, 'tool')}</answer>"
        name = re.findall(r'look up "([^"]+)"', text)[-1]
        return "I know this." if name == "Grace Hopper" else call("facts_lookup", name=name)

    scores, texts = play("glossary", "looked_up", say)
    assert accuracies(scores) == [[1.0] * 2, [0.0] * 2, [1.0] * 2, [1.0] * 2]
    assert "<|tool|>the first computer programmer" in texts[0]


def test_scratchpad_episodes_that_share_a_tool_server_read_their_own_word(play):
    def say(text: str) -> str:
        if "<|tool|>" in text:
            return last(text, "tool")
        return call("scratchpad_roundtrip", word=re.findall(r'word="(\w+)"', text)[-1])

    scores, texts = play("scratchpad", "isolated", say)
    assert accuracies(scores) == [[1.0] * 2] * 4
    assert [last(text, "tool") for text in texts] == ["alpha", "bravo", "charlie", "delta"]


def test_kuhn_poker_trains_both_players_and_is_refused(play):
    scores, _ = play("kuhn_poker", "payoff", lambda text: "[call]" if "[call]" in last(text, "user") else "[check]")
    reasons = {score.unscorable for task in scores for score in task}
    assert reasons == {"refused: 2 agents of the episode are to be trained, and one can be"}


def test_alphabet_sort_opens_the_conversation_and_continues_it(play, tmp_path):
    names = ["AdaLovelace", "GraceHopper", "AlanTuring", "DennisRitchie", "KatherineJohnson", "EdsgerDijkstra"]
    rows(tmp_path / "kalomaze/alphabetic-arxiv-authors-it1", *({"names": names[i:] + names[:i]} for i in range(4)))

    def say(text: str) -> str:
        """Right in the first turn, and in later turns but for the mark of new names."""
        turns = text.split("<|user|>")[1:]
        given = [name for name in names if any(name in turn for turn in turns)]
        by = 0 if "by FIRST name" in turns[0] else 1
        listed = sorted(given, key=lambda name: re.findall("[A-Z][a-z]+", name)[by])
        tag = "alphabetical_sorted" if len(turns) == 1 else "combined_alphabetical_sorted"
        return f"<{tag}>\n" + "\n".join(listed) + f"\n</{tag}>"

    scores, texts = play("alphabet_sort", "alphabet_sort", say, min_turns=1, max_turns=3, max_names_per_turn=2)
    turns = [scores_of[0].metrics["turns"] for scores_of in scores]
    assert [text.count("<|assistant|>") for text in texts] == turns
    assert max(turns) > 1
    for (one, *_), several in zip(accuracies(scores), (count > 1 for count in turns), strict=True):
        assert one is not None and (0.0 < one < 1.0 if several else one == 1.0)
