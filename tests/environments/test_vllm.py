"""A real vLLM server samples the turns of an episode; see tests/vllm for the server by itself."""

from __future__ import annotations

import pytest

from components.processes import vllm_python
from components.rollout.base import Sampling
from tests.environments.conftest import Table
from tests.vllm.tiny import embedded, engine_of, tiny

pytestmark = [pytest.mark.vllm, pytest.mark.timeout(900)]


def test_episodes_of_a_server_have_its_tokens_and_log_probabilities(game: Table, tmp_path) -> None:
    try:
        vllm_python(None)
    except Exception as error:
        pytest.skip(f"no environment with vLLM (make vllm-env): {error}")
    own, greedy = tiny(texts="higher lower?"), Sampling(n=1, max_new_tokens=60, temperature=0.0, seed=0)
    with engine_of(own, tmp_path) as engine:
        served = game.episodes(own, engine).play(game.prompts[:4], greedy)
        sampled = game.episodes(own, engine).play(game.prompts[:2], Sampling(4, 60, 1.0, seed=3))
    expected = game.episodes(own, embedded(own)).play(game.prompts[:4], greedy)
    for one, other in zip(served, expected, strict=True):
        (mine,), (theirs,) = one.completions, other.completions
        assert (mine.token_ids, mine.sampled, mine.finish_reason) == (
            theirs.token_ids,
            theirs.sampled,
            theirs.finish_reason,
        )
        assert mine.logprobs == pytest.approx(theirs.logprobs, abs=1e-4)
        assert one.verdicts == other.verdicts
    assert all(score.unscorable is None for one in sampled for score in one.verdicts)
    assert any(completion.sampled for one in sampled for completion in one.completions)
