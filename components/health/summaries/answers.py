"""What was seen, what was done, whether it helped, what it cost, what could not be judged, and what a person should do
next, by what the rule that fired looks at. Advice names settings; it changes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from components.config.judgement import RuleSettings
from components.health.monitor import unjudged
from components.health.rules import compile_rule
from components.health.summaries.phrases import before_and_after, changes, done, helped
from components.health.summaries.run_summary import NAMED, RunSummary, State, named, rules_of
from components.words import number, percent, plural

MOVED = (
    ("accuracy", "accuracy on the prompts that the schedule chose"),
    ("dev_pass_at_1", "held-out pass@1"),
    ("dev_pass_at_k", "held-out pass@k"),
)
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


def seen(summary: RunSummary) -> Iterator[str]:
    for signal, name in MOVED:
        values = [record.signals[signal] for record in summary.records if signal in record.signals]
        if values:
            yield f"{name.capitalize()} went from {percent(values[0])} to {percent(values[-1])}."
    entropies = [record.signals["entropy"] for record in summary.records if "entropy" in record.signals]
    if entropies:
        yield f"Entropy went from {number(entropies[0])} to {number(entropies[-1])} nats per token."
    yield from _broken(summary)
    for rule in rules_of(summary.verdicts):
        fired = [verdict for verdict in summary.verdicts if verdict.rule == rule]
        steps = named([str(verdict.step) for verdict in fired])
        where = f"step {steps}" if len(fired) == 1 else f"steps {steps}"
        part = summary.part(rule)
        points = f" and points at the {part}" if part else ""
        yield f"{rule} ({fired[-1].level}) fired at {where}{points}: {summary.why(rule, fired[-1].reason)}."
    if not summary.verdicts and summary.settings.health.enabled:
        yield f"None of {plural(len(summary.settings.health.rules), 'rule')} fired."


def _broken(summary: RunSummary) -> Iterator[str]:
    """The first time that each invariant did not hold, and how many more steps."""
    found: dict[str, list[tuple[int, str]]] = {}
    for record in summary.records:
        for one in record.notes.get("broken", ()):
            found.setdefault(f"{one['part']}, {one['name']}", []).append((record.step, one["found"]))
    for name, steps in found.items():
        (step, text), more = steps[0], len(steps) - 1
        again = f"; and at {plural(more, 'more step')}" if more else ""
        yield f"Broken ({name}) at step {step}: {text}{again}."


def actions_taken(summary: RunSummary) -> Iterator[str]:
    for response in summary.acts:
        requested = "" if response.asked == response.level else f"; the rule had requested {response.asked}"
        exact = f" ({'; '.join(changes(response))})" if changes(response) else ""
        found = f" A diagnosis named the {response.part} as the cause: {'; '.join(response.found)}."
        said = f"Step {response.step}, {response.rule}: {done(response)}{exact}{requested}."
        yield said + (found if response.found else "")
    for response in summary.taken_back:
        yield f"Step {response.step}: {response.reason}; it was taken back ({'; '.join(changes(response))})."
    ignored = [one for one in summary.ledger.responses if one.level == "warn" and one.asked != "warn"]
    if ignored and not summary.settings.health.responses.enabled:
        rules = named(rules_of(ignored))
        yield f"Responses were switched off (health.responses.enabled), though {rules} requested more than a warning."
    if summary.train["outcome"] == "stopped" and not any(response.level == "stop" for response in summary.acts):
        yield "The run was stopped."
    elif summary.train["outcome"] == "adopted":
        yield "Not known: it was trained elsewhere, and its log was judged afterwards."
    elif not summary.acts:
        yield "Nothing was changed while the run went on."


def _unresolved(summary: RunSummary) -> list[str]:
    """Rules from whose last response the run did not recover; the last of all where only accuracy did not."""
    outcomes = {one.rule: summary.ledger.outcome(one) for one in summary.last_acts}
    return [rule for rule, one in outcomes.items() if one and one.recovered is False] or [summary.acts[-1].rule]


def outcomes_of_actions(summary: RunSummary) -> Iterator[str]:
    for response in summary.acts:
        outcome = summary.ledger.outcome(response)
        figures = f" ({', '.join(before_and_after(outcome.signals))})" if outcome and outcome.signals else ""
        yield f"Response {response.number}, to {response.rule}: {helped(response, outcome)}{figures}."
    for sentence in summary.lost_accuracy:
        yield f"{sentence[:1].upper()}{sentence[1:]}."
    if not summary.acts:
        yield "There was nothing to help."


def cost(summary: RunSummary) -> Iterator[str]:
    lost = summary.lost
    out = {name for response in summary.acts for name in response.quarantined}
    yield f"{plural(lost, 'step')} of {summary.steps} lost." if lost else "No step was lost."
    if out:
        yield f"{plural(len(out), 'prompt')} not trained on any more: {named(sorted(out))}."
    unfinished = summary.settings.train.steps - summary.progress
    if unfinished > 0 and summary.train["outcome"] == "stopped":
        yield f"{plural(unfinished, 'step')} of {summary.settings.train.steps} were not run."


def not_judged(summary: RunSummary) -> Iterator[str]:
    if not summary.settings.health.enabled:
        yield "Everything: no rule watched."
        return
    if summary.broke:
        yield f"Everything from step {summary.broke.step} on: {summary.broke.notes['monitor_failed']}."
    yield from _blind(summary)
    if summary.settings.audit.second is None:
        yield "Whether the verifier is right: no second verifier judges what it judges (audit.second)."
    known = {outcome.of for outcome in summary.ledger.outcomes if outcome.recovered is not None}
    open_ = [one for one in summary.acts if one.level != "stop" and one.number not in known]
    if open_:
        yield f"Whether {named([f'response {one.number}' for one in open_])} helped: the run ended before that."


def _blind(summary: RunSummary) -> Iterator[str]:
    """Rules whose signals never occur; of the log of another trainer, which has few signals, how many they are."""
    rules = summary.settings.health.rules
    missing = unjudged(rules, summary.records)
    if not missing:
        yield "Every rule saw the signals that it reads."
    elif summary.train["outcome"] == "adopted":
        yield f"{len(missing)} of {plural(len(rules), 'rule')} read signals that the log lacks (`evenkeel audit LOG`)."
    else:
        for name, signals in missing.items():
            yield f"{name} never saw {', '.join(signals)}{' (optional)' if rules[name].optional else ''}."


def next_steps(summary: RunSummary, state: State) -> Iterator[str]:
    rules = summary.settings.health.rules
    match state:
        case "stopped":
            yield "Do not approve this checkpoint; training ended in a state that a rule calls broken."
            yield f"Before the next run: {advice(str(summary.train['stopped_by']), rules)}"
        case "not recovered":
            yield "Do not approve before you know why the responses did not help."
            for rule in _unresolved(summary):
                yield f"Before the next run: {advice(rule, rules)}"
        case "worse":
            yield "Do not approve: read the completions of what fell, and its labels; no rule acted on it."
        case "acted" | "recovered":
            yield "Read the evaluation before you approve: part of this run was thrown away or trained differently."
            for rule in rules_of(summary.acts):
                yield f"So that the next run needs no response to {rule}: {advice(rule, rules)}"
        case "warned":
            for rule in rules_of(summary.verdicts)[:NAMED]:
                yield f"{rule}: {advice(rule, rules)}"
        case "not watched" if summary.broke:
            yield "Do not approve: fix the monitor, a rule or a signal that it reads, and train again."
        case "not watched":
            yield "Switch the monitor on (health.enabled) and train again; it is unknown whether this run was healthy."
        case "adopted":
            yield "Judge whether you accept what its log does not show (above), and give the reason when you approve."
            for rule in rules_of(summary.verdicts)[:NAMED]:
                yield f"{rule}: {advice(rule, rules)}"
        case _:
            yield "Nothing on account of health; decide by the evaluation and the completions."


def advice(name: str, rules: Mapping[str, RuleSettings]) -> str:
    """What to try where the rule ``name`` fired; general advice for a rule that the settings do not have."""
    signals = compile_rule(name, rules[name]).signals if name in rules else []
    found = (text for start, text in ADVICE.items() if any(signal.startswith(start) for signal in signals))
    return next(found, OTHERWISE)
