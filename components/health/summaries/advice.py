"""What a person should do next, by what the rule that fired looks at. Advice names settings; it changes nothing."""

from __future__ import annotations

from collections.abc import Mapping

from components.config.judgement import RuleSettings
from components.health.rules import compile_rule

ADVICE: dict[str, str] = {
    "nonfinite": "a lower learner.lr or a longer learner.warmup; if it stays, look for the first record in which it "
    "happened.",
    "updates_skipped": "look at the prompts of the batches whose updates were skipped: they are in quarantine in the "
    "ledger; if there are many, a lower learner.lr.",
    "broken_settings": "look in the records (notes, broken) at which value it was, and at what else sets it.",
    "broken_sampler": "look in the records (notes, broken) at what was sampled: a limit or an end token of an engine "
    "or of a server is not what the run configured.",
    "broken_data": "look in the records (notes, broken) at which prompts they were, and at what changes them after the "
    "data stage.",
    "broken_verifier": "judge the completion that the records name (notes, broken) by hand: a verifier whose verdicts "
    "depend on more than prompt and completion cannot be trained on (reward.verifier, reward.sandbox).",
    "golden_differ": "judge the completions that the records name (notes, broken) by hand; repair the verifier "
    "(reward.verifier), or name a second one (audit.second).",
    "broken_learner": "look in the records (notes, broken) at what of the update it was: advantages, the weights "
    "between updates, the size of an update, or the moments of the optimizer.",
    "broken_schedule": "look at what draws the prompts (schedule.kind): it lost its state, or something replaces "
    "what it draws.",
    "reversal_evidence": "look for a sign: in the advantages, in the loss, or in what the learner does with them.",
    "batch_torn": "look at what lies between the loop and the learner: the batch is changed there.",
    "weights_still": "look at which tensors are trained: some have stopped to change.",
    "repeat_evidence": "look at the sampler's seeds and caches: completions of a prompt are copies of each other.",
    "schedule_repeated": "look at what the schedule draws (schedule.kind); the records have its coverage.",
    "same_weights_fall": "do not approve, and do not train again yet: compare the engine and the verifier with those "
    "of the run's beginning, and read completions of the dev split from before and after.",
    "fall_evidence": "see which family fell (held_out in the records), and read its completions and its labels; a "
    "lower learner.lr helps where all of them fell.",
    "canar": "read what the canaries were answered; do not approve a checkpoint that answers them worse.",
    "second_": "read the disagreements on the report: one of the two verifiers is wrong, and if it is the first, the "
    "policy has learned to please it (reward.verifier).",
    "train_dev_gap": "read completions of the last steps: reward that rises while held-out accuracy does not is a "
    "gamed verifier or memorised prompts (evenkeel audit-verifier).",
    "accuracy_jump": "read the completions of that step: accuracy that jumps is more often a gap in the verifier "
    "than a skill.",
    "top_prompt_share": "look at the prompts that dominate the update and at what is concentrated in the data "
    "(data.concentration, schedule.kind).",
    "distinct_prompts": "give the schedule more questions to choose from (data.concentration, schedule.kind).",
    "ties_broken_share": "look at the other reward parts: they break ties between answers that are equally right "
    "(reward.shaping, reward.consistency).",
    "shaping": "lower the weights of what is rewarded other than accuracy (reward.shaping and the parts of reward).",
    "repetition_share": "read completions that repeat themselves, and where they end (rollout.max_new_tokens).",
    "length_": "read the longest and the shortest completions: length that grows without accuracy is padding "
    "(reward.soft_overlong, rollout.max_new_tokens).",
    "top_completion_share": "read the completion that is repeated: a policy that answers everything alike has found a "
    "gap in the verifier.",
    "unscorable_share": "read why the verifier could not judge (reward.verifier, reward.sandbox.timeout).",
    "truncated_share": "raise rollout.max_new_tokens, or look for padding in the completions.",
    "zero_variance": "choose prompts that the policy sometimes solves (schedule.kind, rollout.dynamic_sampling), or a "
    "larger rollout.group_size.",
    "all_": "choose prompts that the policy sometimes solves (schedule.kind, rollout.dynamic_sampling).",
    "grad_norm": "look at the batch of that step and at the ones after it; if it comes back, a lower learner.lr or a "
    "smaller learner.grad_clip.",
    "mismatch": "compare sampler and learner: precision (rollout.engine, policy.dtype) and objective.correction.",
    "ess": "compare sampler and learner: precision (rollout.engine, policy.dtype) and objective.correction.",
    "entropy": "a lower learner.lr; where entropy fell, an entropy bonus (objective.entropy) or a higher upper clip "
    "(objective.ratio) as well.",
    "form_": "read held-out completions from before and after: what is cut off, cannot be judged, or has become long.",
    "update_move": "a lower learner.lr or a longer learner.warmup: one update alone lost what had been learned.",
    "kl_old": "smaller steps: a lower learner.lr or fewer learner.updates_per_step.",
    "kl_": "hold the policy nearer to its start: objective.kl, or a lower learner.lr.",
    "ratio_": "smaller steps: a lower learner.lr or fewer learner.updates_per_step.",
    "dev_pass": "compare the completions before and after on the report; a lower learner.lr loses less of what was "
    "there.",
    "accuracy": "a lower learner.lr or a longer learner.warmup; the plots show which signal moved first.",
}
"""Beginning of a signal's name -> what to try. The first that the rule reads counts: causes stand before symptoms."""
OTHERWISE = "look at the plots around that step: the signal that moved first is the place to begin."


def advice(name: str, rules: Mapping[str, RuleSettings]) -> str:
    """What to try where the rule ``name`` fired; general advice for a rule that the settings do not have."""
    signals = compile_rule(name, rules[name]).signals if name in rules else []
    found = (text for start, text in ADVICE.items() if any(signal.startswith(start) for signal in signals))
    return next(found, OTHERWISE)
